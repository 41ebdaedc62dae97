//! Which processes of this host, besides the load generator and the server, used CPU, memory and devices.
//!
//! All processes are read every few seconds, and summed by name: a build has hundreds, each of which lives for a second. What a process
//! did that began and ended between two looks is in its parent's sums of ended children, which are not read: of such ones only a part
//! is seen.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use kelvin_host::ProcessStat;
use kelvin_host::bytes::values;
use kelvin_measure::observation::OtherProcess;

/// What a process has used since it began.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    ticks: u64,
    read: u64,
    written: u64,
}

/// What processes of one name have used since the sums began.
#[derive(Debug, Clone, Default)]
struct Sums {
    processes: HashSet<u32>,
    ticks: u64,
    read: u64,
    written: u64,
    /// Of all processes of the name at one look, the most: their own memory, and the largest part of one that others may share.
    resident: u64,
}

/// Follows the processes of a host.
#[derive(Debug)]
pub(super) struct OtherProcesses {
    root: PathBuf,
    /// Processes that are not others', with their children.
    own: Vec<u32>,
    tick: f64,
    page: u64,
    /// By process and when it began: a number is used again.
    seen: HashMap<(u32, u64), Used>,
    sums: BTreeMap<String, Sums>,
    primed: bool,
}

struct One {
    pid: u32,
    name: String,
    stat: ProcessStat,
    used: Used,
    /// Bytes that no other process has, and that others may have, too.
    private: u64,
    shared: u64,
}

impl OtherProcesses {
    /// Those that are neither of `own` nor their children.
    pub(super) fn new(own: Vec<u32>) -> Self {
        Self::below(Path::new("/proc"), own)
    }

    fn below(root: &Path, own: Vec<u32>) -> Self {
        Self {
            root: root.into(),
            own,
            tick: rustix::param::clock_ticks_per_second() as f64,
            page: rustix::param::page_size() as u64,
            seen: HashMap::new(),
            sums: BTreeMap::new(),
            primed: false,
        }
    }

    /// Begins new sums.
    pub(super) fn begin(&mut self) {
        self.add_usage();
        self.sums.clear();
    }

    /// Adds what was used since the last look.
    pub(super) fn add_usage(&mut self) {
        let all = self.read();
        let parents: HashMap<u32, u32> = all.iter().map(|one| (one.pid, one.stat.parent)).collect();
        let mut now = HashMap::with_capacity(all.len());
        let mut memory: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let others: Vec<One> = all.into_iter().filter(|one| !self.is_own(one.pid, &parents)).collect();
        for one in others {
            let key = (one.pid, one.stat.started);
            // One that began since the last look has used all of it since then.
            let before = self.seen.get(&key).copied();
            let before = before.unwrap_or(if self.primed { Used::default() } else { one.used });
            let (private, shared) = memory.entry(one.name.clone()).or_default();
            *private += one.private;
            *shared = one.shared.max(*shared);
            let sums = self.sums.entry(one.name).or_default();
            sums.processes.insert(one.pid);
            sums.ticks += one.used.ticks.saturating_sub(before.ticks);
            sums.read += one.used.read.saturating_sub(before.read);
            sums.written += one.used.written.saturating_sub(before.written);
            now.insert(key, one.used);
        }
        for (name, (private, shared)) in memory {
            if let Some(sums) = self.sums.get_mut(&name) {
                sums.resident = sums.resident.max(private + shared);
            }
        }
        self.seen = now;
        self.primed = true;
    }

    /// The names that used the most over so many seconds: of CPUs, of memory, and of bytes to and from devices, five of each; by CPU. Who
    /// used less than a hundredth of a CPU, 100 kB a second and 100 MB of memory is not named.
    pub(super) fn top(&self, seconds: f64) -> Vec<OtherProcess> {
        let rate = |sum: u64| sum as f64 / seconds.max(1e-3);
        let of = |(name, sums): (&String, &Sums)| OtherProcess {
            name: name.clone(),
            processes: sums.processes.len() as u32,
            cpus: rate(sums.ticks) / self.tick,
            resident: sums.resident,
            read: rate(sums.read),
            written: rate(sums.written),
        };
        let mut rest: Vec<OtherProcess> = self.sums.iter().map(of).collect();
        let mut found: Vec<OtherProcess> = Vec::new();
        for (resource, least) in OtherProcess::LEAST.into_iter().enumerate() {
            let used = |one: &OtherProcess| one.used()[resource];
            let among = found.iter().chain(&rest).map(used).filter(|used| *used >= least);
            let mut among: Vec<f64> = among.collect();
            among.sort_by(|a, b| b.total_cmp(a));
            let Some(least) = among.get(OtherProcess::MOST - 1).or(among.last()) else { continue };
            let (more, others) = rest.into_iter().partition(|one| used(one) >= *least);
            found.extend::<Vec<_>>(more);
            rest = others;
        }
        found.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
        found
    }

    fn is_own(&self, pid: u32, parents: &HashMap<u32, u32>) -> bool {
        let mut at = pid;
        // A bound: numbers that were used again meanwhile could make a ring.
        for _ in 0..64 {
            if self.own.contains(&at) {
                return true;
            }
            match parents.get(&at) {
                Some(parent) if *parent != 0 => at = *parent,
                _ => return false,
            }
        }
        false
    }

    fn read(&self) -> Vec<One> {
        let Ok(entries) = std::fs::read_dir(&self.root) else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| self.one(pid)).collect()
    }

    /// None for one that has ended meanwhile.
    fn one(&self, pid: u32) -> Option<One> {
        let file = |name: &str| std::fs::read_to_string(self.root.join(pid.to_string()).join(name)).ok();
        let text = file("stat")?;
        let stat = ProcessStat::parse(text.as_bytes())?;
        let name = text.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
        let statm = file("statm").unwrap_or_default();
        let bytes = |column: usize| {
            let pages = statm.split(' ').nth(column).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            pages.saturating_mul(self.page)
        };
        let (resident, shared) = (bytes(1), bytes(2));
        // Other users' may not be read.
        let io = file("io").unwrap_or_default();
        let [read, written] =
            values(io.as_bytes(), ["read_bytes", "write_bytes"]).map(Option::unwrap_or_default);
        let used = Used { ticks: stat.ticks(), read, written };
        Some(One { pid, name, stat, used, private: resident.saturating_sub(shared), shared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(root: &Path, pid: u32, name: &str, parent: u32, ticks: u64, written: u64) {
        let directory = root.join(pid.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        let stat = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 4194304 1 2 3 4 {ticks} 0 5 6 20 0 1 0 {} 1000 2 3",
            100 + pid
        );
        std::fs::write(directory.join("stat"), stat).unwrap();
        std::fs::write(directory.join("statm"), "900 250 30 4 5 6 7").unwrap();
        std::fs::write(directory.join("io"), format!("rchar: 1\nread_bytes: 0\nwrite_bytes: {written}\n"))
            .unwrap();
    }

    #[test]
    fn what_others_used_is_summed_by_name_and_ours_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let mut others = OtherProcesses::below(root.path(), vec![10]);
        let hertz = others.tick as u64;
        process(root.path(), 1, "init", 0, 5 * hertz, 0);
        process(root.path(), 10, "kelvin", 1, 0, 0);
        process(root.path(), 20, "backup", 1, 50 * hertz, 1_000_000);
        others.begin();
        // Ten seconds: a child of ours, a new compiler, and the backup.
        process(root.path(), 11, "sh", 10, 9 * hertz, 0);
        process(root.path(), 20, "backup", 1, 51 * hertz, 31_000_000);
        process(root.path(), 30, "cc1 plus)", 1, 4 * hertz, 0);
        others.add_usage();
        std::fs::remove_dir_all(root.path().join("30")).unwrap();
        process(root.path(), 31, "cc1 plus)", 1, 2 * hertz, 0);
        process(root.path(), 32, "cc1 plus)", 1, 0, 0);
        others.add_usage();
        let top = others.top(10.0);
        let seen: Vec<_> =
            top.iter().map(|one| (one.name.as_str(), one.processes, one.cpus, one.written)).collect();
        assert_eq!(seen, [("cc1 plus)", 3, 0.6, 0.0), ("backup", 1, 0.1, 3e6)]);
        assert_eq!(top[0].resident, (220 + 220 + 30) * others.page, "what the two may share is counted once");
    }

    #[test]
    fn five_of_each_resource_are_named_and_what_uses_little_is_not() {
        let sums = |ticks, resident, read| Sums { ticks, read, resident, ..Sums::default() };
        let mut others = OtherProcesses::below(Path::new("/nowhere"), Vec::new());
        others.tick = 100.0;
        for at in 1..=7 {
            others.sums.insert(format!("busy{at}"), sums(100 * at, 0, 0));
            others.sums.insert(format!("large{at}"), sums(0, at << 30, 0));
            others.sums.insert(format!("reader{at}"), sums(0, 0, at << 30));
        }
        others.sums.insert("both".into(), sums(5000, 100 << 30, 0));
        others.sums.insert("small".into(), sums(9, 50 << 20, 900_000));
        let mut names: Vec<String> = others.top(10.0).into_iter().map(|one| one.name).collect();
        names.sort();
        let expected = [
            "both", "busy4", "busy5", "busy6", "busy7", "large4", "large5", "large6", "large7", "reader3",
            "reader4", "reader5", "reader6", "reader7",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn this_host_has_processes_and_we_are_none_of_them() {
        let mut others = OtherProcesses::new(vec![std::process::id()]);
        others.begin();
        assert!(others.seen.keys().all(|(pid, _)| *pid != std::process::id()));
    }
}
