//! What a run's report says of the requests that were recorded during its window.

use std::collections::HashMap;

use kelvin_measure::Nanos;
use serde::{Deserialize, Serialize};

use crate::attribution::attribution;
use crate::cache::{Accesses, accesses, count_accesses, sampled};
use crate::stream::{Profile, Scope, profiles};
use crate::zeros::ZeroShare;
use crate::{Operation, Request, Trace};

/// Columns (time) and rows (places) of a density.
const COLUMNS: usize = 120;
const ROWS: usize = 60;
/// Devices with a density.
const DEVICES: usize = 3;
/// Sizes of a cache on the curve.
const SIZES: u32 = 40;
/// Accesses of which the curve is made of a sample of this share, and its seeds.
const MANY: u64 = 2_000_000;
const SAMPLE: f64 = 0.05;
/// Bytes of a cache's block.
const BLOCK: u64 = 4096;

/// The requests of a window in figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceSummary {
    /// The recording.
    pub file: String,
    /// Its bytes.
    pub file_bytes: u64,
    /// Seconds that are described.
    pub seconds: f64,
    /// From when to when, by the recording's own clock, in nanoseconds.
    pub window: Option<(Nanos, Nanos)>,
    /// Requests in these.
    pub requests: u64,
    /// Events that were lost in the whole recording.
    pub lost: u64,
    /// By how much the bytes of the whole recording differ from the kernel's counters, as a share: the device that differs
    /// most.
    pub difference: Option<f64>,
    /// The share of the bytes that belongs to a file, an object or a filesystem.
    pub attributed: Option<f64>,
    /// All requests, devices, classes, objects and processes.
    pub streams: Vec<StreamSummary>,
    /// Where requests went over time, of the devices with the most.
    pub densities: Vec<Density>,
    /// Requests by size: the largest size of each bin in bytes, reads, writes.
    pub sizes: Vec<(u64, u64, u64)>,
    /// Times between arrivals on a device: the longest of each bin in nanoseconds, and how many.
    pub gaps: Vec<(u64, u64)>,
    /// Requests in flight at an arrival, and how many found so many.
    pub depths: Vec<(u64, u64)>,
    /// Bytes of an LRU cache in addition to those above the device, and its predicted miss ratio.
    pub miss_ratios: Vec<(u64, f64)>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

/// A stream in a line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamSummary {
    /// "all", "device", "class", "object", "group" or "process".
    pub of: String,
    /// Its name.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Bytes read and written.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Requests a second.
    pub rate: f64,
    /// The busiest second over the mean one.
    pub peak_to_mean: Option<f64>,
    /// The share of the bytes in sequential runs.
    pub sequential: f64,
    /// Mean requests in flight at an arrival.
    pub depth: Option<f64>,
    /// Nanoseconds that 99 % of the requests took at most: of reads and of writes.
    pub p99: (Option<u64>, Option<u64>),
    /// What a sample of the reads found.
    pub zeros: Option<ZeroShare>,
    /// What the stream is called: "random, bursty".
    pub category: String,
}

/// Bytes by time and place on a device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Density {
    /// The device.
    pub device: String,
    /// The first byte that a request was for, and the one behind the last.
    pub span: (u64, u64),
    /// How many columns there are, of equal time.
    pub columns: usize,
    /// Bytes read and written in each cell, column by column from the lowest place; empty cells are left out: number of the
    /// cell, bytes read, bytes written.
    pub cells: Vec<(u32, u64, u64)>,
    /// How many rows there are, of equal span.
    pub rows: usize,
}

impl Trace {
    /// The requests that were issued between two times of the trace's own clock, the first of these as their 0. Time
    /// without requests at either end is part of the window, unless the recording had ended because its file was full.
    #[must_use]
    pub fn within(&self, begin: Nanos, end: Nanos) -> Self {
        let full = self.recording.as_ref().filter(|recording| recording.full);
        let recorded = full.map_or(end, |one| end.min(one.header.began.saturating_add(one.lasted)));
        let times = begin..recorded.max(begin);
        let requests = self.requests.iter().filter_map(|request| {
            let at = self.origin.saturating_add(request.at);
            times.contains(&at).then(|| Request { at: at - begin, ..*request })
        });
        Self {
            format: self.format.clone(),
            devices: self.devices.clone(),
            processes: self.processes.clone(),
            groups: self.groups.clone(),
            files: self.files.clone(),
            repeated: self.repeated.clone(),
            requests: requests.collect(),
            origin: begin,
            window: Some(times.end - begin),
            unwritten: self.unwritten.clone(),
            sample: self.sample.clone(),
            recording: self.recording.clone(),
            notes: self.notes.clone(),
        }
    }
}

/// The figures of a trace.
pub fn summary(trace: &Trace) -> TraceSummary {
    let recording = trace.recording.clone().unwrap_or_default();
    let difference = recording.devices.iter().filter_map(crate::recording::DeviceCheck::difference);
    TraceSummary {
        seconds: trace.lasts() as f64 / 1e9,
        requests: trace.requests.len() as u64,
        lost: recording.lost,
        difference: difference.max_by(|a, b| a.abs().total_cmp(&b.abs())),
        attributed: attribution(trace).map(|parts| parts.attributed),
        streams: profiles(trace).iter().map(stream).collect(),
        densities: densities(trace),
        sizes: sizes(trace),
        gaps: gaps(trace),
        depths: depths(trace),
        miss_ratios: miss_ratios(trace),
        notes: trace.notes.clone(),
        ..TraceSummary::default()
    }
}

fn stream(profile: &Profile) -> StreamSummary {
    let of = match profile.scope {
        Scope::All => "all",
        Scope::Device(_) => "device",
        Scope::Class(_) => "class",
        Scope::Object(_) => "object",
        Scope::Group(_) => "group",
        Scope::Process(_) => "process",
    };
    let operation = |wanted| profile.operations.iter().find(|one| one.operation == wanted);
    let bytes = |wanted| operation(wanted).map_or(0, |one| one.bytes);
    let p99 = |wanted| operation(wanted).and_then(|one| one.response).map(|response| response.p99);
    StreamSummary {
        of: of.into(),
        name: profile.scope.label().to_owned(),
        requests: profile.requests,
        read: bytes(Operation::Read),
        written: bytes(Operation::Write),
        rate: profile.arrivals.rate,
        peak_to_mean: profile.arrivals.peak_to_mean,
        sequential: profile.sequence.sequential,
        depth: profile.depth.map(|depth| depth.mean),
        p99: (p99(Operation::Read), p99(Operation::Write)),
        zeros: profile.zeros,
        category: format!("{}, {}", profile.category.pattern.name(), profile.category.arrivals.name()),
    }
}

fn densities(trace: &Trace) -> Vec<Density> {
    let mut counts: HashMap<u16, u64> = HashMap::new();
    for request in trace.requests.iter().filter(|request| request.moves_data()) {
        *counts.entry(request.device).or_insert(0) += 1;
    }
    let mut devices: Vec<(u16, u64)> = counts.into_iter().collect();
    devices.sort_unstable_by_key(|(device, count)| (std::cmp::Reverse(*count), *device));
    devices.into_iter().take(DEVICES).filter_map(|(device, _)| density(trace, device)).collect()
}

fn density(trace: &Trace, device: u16) -> Option<Density> {
    let of = || trace.requests.iter().filter(|request| request.device == device && request.moves_data());
    let low = of().map(|request| request.offset).min()?;
    let high = of().map(Request::end).max()?.max(low + 1);
    let lasts = u128::from(trace.lasts().max(1));
    let place = |value: u64, all: u128, cells: usize| {
        ((u128::from(value) * cells as u128 / all) as usize).min(cells - 1)
    };
    let mut cells: HashMap<u32, (u64, u64)> = HashMap::new();
    for request in of() {
        let column = place(request.at, lasts, COLUMNS);
        let row = place(request.offset - low, u128::from(high - low), ROWS);
        let cell = cells.entry((column * ROWS + row) as u32).or_insert((0, 0));
        match request.operation {
            Operation::Read => cell.0 += u64::from(request.length),
            _ => cell.1 += u64::from(request.length),
        }
    }
    let mut cells: Vec<(u32, u64, u64)> =
        cells.into_iter().map(|(cell, (read, written))| (cell, read, written)).collect();
    cells.sort_unstable();
    let device = trace.devices.get(usize::from(device))?.name.clone();
    Some(Density { device, span: (low, high), columns: COLUMNS, rows: ROWS, cells })
}

fn sizes(trace: &Trace) -> Vec<(u64, u64, u64)> {
    let mut bins: HashMap<u64, (u64, u64)> = HashMap::new();
    for request in trace.requests.iter().filter(|request| request.moves_data() && request.length > 0) {
        let bin = bins.entry(u64::from(request.length).next_power_of_two()).or_insert((0, 0));
        match request.operation {
            Operation::Read => bin.0 += 1,
            _ => bin.1 += 1,
        }
    }
    let mut bins: Vec<(u64, u64, u64)> =
        bins.into_iter().map(|(size, (reads, writes))| (size, reads, writes)).collect();
    bins.sort_unstable();
    bins
}

/// By powers of two.
fn counted(values: impl Iterator<Item = u64>, bin: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
    let mut bins: HashMap<u64, u64> = HashMap::new();
    for value in values {
        *bins.entry(bin(value)).or_insert(0) += 1;
    }
    let mut bins: Vec<(u64, u64)> = bins.into_iter().collect();
    bins.sort_unstable();
    bins
}

fn gaps(trace: &Trace) -> Vec<(u64, u64)> {
    let mut last: HashMap<u16, Nanos> = HashMap::new();
    let gaps = trace.requests.iter().filter_map(|request| {
        let before = last.insert(request.device, request.at)?;
        Some(request.at - before)
    });
    counted(gaps, |gap| gap.max(1).next_power_of_two())
}

fn depths(trace: &Trace) -> Vec<(u64, u64)> {
    // One by one as long as they are few, then by powers of two.
    let bin = |depth: u64| if depth <= 16 { depth } else { depth.next_power_of_two() };
    counted(trace.depths().into_iter().flatten().map(u64::from), bin)
}

fn miss_ratios(trace: &Trace) -> Vec<(u64, f64)> {
    let count = count_accesses(trace, BLOCK, Accesses::All);
    if count == 0 {
        return Vec::new();
    }
    let rate = if count > MANY { SAMPLE } else { 1.0 };
    let curves = sampled(accesses(trace, BLOCK, Accesses::All), rate, 1);
    let Some(curve) = curves.curves.first() else { return Vec::new() };
    let points = (1..=SIZES).map(|n| {
        let blocks = (curve.unique * f64::from(n) / f64::from(SIZES)).max(1.0);
        ((blocks * BLOCK as f64) as u64, curve.miss_ratio(blocks))
    });
    std::iter::once((0, 1.0)).chain(points).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Device, Flags};

    #[test]
    fn quiet_time_is_part_of_a_window() {
        let mut builder = Builder::new("test", 10_000);
        let device = builder.device(&Device { name: "vda".into(), number: None });
        // A checkpoint from the 20th to the 30th second of a minute that begins before the first request.
        for n in 0..6000_u64 {
            let (file, flags, took, process) = (Request::NO_FILE, Flags::default(), Request::UNKNOWN, 0);
            let (at, offset, length, operation) =
                (25_000_000_000 + n * 1_666_666, n * 8192, 8192, Operation::Write);
            builder.push(
                Request { at, offset, length, device, process, file, operation, flags, took },
                Some(1000),
            );
        }
        let found = summary(&builder.finish().within(5_000_000_000, 65_000_000_000));
        assert_eq!((found.requests, found.seconds), (6000, 60.0));
        let [all, ..] = found.streams.as_slice() else { panic!("{:?}", found.streams) };
        let peak = all.peak_to_mean.unwrap();
        assert!((all.rate - 100.0).abs() < 1e-6 && (5.9..6.1).contains(&peak), "{all:?}");
        assert!(all.category.ends_with("bursty"), "{}", all.category);
        let [density] = found.densities.as_slice() else { panic!("{:?}", found.densities) };
        let columns = density.cells.iter().map(|(cell, ..)| *cell as usize / ROWS);
        assert_eq!((columns.clone().min(), columns.max()), (Some(40), Some(59)));
    }

    #[test]
    fn a_window_is_cut_out_and_summed_up() {
        let mut builder = Builder::new("test", 10_000);
        let device = builder.device(&Device { name: "vda".into(), number: None });
        for n in 0..1000_u64 {
            let operation = if n % 4 == 0 { Operation::Read } else { Operation::Write };
            let (file, flags, took, process) = (Request::NO_FILE, Flags::default(), Request::UNKNOWN, 0);
            let (at, offset, length) = (5_000_000_000 + n * 10_000_000, (n % 100) * 8192, 8192);
            let request = Request { at, offset, length, device, process, file, operation, flags, took };
            builder.push(request, Some(1_000_000));
        }
        let trace = builder.finish();
        let window = trace.within(7_000_000_000, 9_000_000_000);
        assert_eq!((window.requests.len(), window.requests[0].at, window.origin), (200, 0, 7_000_000_000));
        let found = summary(&window);
        assert_eq!((found.requests, found.sizes.as_slice()), (200, &[(8192, 50, 150)][..]));
        assert_eq!(found.gaps, [(16_777_216, 199)]);
        assert_eq!(found.depths, [(0, 200)]);
        let [density] = found.densities.as_slice() else { panic!("{:?}", found.densities) };
        let bytes: u64 = density.cells.iter().map(|(_, read, written)| read + written).sum();
        assert_eq!((bytes, density.span), (200 * 8192, (0, 100 * 8192)));
        assert!(density.cells.iter().all(|(cell, ..)| (*cell as usize) < COLUMNS * ROWS));
        // Each of 200 blocks twice: with all of them in the cache the second time is a hit.
        let (size, ratio) = found.miss_ratios.last().copied().unwrap();
        assert!(size == 100 * 8192 && (ratio - 0.5).abs() < 0.01, "{size} {ratio}");
        let text = serde_json::to_string(&found).unwrap();
        let again: TraceSummary = serde_json::from_str(&text).unwrap();
        assert_eq!((again.densities, again.miss_ratios), (found.densities, found.miss_ratios));
    }
}
