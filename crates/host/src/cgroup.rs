//! Control groups, versions 1 and 2: the group of a process, its directory, its limits.
//!
//! Sources: cgroups(7), `Documentation/admin-guide/cgroup-v2.rst`, `Documentation/admin-guide/cgroup-v1/`.

use std::path::Path;

use crate::{Mount, SystemTree};

/// Version 1 writes the largest number of pages, in bytes, for "no limit": values from this on are no limits.
const UNLIMITED: u64 = 1 << 60;

/// The path of a process's group, from the lines "number:controllers:path" of `/proc/PID/cgroup`: that of
/// `controller` in version 1, or without a controller that of version 2.
pub fn group_of<'a>(groups: &'a str, controller: Option<&str>) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match controller {
            Some(wanted) => controllers.split(',').any(|one| one == wanted),
            None => controllers.is_empty(),
        };
        is_it.then_some(path)
    })
}

/// The mount of a controller's hierarchy (version 1), or without a controller of the unified hierarchy
/// (version 2).
pub fn hierarchy<'a>(mounts: &'a [Mount], controller: Option<&str>) -> Option<&'a Mount> {
    mounts.iter().find(|mount| match controller {
        Some(wanted) => mount.kind == "cgroup" && mount.all_options().any(|option| option == wanted),
        None => mount.kind == "cgroup2",
    })
}

/// The directories of this process's group and of its ancestors, the nearest first.
pub fn own_groups(tree: &SystemTree, controller: Option<&str>) -> Vec<String> {
    groups_above(tree, "self", controller)
}

/// The memory control groups of a process, in both versions, the nearest first: the directory, and the limit
/// in bytes of all processes in the group; `None` without a limit.
pub fn memory_groups(tree: &SystemTree, pid: u32) -> Vec<(String, Option<u64>)> {
    let mut found = Vec::new();
    for (controller, file) in [(None, "memory.max"), (Some("memory"), "memory.limit_in_bytes")] {
        for directory in groups_above(tree, &pid.to_string(), controller) {
            let Some(text) = tree.line(format!("{directory}/{file}")) else { continue };
            let limit = text.trim().parse().ok().filter(|bytes| *bytes < UNLIMITED);
            found.push((directory, limit));
        }
    }
    found
}

fn groups_above(tree: &SystemTree, process: &str, controller: Option<&str>) -> Vec<String> {
    let text = tree.text(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let Some(path) = group_of(&text, controller) else { return Vec::new() };
    let mounts = tree.mounts();
    let Some(mount) = hierarchy(&mounts, controller) else { return Vec::new() };
    let Some(point) = mount.point.to_str() else { return Vec::new() };
    // In a container the root of the mount may be a group of the host.
    let path = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(path));
    let mut parts: Vec<&str> =
        path.iter().filter_map(|part| part.to_str()).filter(|part| *part != "/").collect();
    let mut found = Vec::new();
    loop {
        let directory = parts.iter().fold(point.to_owned(), |directory, part| format!("{directory}/{part}"));
        // The path may exist only on the host.
        if tree.has(&directory) {
            found.push(directory);
        }
        if parts.pop().is_none() {
            return found;
        }
    }
}

/// The lowest memory limit of this process's groups, in bytes; `None` without a limit.
pub fn memory_limit(tree: &SystemTree) -> Option<u64> {
    let second = own_groups(tree, None).into_iter().map(|group| format!("{group}/memory.max"));
    let first =
        own_groups(tree, Some("memory")).into_iter().map(|group| format!("{group}/memory.limit_in_bytes"));
    second.chain(first).filter_map(|file| tree.number(file)).filter(|bytes| *bytes < UNLIMITED).min()
}

/// The lowest CPU quota of this process's groups, in CPUs; `None` without a quota.
pub fn cpu_limit(tree: &SystemTree) -> Option<f64> {
    let second = own_groups(tree, None).into_iter().filter_map(|group| tree.line(format!("{group}/cpu.max")));
    let first = own_groups(tree, Some("cpu")).into_iter().filter_map(|group| {
        let part = |name: &str| tree.line(format!("{group}/cpu.cfs_{name}_us"));
        Some(format!("{} {}", part("quota")?, part("period")?))
    });
    second.chain(first).filter_map(|text| quota(&text)).reduce(f64::min)
}

/// The quota in CPUs, from quota and period in microseconds; `None` for "max" and -1.
fn quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let (quota, period) = (words.next()??, words.next()??);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_in_both_versions() {
        let text = "9:name=systemd:/\n2:cpu,cpuacct:/user.slice\n7:blkio:/\n0::/init.scope/a:b\n";
        assert_eq!(group_of(text, Some("cpu")), Some("/user.slice"));
        assert_eq!((group_of(text, Some("blkio")), group_of(text, Some("io"))), (Some("/"), None));
        assert_eq!(group_of(text, None), Some("/init.scope/a:b"));
        let mounts = Mount::all(
            "1 0 0:1 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n2 0 0:2 / /unified rw - cgroup2 none rw\n",
        );
        let point = |controller| Some(hierarchy(&mounts, controller)?.point.to_str()?.to_owned());
        assert_eq!(point(Some("cpu")).as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!((point(None).as_deref(), point(Some("memory"))), (Some("/unified"), None));
    }

    #[test]
    fn the_groups_of_a_process_are_those_that_limit_its_memory() {
        let root = std::env::temp_dir().join(format!("kelvin-host-cgroup-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/77/cgroup", "4:memory:/job\n0::/slice/unit\n");
        write(
            "proc/self/mountinfo",
            "1 0 0:1 / /cg2 rw - cgroup2 cgroup2 rw\n3 0 0:3 / /mem rw - cgroup cgroup rw,memory\n",
        );
        write("cg2/slice/unit/memory.max", "max\n");
        write("cg2/slice/memory.max", "2147483648\n");
        write("mem/job/memory.limit_in_bytes", "16777216\n");
        write("mem/memory.limit_in_bytes", "9223372036854771712\n");
        let found = memory_groups(&SystemTree::at(&root), 77);
        std::fs::remove_dir_all(&root).unwrap();
        let expected = [
            ("/cg2/slice/unit", None),
            ("/cg2/slice", Some(2 << 30)),
            ("/mem/job", Some(16 << 20)),
            ("/mem", None),
        ];
        assert_eq!(found, expected.map(|(group, limit)| (group.to_owned(), limit)));
        assert_eq!(memory_groups(&SystemTree::at(&root), 78), []);
    }

    #[test]
    fn a_quota_is_a_number_of_cpus() {
        assert_eq!(
            [quota("150000 100000"), quota("max 100000"), quota("-1 100000")],
            [Some(1.5), None, None]
        );
    }
}
