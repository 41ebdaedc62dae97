//! Files of the kernel: settings below `/proc/sys` and `/sys`, and reserved huge pages.

use std::path::{Path, PathBuf};

use kelvin_host::chosen;

/// Writable files below `/sys`: their directory, in which `*` matches any name, and their names. A disk's
/// `write_cache` is excluded because changing it can make the kernel skip flushes.
const SYSFS: [(&str, &[&str]); 3] = [
    (
        "/sys/block/*/queue",
        &[
            "scheduler",
            "read_ahead_kb",
            "nr_requests",
            "max_sectors_kb",
            "nomerges",
            "rq_affinity",
            "wbt_lat_usec",
        ],
    ),
    ("/sys/kernel/mm/transparent_hugepage", &["enabled", "defrag"]),
    (
        "/sys/devices/system/cpu/cpufreq/*",
        &["scaling_governor", "scaling_min_freq", "scaling_max_freq", "energy_performance_preference"],
    ),
];

/// The frequency settings of all CPUs.
const EVERY_POLICY: &str = "/sys/devices/system/cpu/cpufreq/policy*";

/// Whether this is a writable file below `/sys`, or one for every CPU ([`files`]).
pub(crate) fn is_of_sysfs(path: &str) -> bool {
    let Some((directory, name)) = path.rsplit_once('/') else { return false };
    let plain = |segment: &str| {
        !segment.is_empty()
            && !segment.starts_with('.')
            && segment.chars().all(|c| c.is_ascii_alphanumeric() || "._-:!".contains(c))
    };
    let has_form = |form: &str| {
        let (form, segments): (Vec<&str>, Vec<&str>) =
            (form.split('/').collect(), directory.split('/').collect());
        form.len() == segments.len()
            && form.iter().zip(&segments).all(|(form, segment)| match *form {
                "*" => plain(segment) || directory == EVERY_POLICY,
                form => form == *segment,
            })
    };
    SYSFS.iter().any(|(form, names)| names.contains(&name) && has_form(form))
}

/// The name with `policy*` in place of a single frequency policy: both change the same files.
pub(crate) fn of_every_cpu(key: &str) -> String {
    let of_policy = Path::new(EVERY_POLICY).parent().and_then(|all| Path::new(key).strip_prefix(all).ok());
    let name = of_policy.and_then(Path::file_name).and_then(|name| name.to_str());
    name.map_or_else(|| key.to_owned(), |name| format!("{EVERY_POLICY}/{name}"))
}

/// The files of a name: the file itself, or with `policy*` one per frequency policy of the CPUs.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let of_every = path.parent().is_some_and(|directory| directory == Path::new(EVERY_POLICY));
    let (Some(name), true) = (path.file_name(), of_every) else { return Ok(vec![path.into()]) };
    let found = files_of_policies(&Path::new(EVERY_POLICY).with_file_name(""), Path::new(name));
    if found.is_empty() {
        return Err(format!(
            "this kernel has no {}: the host does not choose its CPUs' frequencies",
            path.display()
        ));
    }
    Ok(found)
}

/// The files of this name of all frequency policies in a directory.
fn files_of_policies(all: &Path, name: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.map(|policy| policy.join(name)).collect();
    // The files of offline CPUs exist but cannot be read.
    found.retain(|file| std::fs::read(file).is_ok());
    found.sort();
    found
}

/// Reads a kernel file.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("this kernel has no {}", file.display()),
        _ => format!("{} cannot be read: {error}", file.display()),
    })
}

/// Writes a kernel file.
pub(crate) fn write(file: &Path, value: &str) -> Result<(), String> {
    std::fs::write(file, value).map_err(|error| {
        let help = if rustix::process::geteuid().is_root() { "" } else { "; this requires root" };
        format!("{value:?} cannot be written to {}: {error}{help}", file.display())
    })
}

/// Whether two texts of a kernel file mean the same. White space is ignored; in a list of choices, only the selected one
/// counts.
pub(crate) fn same(a: &str, b: &str) -> bool {
    chosen(a).split_whitespace().eq(chosen(b).split_whitespace())
}

/// Whether this is a kernel file. Only such files are written on behalf of a journal.
pub(crate) fn is_of_kernel(file: &Path) -> bool {
    let plain = file
        .components()
        .all(|part| matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_)));
    let of_sysfs = file.to_str().is_some_and(is_of_sysfs);
    plain && (file.starts_with("/proc/sys") || file.starts_with("/sys/kernel/mm/hugepages") || of_sysfs)
}

/// The file with the number of reserved huge pages of a size.
pub(crate) fn huge_pages(kilobytes: u64) -> PathBuf {
    format!("/sys/kernel/mm/hugepages/hugepages-{kilobytes}kB/nr_hugepages").into()
}

/// Reserves huge pages. The kernel grants as many as it finds memory for, and reports no error.
pub(crate) fn reserve(file: &Path, pages: u64) -> Result<(), String> {
    let granted = || -> Result<u64, String> {
        let text = read(file)?;
        text.trim().parse().map_err(|_| format!("{} contains {text:?}", file.display()))
    };
    write(file, &pages.to_string())?;
    if granted()? >= pages {
        return Ok(());
    }
    // Compaction can make contiguous memory available. If it cannot be requested, the second attempt decides.
    let _ = std::fs::write("/proc/sys/vm/compact_memory", "1");
    write(file, &pages.to_string())?;
    match granted()? {
        enough if enough >= pages => Ok(()),
        few => Err(format!(
            "the kernel reserved only {few} of {pages} huge pages: free memory is too fragmented"
        )),
    }
}

/// Whether a process has shared memory in pages of this size, according to the kernel's report of its memory.
pub(crate) fn maps_pages(pid: u32, kilobytes: u64) -> Result<bool, String> {
    let text = read(Path::new(&format!("/proc/{pid}/smaps")))?;
    let sizes = text.lines().filter_map(|line| line.strip_prefix("KernelPageSize:"));
    Ok(sizes.into_iter().any(|size| size.split_whitespace().next() == Some(&kilobytes.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_that_can_be_read_is_one_of_all() {
        let all = tempfile::tempdir().unwrap();
        for policy in ["policy1", "policy0"] {
            std::fs::create_dir(all.path().join(policy)).unwrap();
            std::fs::write(all.path().join(policy).join("scaling_governor"), "powersave\n").unwrap();
        }
        std::fs::create_dir(all.path().join("policy2")).unwrap();
        std::fs::write(all.path().join("boost"), "1\n").unwrap();
        let found = files_of_policies(all.path(), Path::new("scaling_governor"));
        let expected = ["policy0", "policy1"].map(|policy| all.path().join(policy).join("scaling_governor"));
        assert_eq!(found, expected);
    }

    #[test]
    fn only_files_of_the_kernel_are_written_for_a_journal() {
        assert!(is_of_kernel(Path::new("/proc/sys/vm/swappiness")) && is_of_kernel(&huge_pages(2048)));
        for of_sysfs in [
            "/sys/block/nvme0n1/queue/scheduler",
            "/sys/block/cciss!c0d0/queue/read_ahead_kb",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        ] {
            assert!(is_of_kernel(Path::new(of_sysfs)), "{of_sysfs}");
        }
        for other in [
            "/etc/passwd",
            "/sys/block/vda/queue/write_cache",
            "/sys/block/vda/device/delete",
            "/sys/block/../queue/scheduler",
            "/sys/block/.hidden/queue/scheduler",
            "/sys/block/queue/scheduler",
            "/sys/block/vda/queue/../queue/scheduler",
            "/sys/block/*/queue/scheduler",
            "/proc/sys/../../etc/passwd",
            "proc/sys/vm",
            "/proc/sysrq-trigger",
            "/sys/kernel/mm/x",
        ] {
            assert!(!is_of_kernel(Path::new(other)), "{other}");
        }
        assert!(same("4096\t131072  6291456\n", "4096 131072 6291456"));
        assert!(
            same("none [mq-deadline] kyber\n", "mq-deadline") && !same("[none] mq-deadline", "mq-deadline")
        );
        assert!(read(&huge_pages(3)).unwrap_err().contains("this kernel has no"));
        assert_eq!(maps_pages(std::process::id(), 4), Ok(true));
        assert_eq!(maps_pages(std::process::id(), 3), Ok(false));
    }
}
