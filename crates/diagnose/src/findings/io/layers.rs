//! Whether there is a storage device behind the target at all, and what lies between.

use kelvin_storage::probe::{Layer, LayerKind, StorageFacts};

use super::{IoFindingDefinition, names};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-layers",
    question: "Is there a storage device behind the target, and what lies in between?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut of_filesystem = |test: &dyn Fn(&str) -> bool, severity, title: &str, next: &str| {
        let its = facts.targets.iter().filter_map(|target| {
            let filesystem = target.filesystem.as_ref().filter(|filesystem| test(&filesystem.kind))?;
            Some((target.path.to_str()?, filesystem))
        });
        let its: Vec<_> = its.collect();
        let Some((_, first)) = its.first() else { return };
        found.push(finding(
            severity,
            title.replace("FS", &first.kind),
            vec![EvidenceLine::new(
                format!("filesystem of {}", names(its.iter().map(|(path, _)| *path))),
                format!("{}, mounted at {}", first.kind, first.point.display()),
            )],
            next,
        ));
    };
    of_filesystem(
        &|kind| matches!(kind, "tmpfs" | "ramfs" | "hugetlbfs"),
        Severity::Red,
        "The files are on FS: this measures memory, not storage",
        "Use a directory on the intended storage (`directory=`); `findmnt -T DIRECTORY` shows its filesystem.",
    );
    of_filesystem(
        &is_remote,
        Severity::Note,
        "The files are on FS: another machine or program does the I/O",
        "Look at the device counters on the other machine as well.",
    );
    if facts.targets.iter().any(|target| target.dax) {
        let paths =
            facts.targets.iter().filter(|target| target.dax).filter_map(|target| target.path.to_str());
        found.push(finding(
            Severity::Amber,
            "The files are on persistent memory (DAX): the CPUs copy, and no device does I/O".into(),
            vec![EvidenceLine::new("files with the DAX attribute", names(paths))],
            "State it with the result; block size and depth do not have their usual meaning here.",
        ));
    }
    let mut seen: Vec<&Layer> = Vec::new();
    for layer in facts.devices.iter().flat_map(|device| &device.layers) {
        if !seen.contains(&layer) {
            seen.push(layer);
            found.extend(of_layer(layer));
        }
    }
    found
}

fn is_remote(kind: &str) -> bool {
    kind.starts_with("nfs")
        || kind.starts_with("fuse")
        || matches!(
            kind,
            "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "glusterfs" | "lustre" | "afs" | "beegfs"
        )
}

fn of_layer(layer: &Layer) -> Option<Finding> {
    let device = &layer.device;
    let (severity, title, next) = match layer.kind {
        LayerKind::Zram => (
            Severity::Amber,
            format!("The device {device} is compressed memory: the CPUs do its I/O"),
            "Use a device of the intended storage; if memory is intended, state it with the result.",
        ),
        LayerKind::RamDisk => (
            Severity::Amber,
            format!("The device {device} is memory"),
            "Use a device of the intended storage; if memory is intended, state it with the result.",
        ),
        LayerKind::LoopCached => (
            Severity::Amber,
            format!("The device {device} is a file behind the page cache: repeated reads come from memory"),
            "Attach it with `losetup --direct-io=on`, or measure the file or the device below it.",
        ),
        LayerKind::LoopDirect => (
            Severity::Note,
            format!("The device {device} is a file: another filesystem lies below it"),
            "Measure the file or the device below it, unless this layer is intended.",
        ),
        LayerKind::Thin => (
            Severity::Amber,
            format!(
                "The device {device} is a thin pool: space is allocated on first write, and unwritten blocks \
                read as zeros"
            ),
            "Write the whole region once with `--prepare` before measuring reads or overwrites.",
        ),
        LayerKind::Vdo => (
            Severity::Amber,
            format!("The device {device} compresses and deduplicates: the results depend on the data"),
            "Set `buffer_compress_percentage=` and `dedupe_percentage=` to match the real data.",
        ),
        LayerKind::Network => (
            Severity::Note,
            format!("The device {device} is a disk on another machine"),
            "Look at the other machine and the network as well.",
        ),
        LayerKind::Volume | LayerKind::Crypt | LayerKind::Multipath | LayerKind::Raid => return None,
    };
    let detail = if layer.detail.is_empty() { "according to sysfs" } else { &layer.detail };
    Some(finding(severity, title, vec![EvidenceLine::new(device.clone(), detail)], next))
}

fn finding(severity: Severity, title: String, evidence: Vec<EvidenceLine>, next: &str) -> Finding {
    Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title,
        evidence,
        effect: Effect::unknown(
            "the layers in between are part of the measurement and are not timed separately",
        ),
        below_precision: false,
        threshold: "no threshold: the target as the kernel reports it (mountinfo, statx, sysfs). Red if \
            there is no storage"
            .into(),
        next: next.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, severities};
    use super::*;

    #[test]
    fn memory_is_no_storage() {
        let on = |kind: &str| {
            let mut facts = before();
            facts.targets[0].filesystem.as_mut().unwrap().kind = kind.into();
            severities(&ABOUT, &facts)
        };
        assert_eq!(on("ext4"), []);
        assert_eq!(on("tmpfs"), [Severity::Red]);
        assert_eq!(on("nfs4"), [Severity::Note]);
        let mut persistent = before();
        persistent.targets[0].dax = true;
        assert_eq!(severities(&ABOUT, &persistent), [Severity::Amber]);
    }

    #[test]
    fn layers_that_change_what_is_measured_are_reported() {
        let over = |kind| {
            let mut facts = before();
            let layer = Layer { device: "dm-0".into(), kind, detail: String::new() };
            facts.devices[0].layers = vec![layer.clone(), layer];
            severities(&ABOUT, &facts)
        };
        for kind in
            [LayerKind::Zram, LayerKind::RamDisk, LayerKind::LoopCached, LayerKind::Thin, LayerKind::Vdo]
        {
            assert_eq!(over(kind), [Severity::Amber], "{kind:?}");
        }
        assert_eq!(over(LayerKind::LoopDirect), [Severity::Note]);
        for kind in [LayerKind::Volume, LayerKind::Crypt, LayerKind::Raid] {
            assert_eq!(over(kind), [], "{kind:?}");
        }
    }
}
