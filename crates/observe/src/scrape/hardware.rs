//! The metrics of Intel's pcm-sensor-server, which pcm-exporter runs, under the names of the host sampler.
//!
//! At `/metrics` its counters are absolute and have the time at which they were read, on its host's clock; at
//! `/persecond` they are differences, which are not used here. Bytes of the memory controllers are counted in the
//! uncore; they are all of the host's traffic.
//!
//! Source: `src/pcm-sensor-server.cpp` of github.com/intel/pcm, its Prometheus output; blanks in its names become "_".

use std::collections::BTreeMap;

use super::page::Page;
use super::scraped_metrics::ScrapedMetrics;
use super::text::Sample;

const INTERVAL: &str = "Measurement_Interval_in_us";

pub(super) fn map(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    let Some(microseconds) = page.one(INTERVAL) else { return };
    let seconds = figures.rise(INTERVAL.to_owned(), microseconds) / 1e6;
    // A timestamp inconsistent with the local clock is invalid, and so are the counters with it.
    let likely = (0.5 * figures.seconds()..=2.0 * figures.seconds()).contains(&seconds);
    let seconds = if likely { seconds } else { f64::NAN };
    let mut bytes: BTreeMap<String, f64> = BTreeMap::new();
    for name in ["DRAM_Reads", "DRAM_Writes", "Persistent_Memory_Reads", "Persistent_Memory_Writes"] {
        for sample in page.all(name).filter(|sample| sample.label("source") == "uncore") {
            let place = match (sample.label("socket"), sample.label("aggregate")) {
                ("", "system") => "total",
                ("", _) => continue,
                (socket, _) => socket,
            };
            let rise = figures.rise(format!("{name} {place}"), sample.value);
            *bytes.entry(place.to_owned()).or_default() += rise;
        }
    }
    for (place, rise) in bytes {
        let help = "memory read and written, counted by the memory controllers";
        figures.level(format!("host.memory_bandwidth.{place}"), "B/s", help, rise / seconds);
    }
    let mut rises = [None; 2];
    for (i, (there, here, help)) in [
        ("Instructions_Retired_Any", "host.hardware.instructions", "instructions retired"),
        ("Clock_Unhalted_Thread", "host.hardware.cycles", "cycles in which a CPU was not halted"),
        ("L3_Cache_Misses", "host.hardware.llc_misses", "references that missed the last-level cache"),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(sample) = page.all(there).find(|sample| is_system(sample)) else { continue };
        let rise = figures.rise(there.to_owned(), sample.value);
        figures.level(here, "1/s", help, rise / seconds);
        if let Some(slot) = rises.get_mut(i) {
            *slot = Some(rise);
        }
    }
    if let [Some(instructions), Some(cycles)] = rises {
        let ratio = if cycles > 0.0 { instructions / cycles } else { f64::NAN };
        figures.level("host.hardware.ipc", "1", "instructions per cycle", ratio);
    }
}

/// Of the whole host, not of a socket or a thread.
fn is_system(sample: &Sample<'_>) -> bool {
    sample.label("aggregate") == "system"
}
