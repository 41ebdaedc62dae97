//! What a stream of requests is like: of a device, of a process, of all.

mod arrivals;
mod category;
mod places;
pub mod runs;

use std::collections::HashMap;

use kelvin_measure::Nanos;
use serde::Serialize;

pub use arrivals::{Arrivals, Dispersion};
pub use category::{ArrivalCategory, Category, Pattern};
pub use places::{HotRange, Places};
use runs::{Run, RunKind, Tracker, begins_at, gap, near};

use crate::file_class::FileClass;
use crate::recording::TracedFile;
use crate::zeros::{SampleIndex, ZeroShare};
use crate::{Device, Operation, Request, Trace};

/// Sizes that are listed of an operation.
const SIZES: usize = 4;
/// Objects that are described: one pass over the trace each.
const MOST_OBJECTS: usize = 20;
/// Streams below this share of all requests are not described one by one.
const LEAST_SHARE: f64 = 0.005;

/// What the requests of a stream have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "of", content = "name")]
pub enum Scope {
    /// Everything.
    All,
    /// A device, or a file.
    Device(String),
    /// What a kind of file holds, such as a database's log.
    Class(String),
    /// An object of a database, or a file.
    Object(String),
    /// The control group of the processes that issued them.
    Group(String),
    /// A process.
    Process(String),
}

impl Scope {
    /// As tables show it.
    pub fn label(&self) -> &str {
        match self {
            Self::All => "all",
            Self::Device(name)
            | Self::Class(name)
            | Self::Object(name)
            | Self::Group(name)
            | Self::Process(name) => name,
        }
    }
}

/// A stream's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Which requests.
    pub scope: Scope,
    /// How many.
    pub requests: u64,
    /// Bytes that they moved, discards excluded.
    pub bytes: u64,
    /// By operation, those that there are.
    pub operations: Vec<OperationProfile>,
    /// When they arrived.
    pub arrivals: Arrivals,
    /// How many requests each found in flight on its device.
    pub depth: Option<Distribution>,
    /// Requests of the stream in flight at a moment of the trace, on average: by Little's law their rate times their mean
    /// response time. `depth` is taken only when one arrives: a request of a batch finds many, and most moments none.
    pub in_flight: Option<f64>,
    /// How they follow each other.
    pub sequence: Sequence,
    /// Where they went.
    pub places: Places,
    /// What a sample of the reads found: zeros, and room that was never written; none without a sample of it.
    pub zeros: Option<ZeroShare>,
    /// What that makes of the stream.
    pub category: Category,
}

/// The requests of an operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationProfile {
    /// Which.
    pub operation: Operation,
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most frequent sizes.
    pub sizes: Vec<SizeShare>,
    /// From issue to completion, in nanoseconds.
    pub response: Option<Distribution>,
    /// Requests with an error.
    pub failed: u64,
}

/// A size of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeShare {
    /// Bytes.
    pub size: u32,
    /// The share of the requests of the operation.
    pub share: f64,
}

/// A distribution in short.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distribution {
    /// How many values.
    pub values: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// 99 % are at most this.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Distribution {
    /// Of values in any order; none if there are none.
    fn from_values(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let max = *values.last()?;
        let mean = values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64;
        // The nearest rank.
        let at = |share: f64| {
            let rank = (share * values.len() as f64).ceil() as usize;
            values.get(rank.saturating_sub(1)).copied().unwrap_or(max)
        };
        Some(Self { values: values.len() as u64, mean, p50: at(0.5), p99: at(0.99), max })
    }
}

/// How the requests of a stream follow each other; shares are of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Sequence {
    /// Requests that begin where the one before ended, at most [`Sequence::gap`] bytes from it.
    pub next: f64,
    /// Those that begin where one of the 16 before ended.
    pub windowed: f64,
    /// Those in sequential runs, however many are interleaved.
    pub sequential: f64,
    /// Those in runs with a stride.
    pub strided: f64,
    /// Those that go on with a gap: they begin behind the end of one of the 16 before of their operation, at most
    /// [`Sequence::near`] bytes from it, and where none of these ended.
    pub ascending: f64,
    /// Runs.
    pub runs: u64,
    /// Mean bytes of a run.
    pub run_bytes: f64,
    /// Runs that were in progress at the same time, on average while there was any.
    pub at_once: f64,
    /// The widest gap within a sequence of reads, in bytes: it depends on the span.
    pub gap: u64,
    /// What is near, in bytes: it depends on the span.
    pub near: u64,
}

/// The class and the object of each file, by numbers, and their names.
struct FileGroups {
    classes: (Vec<u32>, Vec<Scope>),
    objects: (Vec<u32>, Vec<Scope>),
}

impl FileGroups {
    fn for_trace(trace: &Trace) -> Self {
        let grouped = |scope: &dyn Fn(&TracedFile) -> Scope| {
            let mut scopes: Vec<Scope> = Vec::new();
            let mut numbers: HashMap<(FileClass, String), u32> = HashMap::new();
            let number = |file: &TracedFile| {
                let scope = scope(file);
                *numbers.entry((file.class, scope.label().to_owned())).or_insert_with(|| {
                    scopes.push(scope);
                    scopes.len() as u32 - 1
                })
            };
            let of_files: Vec<u32> = trace.files.iter().map(number).collect();
            (of_files, scopes)
        };
        Self {
            classes: grouped(&|file| Scope::Class(file.class_label())),
            objects: grouped(&|file| Scope::Object(file.object.clone())),
        }
    }
}

/// Describes everything, each device, and each class of files, each object and each process that has at least 0.5 % of
/// the requests.
pub fn profiles(trace: &Trace) -> Vec<Profile> {
    let depths = trace.depths();
    let resolution = resolution(trace);
    let lasts = trace.lasts();
    let sample = SampleIndex::for_trace(trace);
    let describe = |scope: Scope, of: &dyn Fn(&Request) -> bool| {
        let chosen: Vec<(&Request, Option<u32>)> =
            trace.requests.iter().zip(depths.iter().copied()).filter(|(request, _)| of(request)).collect();
        let zeros = sample.as_ref().and_then(|sample| sample.share(trace, of));
        Profile { zeros, ..profile(scope, &chosen, lasts, resolution) }
    };
    let mut all = vec![describe(Scope::All, &|_| true)];
    let mut counts: (HashMap<u16, u64>, HashMap<u32, u64>) = (HashMap::new(), HashMap::new());
    let groups = FileGroups::for_trace(trace);
    for request in &trace.requests {
        *counts.0.entry(request.device).or_insert(0) += 1;
        *counts.1.entry(request.process).or_insert(0) += 1;
    }
    let least = (trace.requests.len() as f64 * LEAST_SHARE) as u64;
    let enough = |count: u64| count > least;
    if trace.devices.len() > 1 {
        for (number, device) in trace.devices.iter().enumerate() {
            let number = number as u16;
            if counts.0.get(&number).is_some_and(|count| enough(*count)) {
                all.push(describe(Scope::Device(device.name.clone()), &|request| request.device == number));
            }
        }
    }
    for (of_file, scopes) in [&groups.classes, &groups.objects] {
        let mut sums: HashMap<u32, u64> = HashMap::new();
        for request in trace.requests.iter().filter(|request| trace.is_own(request)) {
            if let Some(group) = of_file.get(request.file as usize) {
                *sums.entry(*group).or_insert(0) += 1;
            }
        }
        let mut sums: Vec<(u32, u64)> = sums.into_iter().filter(|(_, count)| enough(*count)).collect();
        sums.sort_unstable_by_key(|(group, count)| (std::cmp::Reverse(*count), *group));
        for (group, _) in sums.into_iter().take(MOST_OBJECTS) {
            if let Some(scope) = scopes.get(group as usize) {
                let is_in = |request: &Request| {
                    of_file.get(request.file as usize) == Some(&group) && trace.is_own(request)
                };
                all.push(describe(scope.clone(), &is_in));
            }
        }
    }
    for group in groups_of(trace, least) {
        let of =
            |request: &Request| trace.groups.get(request.process as usize).is_some_and(|of| *of == group);
        all.push(describe(Scope::Group(group.clone().unwrap_or_default()), &of));
    }
    if trace.processes.len() > 1 {
        let mut processes: Vec<(u32, u64)> =
            counts.1.into_iter().filter(|(_, count)| enough(*count)).collect();
        processes.sort_unstable_by_key(|(number, count)| (std::cmp::Reverse(*count), *number));
        for (number, _) in processes {
            if let Some(process) = trace.processes.get(number as usize) {
                all.push(describe(Scope::Process(process.label()), &|request| request.process == number));
            }
        }
    }
    all
}

/// The control groups with more than so many requests, those with the most first; none if there is only one.
fn groups_of(trace: &Trace, least: u64) -> Vec<Option<String>> {
    let mut counts: HashMap<&String, u64> = HashMap::new();
    for request in &trace.requests {
        if let Some(Some(group)) = trace.groups.get(request.process as usize) {
            *counts.entry(group).or_insert(0) += 1;
        }
    }
    if counts.len() < 2 {
        return Vec::new();
    }
    let mut counts: Vec<(&String, u64)> = counts.into_iter().filter(|(_, count)| *count > least).collect();
    counts.sort_unstable_by_key(|(group, count)| (std::cmp::Reverse(*count), *group));
    counts.into_iter().take(MOST_OBJECTS).map(|(group, _)| Some(group.clone())).collect()
}

/// Requests as a trace of one device.
fn of_one_device(requests: &[Request]) -> Trace {
    Trace {
        devices: vec![Device::default()],
        requests: requests.iter().map(|request| Request { device: 0, ..*request }).collect(),
        ..Trace::default()
    }
}

/// How many others of these each of them finds in flight, on average; none where too few have a response time.
pub(crate) fn mean_depth(requests: &[Request]) -> Option<f64> {
    let depths: Vec<u32> = of_one_device(requests).depths().into_iter().flatten().collect();
    let sum = depths.iter().map(|depth| f64::from(*depth)).sum::<f64>();
    (!depths.is_empty()).then(|| sum / depths.len() as f64)
}

/// Describes requests that belong together, of one device, in a trace of this length.
pub fn profile_of(requests: &[Request], lasts: Nanos) -> Profile {
    let trace = of_one_device(requests);
    let chosen: Vec<(&Request, Option<u32>)> = trace.requests.iter().zip(trace.depths()).collect();
    profile(Scope::All, &chosen, lasts, resolution(&trace))
}

/// The unit of the trace's times: what all of them are multiples of.
fn resolution(trace: &Trace) -> Nanos {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let mut unit = 0;
    for request in &trace.requests {
        unit = gcd(unit, request.at);
        if unit == 1 {
            break;
        }
    }
    unit.max(1)
}

fn profile(scope: Scope, chosen: &[(&Request, Option<u32>)], lasts: Nanos, resolution: Nanos) -> Profile {
    let times: Vec<Nanos> = chosen.iter().map(|(request, _)| request.at).collect();
    let moving: Vec<&Request> =
        chosen.iter().map(|(request, _)| *request).filter(|request| request.moves_data()).collect();
    let arrivals = arrivals::arrivals(&times, 0, lasts, resolution);
    let sequence = sequence(&moving);
    let depth = chosen.iter().filter_map(|(_, depth)| depth.map(u64::from)).collect();
    Profile {
        scope,
        requests: chosen.len() as u64,
        bytes: moving.iter().map(|request| u64::from(request.length)).sum(),
        operations: Operation::ALL.into_iter().filter_map(|one| operation(one, chosen)).collect(),
        depth: Distribution::from_values(depth),
        in_flight: in_flight(chosen, lasts),
        category: category::category(&sequence, &arrivals, moving.len() as u64),
        places: places::places(&moving, 0, lasts),
        zeros: None,
        arrivals,
        sequence,
    }
}

/// Requests in flight on average over the trace; none where fewer than nine of ten have a response time.
fn in_flight(chosen: &[(&Request, Option<u32>)], lasts: Nanos) -> Option<f64> {
    let responses = || chosen.iter().filter_map(|(request, _)| request.response());
    let known = responses().count();
    if known == 0 || lasts == 0 || known * 10 < chosen.len() * 9 {
        return None;
    }
    let mean = responses().map(|response| response as f64).sum::<f64>() / known as f64;
    Some(chosen.len() as f64 * mean / lasts as f64)
}

fn operation(operation: Operation, chosen: &[(&Request, Option<u32>)]) -> Option<OperationProfile> {
    let of: Vec<&Request> =
        chosen.iter().map(|(request, _)| *request).filter(|request| request.operation == operation).collect();
    if of.is_empty() {
        return None;
    }
    let mut sizes: HashMap<u32, u64> = HashMap::new();
    for request in &of {
        *sizes.entry(request.length).or_insert(0) += 1;
    }
    let mut sizes: Vec<(u32, u64)> = sizes.into_iter().collect();
    sizes.sort_unstable_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
    let share = |(size, count)| SizeShare { size, share: count as f64 / of.len() as f64 };
    Some(OperationProfile {
        operation,
        requests: of.len() as u64,
        bytes: of.iter().map(|request| u64::from(request.length)).sum(),
        sizes: sizes.into_iter().take(SIZES).map(share).collect(),
        response: Distribution::from_values(of.iter().filter_map(|request| request.response()).collect()),
        failed: of.iter().filter(|request| request.flags.has(crate::Flags::FAILED)).count() as u64,
    })
}

/// From the lowest to the highest byte of requests.
pub(crate) fn span(requests: &[&Request]) -> u64 {
    let low = requests.iter().map(|request| request.offset).min().unwrap_or(0);
    let high = requests.iter().map(|request| request.end()).max().unwrap_or(0);
    high - low
}

/// Whether a request continues another: it begins within it or at its end, and ends behind it. Rewriting a block
/// continues nothing.
pub(crate) fn continues(before: &Request, request: &Request, gap: u64) -> bool {
    before.device == request.device
        && request.end() > before.end()
        && (begins_at(request, before.end(), gap)
            || (before.offset < request.offset && request.offset <= before.end()))
}

/// How requests that move data follow each other.
pub(crate) fn sequence(requests: &[&Request]) -> Sequence {
    const WINDOW: usize = 16;
    let span = span(requests);
    let gap = gap(span);
    let mut tracker = Tracker::new(span);
    let near = near(span);
    let (mut next, mut windowed, mut ascending, mut all) = (0_u64, 0_u64, 0_u64, 0_u64);
    for (at, request) in requests.iter().enumerate() {
        let bytes = u64::from(request.length);
        all += bytes;
        let before = &requests[at.saturating_sub(WINDOW)..at];
        next += bytes * u64::from(before.last().is_some_and(|last| continues(last, request, gap)));
        let is_windowed = before.iter().any(|other| continues(other, request, gap));
        windowed += bytes * u64::from(is_windowed);
        let ascends = |other: &&Request| {
            other.device == request.device
                && other.operation == request.operation
                && request.offset.checked_sub(other.end()).is_some_and(|seek| 0 < seek && seek <= near)
        };
        ascending += bytes * u64::from(!is_windowed && before.iter().any(ascends));
        tracker.request(request);
    }
    let runs = tracker.finish();
    let share = |part: u64| part as f64 / all.max(1) as f64;
    let bytes = |kind| runs.iter().filter(|run| run.kind == kind).map(|run| run.bytes).sum();
    let moved: u64 = runs.iter().map(|run| run.bytes).sum();
    Sequence {
        next: share(next),
        windowed: share(windowed),
        sequential: share(bytes(RunKind::Sequential)),
        strided: share(bytes(RunKind::Strided)),
        ascending: share(ascending),
        runs: runs.len() as u64,
        run_bytes: moved as f64 / runs.len().max(1) as f64,
        at_once: at_once(&runs),
        gap,
        near,
    }
}

/// Runs in progress at the same time, on average while there was any.
pub(crate) fn at_once(runs: &[Run]) -> f64 {
    let mut edges: Vec<(Nanos, i64)> = runs.iter().flat_map(|run| [(run.first, 1), (run.last, -1)]).collect();
    // Where one ends and another begins, both are there for a moment of no length.
    edges.sort_unstable();
    let (mut open, mut before, mut covered, mut sum) = (0_i64, 0, 0_u64, 0.0);
    for (at, change) in edges {
        if open > 0 {
            covered += at - before;
            sum += (at - before) as f64 * open as f64;
        }
        open += change;
        before = at;
    }
    if covered == 0 { runs.len().min(1) as f64 } else { sum / covered as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Flags, Process};

    #[test]
    fn a_trace_is_described_by_device_and_process() {
        let mut builder = Builder::new("test", 100_000);
        let device = builder.device(&Device { name: "vda".into(), number: None });
        let writer = builder.process(&Process { pid: 1, command: "wal".into() });
        let reader = builder.process(&Process { pid: 2, command: "backend".into() });
        let mut random = kelvin_measure::Random::part(1, 0, 0);
        for n in 0..10_000_u64 {
            let (process, operation, offset, length) = if n % 2 == 0 {
                (writer, Operation::Write, n * 4096, 8192)
            } else {
                (reader, Operation::Read, (1 << 32) + random.range(0, 1 << 20) as u64 * 8192, 8192)
            };
            let flags = Flags::default();
            let at = n * 1_000_000;
            let (file, took) = (Request::NO_FILE, Request::UNKNOWN);
            builder.push(
                Request { at, offset, length, device, process, file, operation, flags, took },
                Some(1_500_000),
            );
        }
        let profiles = profiles(&builder.finish());
        let labels: Vec<&str> = profiles.iter().map(|profile| profile.scope.label()).collect();
        assert_eq!(labels, ["all", "wal 1", "backend 2"]);
        let patterns: Vec<Pattern> = profiles.iter().map(|profile| profile.category.pattern).collect();
        assert_eq!(patterns, [Pattern::Mixed, Pattern::Sequential, Pattern::Random]);
        assert!(profiles.iter().all(|profile| profile.category.arrivals == ArrivalCategory::Steady));
        let [all, log, _] = profiles.as_slice() else { panic!() };
        assert_eq!((all.requests, all.bytes, log.requests), (10_000, 10_000 * 8192, 5000));
        assert!(
            (all.sequence.sequential - 0.5).abs() < 0.01 && all.sequence.next < 0.01,
            "{:?}",
            all.sequence
        );
        assert!(log.sequence.next > 0.99 && log.sequence.runs == 1);
        let depth = all.depth.unwrap();
        assert_eq!((depth.p50, depth.max), (1, 1));
        assert_eq!(
            all.operations.iter().map(|one| one.response.unwrap().p50).collect::<Vec<_>>(),
            [1_500_000; 2]
        );
        assert!((log.arrivals.rate - 500.0).abs() < 1.0);
    }

    #[test]
    fn rewriting_one_block_continues_nothing() {
        let mut builder = Builder::new("test", 1000);
        for at in 0..100 {
            let (operation, flags, took) = (Operation::Write, Flags::default(), Request::UNKNOWN);
            let (offset, length, device, process, file) = (1 << 30, 4096, 0, 0, 0);
            let request = Request { at, offset, length, device, process, file, operation, flags, took };
            builder.push(request, None);
            // A second place, so that the span allows gaps.
            if at == 50 {
                builder.push(Request { offset: 0, ..request }, None);
            }
        }
        let trace = builder.finish();
        let found = sequence(&trace.requests.iter().collect::<Vec<_>>());
        assert!(found.gap > 4096 && found.next == 0.0, "{found:?}");
        assert_eq!(crate::blender::blend(&trace).merged, 0.0);
    }

    #[test]
    fn a_checkpoints_writes_ascend_and_are_random() {
        let mut random = kelvin_measure::Random::part(8, 0, 0);
        let mut builder = Builder::new("test", 100_000);
        let mut page = 1 << 17;
        for at in 0..20_000 {
            page += random.range(1, 30) as u64;
            let (operation, flags, took) = (Operation::Write, Flags::default(), Request::UNKNOWN);
            let (length, device, process, file) = (8192, 0, 0, Request::NO_FILE);
            let offset = page * 8192;
            builder.push(Request { at, offset, length, device, process, file, operation, flags, took }, None);
        }
        let trace = builder.finish();
        let found = profile_of(&trace.requests, 20_000);
        assert_eq!(found.category.pattern, Pattern::Random, "{:?}", found.sequence);
        assert!(found.sequence.ascending > 0.9 && found.sequence.next < 0.1, "{:?}", found.sequence);
        assert!(found.category.evidence.contains("ascend"), "{}", found.category.evidence);
    }

    #[test]
    fn the_mean_in_flight_is_what_a_look_at_every_moment_would_find() {
        // Batches of 20 at once, each request taking 0.1 to 2 ms, with 25 ms between.
        let mut random = kelvin_measure::Random::part(4, 0, 0);
        let requests: Vec<Request> = (0..4000_u64)
            .map(|n| Request {
                at: n / 20 * 25_000_000,
                offset: n << 20,
                length: 4096,
                device: 0,
                process: 0,
                file: Request::NO_FILE,
                operation: Operation::Write,
                flags: Flags::default(),
                took: random.range(100_000, 2_000_000) as u64,
            })
            .collect();
        let lasts = 5_000_000_000;
        let mut edges: Vec<(Nanos, i64)> =
            requests.iter().flat_map(|one| [(one.at, 1), (one.at + one.took, -1)]).collect();
        edges.sort_unstable();
        let (mut open, mut before, mut area) = (0_i64, 0, 0.0);
        for (at, change) in edges {
            area += open as f64 * (at - before) as f64;
            (open, before) = (open + change, at);
        }
        let found = profile_of(&requests, lasts);
        let (mean, expected) = (found.in_flight.unwrap(), area / lasts as f64);
        assert!((mean / expected - 1.0).abs() < 1e-9, "{mean} {expected}");
        let response = found.operations[0].response.unwrap().mean / 1e9;
        assert!((mean / (found.arrivals.rate * response) - 1.0).abs() < 1e-9, "Little's law: {mean}");
        // Those of a batch find 9.5 others on average.
        assert!((found.depth.unwrap().mean - 9.5).abs() < 1e-9 && mean < 1.0, "{:?}", found.depth);
        let unknown: Vec<Request> =
            requests.iter().map(|one| Request { took: Request::UNKNOWN, ..*one }).collect();
        assert_eq!(profile_of(&unknown, lasts).in_flight, None);
    }

    #[test]
    fn ranks_and_overlaps_are_counted() {
        let found = Distribution::from_values((1..=100).collect()).unwrap();
        assert_eq!((found.p50, found.p99, found.max), (50, 99, 100));
        assert_eq!(Distribution::from_values(Vec::new()), None);
        let run =
            |first, last| Run { number: 0, kind: RunKind::Sequential, requests: 3, bytes: 1, first, last };
        assert_eq!(at_once(&[run(0, 10), run(5, 10)]), 1.5);
        assert_eq!(at_once(&[]), 0.0);
    }
}
