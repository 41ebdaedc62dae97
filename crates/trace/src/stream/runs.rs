//! Runs: requests that continue one another, however many runs are interleaved.
//!
//! A request continues an open run of its operation if it begins at the run's end ([`begins_at`]), or within the
//! last request of the run (a log rewrites its last block), or if it lies as far behind the last request as that
//! behind the one before (a stride). A run counts from its third request on, a strided one from its eighth, with those
//! before. Method: the table of open streams of vscsiStats's successors (Ahmad, IISWC 2007, has the windowed seek distance
//! only).

use kelvin_measure::Nanos;
use serde::Serialize;

use crate::Request;

/// Runs that are followed at once, established ones and candidates each.
const OPEN: usize = 64;
/// A run that stood still for so long ended.
const IDLE: Nanos = 10_000_000_000;
/// From this number of requests on it is a run.
const LEAST: u32 = 3;
/// The same of a stride: pages that are written in ascending order are often equally far apart a few times.
const LEAST_STRIDED: u32 = 8;
/// Requests of a stride are not farther apart.
const LONGEST_STRIDE: u64 = 16 << 20;
/// The widest gap within a sequential run of reads: a hole, or read-ahead that skipped.
const WIDEST_GAP: u64 = 64 << 10;
/// A request that begins so far behind another one at most is near it.
const NEAR: u64 = 2 << 20;

/// How the requests of a run follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Each begins where the one before ended, or near.
    Sequential,
    /// Each is as far from the one before as that from the one before it.
    Strided,
}

/// A run that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Its number, by its beginning.
    pub number: u32,
    /// How its requests follow.
    pub kind: RunKind,
    /// Requests.
    pub requests: u32,
    /// Bytes that they moved.
    pub bytes: u64,
    /// The first issue.
    pub first: Nanos,
    /// The last issue.
    pub last: Nanos,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    number: u32,
    device: u16,
    operation: crate::Operation,
    start: u64,
    end: u64,
    stride: Option<i64>,
    requests: u32,
    /// How often the end moved on: rewriting one block is no run.
    advances: u32,
    bytes: u64,
    length: u32,
    first: Nanos,
    last: Nanos,
}

impl Open {
    fn is_run(&self) -> bool {
        let least = if self.stride.is_some() { LEAST_STRIDED } else { LEAST };
        self.requests >= least && self.advances + 1 >= least
    }

    fn continues(&self, request: &Request, gap: u64) -> bool {
        if self.device != request.device
            || self.operation != request.operation
            || request.at.saturating_sub(self.last) > IDLE
        {
            return false;
        }
        match self.stride {
            Some(stride) => {
                request.length == self.length && self.start.checked_add_signed(stride) == Some(request.offset)
            }
            None => begins_at(request, self.end, gap) || (self.start..=self.end).contains(&request.offset),
        }
    }

    fn take(&mut self, request: &Request) {
        self.requests += 1;
        self.bytes += u64::from(request.length);
        self.advances += u32::from(request.end() > self.end || self.stride.is_some());
        // A request that came early or late within the gap does not move the end back.
        if self.stride.is_some() || request.end() >= self.end {
            self.start = request.offset;
            self.end = request.end();
        }
        self.last = request.at;
    }

    fn ended(&self) -> Option<Run> {
        let Self { number, requests, bytes, first, last, .. } = *self;
        let kind = if self.stride.is_some() { RunKind::Strided } else { RunKind::Sequential };
        self.is_run().then_some(Run { number, kind, requests, bytes, first, last })
    }
}

/// Follows runs through requests in the order of time.
#[derive(Debug)]
pub struct Tracker {
    gap: u64,
    /// Runs and candidates that are followed at once, each.
    room: usize,
    /// Whether strided runs are followed as well.
    has_strides: bool,
    established: Vec<Open>,
    candidates: Vec<Open>,
    next: u32,
    /// Bytes in sequential runs so far.
    sequential: u64,
    /// The runs that ended.
    pub ended: Vec<Run>,
}

impl Tracker {
    /// For requests that span so many bytes: in a small span, near by chance is no continuation.
    pub fn new(span: u64) -> Self {
        Self::following(span, OPEN, true)
    }

    /// The same of fewer runs at once, and without strides, where time matters. The span is set with
    /// [`Tracker::set_span`].
    pub(crate) fn sequential_only(room: usize) -> Self {
        Self::following(0, room, false)
    }

    fn following(span: u64, room: usize, has_strides: bool) -> Self {
        Self {
            gap: gap(span),
            room,
            has_strides,
            established: Vec::with_capacity(room),
            candidates: Vec::with_capacity(room),
            next: 0,
            sequential: 0,
            ended: Vec::new(),
        }
    }

    /// Requests span so many bytes by now.
    pub(crate) fn set_span(&mut self, span: u64) {
        self.gap = gap(span);
    }

    /// Bytes in sequential runs so far; those of a run's first two requests are added with its third.
    pub(crate) fn sequential_bytes(&self) -> u64 {
        self.sequential
    }

    /// Takes the next request, which must move data. Returns the number of the run that it belongs to, which may turn
    /// out to be no run: see [`Run::number`].
    pub fn request(&mut self, request: &Request) -> u32 {
        let gap = self.gap;
        if let Some(run) = self.established.iter_mut().find(|run| run.continues(request, gap)) {
            run.take(request);
            if run.stride.is_none() {
                self.sequential += u64::from(request.length);
            }
            return run.number;
        }
        if let Some(place) = self.candidates.iter().position(|run| run.continues(request, gap)) {
            let run = &mut self.candidates[place];
            run.take(request);
            let number = run.number;
            if run.is_run() {
                let run = self.candidates.swap_remove(place);
                if run.stride.is_none() {
                    self.sequential += run.bytes;
                }
                self.open(run);
            }
            return number;
        }
        let number = self.next;
        self.next = self.next.saturating_add(1);
        let stride = if self.has_strides { self.nearest(request) } else { None };
        let open = |stride, number| Open {
            number,
            device: request.device,
            operation: request.operation,
            start: request.offset,
            end: request.end(),
            stride,
            requests: 1,
            advances: 0,
            bytes: u64::from(request.length),
            length: request.length,
            first: request.at,
            last: request.at,
        };
        self.candidate(open(None, number));
        if let Some(stride) = stride {
            self.candidate(open(Some(stride), number));
        }
        number
    }

    /// The distance from the nearest request of the kind that continues nothing.
    fn nearest(&self, request: &Request) -> Option<i64> {
        let alike = self.candidates.iter().filter(|open| {
            open.stride.is_none()
                && open.requests == 1
                && open.length == request.length
                && open.device == request.device
                && open.operation == request.operation
        });
        let near = alike.min_by_key(|open| open.start.abs_diff(request.offset))?;
        let distance = request.offset.abs_diff(near.start);
        let stride = i64::try_from(distance).ok().filter(|_| distance > 0 && distance <= LONGEST_STRIDE)?;
        Some(if request.offset >= near.start { stride } else { -stride })
    }

    fn candidate(&mut self, open: Open) {
        if self.candidates.len() >= self.room {
            oldest(&mut self.candidates);
        }
        self.candidates.push(open);
    }

    fn open(&mut self, run: Open) {
        // What became a run in one reading is none in the other.
        self.candidates.retain(|other| other.number != run.number);
        if self.established.len() >= self.room {
            let ended = oldest(&mut self.established).and_then(|run| run.ended());
            self.ended.extend(ended);
        }
        self.established.push(run);
    }

    /// All runs, in the order of their beginning.
    pub fn finish(mut self) -> Vec<Run> {
        self.ended.extend(self.established.iter().filter_map(Open::ended));
        self.ended.sort_by_key(|run| run.number);
        self.ended
    }
}

/// The widest gap within a run among requests that span so many bytes: at most a twentieth of the span is near one of
/// the open runs by chance.
pub fn gap(span: u64) -> u64 {
    (span / (OPEN as u64 * 40)).min(WIDEST_GAP)
}

/// Whether a request begins where another ended: with a gap of at most this, which only reads may leave, or so far before
/// the end, as a log does whose last blocks are written again. Writes with gaps between are not sequential: a
/// checkpoint writes pages in ascending order, and the device has to seek for each.
pub(crate) fn begins_at(request: &Request, end: u64, gap: u64) -> bool {
    let ahead = if request.operation == crate::Operation::Write { 0 } else { gap };
    request.offset <= end.saturating_add(ahead) && request.offset.saturating_add(gap) >= end
}

/// How far behind another request one is near among requests that span so many bytes, with the 16 before: in at most one of
/// forty by chance.
pub fn near(span: u64) -> u64 {
    (span / (16 * 40)).min(NEAR)
}

fn oldest(open: &mut Vec<Open>) -> Option<Open> {
    let place = open.iter().enumerate().min_by_key(|(_, run)| run.last)?.0;
    Some(open.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Random;

    use super::*;
    use crate::{Flags, Operation};

    fn request(at: Nanos, offset: u64, length: u32) -> Request {
        Request {
            at,
            offset,
            length,
            device: 0,
            process: 0,
            operation: Operation::Write,
            flags: Flags::default(),
            file: Request::NO_FILE,
            took: Request::UNKNOWN,
        }
    }

    /// Bytes in sequential and in strided runs, of all, and how many runs.
    fn shares(requests: &[Request]) -> (f64, f64, usize) {
        let mut tracker = Tracker::new(1 << 40);
        for request in requests {
            tracker.request(request);
        }
        let so_far = tracker.sequential_bytes();
        let runs = tracker.finish();
        let kind = |run: &&Run| run.kind == RunKind::Sequential;
        assert_eq!(so_far, runs.iter().filter(kind).map(|run| run.bytes).sum::<u64>());
        let all: u64 = requests.iter().map(|request| u64::from(request.length)).sum();
        let of = |kind| {
            let bytes: u64 = runs.iter().filter(|run| run.kind == kind).map(|run| run.bytes).sum();
            bytes as f64 / all as f64
        };
        (of(RunKind::Sequential), of(RunKind::Strided), runs.len())
    }

    #[test]
    fn interleaved_runs_are_found_among_random_requests() {
        let mut random = Random::part(7, 0, 0);
        let mut ends = [0_u64, 1 << 35, 2 << 35, 3 << 35, 4 << 35, 5 << 35, 6 << 35, 7 << 35];
        let mut requests = Vec::new();
        for at in 0..8000 {
            let stream = random.range(0, 9) as usize;
            match ends.get_mut(stream) {
                Some(end) => {
                    requests.push(request(at, *end, 65536));
                    *end += 65536;
                }
                None => requests.push(request(at, random.range(0, 1 << 28) as u64 * 4096, 65536)),
            }
        }
        let (sequential, strided, runs) = shares(&requests);
        assert!((0.78..0.83).contains(&sequential), "{sequential}: eight of ten");
        assert!(strided < 0.01, "{strided}");
        assert!((8..12).contains(&runs), "{runs}");
    }

    #[test]
    fn a_log_is_sequential_and_a_hot_block_is_not() {
        // A log: each write begins with the last block of the one before.
        let log: Vec<Request> = (0..100).map(|n| request(n, n * 8192, 16384)).collect();
        assert_eq!(shares(&log), (1.0, 0.0, 1));
        let hot: Vec<Request> = (0..100).map(|n| request(n, 4096, 4096)).collect();
        assert_eq!(shares(&hot), (0.0, 0.0, 0));
    }

    #[test]
    fn strides_are_found_forwards_and_backwards() {
        let forwards: Vec<Request> = (0..200).map(|n| request(n, n * 1_000_000, 4096)).collect();
        let seven = &forwards[..7];
        assert_eq!(shares(seven).2, 0, "a few equal distances are chance");
        let (sequential, strided, _) = shares(&forwards);
        assert!(sequential == 0.0 && strided > 0.97, "{sequential} {strided}");
        let backwards: Vec<Request> = (0..200).rev().map(|n| request(200 - n, n * 1_000_000, 4096)).collect();
        assert!(shares(&backwards).1 > 0.97);
    }

    #[test]
    fn writes_with_gaps_ascend_and_are_no_run_and_reads_with_gaps_are() {
        // A checkpoint: one of four pages in ascending order.
        let mut random = Random::part(3, 0, 0);
        let pages = (0..40_000_u64).filter(|_| random.range(0, 3) == 0);
        let writes: Vec<Request> = pages.map(|page| request(page, (1 << 30) + page * 8192, 8192)).collect();
        let (sequential, strided, _) = shares(&writes);
        // Three adjacent pages are a run: at least one of 16 pages is in one, and seldom more.
        assert!(sequential < 0.2 && strided < 0.02, "{sequential} {strided}");
        let reads: Vec<Request> =
            writes.iter().map(|write| Request { operation: Operation::Read, ..*write }).collect();
        assert!(shares(&reads).0 > 0.95, "{:?}", shares(&reads));
    }

    proptest::proptest! {
        #[test]
        fn a_gap_of_any_size_ends_a_run_of_writes(lengths in proptest::collection::vec((1..64_u64, 0..3_u64), 3..200)) {
            // Blocks of a length, each with a gap of some sectors behind it.
            let (mut end, mut adjacent, mut requests) = (1_u64 << 30, Vec::new(), Vec::new());
            for (at, (sectors, gap)) in (0_u64..).zip(&lengths) {
                requests.push(request(at, end, *sectors as u32 * 512));
                end += (sectors + gap) * 512;
                adjacent.push(*gap == 0);
            }
            // What runs of three or more adjacent blocks have.
            let (mut expected, mut run) = (0_u64, Vec::new());
            for (one, is_adjacent) in requests.iter().zip(adjacent.into_iter().chain([false])) {
                run.push(u64::from(one.length));
                if !is_adjacent {
                    expected += if run.len() >= 3 { run.iter().sum() } else { 0 };
                    run.clear();
                }
            }
            expected += if run.len() >= 3 { run.iter().sum() } else { 0 };
            let all: u64 = requests.iter().map(|one| u64::from(one.length)).sum();
            let (sequential, _, _) = shares(&requests);
            // Equal distances may make a stride of what has gaps, but never a sequential run.
            proptest::prop_assert!(sequential * all as f64 <= expected as f64 + 0.5, "{} of {}", sequential, all);
        }
    }

    #[test]
    fn random_requests_are_no_runs() {
        let mut random = Random::part(9, 0, 0);
        let requests: Vec<Request> =
            (0..20_000).map(|at| request(at, random.range(0, 1 << 24) as u64 * 8192, 8192)).collect();
        let (sequential, strided, _) = shares(&requests);
        assert!(sequential < 0.01 && strided < 0.01, "{sequential} {strided}");
        assert_eq!(gap(1 << 20), 409, "a small span has small gaps");
    }
}
