//! The control group of who issues requests, looked up when a process is first seen.

use std::collections::HashSet;

use crate::recording::ProcessGroup;

/// Processes that are looked up in a recording at most.
const MOST: usize = 1 << 20;
/// Controllers of version 1, those first that limit storage.
const CONTROLLERS: [&str; 3] = ["blkio", "memory", "cpu"];

/// Finds the groups of processes.
#[derive(Debug, Default)]
pub(super) struct GroupLookup {
    seen: HashSet<(i32, [u8; 16])>,
    found: Vec<ProcessGroup>,
}

impl GroupLookup {
    /// Looks up who issued a request, unless it is known. Of a process that is gone nothing is known.
    pub(super) fn see(&mut self, pid: i32, command: [u8; 16]) {
        if pid <= 0 || self.seen.len() >= MOST || !self.seen.insert((pid, command)) {
            return;
        }
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup"));
        if let Some(group) = text.ok().as_deref().and_then(group) {
            let name = command.split(|byte| *byte == 0).next().unwrap_or_default();
            self.found.push((pid, String::from_utf8_lossy(name).into_owned(), group));
        }
    }

    /// What was found since the last time.
    pub(super) fn take(&mut self) -> Vec<ProcessGroup> {
        std::mem::take(&mut self.found)
    }
}

/// The group in the text of `/proc/PID/cgroup`: that of version 2, or where it is the root, which it is for all
/// processes beside controllers of version 1, the first of those that is not.
fn group(text: &str) -> Option<String> {
    let lines: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        })
        .collect();
    let of = |wanted: &str| {
        let line = lines.iter().find(|(controllers, _)| controllers.split(',').any(|one| one == wanted));
        line.map(|(_, path)| *path)
    };
    let paths = std::iter::once("").chain(CONTROLLERS).filter_map(of);
    let path = paths.clone().find(|path| *path != "/").or_else(|| paths.clone().next())?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_that_of_either_version() {
        assert_eq!(
            group("0::/system.slice/postgresql.service\n").as_deref(),
            Some("/system.slice/postgresql.service")
        );
        let first = "12:blkio:/limited\n5:cpu,cpuacct:/other\n0::/\n";
        assert_eq!(group(first).as_deref(), Some("/limited"));
        assert_eq!(group("5:cpu,cpuacct:/other\n12:blkio:/\n").as_deref(), Some("/other"));
        assert_eq!(group("5:cpu,cpuacct:/\n0::/\n").as_deref(), Some("/"));
        assert_eq!(group("1:name=systemd:/init\n"), None);
        assert_eq!(group("nonsense"), None);
    }

    #[test]
    fn this_process_is_found_once() {
        let mut lookup = GroupLookup::default();
        let pid = std::process::id() as i32;
        let mut command = [0; 16];
        command[..2].copy_from_slice(b"me");
        lookup.see(pid, command);
        lookup.see(pid, command);
        lookup.see(0, command);
        let found = lookup.take();
        if std::path::Path::new("/proc/self/cgroup").exists() {
            assert!(
                matches!(found.as_slice(), [(found, name, _)] if *found == pid && name == "me"),
                "{found:?}"
            );
        }
        assert!(lookup.take().is_empty());
    }
}
