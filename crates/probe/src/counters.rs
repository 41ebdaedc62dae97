//! Kernel counters before and after the run: devices, processes, CPUs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Instant;

use super::run_facts::{CpuRun, DeviceRun, OtherProcess};
use kelvin_fio::PerDirection;
use kelvin_host::cgroup::own_groups;
use kelvin_host::disk::DiskCounters;
use kelvin_host::{SystemTree, Ticks};

/// Length of the sectors of `/proc/diskstats` in bytes, independent of the device's sector size.
const SECTOR: u64 = 512;
/// Maximum number of other processes.
const OTHERS: usize = 5;
/// Maximum number of processes that are examined.
const PROCESSES: usize = 20_000;

/// All counters at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    disks: BTreeMap<String, DiskCounters>,
    own: Option<(u64, u64)>,
    others: BTreeMap<u32, OtherProcess>,
    cpu: Option<Ticks>,
    throttled: Option<f64>,
    /// Bytes in the page cache that are not written back yet, of all processes and devices.
    dirty: u64,
}

impl Reading {
    /// Reads all counters.
    pub(crate) fn take(tree: &SystemTree) -> Self {
        Self { others: others(tree), ..Self::without_others(tree) }
    }

    /// As [`Self::take`], but without other processes, of which a machine has hundreds.
    pub(crate) fn without_others(tree: &SystemTree) -> Self {
        Self {
            disks: DiskCounters::all(tree),
            own: io(tree, "self"),
            others: BTreeMap::new(),
            cpu: Ticks::read(tree),
            throttled: throttled(tree),
            dirty: dirty(tree),
            // Last, since other processes continue while the rest is read.
            at: Instant::now(),
        }
    }

    /// Adds the counters of other processes, for which the run does not wait.
    pub(crate) fn add_others(&mut self, tree: &SystemTree) {
        self.others = others(tree);
    }

    /// Dirty bytes in the page cache at this reading.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Bytes that this process read and wrote since an earlier reading.
    pub(crate) fn process_io_since(&self, earlier: &Self) -> Option<(u64, u64)> {
        let (now, then) = (self.own?, earlier.own?);
        Some((now.0.saturating_sub(then.0), now.1.saturating_sub(then.1)))
    }

    /// Counts since an earlier reading, of the named devices that both readings have.
    pub(crate) fn devices_since(&self, earlier: &Self, names: &[String]) -> Vec<DeviceRun> {
        let of = |name: &String| {
            let done = self.disks.get(name)?.since(earlier.disks.get(name)?);
            Some(DeviceRun {
                name: name.clone(),
                ios: PerDirection(done.ios),
                merges: PerDirection(done.merges),
                bytes: PerDirection(done.sectors.map(|sectors| sectors * SECTOR)),
                busy: done.busy,
                queued: done.in_queue,
                flushes: done.flushes,
            })
        };
        names.iter().filter_map(of).collect()
    }

    /// I/O of other processes since an earlier reading, in descending order of bytes.
    pub(crate) fn others_since(&self, earlier: &Self) -> Vec<OtherProcess> {
        // Without an earlier reading their whole lifetime would be counted.
        if earlier.others.is_empty() {
            return Vec::new();
        }
        let moved = |(process, now): (&u32, &OtherProcess)| {
            let then = earlier.others.get(process).filter(|then| then.name == now.name);
            let (read, written) = then.map_or((0, 0), |then| (then.read, then.written));
            let (read, written) = (now.read.saturating_sub(read), now.written.saturating_sub(written));
            (read + written > 0).then(|| OtherProcess { read, written, ..now.clone() })
        };
        let mut found: Vec<OtherProcess> = self.others.iter().filter_map(moved).collect();
        found.sort_by_key(|other| std::cmp::Reverse(other.read + other.written));
        found.truncate(OTHERS);
        found
    }

    /// CPU use since an earlier reading.
    pub(crate) fn cpu_since(&self, earlier: &Self) -> CpuRun {
        let throttled = self.throttled.zip(earlier.throttled).map(|(now, then)| (now - then).max(0.0));
        let shares = self.cpu.zip(earlier.cpu).and_then(|(now, then)| now.shares_since(then));
        CpuRun { busy: shares.map(|s| s.taken), steal: shares.map(|s| s.stolen), throttled }
    }
}

/// `read_bytes` and `write_bytes` of `/proc/PID/io`: bytes that a process caused to be read from block devices, and
/// to be written to them sooner or later.
fn io(tree: &SystemTree, process: impl Display) -> Option<(u64, u64)> {
    let [read, written] = tree.values(format!("/proc/{process}/io"), ["read_bytes", "write_bytes"]);
    read.zip(written)
}

/// Bytes in the page cache that are not written back, or are just being written.
fn dirty(tree: &SystemTree) -> u64 {
    tree.values("/proc/meminfo", ["Dirty", "Writeback"]).into_iter().flatten().sum::<u64>() << 10
}

fn others(tree: &SystemTree) -> BTreeMap<u32, OtherProcess> {
    let own = std::process::id();
    tree.processes()
        .into_iter()
        .filter(|process| *process != own)
        .take(PROCESSES)
        .filter_map(|process| {
            let (read, written) = io(tree, process)?;
            // Most of them are kernel threads and processes without any I/O.
            let name = (read + written > 0).then(|| tree.process_name(process)).flatten()?;
            Some((process, OtherProcess { name, process, read, written }))
        })
        .collect()
}

/// Seconds for which the control group's threads were throttled since its creation; `None` if no group counts them.
pub(crate) fn throttled(tree: &SystemTree) -> Option<f64> {
    let places = [(None, "throttled_usec", 1e6), (Some("cpu"), "throttled_time", 1e9)];
    let found = places.iter().flat_map(|(controller, key, unit)| {
        own_groups(tree, *controller).into_iter().filter_map(move |group| {
            let text = tree.text(format!("{group}/cpu.stat"))?;
            let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
            let value = pairs.find(|(name, _)| name == key)?.1.trim().parse::<f64>().ok()?;
            Some(value / unit)
        })
    });
    // A thread is throttled by whichever group has used up its quota.
    found.reduce(f64::max)
}

/// The kernel threads that do I/O for io_uring in this process, now.
pub(crate) fn io_workers() -> u32 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let is_worker = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("iou-wrk"))
    };
    tasks.flatten().filter(is_worker).count() as u32
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn reading(disk: &str, own: (u64, u64), other: (u64, u64), cpu: &str) -> Reading {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let io = |(read, written): (u64, u64)| {
            format!("rchar: 5\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 9\n")
        };
        write("proc/diskstats", &format!("   8       0 sda {disk}\n   8  1 sda1 1 2\n"));
        write("proc/self/io", &io(own));
        write("proc/4194305/io", &io(other));
        write("proc/4194305/comm", "cp\n");
        write("proc/stat", cpu);
        Reading::take(&SystemTree::at(root.path()))
    }

    #[test]
    fn what_is_between_two_readings_is_the_difference() {
        let before = reading(
            "10 1 80 5 20 2 160 6 0 7 8 1 0 8 0 3 1",
            (1000, 50),
            (0, 10),
            "cpu  100 0 50 800 50 0 0 0 0 0\n",
        );
        let after = reading(
            "15 2 180 9 21 3 168 7 0 9 11 2 0 16 0 4 1",
            (52_200, 50),
            (7, 10),
            "cpu  150 0 70 900 60 0 0 20 0 0\n",
        );
        let names = ["sda".to_owned(), "sdb".to_owned()];
        let found = after.devices_since(&before, &names);
        assert_eq!(
            found,
            [DeviceRun {
                name: "sda".into(),
                ios: PerDirection([5, 1, 1]),
                merges: PerDirection([1, 1, 0]),
                bytes: PerDirection([51_200, 4096, 4096]),
                flushes: 1,
                busy: 2,
                queued: 3,
            }]
        );
        assert_eq!(after.process_io_since(&before), Some((51_200, 0)));
        let others = after.others_since(&before);
        assert_eq!(
            (others.len(), others[0].read, others[0].written, others[0].name.as_str()),
            (1, 7, 0, "cp")
        );
        let cpu = after.cpu_since(&before);
        assert_eq!((cpu.steal, cpu.busy, cpu.throttled), (Some(0.1), Some(0.45), None));
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        let root = tempfile::tempdir().unwrap();
        let nothing = Reading::take(&SystemTree::at(root.path()));
        assert_eq!(nothing.process_io_since(&nothing), None);
        assert_eq!(nothing.cpu_since(&nothing), CpuRun::default());
        assert_eq!(nothing.devices_since(&nothing, &["sda".into()]), []);
        assert_eq!(nothing.dirty(), 0);
    }

    #[test]
    fn trial_c9_pages_that_wait_to_be_written_are_counted() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let text = "MemFree: 5 kB\nDirty:               12 kB\nWriteback:      4 kB\nWritebackTmp:   9 kB\n";
        fs::write(root.path().join("proc/meminfo"), text).unwrap();
        assert_eq!(dirty(&SystemTree::at(root.path())), 16 << 10);
    }
}
