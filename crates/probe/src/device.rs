//! Block devices, their layers and settings, from sysfs.

use kelvin_host::disk::{device_name, device_number, member_devices, whole_disk};
use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::facts::{DeviceFacts, Layer, LayerKind, Queue};
use kelvin_host::{SystemTree, chosen};

/// Maximum depth of a stack of devices. A deeper one is a cycle, which only a broken tree has.
const DEEPEST: u32 = 16;

/// The directory of a device.
fn home(name: &str) -> String {
    format!("/sys/class/block/{name}")
}

/// The block device that a file's data is on, or that a device file refers to.
pub(crate) fn device_under_file(tree: &SystemTree, metadata: &std::fs::Metadata) -> Option<String> {
    let device = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    device_name(tree, &device_number(device))
}

/// The partitions of a disk.
pub(crate) fn partitions(tree: &SystemTree, disk: &str) -> Vec<String> {
    let names = tree.names(home(disk));
    names.into_iter().filter(|name| tree.has(format!("{}/{name}/partition", home(disk)))).collect()
}

/// All devices built upon a device, including itself and its partitions: volumes, arrays, loop devices.
pub(crate) fn built_upon(tree: &SystemTree, name: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(device) = open.pop() {
        if !all.insert(device.clone()) {
            continue;
        }
        open.extend(partitions(tree, &device));
        open.extend(tree.names(format!("{}/holders", home(&device))));
        open.extend(
            loops(tree)
                .into_iter()
                .filter(|(_, file)| *file == format!("/dev/{device}"))
                .map(|(name, _)| name),
        );
    }
    all
}

/// The loop devices with their backing files.
pub(crate) fn loops(tree: &SystemTree) -> Vec<(String, String)> {
    let names = tree.names("/sys/class/block").into_iter().filter(|name| name.starts_with("loop"));
    let backed = |name: String| {
        let file = tree.line(format!("{}/loop/backing_file", home(&name)))?;
        Some((name, file))
    };
    names.filter_map(backed).collect()
}

/// All facts about a device; `None` if sysfs does not list it.
pub(crate) fn probe_device(tree: &SystemTree, name: &str) -> Option<DeviceFacts> {
    let of = home(name);
    let disk = whole_disk(tree, name);
    let mut stack = Stack::default();
    stack.descend(tree, name, 0);
    // A layer that changes the amount of I/O has its own counters. One that maps its disks unchanged is counted at the
    // disks, where the I/O of others is seen, too.
    let changes =
        |layer: &Layer| !matches!(layer.kind, LayerKind::Volume | LayerKind::Crypt | LayerKind::Multipath);
    let counted = if stack.layers.iter().any(changes) {
        vec![disk.clone()]
    } else {
        stack.leaves.iter().cloned().collect()
    };
    let model = tree.line(format!("{}/device/model", home(&disk)));
    let lent = disk.starts_with("vd")
        || disk.starts_with("xvd")
        || model.as_deref().is_some_and(|model| {
            ["Amazon", "Google", "Virtual", "QEMU", "Microsoft"].iter().any(|maker| model.contains(maker))
        });
    let queue = queue(tree, &disk);
    let used = tree.number(format!("{}/nuse", home(&disk)));
    let node = tree.line(format!("{}/device/numa_node", home(&disk)));
    let node = node.or_else(|| tree.line(format!("{}/device/device/numa_node", home(&disk))));
    Some(DeviceFacts {
        name: name.to_owned(),
        number: tree.line(format!("{of}/dev"))?,
        counted,
        leaves: stack.leaves.into_iter().collect(),
        layers: stack.layers,
        size: tree.number(format!("{of}/size")).unwrap_or(0) * 512,
        lent,
        model,
        node: node.and_then(|node| node.parse().ok()),
        used: used.map(|blocks| blocks * queue.logical.unwrap_or(512)),
        queue,
        disk,
    })
}

#[derive(Default)]
struct Stack {
    layers: Vec<Layer>,
    leaves: BTreeSet<String>,
}

impl Stack {
    fn descend(&mut self, tree: &SystemTree, name: &str, depth: u32) {
        if depth > DEEPEST {
            return;
        }
        let disk = whole_disk(tree, name);
        if let Some(layer) = layer(tree, &disk)
            && !self.layers.contains(&layer)
        {
            self.layers.push(layer);
        }
        let below = member_devices(tree, &disk);
        if below.is_empty() {
            self.leaves.insert(disk);
        }
        for device in below {
            self.descend(tree, &device, depth + 1);
        }
    }
}

/// The layer that a whole device is, if it is not a plain disk.
fn layer(tree: &SystemTree, name: &str) -> Option<Layer> {
    let of = home(name);
    let layer = |kind, detail: String| Some(Layer { device: name.to_owned(), kind, detail });
    if let Some(file) = tree.line(format!("{of}/loop/backing_file")) {
        let direct = tree.line(format!("{of}/loop/dio")).as_deref() == Some("1");
        return layer(if direct { LayerKind::LoopDirect } else { LayerKind::LoopCached }, file);
    }
    if let Some(identity) = tree.line(format!("{of}/dm/uuid")) {
        let kind = match identity.split_once('-').map(|(owner, _)| owner) {
            Some("CRYPT") => LayerKind::Crypt,
            Some("mpath") => LayerKind::Multipath,
            Some("LVM") if identity.ends_with("-tpool") => LayerKind::Thin,
            Some("LVM") if identity.ends_with("-vpool") => LayerKind::Vdo,
            _ => LayerKind::Volume,
        };
        return layer(kind, tree.line(format!("{of}/dm/name")).unwrap_or_default());
    }
    if tree.has(format!("{of}/dm")) {
        return layer(LayerKind::Volume, tree.line(format!("{of}/dm/name")).unwrap_or_default());
    }
    if let Some(level) = tree.line(format!("{of}/md/level")) {
        return layer(LayerKind::Raid, level);
    }
    let digits = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    if digits("zram") {
        let algorithms = tree.line(format!("{of}/comp_algorithm")).unwrap_or_default();
        return layer(LayerKind::Zram, chosen(&algorithms).to_owned());
    }
    if digits("ram") || digits("pmem") {
        return layer(LayerKind::RamDisk, String::new());
    }
    if digits("nbd") || digits("rbd") || digits("drbd") {
        return layer(LayerKind::Network, String::new());
    }
    None
}

fn queue(tree: &SystemTree, disk: &str) -> Queue {
    let line = |name: &str| tree.line(format!("{}/queue/{name}", home(disk)));
    let number = |name: &str| line(name)?.parse::<u64>().ok();
    Queue {
        scheduler: line("scheduler").map(|choices| chosen(&choices).to_owned()),
        requests: number("nr_requests"),
        longest: number("max_sectors_kb").map(|kib| kib * 1024),
        segments: number("max_segments"),
        chunk: number("chunk_sectors").filter(|sectors| *sectors > 0).map(|sectors| sectors * 512),
        logical: number("logical_block_size"),
        physical: number("physical_block_size"),
        write_cache: line("write_cache"),
        rotational: number("rotational").map(|flag| flag == 1),
        discard: number("discard_granularity"),
        zoned: line("zoned"),
        write_back_throttle: number("wbt_lat_usec"),
        affinity: number("rq_affinity"),
        no_merges: number("nomerges"),
        read_ahead: number("read_ahead_kb").map(|kib| kib * 1024),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    /// A tree of sysfs: `sda` with `sda1` and `sda2`, `dm-0` (a thin volume) over `dm-1` (its pool) over `sda2`,
    /// `dm-2` (a plain volume) over `sda2`, `loop0` over a file and `vdb`.
    pub(crate) fn tree() -> (tempfile::TempDir, SystemTree) {
        let root = tempfile::tempdir().unwrap();
        let (class, numbers) = (root.path().join("sys/class/block"), root.path().join("sys/dev/block"));
        for directory in [&class, &numbers, &root.path().join("proc/self")] {
            fs::create_dir_all(directory).unwrap();
        }
        let write = |home: &Path, file: &str, text: &str| {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let devices = [
            ("sda", "8:0"),
            ("sda/sda1", "8:1"),
            ("sda/sda2", "8:2"),
            ("dm-0", "253:0"),
            ("dm-1", "253:1"),
            ("dm-2", "253:2"),
            ("loop0", "7:0"),
            ("vdb", "252:16"),
        ];
        for (path, number) in devices {
            let home = root.path().join("sys/devices").join(path);
            write(&home, "dev", &format!("{number}\n"));
            write(&home, "size", "2048\n");
            let name = Path::new(path).file_name().unwrap();
            if path.contains('/') {
                write(&home, "partition", "1\n");
            }
            symlink(Path::new("../../devices").join(path), class.join(name)).unwrap();
            symlink(Path::new("../../devices").join(path), numbers.join(number)).unwrap();
        }
        let sys = root.path().join("sys/devices");
        for (upper, lower) in [("dm-0", "dm-1"), ("dm-1", "sda2"), ("dm-2", "sda2")] {
            write(&sys.join(upper), &format!("slaves/{lower}"), "");
            let lower = if lower == "sda2" { "sda/sda2" } else { lower };
            write(&sys.join(lower), &format!("holders/{upper}"), "");
        }
        for (name, identity) in [("dm-0", "LVM-abc"), ("dm-1", "LVM-def-tpool"), ("dm-2", "LVM-ghi")] {
            write(&sys.join(name), "dm/uuid", &format!("{identity}\n"));
            write(&sys.join(name), "dm/name", &format!("group-{name}\n"));
        }
        write(&sys.join("loop0"), "loop/backing_file", "/images/one.img\n");
        write(&sys.join("loop0"), "loop/dio", "0\n");
        write(&sys.join("vdb"), "queue/scheduler", "none [mq-deadline] kyber\n");
        write(&sys.join("vdb"), "queue/max_sectors_kb", "256\n");
        write(&sys.join("vdb"), "queue/rotational", "0\n");
        let tree = SystemTree::at(root.path());
        (root, tree)
    }

    fn kinds(device: &DeviceFacts) -> Vec<LayerKind> {
        device.layers.iter().map(|layer| layer.kind).collect()
    }

    #[test]
    fn a_thin_volume_is_known_by_its_pool_and_counts_itself() {
        let (_root, tree) = tree();
        let thin = probe_device(&tree, "dm-0").unwrap();
        assert_eq!(kinds(&thin), [LayerKind::Volume, LayerKind::Thin]);
        assert_eq!(
            (&thin.counted[..], &thin.leaves[..]),
            (&["dm-0".to_owned()][..], &["sda".to_owned()][..])
        );
        let plain = probe_device(&tree, "dm-2").unwrap();
        assert_eq!((kinds(&plain), &plain.counted[..]), (vec![LayerKind::Volume], &["sda".to_owned()][..]));
        let looped = probe_device(&tree, "loop0").unwrap();
        assert_eq!(
            (kinds(&looped), looped.layers[0].detail.as_str()),
            (vec![LayerKind::LoopCached], "/images/one.img")
        );
        let partition = probe_device(&tree, "sda1").unwrap();
        assert_eq!((partition.disk.as_str(), partition.size, kinds(&partition)), ("sda", 1 << 20, vec![]));
        assert_eq!(probe_device(&tree, "sdz"), None);
    }

    #[test]
    fn settings_are_those_in_use() {
        let (_root, tree) = tree();
        let disk = probe_device(&tree, "vdb").unwrap();
        assert!(disk.lent);
        assert_eq!(disk.queue.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!((disk.queue.longest, disk.queue.rotational), (Some(256 << 10), Some(false)));
        assert_eq!(disk.queue.physical, None);
    }

    #[test]
    fn what_is_built_upon_a_disk_is_found_through_its_partitions() {
        let (_root, tree) = tree();
        let upon: Vec<String> = built_upon(&tree, "sda").into_iter().collect();
        assert_eq!(upon, ["dm-0", "dm-1", "dm-2", "sda", "sda1", "sda2"]);
        let upon: Vec<String> = built_upon(&tree, "sda1").into_iter().collect();
        assert_eq!(upon, ["sda1"]);
        assert_eq!(device_name(&tree, "8:2").as_deref(), Some("sda2"));
    }
}
