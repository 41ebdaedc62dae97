//! The machine as it is in one session of a study: what must not change between two of them unreported.

use std::collections::BTreeMap;

use kelvin_observe::host::Host;

/// What is known of the environment, by name.
pub type EnvironmentFacts = BTreeMap<String, String>;

/// What this host says of itself; `kelvin` is the version. The caller adds the database's.
pub fn facts(kelvin: &str) -> EnvironmentFacts {
    let host = Host::read();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let known = [
        ("kelvin", Some(kelvin.to_owned())),
        ("host", host.name),
        ("kernel", host.kernel),
        ("operating-system", host.operating_system),
        ("boot", boot.map(|boot| boot.trim().to_owned())),
        ("processor", host.cpu.model),
        ("processors", Some(host.cpu.threads.to_string())),
        ("memory", Some(format!("{} B", host.memory.total_bytes))),
        ("cpu-limit", host.cgroup_cpu_limit.map(|cores| format!("{cores} cores"))),
        ("memory-limit", host.cgroup_memory_limit.map(|bytes| format!("{bytes} B"))),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
