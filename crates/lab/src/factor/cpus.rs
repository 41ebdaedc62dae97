//! CPU affinity of processes and threads.

use std::collections::BTreeSet;

use kelvin_host::{ProcessStat, SystemTree};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::level::numbers;

/// The CPUs of a thread as a list in the kernel's form, `0-3,8`; those of this thread for none.
pub(crate) fn allowed_cpus(thread: Option<u32>) -> Result<String, String> {
    let set = sched_getaffinity(pid(thread)?).map_err(|error| affinity_error(thread, error))?;
    Ok(list((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu))))
}

/// Binds one thread; an error when its affinity differs afterwards, because a CPU does not exist or is not allowed.
pub(crate) fn bind(thread: Option<u32>, cpus: &str) -> Result<(), String> {
    let mut set = CpuSet::new();
    let wanted = numbers(cpus)?;
    for cpu in &wanted {
        set.set(*cpu);
    }
    sched_setaffinity(pid(thread)?, &set).map_err(|error| match error {
        rustix::io::Errno::INVAL => format!("none of the CPUs {cpus} can be used here"),
        error => affinity_error(thread, error),
    })?;
    let got = allowed_cpus(thread)?;
    if got == list(wanted) {
        return Ok(());
    }
    Err(format!("of the CPUs {cpus}, only {got} can be used here"))
}

/// Binds a process with its threads and all its descendants, including those created meanwhile.
pub(crate) fn bind_tree(root: u32, cpus: &str) -> Result<(), String> {
    bind_all(root, cpus, &threads_of_tree)
}

/// Binds a process with its threads; its children are left as they are.
pub(crate) fn bind_process(root: u32, cpus: &str) -> Result<(), String> {
    bind_all(root, cpus, &|pid| SystemTree::default().threads(pid))
}

fn bind_all(root: u32, cpus: &str, threads: &dyn Fn(u32) -> Vec<u32>) -> Result<(), String> {
    let mut done = BTreeSet::new();
    // Children of a bound thread are bound; those that other threads created meanwhile are found in the next round.
    for _ in 0..100 {
        let new: Vec<u32> = threads(root).into_iter().filter(|thread| !done.contains(thread)).collect();
        if new.is_empty() {
            return if done.is_empty() { Err(format!("process {root} has exited")) } else { Ok(()) };
        }
        for thread in new {
            match bind(Some(thread), cpus) {
                Ok(()) => {}
                // It may have ended.
                Err(_) if allowed_cpus(Some(thread)).is_err() => {}
                Err(error) => return Err(error),
            }
            done.insert(thread);
        }
    }
    Err(format!("process {root} creates threads faster than they can be bound"))
}

/// The first thread of the tree whose affinity differs from these CPUs, and its affinity.
pub(crate) fn first_unbound(root: u32, cpus: &str) -> Result<Option<(u32, String)>, String> {
    let wanted = list(numbers(cpus)?);
    let threads = threads_of_tree(root);
    if threads.is_empty() {
        return Err(format!("process {root} has exited"));
    }
    let mut places =
        threads.into_iter().filter_map(|thread| Some((thread, allowed_cpus(Some(thread)).ok()?)));
    Ok(places.find(|(_, cpus)| *cpus != wanted))
}

/// A list in the kernel's form of numbers in ascending order.
pub(crate) fn list(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let words = ranges
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    words.collect::<Vec<_>>().join(",")
}

/// All threads of a process and its descendants, its own first: the children they create afterwards are bound.
fn threads_of_tree(root: u32) -> Vec<u32> {
    let tree = SystemTree::default();
    processes_of_tree(root).iter().flat_map(|pid| tree.threads(*pid)).collect()
}

/// The processes of a tree, its root first.
pub(crate) fn processes_of_tree(root: u32) -> Vec<u32> {
    let parent = |pid| Some((pid, ProcessStat::read(pid)?.parent));
    let parents: Vec<(u32, u32)> = SystemTree::default().processes().into_iter().filter_map(parent).collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&pid) = tree.get(next) {
        tree.extend(parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child));
        next += 1;
    }
    tree
}

fn pid(thread: Option<u32>) -> Result<Option<Pid>, String> {
    let Some(thread) = thread else { return Ok(None) };
    let number = i32::try_from(thread).ok().and_then(Pid::from_raw);
    number.map(Some).ok_or_else(|| format!("{thread} is not a valid process ID"))
}

fn affinity_error(thread: Option<u32>, error: rustix::io::Errno) -> String {
    let who = thread.map_or_else(|| "this process".into(), |thread| format!("process {thread}"));
    format!("the CPUs of {who} cannot be read or set: {}", std::io::Error::from(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_kernels() {
        assert_eq!(list([0, 1, 2, 4, 6, 7]), "0-2,4,6-7");
        assert_eq!(list([]), "");
    }

    #[test]
    fn descendants_are_bound_and_a_missing_cpu_is_an_error() {
        let here = allowed_cpus(None).unwrap();
        let first = numbers(&here).unwrap()[0].to_string();
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60; :"]).spawn().unwrap();
        while processes_of_tree(child.id()).len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let outcome = (bind_tree(child.id(), &first), first_unbound(child.id(), &first));
        let missing = bind_tree(child.id(), &format!("{first},1000"));
        let tree = processes_of_tree(child.id());
        for pid in &tree {
            let _ = rustix::process::kill_process(pid_of(*pid), rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
        assert_eq!(outcome, (Ok(()), Ok(None)));
        assert!(missing.unwrap_err().contains(&format!("only {first} can be used")));
        assert!(bind_tree(child.id(), &first).unwrap_err().contains("has exited"));
        assert_eq!(allowed_cpus(None).unwrap(), here, "this process is where it was");
    }

    fn pid_of(pid: u32) -> Pid {
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }
}
