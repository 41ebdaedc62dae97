//! Counters of the devices under the targets (`/proc/diskstats`), before and after the run.

use kelvin_host::disk::{DiskCounters, member_devices, whole_disk};
use std::collections::BTreeMap;

use crate::PerDirection;
use crate::result::DiskUse;
use kelvin_host::SystemTree;

/// The counters of all devices by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Disks(BTreeMap<String, DiskCounters>);

impl Disks {
    pub(super) fn now(tree: &SystemTree) -> Self {
        Self(DiskCounters::all(tree))
    }

    /// The I/O of the disks of these devices from `self` until `after`, `elapsed` milliseconds later: each disk once,
    /// in the order in which they are first named, with the devices below it.
    pub(super) fn until<'a>(
        &self,
        after: &Self,
        tree: &SystemTree,
        devices: impl IntoIterator<Item = &'a str>,
        elapsed: u64,
    ) -> Vec<DiskUse> {
        let mut all: Vec<DiskUse> = Vec::new();
        for device in devices {
            let name = whole_disk(tree, device);
            if all.iter().any(|known| known.name == name) {
                continue;
            }
            all.extend(self.one(after, tree, &name, elapsed, 0));
        }
        all
    }

    fn one(&self, after: &Self, tree: &SystemTree, name: &str, elapsed: u64, depth: u32) -> Option<DiskUse> {
        let done = after.0.get(name)?.since(self.0.get(name)?);
        let below = member_devices(tree, name);
        // A deeper stack is a cycle, which only a broken tree has.
        let below = below.iter().filter(|_| depth < 16);
        Some(DiskUse {
            name: name.to_owned(),
            ios: PerDirection(done.ios),
            merges: PerDirection(done.merges),
            sectors: PerDirection(done.sectors),
            ticks: PerDirection(done.ticks),
            flushes: done.flushes,
            in_queue: done.in_queue,
            busy: done.busy,
            elapsed,
            below: below.filter_map(|name| self.one(after, tree, name, elapsed, depth + 1)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    #[test]
    fn a_partition_stands_for_its_disk_and_a_mapped_device_has_its_parts_below_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["proc", "sys/class/block", "sys/devices/vda/vda1", "sys/devices/dm-0/slaves/vdb"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("sys/devices/vda/vda1/partition"), "1\n").unwrap();
        symlink("../../devices/vda/vda1", at("sys/class/block/vda1")).unwrap();
        symlink("../../devices/dm-0", at("sys/class/block/dm-0")).unwrap();
        let tree = SystemTree::at(root.path());
        let stats = |vda: &str| {
            fs::write(
                at("proc/diskstats"),
                format!("254 0 vda {vda}\n254 16 vdb 1 0 8 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n253 0 dm-0 5 0 40 5 0 0 0 0 0 5 5\n"),
            )
            .unwrap();
            Disks::now(&tree)
        };
        let before = stats("10 1 80 100 20 2 160 4294967290 0 300 400 7 0 56 9 3 1");
        let after = stats("15 1 120 150 21 4 168 10 -1 350 460 8 0 64 10 5 2");
        let uses = before.until(&after, &tree, ["vda1", "dm-0", "vda"], 1000);
        let names: Vec<_> = uses.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["vda", "dm-0"]);
        let expected = DiskUse {
            name: "vda".into(),
            ios: PerDirection([5, 1, 1]),
            merges: PerDirection([0, 2, 0]),
            sectors: PerDirection([40, 8, 8]),
            ticks: PerDirection([50, 16, 1]),
            flushes: 2,
            in_queue: 60,
            busy: 50,
            elapsed: 1000,
            below: Vec::new(),
        };
        assert_eq!(uses[0], expected);
        assert_eq!(uses[1].below[0].name, "vdb");
    }
}
