//! The machine in a session of a study. Differences between sessions must be reported.

use std::collections::BTreeMap;

use kelvin_host::SystemTree;
use kelvin_observe::host::Host;

/// Facts about the environment, by name.
pub type EnvironmentFacts = BTreeMap<String, String>;

/// The facts of this host; `kelvin` is the version. The caller adds those of the database.
pub fn facts(kelvin: &str) -> EnvironmentFacts {
    let host = Host::read();
    let known = [
        ("kelvin", Some(kelvin.to_owned())),
        ("host", host.name),
        ("kernel", host.kernel),
        ("operating-system", host.operating_system),
        ("boot", SystemTree::default().boot_id()),
        ("processor", host.cpu.model),
        ("processors", Some(host.cpu.threads.to_string())),
        ("memory", Some(format!("{} B", host.memory.total_bytes))),
        ("cpu-limit", host.cgroup_cpu_limit.map(|cores| format!("{cores} cores"))),
        ("memory-limit", host.cgroup_memory_limit.map(|bytes| format!("{bytes} B"))),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
