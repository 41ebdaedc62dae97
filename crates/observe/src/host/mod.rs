//! The host's fingerprint: hardware, kernel, and the settings that decide a figure.

mod cpu;
pub(crate) mod filesystem;
mod memory;

use kelvin_host::SystemTree;
use kelvin_host::cgroup::{cpu_limit, memory_limit};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use cpu::Cpu;
pub use filesystem::Filesystem;
pub use memory::Memory;

/// What the host was when a run began. A field that could not be read is absent, never guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: Option<String>,
    /// Kernel release and version.
    pub kernel: Option<String>,
    /// The operating system's name, such as "Debian GNU/Linux 12 (bookworm)".
    pub operating_system: Option<String>,
    /// Processors.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// The kernel's clock source, such as "tsc": a slow one costs time in every measurement.
    pub clock_source: Option<String>,
    /// Load average over one minute before the run began: what else was going on.
    pub load_average: Option<f64>,
    /// The smallest CPU limit of this process's control groups, in cores; absent when unlimited.
    pub cgroup_cpu_limit: Option<f64>,
    /// The smallest memory limit of this process's control groups in bytes; absent when unlimited.
    pub cgroup_memory_limit: Option<u64>,
}

impl Host {
    /// Reads the fingerprint; takes a few milliseconds.
    pub fn read() -> Self {
        let uname = rustix::system::uname();
        let word =
            |text: &std::ffi::CStr| Some(text.to_string_lossy().into_owned()).filter(|s| !s.is_empty());
        Self {
            name: word(uname.nodename()),
            kernel: word(uname.release()),
            operating_system: operating_system(),
            cpu: Cpu::read(),
            memory: Memory::read(),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load_average: line("/proc/loadavg").and_then(|l| l.split(' ').next()?.parse().ok()),
            cgroup_cpu_limit: cpu_limit(&SystemTree::default()),
            cgroup_memory_limit: memory_limit(&SystemTree::default()),
        }
    }
}

impl Host {
    /// A name for the machine, as a history of its runs has it: host name and CPU model in small letters and digits, with
    /// dashes between. The same for every run on it; another when its processor is replaced.
    pub fn testbed(&self) -> String {
        let words = [self.name.as_deref(), self.cpu.model.as_deref()];
        let mut name = String::new();
        for c in words.into_iter().flatten().flat_map(|word| word.chars().chain(['-'])) {
            if c.is_ascii_alphanumeric() {
                name.push(c.to_ascii_lowercase());
            } else if !name.is_empty() && !name.ends_with('-') {
                name.push('-');
            }
        }
        let name = name.trim_end_matches('-');
        if name.is_empty() { "unknown".into() } else { name.to_owned() }
    }
}

/// The first line of a small file of the kernel's, without its line end.
pub(crate) fn line(path: impl AsRef<Path>) -> Option<String> {
    SystemTree::default().line(path)
}

fn operating_system() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_described() {
        let host = Host::read();
        assert!(host.cpu.threads >= 1);
        assert!(host.memory.total_bytes > 1 << 20);
        assert!(host.kernel.is_some());
    }

    #[test]
    fn a_testbed_is_named_by_host_and_processor() {
        let mut host = Host::read();
        host.name = Some("Rack-7.example".into());
        host.cpu.model = Some("Intel(R) Xeon(R) CPU @ 2.20GHz".into());
        assert_eq!(host.testbed(), "rack-7-example-intel-r-xeon-r-cpu-2-20ghz");
        (host.name, host.cpu.model) = (None, Some("(@)".into()));
        assert_eq!(host.testbed(), "unknown");
    }
}
