//! The settings of a managed server: moderate ones for a host it has to itself, durable, each with its reason.

use std::fmt::Write;
use std::path::Path;

use crate::{Error, Result};

const BEGIN: &str = "# --- kelvin: begin ---";
const END: &str = "# --- kelvin: end ---";

const MIB: u64 = 1 << 20;

/// One setting and why it is so.
struct Line {
    name: String,
    value: String,
    reason: &'static str,
}

/// What the host offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    /// Bytes of memory this process may use.
    pub(crate) memory: u64,
    /// Free bytes where the data is.
    pub(crate) disk: u64,
    /// Free bytes of shared memory (/dev/shm).
    pub(crate) shared: u64,
    /// Whether the server's module `pg_stat_statements` is installed.
    pub(crate) statements: bool,
}

/// Whether the binaries in this directory have the module, which is part of PostgreSQL's contrib package. Where the
/// module is looked for is built into the server; these are the places of Debian's and PostgreSQL's packages, of a build of
/// one's own, and of the distributions that put the binaries into /usr/bin.
fn has_statements(binaries: &Path) -> bool {
    // Whole directories and single programs are linked to; the server finds its files from its real place.
    let Ok(server) = binaries.join("postgres").canonicalize() else { return false };
    ["../lib", "../lib/postgresql", "../lib64/pgsql", "../lib/pgsql"].iter().any(|place| {
        server.parent().is_some_and(|real| real.join(place).join("pg_stat_statements.so").is_file())
    })
}

impl Host {
    /// Looks at this host, its control group included.
    pub(crate) fn look(data: &Path, binaries: &Path) -> Self {
        let information = rustix::system::sysinfo();
        let mut memory = (information.totalram as u64).saturating_mul(u64::from(information.mem_unit.max(1)));
        if let Ok(limit) = std::fs::read_to_string("/sys/fs/cgroup/memory.max") {
            memory = limit.trim().parse().map_or(memory, |limit: u64| memory.min(limit));
        }
        let free = |path: &Path| {
            rustix::fs::statvfs(path).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
        };
        Self {
            memory,
            disk: free(data),
            shared: free(Path::new("/dev/shm")),
            statements: has_statements(binaries),
        }
    }
}

/// The section for `postgresql.conf`, `extra` last, so that it wins.
pub(crate) fn section(
    major: u32,
    host: Host,
    socket_directory: &Path,
    port: u16,
    extra: &[(&str, &str)],
) -> Result<String> {
    let mut lines = Vec::new();
    let mut add =
        |name: &str, value: String, reason| lines.push(Line { name: name.to_owned(), value, reason });
    add(
        "listen_addresses",
        quoted("")?,
        "reached through its unix socket only, which only its user and root can open",
    );
    add("unix_socket_directories", quoted(&socket_directory.to_string_lossy())?, "a directory of its own");
    add("port", port.to_string(), "only a part of the socket's name");
    add("max_connections", "2200".to_owned(), "one connection a virtual user, and some");
    let shared = (host.memory / 4 / MIB).clamp(128, 8 * 1024);
    add(
        "shared_buffers",
        format!("{shared}MB"),
        "a quarter of the memory, 8 GB at most; the default of 128 MB measures the kernel's cache",
    );
    let cache = (host.memory / 4 * 3 / MIB).max(256);
    add(
        "effective_cache_size",
        format!("{cache}MB"),
        "three quarters of the memory: what the planner may expect in caches",
    );
    let wal = (host.disk / 10 / MIB).clamp(1024, 4 * 1024);
    add(
        "max_wal_size",
        format!("{wal}MB"),
        "checkpoints by time, not every few seconds; 4 GB, or a tenth of the free space",
    );
    add("min_wal_size", "512MB".to_owned(), "log files are reused, not made anew in the measured window");
    add(
        "checkpoint_timeout",
        "15min".to_owned(),
        "fewer full page images; a run longer than this contains checkpoints",
    );
    add(
        "checkpoint_completion_target",
        "0.9".to_owned(),
        "spreads a checkpoint's writes (the default since 14)",
    );
    add("random_page_cost", "1.1".to_owned(), "flash, not spinning disks");
    add("jit", "off".to_owned(), "short queries gain nothing from compilation");
    add("fsync", "on".to_owned(), "results without it are of no use to anyone");
    add("synchronous_commit", "on".to_owned(), "a commit is on disk before it is answered");
    add("full_page_writes", "on".to_owned(), "a torn page after a power loss can be repaired");
    if host.shared < 256 * MIB {
        add(
            "dynamic_shared_memory_type",
            "mmap".to_owned(),
            "/dev/shm is too small for parallel queries (a container)",
        );
    }
    if host.statements {
        add(
            "shared_preload_libraries",
            quoted("pg_stat_statements")?,
            "counts time and pages by statement; a fraction of a microsecond for each",
        );
    }
    for (name, value) in extra {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(Error::usage(format!("{name:?} is not the name of a PostgreSQL setting")));
        }
        add(name, quoted(value)?, "asked for");
    }
    let mut text = format!(
        "{BEGIN}\n# Written by kelvin whenever it starts this PostgreSQL {major}; changes here are lost.\n\
         # Put your own settings below the end of this section: the last one counts.\n"
    );
    for line in lines {
        let _ = writeln!(text, "# {}\n{} = {}", line.reason, line.name, line.value);
    }
    text.push_str(END);
    text.push('\n');
    Ok(text)
}

/// `configuration` with its section replaced, or appended when there is none.
pub(crate) fn with_section(configuration: &str, section: &str) -> String {
    if let (Some(begin), Some(end)) = (configuration.find(BEGIN), configuration.find(END))
        && begin < end
    {
        let after = configuration[end + END.len()..].trim_start_matches('\n');
        return format!("{}{section}{after}", &configuration[..begin]);
    }
    format!("{}\n\n{section}", configuration.trim_end())
}

fn quoted(value: &str) -> Result<String> {
    if value.chars().any(char::is_control) {
        return Err(Error::usage(format!("the setting {value:?} contains a control character")));
    }
    Ok(format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Host = Host { memory: 16 << 30, disk: 1 << 40, shared: 1 << 30, statements: true };

    #[test]
    fn sizes_follow_the_host_within_their_limits() {
        let text = |host| section(15, host, Path::new("/run/x"), 5432, &[]).unwrap();
        assert!(text(HOST).contains("\nshared_buffers = 4096MB\n"));
        assert!(text(HOST).contains("\nmax_wal_size = 4096MB\n") && !text(HOST).contains("dynamic_shared"));
        let small = text(Host { memory: 256 << 20, disk: 1 << 30, shared: 64 << 20, statements: false });
        assert!(small.contains("\nshared_buffers = 128MB\n") && small.contains("\nmax_wal_size = 1024MB\n"));
        assert!(small.contains("\ndynamic_shared_memory_type = mmap\n"));
        assert!(text(Host { memory: 1 << 42, ..HOST }).contains("\nshared_buffers = 8192MB\n"));
        assert!(text(HOST).contains("\nfsync = on\n"));
        // A server that is to load what is not there does not start.
        assert!(text(HOST).contains("\nshared_preload_libraries = 'pg_stat_statements'\n"));
        assert!(!small.contains("shared_preload_libraries"));
    }

    #[test]
    fn the_section_is_replaced_and_the_users_own_lines_stay() {
        let first = section(15, HOST, Path::new("/run/x"), 5432, &[("fsync", "off")]).unwrap();
        assert!(first.contains("\nfsync = 'off'\n"));
        let second = section(15, HOST, Path::new("/run/y"), 5432, &[]).unwrap();
        let mut text = with_section("a = 1\n", &first);
        text.push_str("work_mem = 64MB\n");
        let text = with_section(&text, &second);
        assert!(text.starts_with("a = 1\n") && text.ends_with("\nwork_mem = 64MB\n"), "{text}");
        assert!(!text.contains("/run/x") && text.contains("/run/y"));
        assert_eq!(text.matches(BEGIN).count(), 1);
        assert_eq!(with_section(&text, &second), text);
    }

    #[test]
    fn a_setting_cannot_bring_another_line() {
        for bad in [("fsync\nport", "1"), ("", "1"), ("fsync", "off'\nport = '1")] {
            assert!(section(15, HOST, Path::new("/run/x"), 5432, &[bad]).is_err(), "{bad:?}");
        }
        let text = section(15, HOST, Path::new("/run/x'y"), 5432, &[]).unwrap();
        assert!(text.contains("unix_socket_directories = '/run/x''y'"));
    }
}
