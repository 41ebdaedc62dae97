//! The number of physical cores that are available.

use kelvin_host::SystemTree;
use kelvin_host::cgroup::cpu_limit;
use kelvin_measure::text::count;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// The cores by which rates are divided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cores {
    /// The divisor of rates: the cores that this process may use, or the share of a cgroup's quota if that is less.
    pub counted: f64,
    /// Physical cores of the machine.
    pub machine: u32,
    /// Physical cores that this process may run on (its affinity).
    pub allowed: u32,
    /// Hardware threads that it may run on.
    pub threads: u32,
    /// CPUs that a cgroup's quota allows: the smallest of all levels; `None` without a quota.
    pub quota: Option<f64>,
    /// Whether the kernel shows the topology; otherwise each hardware thread counts as a core.
    pub topology: bool,
}

impl Cores {
    /// The cores of this process.
    pub fn read() -> Self {
        let allowed: Option<BTreeSet<usize>> = rustix::thread::sched_getaffinity(None)
            .ok()
            .map(|set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect());
        Self::at(Path::new("/"), allowed.as_ref())
    }

    /// As [`Self::read`], with another root of `/sys` and `/proc`.
    fn at(root: &Path, allowed: Option<&BTreeSet<usize>>) -> Self {
        let mut threads = BTreeSet::new();
        let (mut all, mut ours) = (BTreeSet::new(), BTreeSet::new());
        for entry in fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse::<usize>().ok());
            let Some(number) = number else { continue };
            // CPUs that share a core have the same list. An offline CPU has none.
            let list = ["core_cpus_list", "thread_siblings_list"]
                .iter()
                .find_map(|name| fs::read_to_string(entry.path().join("topology").join(name)).ok());
            let Some(list) = list else { continue };
            if allowed.is_none_or(|allowed| allowed.contains(&number)) {
                threads.insert(number);
                ours.insert(list.clone());
            }
            all.insert(list);
        }
        let topology = !ours.is_empty();
        let count = allowed
            .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), BTreeSet::len);
        let count = count.max(1) as u32;
        let (machine, ours, threads) = if topology {
            (all.len() as u32, ours.len() as u32, threads.len() as u32)
        } else {
            (count, count, count)
        };
        let quota = cpu_limit(&SystemTree::at(root));
        let counted = quota.map_or(f64::from(ours), |quota| quota.min(f64::from(ours)));
        Self { counted, machine, allowed: ours, threads, quota, topology }
    }

    /// The reason for the count, as text.
    pub fn why(&self) -> String {
        let mut words = if self.topology {
            count(self.machine, "physical core")
        } else {
            format!("{} CPUs; the kernel does not report their cores", self.machine)
        };
        if self.allowed < self.machine {
            words += &format!(", of which this process may use {}", self.allowed);
        }
        match self.quota {
            Some(quota) if quota < f64::from(self.allowed) => {
                words += &format!("; a cgroup quota allows {quota} CPUs, which is the limit");
            }
            Some(quota) => words += &format!("; a cgroup quota of {quota} CPUs does not limit them"),
            None => {}
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(threads: usize) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for cpu in 0..threads {
            let directory = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&directory).unwrap();
            let core = cpu % (threads / 2);
            fs::write(directory.join("core_cpus_list"), format!("{core},{}\n", core + threads / 2)).unwrap();
        }
        fs::create_dir_all(root.path().join("sys/devices/system/cpu/cpuidle")).unwrap();
        root
    }

    fn group(root: &Path, group: &str, text: &str) {
        let directory = root.join("sys/fs/cgroup").join(group);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("cpu.max"), text).unwrap();
    }

    #[test]
    fn threads_of_a_core_are_one_core() {
        let root = machine(16);
        let all = Cores::at(root.path(), None);
        assert_eq!((all.counted, all.machine, all.allowed, all.threads), (8.0, 8, 8, 16));
        assert_eq!(all.why(), "8 physical cores");
        let some = Cores::at(root.path(), Some(&BTreeSet::from([0, 1, 8])));
        assert_eq!((some.counted, some.allowed, some.threads), (2.0, 2, 3));
        assert_eq!(some.why(), "8 physical cores, of which this process may use 2");
    }

    #[test]
    fn the_smallest_quota_on_the_way_up_bounds_them() {
        let root = machine(16);
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), "0::/a/b\n").unwrap();
        let mounts = "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        fs::write(root.path().join("proc/self/mountinfo"), mounts).unwrap();
        group(root.path(), "a/b", "max 100000\n");
        assert_eq!(Cores::at(root.path(), None).quota, None);
        group(root.path(), "a", "250000 100000\n");
        let cores = Cores::at(root.path(), None);
        assert_eq!((cores.counted, cores.quota), (2.5, Some(2.5)));
        assert_eq!(cores.why(), "8 physical cores; a cgroup quota allows 2.5 CPUs, which is the limit");
        group(root.path(), "a", "2500000 100000\n");
        assert_eq!(Cores::at(root.path(), None).counted, 8.0);
    }

    #[test]
    fn without_topology_the_allowed_cpus_are_the_cores() {
        let root = tempfile::tempdir().unwrap();
        let cores = Cores::at(root.path(), Some(&BTreeSet::from([3, 4, 5])));
        assert_eq!((cores.counted, cores.topology), (3.0, false));
        assert_eq!(cores.why(), "3 CPUs; the kernel does not report their cores");
        let here = Cores::read();
        assert!(here.counted > 0.0 && here.allowed >= 1);
    }
}
