//! node_exporter's metrics under the names of the host sampler.
//!
//! node_exporter reads the files that the sampler reads, and exports most of their counters unchanged: in seconds where
//! the kernel has ticks, milliseconds or microseconds, in bytes where it has sectors and kilobytes. So the sampler's
//! formulas apply, including those of iostat for devices.
//!
//! Source: node_exporter's README and its `collector/` (1.5); names ending in `_total` are counters.

use crate::metric;
use crate::sample::SHARES;
use kelvin_host::disk::DiskCounters;
use std::collections::{BTreeMap, HashMap};

use super::page::Page;
use super::scraped_metrics::ScrapedMetrics;
use crate::sample::tables::{COLUMNS, EVENTS, Field, Kind, MEMORY, NUMA_KEYS, NUMA_LEVELS, columns, missing};

/// The last counters of each device.
pub(super) type Disks = HashMap<String, DiskCounters>;

pub(super) fn map(page: &Page<'_>, figures: &mut ScrapedMetrics, disks: &mut Disks) {
    cpus(page, figures);
    plain(page, figures);
    run_queue(page, figures);
    frequency(page, figures);
    fields(page, figures, "host.memory", &MEMORY, |field| {
        let unit = if field.unit == "B" { "_bytes" } else { "" };
        format!("node_memory_{}{unit}", field.key)
    });
    fields(page, figures, "host.pages", &EVENTS, |field| format!("node_vmstat_{}", field.key));
    nodes(page, figures);
    self::disks(page, figures, disks);
    network(page, figures);
    perf(page, figures);
}

const IDLE: usize = 3;
const WAITING: usize = 4;

/// The kernel's times of a CPU may decrease a little, in particular that of I/O wait; node_exporter hides such
/// decreases.
fn cpus(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    let mut rises: BTreeMap<u32, [f64; SHARES.len()]> = BTreeMap::new();
    for sample in page.all("node_cpu_seconds_total") {
        let Ok(cpu) = sample.label("cpu").parse() else { continue };
        let mode = sample.label("mode");
        let Some(at) = SHARES.iter().position(|(name, _)| *name == mode) else { continue };
        rises.entry(cpu).or_insert([0.0; SHARES.len()])[at] =
            figures.rise(format!("cpu {cpu} {mode}"), sample.value);
    }
    let mut total = [0.0; SHARES.len()];
    for each in rises.values() {
        // A CPU that has just come back is no part of the total yet.
        if each.iter().all(|rise| rise.is_finite()) {
            total.iter_mut().zip(each).for_each(|(total, rise)| *total += rise);
        }
    }
    let names = rises.iter().map(|(cpu, rises)| (cpu.to_string(), rises));
    if rises.is_empty() {
        return;
    }
    for (name, rises) in std::iter::once(("total".to_owned(), &total)).chain(names) {
        let all: f64 = rises.iter().sum();
        let share = |rise: f64| if all > 0.0 { rise / all } else { f64::NAN };
        for ((mode, help), rise) in SHARES.iter().zip(rises) {
            figures.level(format!("host.cpu.{name}.{mode}"), "ratio", help, share(*rise));
        }
        let busy = 1.0 - share(rises[IDLE]) - share(rises[WAITING]);
        figures.level(
            format!("host.cpu.{name}.busy"),
            "ratio",
            "share of CPU time neither idle nor iowait",
            busy,
        );
    }
    // Guest time is a part of user and nice, which already include it.
    let mut guests: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in page.all("node_cpu_guest_seconds_total") {
        let Ok(cpu) = sample.label("cpu").parse() else { continue };
        let mode = sample.label("mode");
        *guests.entry(cpu).or_default() += figures.rise(format!("cpu {cpu} guest {mode}"), sample.value);
    }
    const GUEST: &str = "share of CPU time in guests, included in user";
    let mut sum = 0.0;
    for (cpu, guest) in &guests {
        let all: f64 = rises.get(cpu).map_or(f64::NAN, |rises| rises.iter().sum());
        sum += if all.is_finite() { *guest } else { 0.0 };
        figures.level(
            format!("host.cpu.{cpu}.guest"),
            "ratio",
            GUEST,
            if all > 0.0 { guest / all } else { f64::NAN },
        );
    }
    if !guests.is_empty() {
        let all: f64 = total.iter().sum();
        figures.level("host.cpu.total.guest", "ratio", GUEST, if all > 0.0 { sum / all } else { f64::NAN });
    }
}

type Plain = (&'static str, &'static str, &'static str, &'static str);

/// Names there and here, units and helps of counters without labels.
const RATES: [Plain; 10] = [
    ("node_context_switches_total", metric::CONTEXT_SWITCHES, "1/s", "context switches"),
    ("node_intr_total", "host.interrupts", "1/s", "interrupts"),
    ("node_forks_total", "host.forks", "1/s", "processes and threads created"),
    ("node_netstat_Tcp_OutSegs", "host.tcp.segments_out", "1/s", "segments sent"),
    ("node_netstat_Tcp_RetransSegs", "host.tcp.retransmits", "1/s", "segments retransmitted"),
    ("node_netstat_Tcp_InErrs", "host.tcp.errors_in", "1/s", "segments received with errors"),
    ("node_netstat_TcpExt_TCPTimeouts", "host.tcp.timeouts", "1/s", "retransmission timeouts"),
    (
        "node_netstat_TcpExt_ListenOverflows",
        "host.tcp.listen_overflows",
        "1/s",
        "connections that found the accept queue full",
    ),
    ("node_netstat_TcpExt_ListenDrops", "host.tcp.listen_drops", "1/s", "connections dropped by a listener"),
    ("node_softirqs_total", "host.soft_interrupts", "1/s", "soft interrupts"),
];

/// The same of pressure stalls, which are seconds in a second.
const PRESSURES: [(&str, &str, &str); 6] = [
    (
        "node_pressure_cpu_waiting_seconds_total",
        metric::CPU_PRESSURE,
        "share of time in which a task waited for a CPU",
    ),
    (
        "node_pressure_memory_waiting_seconds_total",
        metric::MEMORY_PRESSURE,
        "share of time in which a task waited for memory",
    ),
    (
        "node_pressure_memory_stalled_seconds_total",
        metric::FULL_MEMORY_PRESSURE,
        "share of time in which all tasks waited for memory",
    ),
    (
        "node_pressure_io_waiting_seconds_total",
        metric::IO_PRESSURE,
        "share of time in which a task waited for a device",
    ),
    (
        "node_pressure_io_stalled_seconds_total",
        "host.pressure.io.full",
        "share of time in which all tasks waited for a device",
    ),
    (
        "node_pressure_irq_stalled_seconds_total",
        "host.pressure.irq.full",
        "share of time in which interrupts stalled all tasks",
    ),
];

fn plain(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    for (there, here, unit, help) in RATES {
        if let Some(value) = page.one(there) {
            figures.rate(here, unit, help, value, 1.0);
        }
    }
    for (there, here, help) in PRESSURES {
        if let Some(value) = page.one(there) {
            figures.rate(here, "ratio", help, value, 1.0);
        }
    }
    for (there, here, help) in [
        ("node_procs_running", "host.tasks.running", "runnable tasks now, including the exporter"),
        ("node_procs_blocked", "host.tasks.blocked", "tasks blocked on I/O now"),
    ] {
        if let Some(value) = page.one(there) {
            figures.level(here, "1", help, value);
        }
    }
}

fn run_queue(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    const DELAY: &str = "seconds that tasks waited for a CPU, per second: the mean run queue length";
    let mut rises: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for (at, there) in ["node_schedstat_waiting_seconds_total", "node_schedstat_running_seconds_total"]
        .into_iter()
        .enumerate()
    {
        for sample in page.all(there) {
            let cpu = sample.label("cpu");
            let rise = figures.rise(format!("{there} {cpu}"), sample.value);
            rises.entry(cpu.to_owned()).or_insert([f64::NAN; 2])[at] = rise;
        }
    }
    if page.all("node_schedstat_waiting_seconds_total").next().is_none() {
        return;
    }
    for (cpu, [waited, _]) in &rises {
        figures.level(format!("host.run_queue.{cpu}.delay"), "s/s", DELAY, waited / figures.seconds());
    }
    // A CPU that has just come back is no part of the totals yet.
    let sum = |all: &mut dyn Iterator<Item = f64>| all.reduce(|sum, one| sum + one).unwrap_or(f64::NAN);
    let known = || rises.values().filter(|each| each[0].is_finite());
    let both = || known().filter(|each| each[1].is_finite());
    let waited = sum(&mut known().map(|each| each[0]));
    figures.level(metric::RUN_QUEUE_DELAY, "s/s", DELAY, waited / figures.seconds());
    let waited = sum(&mut both().map(|each| each[0]));
    let all = waited + sum(&mut both().map(|each| each[1]));
    let share = if all > 0.0 { waited / all } else { f64::NAN };
    let help = "waiting for a CPU as a share of running and waiting";
    figures.level(metric::RUN_QUEUE_DELAY_SHARE, "ratio", help, share);
}

fn frequency(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    let found = ["node_cpu_scaling_frequency_hertz", "node_cpu_frequency_hertz"];
    let found = found.into_iter().find(|name| page.all(name).next().is_some());
    let each: Vec<(String, f64)> = found
        .into_iter()
        .flat_map(|name| page.all(name))
        .map(|sample| (sample.label("cpu").to_owned(), sample.value / 1e6))
        .collect();
    if !each.is_empty() {
        let mean = each.iter().map(|(_, megahertz)| megahertz).sum::<f64>() / each.len() as f64;
        let least = each.iter().map(|(_, megahertz)| *megahertz).fold(f64::INFINITY, f64::min);
        figures.level(metric::CPU_FREQUENCY, "MHz", "mean frequency of the CPUs now", mean);
        figures.level("host.cpu.total.frequency_min", "MHz", "frequency of the slowest CPU now", least);
        for (cpu, megahertz) in each {
            figures.level(format!("host.cpu.{cpu}.frequency"), "MHz", "frequency now", megahertz);
        }
    }
    let mut throttled = None;
    for sample in page.all("node_cpu_core_throttles_total") {
        let (package, core) = (sample.label("package"), sample.label("core"));
        let rise = figures.rise(format!("throttled {package} {core}"), sample.value);
        throttled = Some(throttled.unwrap_or(0.0) + rise);
    }
    if let Some(throttled) = throttled {
        let help = "thermal throttling events of cores";
        figures.level(metric::CPU_THROTTLED, "1/s", help, throttled / figures.seconds());
    }
}

/// Files of "name value" lines, of which node_exporter gives each as a metric.
fn fields(
    page: &Page<'_>,
    figures: &mut ScrapedMetrics,
    prefix: &str,
    wanted: &[Field],
    there: impl Fn(&Field) -> String,
) {
    for field in wanted {
        let name = there(field);
        let value = match name.strip_suffix('*') {
            None => page.one(&name),
            Some(beginning) => {
                page.names(beginning).filter_map(|name| page.one(name)).reduce(|sum, value| sum + value)
            }
        };
        let Some(value) = value else { continue };
        let here = format!("{prefix}.{}", field.name);
        match field.kind {
            // Bytes there already.
            Kind::Level(_) => figures.level(here, field.unit, field.help, value),
            Kind::Rate(factor) => figures.rate(here, field.unit, field.help, value, factor),
        }
    }
}

fn nodes(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    const REMOTE: &str = "share of pages allocated by a CPU of another NUMA node";
    // node: local, other
    let mut handed: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for (key, help) in NUMA_KEYS {
        for sample in page.all(&format!("node_memory_numa_{key}_total")) {
            let node = sample.label("node");
            let rise = figures.rise(format!("numa {node} {key}"), sample.value);
            figures.level(format!("host.numa.{node}.{key}"), "1/s", help, rise / figures.seconds());
            match key {
                "local_node" => handed.entry(node.to_owned()).or_default()[0] = rise,
                "other_node" => handed.entry(node.to_owned()).or_default()[1] = rise,
                _ => {}
            }
        }
    }
    let ratio =
        |[local, other]: [f64; 2]| if local + other > 0.0 { other / (local + other) } else { f64::NAN };
    let mut total = [0.0; 2];
    for (node, each) in &handed {
        total = [total[0] + each[0], total[1] + each[1]];
        figures.level(format!("host.numa.{node}.remote_ratio"), "ratio", REMOTE, ratio(*each));
    }
    if !handed.is_empty() {
        figures.level(metric::REMOTE_MEMORY, "ratio", REMOTE, ratio(total));
    }
    for field in NUMA_LEVELS {
        for sample in page.all(&format!("node_memory_numa_{}", field.key)) {
            let name = format!("host.numa.{}.{}", sample.label("node"), field.name);
            figures.level(name, field.unit, field.help, sample.value);
        }
    }
}

/// The kernel's counters of a device in their order, with node_exporter's names, and the factor to the kernel's unit.
const DISK: [(&str, f64); 17] = [
    ("node_disk_reads_completed_total", 1.0),
    ("node_disk_reads_merged_total", 1.0),
    ("node_disk_read_bytes_total", 1.0 / 512.0),
    ("node_disk_read_time_seconds_total", 1000.0),
    ("node_disk_writes_completed_total", 1.0),
    ("node_disk_writes_merged_total", 1.0),
    ("node_disk_written_bytes_total", 1.0 / 512.0),
    ("node_disk_write_time_seconds_total", 1000.0),
    ("node_disk_io_now", 1.0),
    ("node_disk_io_time_seconds_total", 1000.0),
    ("node_disk_io_time_weighted_seconds_total", 1000.0),
    ("node_disk_discards_completed_total", 1.0),
    ("node_disk_discards_merged_total", 1.0),
    ("node_disk_discarded_sectors_total", 1.0),
    ("node_disk_discard_time_seconds_total", 1000.0),
    ("node_disk_flush_requests_total", 1.0),
    ("node_disk_flush_requests_time_seconds_total", 1000.0),
];

fn disks(page: &Page<'_>, figures: &mut ScrapedMetrics, before: &mut Disks) {
    let mut now: BTreeMap<String, ([Option<u64>; DISK.len()], usize)> = BTreeMap::new();
    for (i, (name, factor)) in DISK.into_iter().enumerate() {
        for sample in page.all(name) {
            let (counters, count) = now.entry(sample.label("device").to_owned()).or_default();
            counters[i] = Some((sample.value * factor).round() as u64);
            *count = (*count).max(i + 1);
        }
    }
    before.retain(|device, _| now.contains_key(device));
    for (device, (counters, count)) in now {
        // A device without the eleven counters that all kernels have cannot be used in the formulas.
        if counters[..11].iter().any(Option::is_none) {
            continue;
        }
        let now = DiskCounters(counters.map(Option::unwrap_or_default));
        let last = before.insert(device.clone(), now).filter(|last| !last.is_replaced_by(&now));
        // A gap has no interval, and the counters before it cannot begin one.
        let values =
            last.filter(|_| figures.seconds() > 0.0).map(|last| columns(&last, &now, figures.seconds()));
        for (i, (column, unit, help)) in COLUMNS.into_iter().enumerate() {
            if !missing(i, count) {
                let value = values.map_or(f64::NAN, |values| values[i]);
                figures.level(metric::disk(&device, column), unit, help, value);
            }
        }
    }
}

/// node_exporter's names, the sampler's names, units and help texts of the counters of each network device.
const NETWORK: [Plain; 8] = [
    ("node_network_receive_bytes_total", "rx_bytes", "B/s", "received"),
    ("node_network_receive_packets_total", "rx_packets", "1/s", "packets received"),
    ("node_network_receive_errs_total", "rx_errors", "1/s", "packets received with errors"),
    ("node_network_receive_drop_total", "rx_drops", "1/s", "packets received and dropped"),
    ("node_network_transmit_bytes_total", "tx_bytes", "B/s", "sent"),
    ("node_network_transmit_packets_total", "tx_packets", "1/s", "packets sent"),
    ("node_network_transmit_errs_total", "tx_errors", "1/s", "packets not sent because of errors"),
    ("node_network_transmit_drop_total", "tx_drops", "1/s", "outgoing packets dropped"),
];

fn network(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    for (there, here, unit, help) in NETWORK {
        for sample in page.all(there) {
            figures.rate(
                format!("host.network.{}.{here}", sample.label("device")),
                unit,
                help,
                sample.value,
                1.0,
            );
        }
    }
    for (there, here, help) in [
        (
            "node_softnet_dropped_total",
            "host.network.soft.drops",
            "packets dropped because a CPU's backlog was full",
        ),
        (
            "node_softnet_times_squeezed_total",
            "host.network.soft.squeezes",
            "times a CPU's packet budget ran out",
        ),
    ] {
        sum(page, figures, there, here, help);
    }
}

/// The counters of its `perf` collector, which is off by default.
fn perf(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    let mut all = [f64::NAN; 2];
    for (i, (there, here, help)) in [
        ("node_perf_instructions_total", "host.hardware.instructions", "instructions retired"),
        ("node_perf_cpucycles_total", "host.hardware.cycles", "cycles in which a CPU was not halted"),
        (
            "node_perf_cache_misses_total",
            "host.hardware.llc_misses",
            "references that missed the last-level cache",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let rise = sum(page, figures, there, here, help);
        if let (Some(slot), Some(rise)) = (all.get_mut(i), rise) {
            *slot = rise;
        }
    }
    if all.iter().any(|rise| !rise.is_nan()) {
        let ratio = if all[1] > 0.0 { all[0] / all[1] } else { f64::NAN };
        figures.level("host.hardware.ipc", "1", "instructions per cycle", ratio);
    }
}

/// Adds up the counters of all CPUs; returns the increase, if there are such counters.
fn sum(
    page: &Page<'_>,
    figures: &mut ScrapedMetrics,
    there: &str,
    here: &str,
    help: &'static str,
) -> Option<f64> {
    let mut rise = None;
    for sample in page.all(there) {
        let each = figures.rise(format!("{here} {}", sample.label("cpu")), sample.value);
        rise = Some(rise.unwrap_or(0.0) + each);
    }
    let rise = rise?;
    figures.level(here, "1/s", help, rise / figures.seconds());
    Some(rise)
}
