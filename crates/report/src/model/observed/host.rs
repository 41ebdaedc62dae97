//! Processors and block devices.

use kelvin_diagnose::{Evidence, HostResource, ProcessUse, Span, SpanValue, metric, top_processes};
use serde::Serialize;

/// Devices with fewer requests per second are omitted, unless they hold part of the database.
const IDLE: f64 = 0.5;

/// Activity of a host's processors, in per cent of all its processors; the shares total 100.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessorRow {
    /// The host's address; none for the host on which Kelvin runs.
    pub host: Option<String>,
    /// User code, including niced.
    pub user_percent: f64,
    /// Kernel code.
    pub system_percent: f64,
    /// Idle while a task waits for a device.
    pub iowait_percent: f64,
    /// Hard and soft interrupts.
    pub irq_percent: f64,
    /// Taken by the hypervisor for other guests.
    pub steal_percent: f64,
    /// Idle.
    pub idle_percent: f64,
}

/// Average CPUs in use over the window on the host on which Kelvin runs. The parts total all CPUs, except for
/// small differences because they are not read at the same moment.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CpuUse {
    /// Hardware threads of the host.
    pub cpus: f64,
    /// This process; includes an embedded database.
    pub client: f64,
    /// Whether the database runs inside this process.
    pub embedded: bool,
    /// The database's processes; none if they are not on this host.
    pub database: Option<f64>,
    /// All other processes; none if they cannot be distinguished from the database's.
    pub others: Option<f64>,
    /// Hard and soft interrupts.
    pub interrupts: f64,
    /// Taken by the hypervisor for other guests.
    pub steal: f64,
    /// Idle, including time in which a task waits for a device.
    pub idle: f64,
}

impl CpuUse {
    /// For a window; none if processes or processors were not watched.
    pub(super) fn of(evidence: &Evidence, window: Span) -> Option<Self> {
        let cpus = kelvin_diagnose::cpus(evidence)?;
        let process = |name: &str| {
            let time =
                |time: &str| evidence.mean_over(&metric::process(name, format_args!("cpu.{time}")), window);
            Some(time("user")? + time("system")?)
        };
        let total = |what: &str| Some(evidence.mean_over(&metric::cpu(what), window)? * cpus);
        let others = kelvin_diagnose::cpu_of_others(evidence, window).and_then(|seen| {
            let known: f64 = seen.iter().map(SpanValue::seconds).sum();
            let sum: f64 = seen.iter().map(|seen| seen.value * seen.seconds()).sum();
            (known > 0.0).then(|| (sum / known).max(0.0))
        });
        Some(Self {
            cpus,
            client: process("client")?,
            embedded: kelvin_diagnose::is_embedded(evidence),
            database: process("server"),
            others,
            interrupts: total("irq").unwrap_or(0.0) + total("softirq").unwrap_or(0.0),
            steal: total("steal").unwrap_or(0.0),
            idle: total("idle")? + total("iowait").unwrap_or(0.0),
        })
    }
}

/// A program other than load generator and database, on the host on which Kelvin runs.
#[derive(Debug, Clone, Serialize)]
pub struct OtherProcessRow {
    /// Its name.
    pub name: String,
    /// How many processes of this name were seen.
    pub processes: u32,
    /// Average CPUs in use.
    pub cpus: f64,
    /// The same, in per cent of all CPUs.
    pub cpu_percent: Option<f64>,
    /// Largest resident memory, in bytes.
    pub memory_bytes: f64,
    /// The same, in per cent of the host's memory.
    pub memory_percent: Option<f64>,
    /// Bytes read and written per second; 0 if access to these counters is denied.
    pub io_bytes_per_s: f64,
    /// The same, in per cent of the bytes transferred by the host's devices.
    pub io_percent: Option<f64>,
}

/// The top five programs by CPU, by memory and by I/O, sorted by CPU.
pub(super) fn other_processes(evidence: &Evidence, point: u32) -> Vec<OtherProcessRow> {
    let mut rows: Vec<OtherProcessRow> = Vec::new();
    for one in HostResource::ALL.iter().flat_map(|resource| top_processes(evidence, point, *resource)) {
        let ProcessUse { process, shares } = one;
        if rows.iter().any(|row| row.name == process.name) {
            continue;
        }
        let [cpu_percent, memory_percent, io_percent] = shares.map(|share| share.map(|share| 100.0 * share));
        rows.push(OtherProcessRow {
            name: process.name.clone(),
            processes: process.processes,
            cpus: process.cpus,
            cpu_percent,
            memory_bytes: process.resident as f64,
            memory_percent,
            io_bytes_per_s: process.read + process.written,
            io_percent,
        });
    }
    rows.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    rows
}

/// A block device, with the columns of `iostat -x`. Rates and queue size are averaged over the window's time,
/// request times and sizes over its requests.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceRow {
    /// The host's address; none for the host on which Kelvin runs.
    pub host: Option<String>,
    /// Its name.
    pub device: String,
    /// The parts of the database on it: "log", "data", "temp"; empty if none is known.
    pub holds: Vec<String>,
    /// Reads per second.
    pub r_s: Option<f64>,
    /// kB read per second.
    pub rkb_s: Option<f64>,
    /// Mean time of a read in milliseconds, including queueing.
    pub r_await_ms: Option<f64>,
    /// Mean size of a read in kB.
    pub rareq_kb: Option<f64>,
    /// Writes per second.
    pub w_s: Option<f64>,
    /// kB written per second.
    pub wkb_s: Option<f64>,
    /// Mean time of a write in milliseconds, including queueing.
    pub w_await_ms: Option<f64>,
    /// Mean size of a write in kB.
    pub wareq_kb: Option<f64>,
    /// Flushes per second.
    pub f_s: Option<f64>,
    /// Mean time of a flush in milliseconds.
    pub f_await_ms: Option<f64>,
    /// Mean number of requests queued or in flight.
    pub aqu_sz: Option<f64>,
    /// Time with a request in flight, in per cent; does not show saturation on NVMe and RAID.
    pub util_percent: Option<f64>,
}

impl DeviceRow {
    /// The parts of the database on it, such as "log, data"; empty if none is known.
    pub(crate) fn role(&self) -> String {
        self.holds.join(", ")
    }
}

/// The host's address in a metric's name, which precedes "/host."; none for the local host.
pub(super) fn address(name: &str) -> Option<String> {
    let (address, _) = name.split_once("/host.")?;
    Some(address.to_owned())
}

pub(super) fn processors(evidence: &Evidence, window: Span) -> Vec<ProcessorRow> {
    let row = |name: &str| {
        let prefix = name.strip_suffix("user")?;
        let share = |what: &str| evidence.mean_over(&format!("{prefix}{what}"), window).map(|s| 100.0 * s);
        Some(ProcessorRow {
            host: address(name),
            user_percent: share("user")? + share("nice").unwrap_or(0.0),
            system_percent: share("system")?,
            iowait_percent: share("iowait").unwrap_or(0.0),
            irq_percent: share("irq").unwrap_or(0.0) + share("softirq").unwrap_or(0.0),
            steal_percent: share("steal").unwrap_or(0.0),
            idle_percent: share("idle")?,
        })
    };
    evidence.names("", metric::CPU_USER).filter_map(row).collect()
}

/// A device that has metrics.
pub(super) struct Disk {
    /// Prefix of their names, without the column.
    pub(super) prefix: String,
    pub(super) host: Option<String>,
    pub(super) device: String,
    pub(super) holds: Vec<String>,
}

/// The devices that have metrics: first those of the log, then those of the data.
pub(super) fn disks(evidence: &Evidence) -> Vec<Disk> {
    let disk = |name: &str| {
        let prefix = name.strip_suffix("w_s")?;
        let (_, device) = metric::split_disk(prefix.trim_end_matches('.'))?;
        let host = address(name);
        let here = evidence
            .file_locations()
            .iter()
            .filter(|p| host.is_none() && p.device.as_deref() == Some(device));
        // The host and the database may both report a directory.
        let mut holds: Vec<String> =
            here.map(|p| if p.role == "wal" { "log".into() } else { p.role.clone() }).collect();
        holds.sort_by_key(|role| order(role));
        holds.dedup();
        Some(Disk { prefix: prefix.to_owned(), host, device: device.to_owned(), holds })
    };
    let mut disks: Vec<Disk> = evidence.names("", ".w_s").filter_map(disk).collect();
    let place = |disk: &Disk| disk.holds.first().map_or(u8::MAX, |role| order(role));
    disks.sort_by(|a, b| (place(a), &a.host, &a.device).cmp(&(place(b), &b.host, &b.device)));
    disks
}

fn order(role: &str) -> u8 {
    match role {
        "log" => 0,
        "data" => 1,
        _ => 2,
    }
}

pub(super) fn devices(evidence: &Evidence, window: Span) -> Vec<DeviceRow> {
    let row = |Disk { prefix, host, device, holds }: Disk| {
        let mean = |column: &str| evidence.mean_over(&format!("{prefix}{column}"), window);
        let per_request = |time: &str, requests: &str| {
            evidence.mean_by_request(&format!("{prefix}{time}"), &format!("{prefix}{requests}"), window)
        };
        let size = |sum: Option<f64>, requests: Option<f64>| {
            sum.zip(requests).filter(|(_, n)| *n > 0.0).map(|(sum, n)| sum / n)
        };
        let (r_s, rkb_s, w_s, wkb_s) = (mean("r_s"), mean("rkb_s"), mean("w_s"), mean("wkb_s"));
        DeviceRow {
            host,
            device,
            holds,
            r_s,
            rkb_s,
            r_await_ms: per_request("r_await", "r_s"),
            rareq_kb: size(rkb_s, r_s),
            w_s,
            wkb_s,
            w_await_ms: per_request("w_await", "w_s"),
            wareq_kb: size(wkb_s, w_s),
            f_s: mean("f_s"),
            f_await_ms: per_request("f_await", "f_s"),
            aqu_sz: mean("aqu_sz"),
            util_percent: mean("util"),
        }
    };
    let busy = |row: &DeviceRow| row.r_s.unwrap_or(0.0) + row.w_s.unwrap_or(0.0) >= IDLE;
    let rows = disks(evidence).into_iter().map(row);
    rows.filter(|row| !row.holds.is_empty() || busy(row)).collect()
}
