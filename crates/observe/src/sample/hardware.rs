//! What the processor counts itself: memory bandwidth, where the kernel's resctrl shows it. Instructions, cycles and
//! cache misses need `perf_event_open`, which this sampler does not call: it says whether the host would offer them.
//!
//! Source: `Documentation/filesystems/resctrl.rst`, "mbm_total_bytes"; `Documentation/admin-guide/perf-security.rst`.

use super::bytes::first_number;
use super::counter::Counter;
use super::source::{Buffer, Kept, Source};
use super::{Collector, Registry};

const MONITORS: &str = "/sys/fs/resctrl/mon_data";
const UNITS: &str = "/sys/bus/event_source/devices";

pub(super) fn register(source: &Source, registry: &mut Registry) {
    registry.absent("host.hardware", counters(source));
    let domains = source.numbered(MONITORS, "mon_L3_");
    let path = |domain: u32| format!("{MONITORS}/mon_L3_{domain:02}/mbm_total_bytes");
    let found: Vec<_> = domains.iter().filter_map(|&d| Some((d, source.open(path(d)).ok()?))).collect();
    if found.is_empty() {
        let why = "no /sys/fs/resctrl/mon_data/*/mbm_total_bytes: resctrl is not mounted, or the processor does not monitor bandwidth";
        return registry.absent("host.memory_bandwidth", why.into());
    }
    let help = "memory read and written through this cache by the tasks of resctrl's root group";
    let series = found.iter().map(|(d, _)| (format!("host.memory_bandwidth.{d}"), "B/s", help)).collect();
    let files = found.into_iter().map(|(_, file)| (file, Counter::default())).collect();
    registry.add(series, Bandwidth { files });
}

/// Why there are no instructions, cycles and cache misses.
fn counters(source: &Source) -> String {
    let units = source.names(UNITS);
    let is_core =
        |unit: &&String| unit.as_str() == "cpu" || unit.starts_with("cpu_") || unit.starts_with("armv");
    let Some(unit) = units.iter().find(is_core) else {
        return format!(
            "the kernel offers no hardware counters here: no performance unit of the processor in {UNITS} (found: {}), as \
             in most virtual machines",
            units.join(", ")
        );
    };
    let level = source.text("/proc/sys/kernel/perf_event_paranoid");
    let level = level.as_deref().map_or("unknown", str::trim);
    format!(
        "not read by this sampler; the kernel offers the unit {unit} (kernel.perf_event_paranoid = {level}): `perf stat -a` \
         beside the run shows instructions, cycles and cache misses"
    )
}

struct Bandwidth {
    files: Vec<(Kept, Counter)>,
}

impl Collector for Bandwidth {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        for ((file, counter), out) in self.files.iter_mut().zip(out) {
            if let Some(rise) = counter.strict(file.read(buffer).and_then(first_number)) {
                *out = rise as f64 / seconds;
            }
        }
    }
}
