//! Memory nodes of processes. They are set by a cpuset control group of version 1 or 2, because only a process itself
//! can set its memory policy.

use kelvin_host::cgroup::{group_of, hierarchy};
use kelvin_host::{Mount, field};
use std::path::{Path, PathBuf};

use super::cpus;
use super::level::numbers;

/// Mount point of the cpuset control groups, and the group of a process in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cpusets {
    /// Directory of the process's group.
    pub(crate) group: PathBuf,
    /// Directory in which a group can be created for it.
    pub(crate) room: PathBuf,
}

impl Cpusets {
    /// The cpusets of a process; an error where the kernel has none, or they are not mounted.
    pub(crate) fn for_process(pid: u32) -> Result<Self, String> {
        let read = |file: String| std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"));
        let mounts = Mount::all(&read("/proc/self/mountinfo".into())?);
        let groups = read(format!("/proc/{pid}/cgroup"))?;
        find(&mounts, &groups).ok_or_else(|| {
            "binding memory needs the cpuset controller of control groups, which is not mounted on this \
             host; bind it from outside with numactl"
                .into()
        })
    }

    /// Moves the processes into a new group below theirs whose memory comes from these nodes. Returns when all of
    /// them have been moved.
    pub(crate) fn bind(group: &Path, from: &Path, pids: &[u32], nodes: &str) -> Result<(), String> {
        let wanted = cpus::list(numbers(nodes)?);
        let online = std::fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
        let online = numbers(online.trim()).unwrap_or_else(|_| vec![0]);
        if let Some(absent) = numbers(nodes)?.iter().find(|node| !online.contains(node)) {
            let there = if online.len() == 1 { "only one memory node".into() } else { cpus::list(online) };
            return Err(format!("there is no memory node {absent}; this host has {there}"));
        }
        let above = group.parent().unwrap_or(from);
        if above.join("cgroup.controllers").exists() {
            // In version 2 the parent group has to enable its controllers for the new one.
            write(&above.join("cgroup.subtree_control"), "+cpuset")?;
        }
        if !group.is_dir() {
            std::fs::create_dir(group)
                .map_err(|error| format!("{} cannot be created: {error}", group.display()))?;
        }
        // In version 1 a new group has no CPUs, and accepts no processes until it has some.
        let cpus_of = |name: &str| std::fs::read_to_string(above.join(name)).unwrap_or_default();
        let lists = [cpus_of("cpuset.cpus.effective"), cpus_of("cpuset.cpus")];
        if let Some(cpus) = lists.iter().map(|text| text.trim()).find(|text| !text.is_empty()) {
            write(&group.join("cpuset.cpus"), cpus)?;
        }
        write(&group.join("cpuset.mems"), &wanted)?;
        let migrate = group.join("cpuset.memory_migrate");
        if migrate.exists() {
            write(&migrate, "1")?;
        }
        for pid in pids {
            write(&group.join("cgroup.procs"), &pid.to_string())?;
        }
        match pids.iter().find_map(|pid| allowed(*pid).filter(|got| *got != wanted)) {
            Some(got) => Err(format!("memory nodes {wanted} were requested, but {got} are allowed")),
            None => Ok(()),
        }
    }
}

/// The memory nodes that a process may use, as a list in the kernel's form.
pub(crate) fn allowed(pid: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field(&status, "Mems_allowed_list").map(str::to_owned)
}

/// A process's group, from the kernel's lists of mounts and of the process's groups.
fn find(mounts: &[Mount], groups: &str) -> Option<Cpusets> {
    let of = |controller: Option<&str>| {
        let path = group_of(groups, controller)?.trim_start_matches('/');
        let room = hierarchy(mounts, controller)?.point.clone();
        Some(Cpusets { group: room.join(path), room })
    };
    if group_of(groups, Some("cpuset")).is_some() {
        return of(Some("cpuset")).map(|found| Cpusets { room: found.group.clone(), ..found });
    }
    // In version 2 only the root group may both contain processes and enable controllers for child groups.
    of(None)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text)
        .map_err(|error| format!("{text:?} cannot be written to {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::control_group;

    #[test]
    fn the_group_is_found_in_both_versions() {
        let one = Mount::all(
            "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
             2 0 0:2 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
             3 0 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        let found = find(&one, "3:cpuset:/a\n0::/b\n").unwrap();
        assert_eq!(
            (found.group, found.room),
            ("/sys/fs/cgroup/cpuset/a".into(), "/sys/fs/cgroup/cpuset/a".into())
        );
        let two = Mount::all("1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let found = find(&two, "0::/user.slice\n").unwrap();
        assert_eq!((found.group, found.room), ("/sys/fs/cgroup/user.slice".into(), "/sys/fs/cgroup".into()));
        assert_eq!(find(&Mount::all("1 0 0:1 / /proc rw - proc proc rw\n"), "0::/\n"), None);
    }

    #[test]
    fn a_process_is_moved_and_restored_or_the_error_says_why() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let nodes = allowed(pid).unwrap();
        let one = numbers(&nodes).unwrap()[0].to_string();
        let group = || std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        let before = group();
        let outcome = Cpusets::for_process(pid).and_then(|found| {
            let own = found.room.join(format!("kelvin-test-{pid}"));
            let bound = Cpusets::bind(&own, &found.group, &[pid], &one).map(|()| (allowed(pid), group()));
            let released = control_group::release(&own, &found.group, &BTreeMap::new());
            bound.and_then(|bound| released.map(|()| (bound, own.exists())))
        });
        let after = group();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(before, after);
        match outcome {
            Ok(((nodes, place), is_left)) => {
                assert!(place.contains(&format!("kelvin-test-{pid}")) && !is_left, "{place}");
                assert_eq!(nodes, Some(one));
            }
            // Without root, or where no cpusets are mounted or enabled.
            Err(why) => assert!(why.contains("cannot be") || why.contains("not mounted"), "{why}"),
        }
    }

    #[test]
    fn a_missing_node_is_an_error() {
        let nowhere = Path::new("/nonexistent");
        let error = Cpusets::bind(nowhere, nowhere, &[], "0,77").unwrap_err();
        assert!(error.contains("there is no memory node 77"), "{error}");
    }
}
