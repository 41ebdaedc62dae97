//! Files of the kernel: settings and reserved huge pages.

use std::path::{Path, PathBuf};

/// What a kernel file says.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("this kernel has no {}", file.display()),
        _ => format!("{} cannot be read: {error}", file.display()),
    })
}

/// Writes a kernel file; the kernel's words are compared without regard to blanks.
pub(crate) fn write(file: &Path, value: &str) -> Result<(), String> {
    std::fs::write(file, value).map_err(|error| {
        let help = if rustix::process::geteuid().is_root() { "" } else { "; this requires root" };
        format!("{value:?} cannot be written to {}: {error}{help}", file.display())
    })
}

/// Whether two texts of a kernel file say the same.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}

/// Only these are written when a journal says so.
pub(crate) fn is_of_kernel(file: &Path) -> bool {
    let plain = file
        .components()
        .all(|part| matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_)));
    plain && (file.starts_with("/proc/sys") || file.starts_with("/sys/kernel/mm/hugepages"))
}

/// The file that says how many huge pages of a size are reserved.
pub(crate) fn huge_pages(kilobytes: u64) -> PathBuf {
    format!("/sys/kernel/mm/hugepages/hugepages-{kilobytes}kB/nr_hugepages").into()
}

/// Reserves so many huge pages. The kernel grants as many as it finds room for, without a word.
pub(crate) fn reserve(file: &Path, pages: u64) -> Result<(), String> {
    let granted = || -> Result<u64, String> {
        let text = read(file)?;
        text.trim().parse().map_err(|_| format!("{} contains {text:?}", file.display()))
    };
    write(file, &pages.to_string())?;
    if granted()? >= pages {
        return Ok(());
    }
    // Scattered free memory can be brought together; where that cannot be asked for, the second try decides.
    let _ = std::fs::write("/proc/sys/vm/compact_memory", "1");
    write(file, &pages.to_string())?;
    match granted()? {
        enough if enough >= pages => Ok(()),
        few => Err(format!(
            "the kernel reserved only {few} of {pages} huge pages: free memory is too fragmented"
        )),
    }
}

/// Whether a process has shared memory in pages of this size, by what the kernel says of its memory.
pub(crate) fn maps_pages(pid: u32, kilobytes: u64) -> Result<bool, String> {
    let text = read(Path::new(&format!("/proc/{pid}/smaps")))?;
    let sizes = text.lines().filter_map(|line| line.strip_prefix("KernelPageSize:"));
    Ok(sizes.into_iter().any(|size| size.split_whitespace().next() == Some(&kilobytes.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_kernel_are_written_for_a_journal() {
        assert!(is_of_kernel(Path::new("/proc/sys/vm/swappiness")) && is_of_kernel(&huge_pages(2048)));
        for other in [
            "/etc/passwd",
            "/proc/sys/../../etc/passwd",
            "proc/sys/vm",
            "/proc/sysrq-trigger",
            "/sys/kernel/mm/x",
        ] {
            assert!(!is_of_kernel(Path::new(other)), "{other}");
        }
        assert!(same("4096\t131072  6291456\n", "4096 131072 6291456"));
        assert!(read(&huge_pages(3)).unwrap_err().contains("this kernel has no"));
        assert_eq!(maps_pages(std::process::id(), 4), Ok(true));
        assert_eq!(maps_pages(std::process::id(), 3), Ok(false));
    }
}
