//! What the CPUs spent their time on: `/proc/stat`.
//!
//! Shares are of the time the kernel accounted in the interval, so that they add up to one: user, nice, system, idle,
//! iowait, irq, softirq, steal. A guest's time is part of user (or nice) and given besides.
//!
//! SystemTree: `Documentation/filesystems/proc.rst`, "Miscellaneous kernel statistics in /proc/stat".

use super::counter::{Counter, figure, ratio};
use super::{Collector, Registry};
use crate::metric;
use kelvin_host::bytes::{lines, number, words};
use kelvin_host::{Buffer, GUEST, KernelFile, SystemTree, cpu_times};

/// The states of a CPU in the order of /proc/stat, each with its help.
pub(crate) const SHARES: [(&str, &str); 8] = [
    ("user", "share of CPU time in user code, including guests"),
    ("nice", "share of CPU time in niced user code"),
    ("system", "share of CPU time in the kernel"),
    ("idle", "share of CPU time idle"),
    ("iowait", "share of CPU time idle while a task waits for a device"),
    ("irq", "share of CPU time in interrupts"),
    ("softirq", "share of CPU time in soft interrupts"),
    ("steal", "share of CPU time stolen by the hypervisor"),
];
const BUSY: usize = 9;
/// The eight shares, the guests', and what was neither idle nor waiting.
const WIDTH: usize = 10;

const WHOLE: [(&str, &str, &str); 6] = [
    (metric::CONTEXT_SWITCHES, "1/s", "context switches"),
    ("host.interrupts", "1/s", "interrupts"),
    ("host.soft_interrupts", "1/s", "soft interrupts"),
    ("host.forks", "1/s", "processes and threads created"),
    ("host.tasks.running", "1", "runnable tasks now, including this sampler"),
    ("host.tasks.blocked", "1", "tasks blocked on I/O now"),
];

/// CPUs of each node, for hosts with several: work on one of them alone leaves the others idle.
const NODES: &str = "/sys/devices/system/node";
const NODE: &str = "share of this NUMA node's CPU time neither idle nor iowait";

struct Cpus {
    file: KernelFile,
    /// The total first, then CPU by CPU: the number and its last times.
    each: Vec<(Option<u32>, Times)>,
    counters: [Counter; 4],
    /// Of each node the places of its CPUs in `each`.
    nodes: Vec<Vec<usize>>,
}

/// The last reading of the nine times of a CPU: user to steal, guest and guest_nice added up.
type Times = [Counter; 9];

pub(super) fn register(source: &SystemTree, registry: &mut Registry, totals_only: bool) {
    let file = match source.open("/proc/stat") {
        Ok(file) => file,
        Err(why) => return registry.absent(metric::CPU, why),
    };
    let mut cpus = vec![(None, Times::default())];
    if !totals_only {
        let text = source.text("/proc/stat").unwrap_or_default();
        let found = lines(text.as_bytes()).filter_map(|line| cpu_times(line)?.0);
        cpus.extend(found.map(|cpu| (Some(cpu), Times::default())));
    }
    let mut series = Vec::with_capacity(cpus.len() * WIDTH + WHOLE.len());
    for (cpu, _) in &cpus {
        let name = cpu.map_or("total".to_owned(), |cpu| cpu.to_string());
        series
            .extend(SHARES.iter().map(|(share, help)| (format!("host.cpu.{name}.{share}"), "ratio", *help)));
        series.push((
            format!("host.cpu.{name}.guest"),
            "ratio",
            "share of CPU time in guests, included in user",
        ));
        series.push((format!("host.cpu.{name}.busy"), "ratio", "share of CPU time neither idle nor iowait"));
    }
    series.extend(WHOLE.iter().map(|(name, unit, help)| ((*name).to_owned(), *unit, *help)));
    let mut nodes = Vec::new();
    for (number, members) in nodes_of(source, &cpus) {
        series.push((format!("host.numa.{number}.busy"), "ratio", NODE));
        nodes.push(members);
    }
    registry.add(series, Cpus { file, each: cpus, counters: Default::default(), nodes });
}

/// The nodes with the places of their CPUs; none where there is one node, or CPUs are not distinguished. A node without CPUs
/// has memory only.
fn nodes_of(source: &SystemTree, cpus: &[(Option<u32>, Times)]) -> Vec<(u32, Vec<usize>)> {
    let numbers = source.numbered(NODES, "node");
    let of = |number: u32| {
        let list = source.text(format!("{NODES}/node{number}/cpulist")).unwrap_or_default();
        let list = kelvin_host::numbers(&list).unwrap_or_default();
        let members = cpus.iter().enumerate();
        let members = members.filter(|(_, (cpu, _))| cpu.is_some_and(|cpu| list.contains(&cpu)));
        (number, members.map(|(place, _)| place).collect::<Vec<_>>())
    };
    let mut nodes: Vec<_> = numbers.into_iter().map(of).collect();
    nodes.retain(|(_, members)| !members.is_empty());
    if nodes.len() > 1 { nodes } else { Vec::new() }
}

impl Collector for Cpus {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let text = self.file.read(buffer).unwrap_or_default();
        let mut whole = Whole::default();
        // The lines come in the order of the numbers; a CPU taken offline leaves a gap.
        let mut next = 0;
        for line in lines(text) {
            if let Some((number, times)) = cpu_times(line) {
                let Some(at) = self.each[next..].iter().position(|(cpu, _)| *cpu == number) else { continue };
                for (_, missing) in &mut self.each[next..next + at] {
                    *missing = Times::default();
                }
                let at = next + at;
                shares(&mut self.each[at].1, times, &mut out[at * WIDTH..(at + 1) * WIDTH]);
                next = at + 1;
            } else {
                whole.take(line);
            }
        }
        for (_, missing) in &mut self.each[next..] {
            *missing = Times::default();
        }
        let (each, out) = out.split_at_mut(self.each.len() * WIDTH);
        for (node, out) in self.nodes.iter().zip(&mut out[WHOLE.len()..]) {
            let known = node.iter().map(|place| each[place * WIDTH + BUSY]).filter(|busy| !busy.is_nan());
            let (sum, count) = known.fold((0.0, 0.0), |(sum, count), busy| (sum + busy, count + 1.0));
            *out = ratio(sum, count);
        }
        for (i, value) in whole.counters.into_iter().enumerate() {
            out[i] = figure(self.counters[i].rise(value)) / seconds;
        }
        out[4] = figure(whole.running);
        out[5] = figure(whole.blocked);
    }
}

fn shares(before: &mut Times, now: [u64; 9], out: &mut [f64]) {
    let mut rises = [0.0; 9];
    for ((rise, before), now) in rises.iter_mut().zip(before).zip(now) {
        *rise = figure(before.rise(Some(now)));
    }
    let all: f64 = rises[..GUEST].iter().sum();
    for (out, rise) in out.iter_mut().zip(rises) {
        *out = ratio(rise, all);
    }
    out[BUSY] = 1.0 - out[3] - out[4];
}

#[derive(Debug, Default, PartialEq)]
struct Whole {
    counters: [Option<u64>; 4],
    running: Option<u64>,
    blocked: Option<u64>,
}

impl Whole {
    fn take(&mut self, line: &[u8]) {
        let mut words = words(line);
        let (Some(name), Some(value)) = (words.next(), words.next()) else { return };
        let slot = match name {
            b"ctxt" => &mut self.counters[0],
            b"intr" => &mut self.counters[1],
            b"softirq" => &mut self.counters[2],
            b"processes" => &mut self.counters[3],
            b"procs_running" => &mut self.running,
            b"procs_blocked" => &mut self.blocked,
            _ => return,
        };
        *slot = number(value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn guests_are_part_of_user_and_steal_is_its_own() {
        let mut before = Times::default();
        let mut out = [0.0; WIDTH];
        let at = |line: &str| cpu_times(line.as_bytes()).unwrap();
        shares(&mut before, at("cpu  100 0 50 800 10 0 5 35 20 0").1, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
        // 100 ticks: 40 user (of which 10 guests), 10 system, 25 idle, 5 waiting, 20 stolen.
        shares(&mut before, at("cpu  140 0 60 825 15 0 5 55 30 0").1, &mut out);
        assert_eq!(out, [0.4, 0.0, 0.1, 0.25, 0.05, 0.0, 0.0, 0.2, 0.1, 1.0 - 0.25 - 0.05]);
        // The kernel's iowait may fall: it counts as none.
        shares(&mut before, at("cpu  150 0 60 825 14 0 5 55 30 0").1, &mut out);
        assert_eq!((out[0], out[4]), (1.0, 0.0));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(line in "(cpu|cpu[0-9]{1,12}|ctxt|intr|\\PC)?([ ]?([0-9]{1,22}|\\PC)){0,12}", raw: Vec<u8>) {
            let mut whole = Whole::default();
            for line in [line.as_bytes(), &raw, b"cpu"] {
                whole.take(line);
            }
        }
    }
}
