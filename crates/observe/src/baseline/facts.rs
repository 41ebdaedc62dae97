//! Facts about the host, as text.

use super::Baseline;
use crate::host::{Host, line};

pub(super) fn read(baseline: &mut Baseline) {
    let host = Host::read();
    let (cpu, memory) = (&host.cpu, &host.memory);
    let mut say = |name: &str, label: &str, value: Option<String>| match value {
        Some(value) => baseline.add_fact(name, label, value),
        None => baseline.miss(label, "not reported by this kernel"),
    };
    say("host.kernel", "kernel", host.kernel.clone());
    say("host.system", "operating system", host.operating_system.clone());
    say("processor.model", "processor", cpu.model.clone());
    let number = |count: Option<u32>| count.map_or("?".into(), |count| count.to_string());
    let kind = if cpu.virtual_machine { ", virtual machine" } else { "" };
    let of = |count: String, what: &str| {
        let more = if count == "1" { "" } else { "s" };
        format!("{count} {what}{more}")
    };
    let threads = format!(
        "{}, {}, {}, {}{kind}",
        of(cpu.threads.to_string(), "thread"),
        of(number(cpu.cores), "core"),
        of(number(cpu.sockets), "socket"),
        of(cpu.numa_nodes.to_string(), "NUMA node")
    );
    say("processor.threads", "CPUs", Some(threads));
    let governor = if cpu.governors.is_empty() {
        "controlled by the hypervisor".into()
    } else {
        cpu.governors.join(", ")
    };
    say("processor.governor", "frequency governor", Some(governor));
    let at = "/sys/devices/system/cpu/cpu0/cpufreq/";
    let range = line(format!("{at}scaling_min_freq")).zip(line(format!("{at}scaling_max_freq")));
    if let Some((Ok(low), Ok(high))) = range.map(|(low, high)| (low.parse::<u64>(), high.parse::<u64>())) {
        say("processor.frequency", "frequency", Some(format!("{} to {} MHz", low / 1000, high / 1000)));
    }
    let mitigations: Vec<_> =
        cpu.mitigations.iter().map(|(vulnerability, state)| format!("{vulnerability}: {state}")).collect();
    let mitigations = if mitigations.is_empty() { "none needed".into() } else { mitigations.join("; ") };
    say("processor.mitigations", "mitigations", Some(mitigations));
    say("clock.source", "clock source", host.clock_source.clone());
    say("memory.total", "memory", Some(gibibytes(memory.total_bytes)));
    say("memory.swap", "swap", Some(gibibytes(memory.swap_bytes)));
    let huge = format!("{} of {} kB reserved", memory.huge_pages, memory.huge_page_bytes / 1024);
    say("memory.huge-pages", "huge pages", Some(huge));
    say("memory.transparent-huge-pages", "transparent huge pages", memory.transparent_huge_pages.clone());
    say("memory.swappiness", "vm.swappiness", memory.swappiness.map(|value| value.to_string()));
    if let Some(cores) = host.cgroup_cpu_limit {
        say("host.cpu-limit", "cgroup CPU limit", Some(format!("{cores} cores")));
    }
    if let Some(bytes) = host.cgroup_memory_limit {
        say("host.memory-limit", "cgroup memory limit", Some(gibibytes(bytes)));
    }
}

fn gibibytes(bytes: u64) -> String {
    if bytes == 0 { "none".into() } else { format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_described() {
        let mut baseline = Baseline::new();
        read(&mut baseline);
        for name in ["processor.threads", "processor.governor", "processor.mitigations", "memory.total"] {
            assert!(baseline.fact(name).is_some_and(|value| !value.is_empty()), "{name}: {baseline:?}");
        }
        assert_eq!((gibibytes(0), gibibytes(3 << 29)), ("none".into(), "1.5 GiB".into()));
    }
}
