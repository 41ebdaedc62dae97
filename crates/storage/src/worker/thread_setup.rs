//! Settings of a worker's thread before it begins: CPUs, priorities, a timer that fires on time.

use std::fs;
use std::io;

use super::WorkerPlan;
use crate::error::{Error, Result};
use crate::job::Process;

/// `IOPRIO_WHO_PROCESS` of linux/ioprio.h.
const WHO_PROCESS: i32 = 1;

/// Applies the job's settings to the calling thread.
pub(super) fn set_up_thread(plan: &WorkerPlan) -> Result<()> {
    let process = &plan.job.process;
    // A sleep should end on time and not at the kernel's convenience: 50 µs would be 5 % of the gap at a rate of 1,000.
    kelvin_measure::schedule_promptly();
    let mut cpus = plan.pinned.map_or_else(|| process.cpus.clone(), |cpu| vec![cpu]);
    if cpus.is_empty() {
        for node in &process.numa_cpu_nodes {
            cpus.extend(cpus_of(*node)?);
        }
    }
    if !cpus.is_empty() {
        pin(&cpus)?;
    }
    if let Some(nice) = process.nice {
        set_nice(nice)?;
    }
    if let Some((class, level)) = process.io_priority {
        set_io_priority(class, level)?;
    }
    Ok(())
}

/// Gives the calling thread, and no other, the rights of the job's user and group. They last for the thread's lifetime:
/// commands before and after the job run with them too, as with fio.
#[allow(unsafe_code, reason = "the C library's functions change all threads")]
pub(crate) fn take_rights(process: &Process) -> Result<()> {
    let failed = |what: String| Error::system(what)(io::Error::last_os_error());
    if let Some(group) = process.group {
        // SAFETY: takes numbers.
        if unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) } != 0 {
            return Err(failed(format!("gid={group}")));
        }
    }
    if let Some(user) = process.user {
        // SAFETY: takes numbers.
        if unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) } != 0 {
            return Err(failed(format!("uid={user}")));
        }
    }
    Ok(())
}

/// The calling thread's ID.
pub(super) fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Pins the calling thread to these CPUs, if any are named.
pub(super) fn pin_if_any(cpus: &[u32]) -> Result<()> {
    if cpus.is_empty() { Ok(()) } else { pin(cpus) }
}

fn pin(cpus: &[u32]) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(Error::system(format!("cpus_allowed: CPU {cpu}"))(io::Error::from_raw_os_error(
                libc::EINVAL,
            )));
        }
        set.set(*cpu as usize);
    }
    let pinned = rustix::thread::sched_setaffinity(None, &set).map_err(io::Error::from);
    pinned.map_err(Error::system(format!("cpus_allowed: CPUs {cpus:?}")))
}

/// The CPUs of a NUMA node.
fn cpus_of(node: u32) -> Result<Vec<u32>> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let text = fs::read_to_string(&path).map_err(Error::system(format!("numa_cpu_nodes: node {node}")))?;
    let numbers = kelvin_host::numbers(&text).map(|numbers| numbers.into_iter().collect());
    numbers.ok_or_else(|| {
        Error::system(path)(io::Error::new(io::ErrorKind::InvalidData, "is not a list of CPUs"))
    })
}

#[allow(unsafe_code, reason = "setpriority of one thread")]
fn set_nice(nice: i32) -> Result<()> {
    // SAFETY: takes numbers; on Linux it changes only the thread with this ID.
    let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread_id() as libc::id_t, nice) };
    if answer == 0 { Ok(()) } else { Err(Error::system(format!("nice {nice}"))(io::Error::last_os_error())) }
}

#[allow(unsafe_code, reason = "ioprio_set has no safe wrapper")]
fn set_io_priority(class: u8, level: u8) -> Result<()> {
    let value = (i32::from(class) << 13) | i32::from(level);
    // SAFETY: takes numbers; 0 is the calling thread.
    if unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) } == 0 {
        return Ok(());
    }
    let what = format!("I/O priority of class {class}, level {level} (prioclass, prio)");
    Err(Error::system(what)(io::Error::last_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_it_was_put() {
        std::thread::spawn(|| {
            pin(&[0]).unwrap();
            let set = rustix::thread::sched_getaffinity(None).unwrap();
            assert!(set.is_set(0) && set.count() == 1);
            set_io_priority(2, 5).unwrap();
            assert!(pin(&[100_000]).unwrap_err().to_string().contains("CPU 100000"));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn rights_are_of_one_thread_only() {
        let all = |file: &str| std::fs::read_to_string(file).unwrap();
        let ids = |text: String| {
            let line = |name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
            (line("Uid:"), line("Gid:"))
        };
        let before = ids(all("/proc/self/status"));
        let root = rustix::process::geteuid().is_root();
        std::thread::spawn(move || {
            let given =
                take_rights(&Process { user: Some(65_534), group: Some(65_533), ..Process::default() });
            if !root {
                assert!(given.unwrap_err().to_string().contains("gid=65533"));
                return;
            }
            given.unwrap();
            let (user, group) = ids(all("/proc/thread-self/status"));
            assert_eq!(user.unwrap(), "Uid:\t65534\t65534\t65534\t65534");
            assert_eq!(group.unwrap(), "Gid:\t65533\t65533\t65533\t65533");
            // The original rights cannot be regained.
            assert!(take_rights(&Process { user: Some(0), ..Process::default() }).is_err());
        })
        .join()
        .unwrap();
        assert_eq!(ids(all("/proc/self/status")), before);
    }
}
