//! Host resources from which profiles compute sizes.

use kelvin_host::SystemTree;
use kelvin_host::cgroup::memory_limit;
use std::path::Path;

/// Resources of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostResources {
    /// Bytes of memory this process may use.
    pub memory: u64,
    /// Bytes available to the WAL or redo log: free space in the file system of the data, plus the space that the log
    /// already uses.
    pub disk: u64,
    /// Free bytes of shared memory (/dev/shm).
    pub shared: u64,
    /// Bytes of huge pages that are reserved and free.
    pub huge_pages: u64,
    /// CPUs that this process may use.
    pub cpus: u64,
    /// Whether the server's module `pg_stat_statements` is installed.
    pub(crate) statements: bool,
}

impl HostResources {
    /// A host for tests, with PostgreSQL's module.
    #[cfg(test)]
    pub(crate) const EXAMPLE: Self =
        Self { memory: 16 << 30, disk: 1 << 40, shared: 1 << 30, huge_pages: 0, cpus: 4, statements: true };

    /// Looks at this host, its control group included. `data` is the data directory, or where it will be.
    pub fn read(data: &Path) -> Self {
        let information = rustix::system::sysinfo();
        let memory = (information.totalram as u64).saturating_mul(u64::from(information.mem_unit.max(1)));
        let tree = SystemTree::default();
        let limit = memory_limit(&tree).unwrap_or(memory);
        let free = |path: &Path| {
            rustix::fs::statvfs(path).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
        };
        let there = data.ancestors().find(|path| path.exists()).unwrap_or(data);
        Self {
            memory: memory.min(limit),
            disk: free(there)
                .saturating_add(bytes_in(&data.join("pg_wal"), ""))
                .saturating_add(bytes_in(&data.join("#innodb_redo"), ""))
                .saturating_add(bytes_in(data, "ib_logfile")),
            shared: free(Path::new("/dev/shm")),
            huge_pages: free_huge_pages(tree.values("/proc/meminfo", HUGE_PAGES)),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
            statements: false,
        }
    }
}

/// Total size in bytes of the files in a directory whose names begin with `prefix`; subdirectories are not included.
fn bytes_in(directory: &Path, prefix: &str) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

const HUGE_PAGES: [&str; 3] = ["HugePages_Free", "HugePages_Rsvd", "Hugepagesize"];

/// Bytes of free huge pages of the default size that are not reserved, from the values of [`HUGE_PAGES`].
fn free_huge_pages(values: [Option<u64>; 3]) -> u64 {
    let [free, reserved, kib] = values.map(Option::unwrap_or_default);
    free.saturating_sub(reserved) * kib * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promised_huge_pages_are_not_free() {
        assert_eq!(free_huge_pages([Some(60), Some(10), Some(2048)]), 50 * (2 << 20));
        assert_eq!(free_huge_pages([None; 3]), 0);
    }
}
