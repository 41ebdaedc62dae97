//! Memory bandwidth: by the memory controllers' counters, or by the kernel's resctrl.
//!
//! The controllers' units (`uncore_imc…`) count every transfer of 64 bytes, from any source; resctrl counts by cache,
//! and only the tasks of its root group, which are all tasks unless other groups were created.
//!
//! SystemTree: `Documentation/filesystems/resctrl.rst`, "mbm_total_bytes";
//! `Documentation/ABI/testing/sysfs-bus-event_source-devices-events`, scale and unit.

use std::io;

use perf_event::events::Dynamic;

use super::counter::Counter;
use super::perf::{Counting, Event, Whom, reason};
use super::{Collector, Registry};
use crate::metric;
use kelvin_host::bytes::first_number;
use kelvin_host::{Buffer, KernelFile, SystemTree};

const MONITORS: &str = "/sys/fs/resctrl/mon_data";
const UNITS: &str = "/sys/bus/event_source/devices";
const TOTAL: &str = "host.memory_bandwidth.total";

/// Reads and writes, by their event names on servers and on smaller machines.
const EVENTS: [[&str; 2]; 2] = [["cas_count_read", "cas_count_write"], ["data_reads", "data_writes"]];

pub(super) fn register(source: &SystemTree, registry: &mut Registry) {
    let controllers = controllers(source).map(|parts| {
        let help = "memory read and written, counted by the memory controllers";
        registry.add(vec![(TOTAL.to_owned(), "B/s", help)], Controllers { parts });
    });
    let monitors = monitors(source, registry, controllers.is_err());
    if let (Err(first), Err(second)) = (controllers, monitors) {
        registry.absent(metric::MEMORY_BANDWIDTH, format!("{first}; {second}"));
    }
}

fn monitors(source: &SystemTree, registry: &mut Registry, total: bool) -> Result<(), String> {
    let domains = source.numbered(MONITORS, "mon_L3_");
    let path = |domain: u32| format!("{MONITORS}/mon_L3_{domain:02}/mbm_total_bytes");
    let found: Vec<_> = domains.iter().filter_map(|&d| Some((d, source.open(path(d)).ok()?))).collect();
    if found.is_empty() {
        return Err("no /sys/fs/resctrl/mon_data/*/mbm_total_bytes: resctrl is not mounted, or the processor does not \
                    monitor bandwidth"
            .into());
    }
    let help = "memory read and written through this cache by the tasks of resctrl's root group";
    let mut series: Vec<_> =
        found.iter().map(|(d, _)| (format!("host.memory_bandwidth.{d}"), "B/s", help)).collect();
    if total {
        series.push((
            TOTAL.to_owned(),
            "B/s",
            "memory read and written by the tasks of resctrl's root group",
        ));
    }
    let files = found.into_iter().map(|(_, file)| (file, Counter::default())).collect();
    registry.add(series, Monitors { files });
    Ok(())
}

struct Monitors {
    files: Vec<(KernelFile, Counter)>,
}

impl Collector for Monitors {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        // A file without a value contains "Unavailable" or "Error" instead of a number.
        let mut sum = Some(0.0);
        let count = self.files.len();
        for ((file, counter), out) in self.files.iter_mut().zip(out.iter_mut()) {
            let rise = counter.strict(file.read(buffer).and_then(first_number));
            if let Some(rise) = rise {
                *out = rise as f64 / seconds;
            }
            sum = sum.zip(rise).map(|(sum, rise)| sum + rise as f64);
        }
        if let (Some(total), Some(sum)) = (out.get_mut(count), sum) {
            *total = sum / seconds;
        }
    }
}

/// The counters of each controller, and the bytes per count.
struct Controllers {
    parts: Vec<(Counting, f64)>,
}

impl Collector for Controllers {
    fn sample(&mut self, _: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let mut sum = Some(0.0);
        for (counting, bytes) in &mut self.parts {
            let rise = counting.rise();
            sum = sum.zip(rise).map(|(sum, rise)| sum + rise * *bytes);
        }
        if let Some(sum) = sum {
            out[0] = sum / seconds;
        }
    }
}

fn controllers(source: &SystemTree) -> Result<Vec<(Counting, f64)>, String> {
    let units: Vec<String> =
        source.names(UNITS).into_iter().filter(|unit| unit.starts_with("uncore_imc")).collect();
    let has = |unit: &str, event: &str| source.path(format!("{UNITS}/{unit}/events/{event}")).exists();
    // One kind for all: some processors count the same transfers in both.
    let kind =
        EVENTS.into_iter().find(|kind| units.iter().any(|unit| kind.iter().all(|event| has(unit, event))));
    let Some(kind) = kind else {
        return Err(format!("no memory controller PMU (uncore_imc…) that counts transfers in {UNITS}"));
    };
    if !source.is_this_host() {
        return Err("the files come from another host, and only that host can count these".into());
    }
    let paranoid = source.text("/proc/sys/kernel/perf_event_paranoid");
    let paranoid = paranoid.as_deref().map_or("unknown", str::trim).to_owned();
    let mut parts = Vec::new();
    for unit in units.iter().filter(|unit| kind.iter().all(|event| has(unit, event))) {
        let mask = source.text(format!("{UNITS}/{unit}/cpumask")).unwrap_or_default();
        let places: Vec<Whom> =
            kelvin_host::numbers(&mask).unwrap_or_default().into_iter().map(Whom::Cpu).collect();
        for event in kind {
            // All or nothing: some of the controllers would show only a part of the bandwidth.
            let fail = |why: String| format!("{unit}/{event}: {why}");
            let (event, bytes) = dynamic(unit, event).map_err(|error| fail(error.to_string()))?;
            let counting = Counting::begin(&Event::Dynamic(event), &places)
                .map_err(|error| fail(reason(&error, &paranoid)))?;
            parts.push((counting, bytes));
        }
    }
    Ok(parts)
}

/// An event of a unit, and the bytes per count.
fn dynamic(unit: &str, event: &str) -> io::Result<(Dynamic, f64)> {
    let mut builder = Dynamic::builder(unit)?;
    let fields: Vec<String> = builder.params().map(str::to_owned).collect();
    for field in fields {
        // Fields that an event does not set are zero.
        builder.field(&field, 0).map_err(io::Error::other)?;
    }
    builder.event(event)?;
    let (scale, unit) = (builder.scale()?, builder.unit()?);
    let bytes = bytes(scale, unit.as_deref()).ok_or_else(|| io::Error::other("its unit is unknown"))?;
    Ok((builder.build().map_err(io::Error::other)?, bytes))
}

fn bytes(scale: Option<f64>, unit: Option<&str>) -> Option<f64> {
    let unit = match unit?.trim() {
        "MiB" => 1024.0 * 1024.0,
        "Bytes" => 1.0,
        _ => return None,
    };
    scale.map(|scale| scale * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        // The scale of cas_count_read: 64 bytes in MiB.
        assert_eq!(bytes(Some(6.103_515_625e-5), Some("MiB")), Some(64.0));
        assert_eq!(bytes(Some(1.0), Some("Joules")), None);
        assert_eq!(bytes(None, Some("MiB")), None);
    }
}
