//! The I/O blender: regular streams that merge into an irregular one.
//!
//! The regularity of a stream is the share of its bytes whose request continues the request before it in the stream. That
//! of the merged stream is what a device sees; that of its parts, weighted by bytes, is what was sent. The difference
//! is the blender index. The parts are devices or files, processes, and the runs that are recovered from the merged
//! stream without knowing who sent what.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::stream::runs::{Tracker, gap};
use crate::stream::{at_once, continues, span};
use crate::{Builder, Device, Process, Request, Trace};

/// Streams that are listed.
const LISTED: usize = 16;

/// A stream against the merged one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamRegularity {
    /// Its name.
    pub name: String,
    /// Requests that move data.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The share of bytes that continue the request before in this stream.
    pub regularity: f64,
}

/// Regularity of parts and of the whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Blend {
    /// Of the merged stream.
    pub merged: f64,
    /// Of the streams of processes (in traces without processes, of files), weighted by bytes; none if there is one.
    pub parts: Option<f64>,
    /// Those with the most bytes.
    pub streams: Vec<StreamRegularity>,
    /// What was recovered from the merged stream.
    pub recovered: Recovered,
}

/// Runs that were recovered from the merged stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Recovered {
    /// Regularity of the recovered runs and of what is in none, weighted by bytes.
    pub regularity: f64,
    /// Runs.
    pub runs: u64,
    /// Runs in progress at the same time, on average.
    pub at_once: f64,
    /// The share of the bytes in runs.
    pub share: f64,
    /// The share of the runs' bytes that are of the one stream that sent most of the run: 1 if no run mixes streams.
    /// None where the streams are not known.
    pub purity: Option<f64>,
}

impl Blend {
    /// Regularity of the parts less that of the merged stream: what merging costs.
    pub fn index(&self) -> Option<f64> {
        self.parts.map(|parts| parts - self.merged)
    }
}

/// Bytes, and those that continue.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    requests: u64,
    bytes: u64,
    continued: u64,
    last: Option<Request>,
}

impl Sum {
    fn add(&mut self, request: &Request, gap: u64) {
        let bytes = u64::from(request.length);
        self.requests += 1;
        self.bytes += bytes;
        self.continued += bytes * u64::from(self.last.is_some_and(|last| continues(&last, request, gap)));
        self.last = Some(*request);
    }
}

fn regularity<'a>(sums: impl IntoIterator<Item = &'a Sum>) -> f64 {
    let (bytes, continued) =
        sums.into_iter().fold((0, 0), |sum, one| (sum.0 + one.bytes, sum.1 + one.continued));
    continued as f64 / bytes.max(1) as f64
}

/// Compares the streams of a trace with the stream that they merge into.
pub fn blend(trace: &Trace) -> Blend {
    let moving: Vec<&Request> = trace.requests.iter().filter(|request| request.moves_data()).collect();
    let span = span(&moving);
    let gap = gap(span);
    let by_process = trace.processes.len() > 1;
    let part = |request: &Request| if by_process { request.process } else { u32::from(request.device) };
    let mut merged = Sum::default();
    let mut parts: HashMap<u32, Sum> = HashMap::new();
    let mut tracker = Tracker::new(span);
    let mut runs: HashMap<u32, Sum> = HashMap::new();
    let mut senders: HashMap<(u32, u32), u64> = HashMap::new();
    for request in &moving {
        merged.add(request, gap);
        parts.entry(part(request)).or_default().add(request, gap);
        let run = tracker.request(request);
        runs.entry(run).or_default().add(request, gap);
        *senders.entry((run, part(request))).or_insert(0) += u64::from(request.length);
    }
    let found = tracker.finish();
    let bytes: u64 = found.iter().map(|run| run.bytes).sum();
    let mut most: HashMap<u32, u64> = HashMap::new();
    for ((run, _), bytes) in senders {
        let most = most.entry(run).or_insert(0);
        *most = bytes.max(*most);
    }
    let purest: u64 = found.iter().filter_map(|run| most.get(&run.number)).sum();
    let are_known = parts.len() > 1;
    let mut streams: Vec<StreamRegularity> = parts
        .iter()
        .map(|(number, sum)| StreamRegularity {
            name: name(trace, *number, by_process),
            requests: sum.requests,
            bytes: sum.bytes,
            regularity: regularity([sum]),
        })
        .collect();
    streams.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    streams.truncate(LISTED);
    Blend {
        merged: regularity([&merged]),
        parts: are_known.then(|| regularity(parts.values())),
        streams,
        recovered: Recovered {
            regularity: regularity(runs.values()),
            runs: found.len() as u64,
            at_once: at_once(&found),
            share: bytes as f64 / merged.bytes.max(1) as f64,
            purity: (are_known && bytes > 0).then(|| (purest as f64 / bytes as f64).min(1.0)),
        },
    }
}

fn name(trace: &Trace, number: u32, by_process: bool) -> String {
    let number = number as usize;
    let process = || trace.processes.get(number).map(Process::label);
    let device = || trace.devices.get(number).map(|device| device.name.clone());
    (if by_process { process() } else { device() }).unwrap_or_default()
}

/// What one device would see if streams came together on it, all beginning at once: each keeps its times, and gets a
/// range of its own for each of its devices behind that of the one before. Response times are left out: they would be others.
pub fn merge(streams: &[(String, Vec<Request>)]) -> Trace {
    let most: usize = streams.iter().map(|(_, requests)| requests.len()).sum();
    let mut builder = Builder::new("merged", most);
    let device = builder.device(&Device { name: "merged".into(), number: None });
    let mut begin = 0_u64;
    for (number, (name, requests)) in streams.iter().enumerate() {
        let process = builder.process(&Process { pid: number as i32 + 1, command: name.clone() });
        let first = requests.first().map_or(0, |request| request.at);
        // From the lowest to the highest byte on each device that the stream is on.
        let mut extents: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for request in requests.iter().filter(|request| request.length > 0) {
            let (low, high) = extents.entry(request.device).or_insert((request.offset, request.end()));
            (*low, *high) = ((*low).min(request.offset), (*high).max(request.end()));
        }
        let mut place: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for (on, (low, high)) in extents {
            place.insert(on, (low, begin));
            // Not directly behind: the last request of one range is not continued by the first of the next.
            begin = begin.saturating_add(high - low).saturating_add(1 << 30);
        }
        for request in requests {
            let at = request.at.saturating_sub(first);
            let offset = match place.get(&request.device) {
                Some((low, begin)) if request.length > 0 => begin.saturating_add(request.offset - low),
                // A flush has no place.
                _ => 0,
            };
            builder.push(Request { at, offset, device, process, file: Request::NO_FILE, ..*request }, None);
        }
    }
    let mut trace = builder.finish();
    // That the streams come one after the other here is no property of theirs.
    trace.notes.clear();
    trace
}

/// The requests of a trace that a name chooses: of a process (its name, or its name and number) or of a device.
pub fn named(trace: &Trace, name: &str) -> Vec<Request> {
    let process = |request: &Request| {
        let process = trace.processes.get(request.process as usize);
        process.is_some_and(|process| process.command == name || process.label() == name)
    };
    let device = |request: &Request| {
        trace.devices.get(usize::from(request.device)).is_some_and(|device| device.name == name)
    };
    trace.requests.iter().filter(|request| process(request) || device(request)).copied().collect()
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Random;

    use super::*;
    use crate::{Flags, Operation};

    fn reader(seed: u64, requests: u64) -> Vec<Request> {
        let mut random = Random::part(seed, 0, 0);
        let mut at = 0;
        let one = |n: u64| {
            at += random.range(50_000, 150_000) as u64;
            Request {
                at,
                offset: (5 << 30) + n * 65536,
                length: 65536,
                device: 0,
                process: 0,
                operation: Operation::Read,
                flags: Flags::default(),
                file: Request::NO_FILE,
                took: Request::UNKNOWN,
            }
        };
        (0..requests).map(one).collect()
    }

    #[test]
    fn eight_sequential_readers_blend_into_noise_and_are_recovered() {
        let streams: Vec<(String, Vec<Request>)> =
            (0..8).map(|n| (format!("reader{n}"), reader(n, 2000))).collect();
        let trace = merge(&streams);
        let found = blend(&trace);
        assert!(
            found.streams.len() == 8 && found.streams.iter().all(|part| part.regularity > 0.95),
            "{found:?}"
        );
        assert!(found.merged <= 0.3, "{found:?}");
        assert!(found.index().unwrap() > 0.65);
        let recovered = found.recovered;
        assert_eq!((recovered.runs, recovered.purity), (8, Some(1.0)));
        assert!(
            recovered.regularity > 0.95 && recovered.share > 0.99 && recovered.at_once > 7.0,
            "{recovered:?}"
        );
        assert_eq!(named(&trace, "reader3").len(), 2000);
        assert_eq!(named(&trace, "reader3 4").len(), 2000);
        assert_eq!(named(&trace, "merged").len(), 16_000);
    }

    #[test]
    fn a_stream_on_two_devices_is_not_laid_over_itself() {
        let mut both = reader(1, 3);
        both[1].device = 1;
        both[1].offset = 4096;
        both.push(Request { operation: Operation::Flush, offset: 0, length: 0, ..both[2] });
        let trace = merge(&[("both".into(), both), ("other".into(), reader(2, 1))]);
        let places = |process| {
            let of = trace.requests.iter().filter(move |request| request.process == process);
            of.map(|request| request.offset).collect::<Vec<_>>()
        };
        let second = 3 * 65536 + (1 << 30);
        assert_eq!(places(0), [0, second, 2 * 65536, 0]);
        assert_eq!(places(1), [second + 65536 + (1 << 30)]);
    }

    #[test]
    fn one_stream_has_nothing_to_blend_with() {
        let found = blend(&merge(&[("one".into(), reader(1, 100))]));
        assert_eq!((found.parts, found.recovered.purity), (None, None));
        assert!(found.merged > 0.95);
        assert_eq!(blend(&Trace::default()).merged, 0.0);
    }
}
