//! Processors: what they are, and what slows them down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kelvin_host::SystemTree;
use serde::{Deserialize, Serialize};

use super::line;

/// The processors of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The model's name as the kernel gives it.
    pub model: Option<String>,
    /// Hardware threads online.
    pub threads: u32,
    /// Physical cores; absent if unknown to the kernel.
    pub cores: Option<u32>,
    /// Sockets; absent if unknown to the kernel.
    pub sockets: Option<u32>,
    /// Whether the host is a virtual machine, by the CPU's hypervisor flag.
    pub virtual_machine: bool,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Frequency governors in use; empty where frequencies are not the host's to choose.
    pub governors: Vec<String>,
    /// Mitigations of processor vulnerabilities that are active, by vulnerability.
    pub mitigations: BTreeMap<String, String>,
}

impl Cpu {
    pub(super) fn read() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| -> Vec<&str> {
            info.lines()
                .filter_map(|l| l.split_once(':'))
                .filter(|(key, _)| key.trim() == name)
                .map(|(_, value)| value.trim())
                .collect()
        };
        let sockets: BTreeSet<_> = field("physical id").into_iter().collect();
        let cores: BTreeSet<_> = field("physical id").into_iter().zip(field("core id")).collect();
        let known = |count: usize| (count > 0).then_some(count as u32);
        let numa_nodes = SystemTree::default().numbered("/sys/devices/system/node", "node").len();
        Self {
            model: field("model name").first().map(|m| (*m).to_owned()),
            threads: field("processor").len().max(1) as u32,
            cores: known(cores.len()),
            sockets: known(sockets.len()),
            virtual_machine: field("flags")
                .first()
                .is_some_and(|f| f.split(' ').any(|flag| flag == "hypervisor")),
            numa_nodes: numa_nodes.max(1) as u32,
            governors: governors(),
            mitigations: mitigations(),
        }
    }
}

fn governors() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu") else { return Vec::new() };
    let found: BTreeSet<String> =
        entries.flatten().filter_map(|e| line(e.path().join("cpufreq/scaling_governor"))).collect();
    found.into_iter().collect()
}

fn mitigations() -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|e| Some((e.file_name().into_string().ok()?, line(e.path())?)))
        .filter(|(_, state)| state != "Not affected")
        .collect()
}
