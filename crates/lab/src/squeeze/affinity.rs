//! Cuts the server's CPU by restricting its processes to fewer CPUs.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use kelvin_host::SystemTree;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::tree;
use crate::cleanup_shell::{self, Guard};

/// The maximum difference between a whole number of CPUs and the requested share.
const NEAR: f64 = 0.06;

/// A restriction of a process and its descendants to fewer CPUs.
#[derive(Debug)]
pub(super) struct Affinity {
    server: u32,
    all: CpuSet,
    fewer: CpuSet,
    /// The CPUs of each thread whose affinity differs from that of the first process.
    others: Mutex<BTreeMap<u32, CpuSet>>,
    /// Held only for its effect on drop.
    _guard: Option<Guard>,
}

/// The number of CPUs to remove from `cpus` for a cut: at least one, and at least one must remain.
fn cpus_to_remove(cpus: u32, cut: f64) -> Option<u32> {
    (cpus > 1).then(|| ((f64::from(cpus) * cut).round() as u32).clamp(1, cpus - 1))
}

impl Affinity {
    /// Determines the CPUs to remove. A cut of this process itself leaves no threads to be restored after its end.
    pub(super) fn new(server: u32, embedded: bool, cut: f64) -> Result<Self, String> {
        let all = sched_getaffinity(pid(server)).map_err(|e| format!("its CPUs cannot be read: {e}"))?;
        let cpus = all.count();
        let taken =
            cpus_to_remove(cpus, cut).ok_or("it has only one CPU, so affinity cannot take any away")?;
        let mut fewer = all;
        // The last ones, because the system's background work is mostly on the first.
        cpus_of(&all).rev().take(taken as usize).for_each(|cpu| fewer.unset(cpu));
        // The present affinity is set again, to check the permission.
        sched_setaffinity(pid(server), &all)
            .map_err(|e| format!("its CPUs cannot be set ({e}): run kelvin as its user or as root"))?;
        let guard = if embedded {
            None
        } else {
            let probe = cleanup_shell::in_separate_group(
                Command::new("taskset").arg("--version").stdin(Stdio::null()),
            )
            .status();
            if !probe.is_ok_and(|status| status.success()) {
                return Err(
                    "taskset (util-linux) is not installed; it would restore the CPUs if kelvin were killed"
                        .into(),
                );
            }
            Some(Guard::start(cleanup_shell::AFFINITY, &[cpu_list(&all), server.to_string()])?)
        };
        Ok(Self { server, all, fewer, others: Mutex::default(), _guard: guard })
    }

    /// Whether removing whole CPUs comes close to the requested cut.
    pub(super) fn is_near(&self, cut: f64) -> bool {
        (1.0 - f64::from(self.left()) / f64::from(self.total()) - cut).abs() <= NEAR
    }

    /// CPUs that remain during a cut.
    pub(super) fn left(&self) -> u32 {
        self.fewer.count()
    }

    /// CPUs without a cut.
    pub(super) fn total(&self) -> u32 {
        self.all.count()
    }

    /// Applies the cut.
    pub(super) fn cut(&self) -> Result<(), String> {
        self.each(|thread| {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            let found = sched_getaffinity(pid(thread))?;
            // A thread that a restricted thread created has the same CPUs as the first process.
            if found != self.all && found != self.fewer {
                others.entry(thread).or_insert(found);
            }
            let mut left = found;
            cpus_of(&found).filter(|&cpu| !self.fewer.is_set(cpu)).for_each(|cpu| left.unset(cpu));
            if left.count() == 0 { Ok(()) } else { sched_setaffinity(pid(thread), &left) }
        })
    }

    /// Removes the cut.
    pub(super) fn lift(&self) -> Result<(), String> {
        self.each(|thread| {
            let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            sched_setaffinity(pid(thread), others.get(&thread).unwrap_or(&self.all))
        })
    }

    /// Applies `work` to every thread, twice, because the server may have created another process meanwhile.
    fn each(&self, work: impl Fn(u32) -> Result<(), Errno>) -> Result<(), String> {
        for _ in 0..2 {
            for process in tree::processes(self.server) {
                for thread in SystemTree::default().threads(process) {
                    match work(thread) {
                        // It has ended.
                        Ok(()) | Err(Errno::SRCH) => {}
                        Err(e) => return Err(format!("the CPUs of process {process} cannot be set: {e}")),
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        // An error here cannot be handled in any other way.
        let _lifted = self.lift();
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(number.cast_signed())
}

fn cpus_of(set: &CpuSet) -> impl DoubleEndedIterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu))
}

/// The CPUs in the format of taskset: "0,1,2".
fn cpu_list(set: &CpuSet) -> String {
    cpus_of(set).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cpus_are_taken_and_one_is_left() {
        let of = |cpus, cut| cpus_to_remove(cpus, cut);
        assert_eq!((of(1, 0.2), of(2, 0.2), of(4, 0.2), of(10, 0.2)), (None, Some(1), Some(1), Some(2)));
        assert_eq!((of(64, 0.1), of(2, 0.9), of(3, 0.95)), (Some(6), Some(1), Some(2)));
    }

    #[test]
    fn a_process_and_its_children_get_fewer_cpus_and_all_of_them_back() {
        let mut parent = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let server = parent.id();
        let children = || tree::processes(server);
        while children().len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let cpus = || -> Vec<u32> {
            children().iter().map(|&one| sched_getaffinity(pid(one)).unwrap().count()).collect()
        };
        let Ok(affinity) = Affinity::new(server, false, 0.5) else {
            // With only one CPU nothing can be removed, which is the expected message.
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            parent.kill().unwrap();
            parent.wait().unwrap();
            return;
        };
        let (left, total) = (affinity.left(), affinity.total());
        assert!(left < total);
        affinity.cut().unwrap();
        assert_eq!(cpus(), [left, left]);
        affinity.lift().unwrap();
        assert_eq!(cpus(), [total, total]);
        // As after a kill: only the shell can restore it.
        affinity.cut().unwrap();
        let mut guard =
            Guard::start(cleanup_shell::AFFINITY, &[cpu_list(&affinity.all), server.to_string()]).unwrap();
        guard.abandon();
        assert_eq!(cpus(), [total, total]);
        for child in children() {
            rustix::process::kill_process(pid(child).unwrap(), rustix::process::Signal::KILL).unwrap();
        }
        parent.wait().unwrap();
    }
}
