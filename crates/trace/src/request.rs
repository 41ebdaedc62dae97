//! A request, and the trace that it belongs to.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::rc::Rc;

use kelvin_measure::Nanos;
use kelvin_measure::text::{count, whole};
use serde::Serialize;

use crate::recording::{DiskRange, ReadSample, Recording, TracedFile};

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Data came from the device.
    Read,
    /// Data went to the device.
    Write,
    /// The device may forget data.
    Discard,
    /// The device brings its cache to the medium.
    Flush,
}

impl Operation {
    /// All, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Discard, Self::Flush];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Flush => "flush",
        }
    }
}

/// Further properties of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// Somebody waits for it.
    pub const SYNC: Self = Self(1);
    /// The filesystem's own data.
    pub const META: Self = Self(2);
    /// On the medium before it ends.
    pub const FUA: Self = Self(4);
    /// Read ahead of need.
    pub const AHEAD: Self = Self(8);
    /// The device's cache is flushed before it.
    pub const PREFLUSH: Self = Self(16);
    /// The device reported an error.
    pub const FAILED: Self = Self(32);

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and those.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The operation and flags of the kernel's letters (`rwbs` in `include/trace/events/block.h`, written by
    /// `blk_fill_rwbs`): `F` before the operation is a flush before it, after it is forced unit access. None for
    /// requests that move no data of the device's content.
    pub fn of_letters(letters: &[u8]) -> Option<(Operation, Self)> {
        let mut flags = Self::default();
        let mut rest = letters;
        if let [b'F', b'W' | b'R' | b'D' | b'F', ..] = letters {
            flags = flags.with(Self::PREFLUSH);
            rest = &letters[1..];
        }
        let (first, rest) = rest.split_first()?;
        let operation = match first {
            b'R' => Operation::Read,
            b'W' => Operation::Write,
            b'D' => Operation::Discard,
            b'F' => Operation::Flush,
            _ => return None,
        };
        for letter in rest {
            flags = match letter {
                b'F' => flags.with(Self::FUA),
                b'A' => flags.with(Self::AHEAD),
                b'S' => flags.with(Self::SYNC),
                b'M' => flags.with(Self::META),
                _ => flags,
            };
        }
        Some((operation, flags))
    }
}

/// A request to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// When it was issued, in nanoseconds from the beginning of the trace.
    pub at: Nanos,
    /// From where on, in bytes.
    pub offset: u64,
    /// How much, in bytes; 0 for a flush.
    pub length: u32,
    /// The device, by its place in [`Trace::devices`].
    pub device: u16,
    /// Who issued it, by its place in [`Trace::processes`].
    pub process: u32,
    /// The file that it was for, by its place in [`Trace::files`]; [`Request::NO_FILE`] if none is known.
    pub file: u32,
    /// What was done.
    pub operation: Operation,
    /// Further properties.
    pub flags: Flags,
    /// [`Request::UNKNOWN`] if it is not known when the request ended.
    pub(crate) took: Nanos,
}

impl Request {
    /// The file of a request that belongs to none.
    pub const NO_FILE: u32 = u32::MAX;

    /// The response time of a request whose end was not seen.
    pub(crate) const UNKNOWN: Nanos = Nanos::MAX;

    /// Its end, in bytes.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    /// From the issue to the completion, in nanoseconds.
    pub fn response(&self) -> Option<Nanos> {
        (self.took != Self::UNKNOWN).then_some(self.took)
    }

    /// Whether it moves data: neither a flush nor a discard.
    pub fn moves_data(&self) -> bool {
        matches!(self.operation, Operation::Read | Operation::Write)
    }
}

/// A device of a trace; in traces of files, the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Device {
    /// Its name, such as "vda".
    pub name: String,
    /// Its number, major and minor.
    pub number: Option<(u32, u32)>,
}

/// Who issued a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Process {
    /// The number of the thread; 0 where the trace has none.
    pub pid: i32,
    /// The name of the thread; empty where the trace has none.
    pub command: String,
}

impl Process {
    /// As tables show it.
    pub fn label(&self) -> String {
        match (self.command.as_str(), self.pid) {
            ("", 0) => "unknown".into(),
            ("", pid) => format!("pid {pid}"),
            (command, 0) => command.into(),
            (command, pid) => format!("{command} {pid}"),
        }
    }
}

/// A trace, whatever its format was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// The name of the format.
    pub format: String,
    /// The devices, or files.
    pub devices: Vec<Device>,
    /// Who issued requests.
    pub processes: Vec<Process>,
    /// The control group of each process, in the order of these; none where it is not known.
    pub groups: Vec<Option<String>>,
    /// The files that requests were for; none where the trace does not know them.
    pub files: Vec<TracedFile>,
    /// The requests, in the order of their issue, the first at 0; of a window, its beginning is 0.
    pub requests: Vec<Request>,
    /// What that 0 is by the trace's own clock, in nanoseconds (of our recordings `CLOCK_MONOTONIC`).
    pub origin: Nanos,
    /// Loop devices, by place, whose requests are also those to a disk of the trace that holds their image.
    pub repeated: Vec<u16>,
    /// How long a window is; without one the requests say it.
    pub window: Option<Nanos>,
    /// Where files had room that was never written when the recording ended, in the order of the places.
    pub unwritten: Vec<DiskRange>,
    /// What a sample of the reads found; none where there is no sample.
    pub sample: Option<ReadSample>,
    /// What the recorder said about its recording; none for other tools' traces.
    pub recording: Option<Recording>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

impl Trace {
    /// The length of the window, or from the first issue to the last issue or completion, in nanoseconds.
    pub fn lasts(&self) -> Nanos {
        if let Some(window) = self.window {
            return window;
        }
        let first = self.requests.first().map_or(0, |first| first.at);
        let end = |request: &Request| request.at.saturating_add(request.response().unwrap_or(0));
        self.requests.iter().map(end).max().unwrap_or(0).saturating_sub(first)
    }

    /// Whether a request is not also one to another device of the trace.
    pub fn is_own(&self, request: &Request) -> bool {
        !self.repeated.contains(&request.device)
    }

    /// How many requests each found in flight on its device, itself excluded; `None` for requests of devices where
    /// fewer than nine of ten have a response time.
    pub fn depths(&self) -> Vec<Option<u32>> {
        let mut known = vec![(0_u64, 0_u64); self.devices.len()];
        for request in &self.requests {
            if let Some((all, with)) = known.get_mut(usize::from(request.device)) {
                *all += 1;
                *with += u64::from(request.response().is_some());
            }
        }
        let mut flying: Vec<BinaryHeap<Reverse<Nanos>>> = vec![BinaryHeap::new(); self.devices.len()];
        let depth = |request: &Request| {
            let device = usize::from(request.device);
            let (all, with) = known.get(device)?;
            if with * 10 < all * 9 {
                return None;
            }
            let flying = flying.get_mut(device)?;
            while flying.peek().is_some_and(|end| end.0 <= request.at) {
                flying.pop();
            }
            let depth = flying.len() as u32;
            if let Some(took) = request.response() {
                flying.push(Reverse(request.at.saturating_add(took)));
            }
            Some(depth)
        };
        self.requests.iter().map(depth).collect()
    }
}

/// Takes requests one by one, so that a trace need not be kept.
pub trait Visitor: std::fmt::Debug {
    /// The next request in the order of time; its time is of the trace's own clock.
    fn request(&mut self, request: &Request);
}

/// How much is read of a trace, and who takes it.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Requests at most.
    pub most: usize,
    /// Instead of the trace, this gets the requests.
    pub visitor: Option<Rc<RefCell<dyn Visitor>>>,
}

impl From<usize> for Reading {
    fn from(most: usize) -> Self {
        Self { most, visitor: None }
    }
}

/// Puts requests into the order of time that come nearly in it, as those of a recorder do, which writes at their
/// completion.
#[derive(Debug, Default)]
struct Window {
    waiting: BinaryHeap<Reverse<Waiting>>,
    last: Nanos,
    came: u64,
    /// Requests that came too late for their place.
    late: u64,
}

/// A request by its time, and then in the order in which it came.
#[derive(Debug)]
struct Waiting(Nanos, u64, Request);

impl Waiting {
    fn key(&self) -> (Nanos, u64) {
        (self.0, self.1)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Requests that wait for earlier ones: more than are in flight.
const WAITING: usize = 4096;

impl Window {
    fn push(&mut self, request: Request, visitor: &mut dyn Visitor) {
        self.came += 1;
        self.waiting.push(Reverse(Waiting(request.at, self.came, request)));
        if self.waiting.len() > WAITING {
            self.pop(visitor);
        }
    }

    fn pop(&mut self, visitor: &mut dyn Visitor) -> bool {
        let Some(Reverse(Waiting(at, _, request))) = self.waiting.pop() else { return false };
        self.late += u64::from(at < self.last);
        self.last = at;
        visitor.request(&request);
        true
    }
}

/// Puts a trace together from what a reader finds.
#[derive(Debug, Default)]
pub struct Builder {
    trace: Trace,
    device_of: HashMap<Device, u16>,
    process_of: HashMap<Process, u32>,
    reading: Reading,
    window: Window,
    left_off: u64,
}

/// Devices beyond these share one place: a number of a device has 16 bits here.
const MOST_DEVICES: usize = 1 << 15;
/// The same of processes: a long recording may meet many.
const MOST_PROCESSES: usize = 1 << 20;

impl Builder {
    /// For a trace of at most so many requests; those beyond are counted and left off.
    pub fn new(format: impl Into<String>, reading: impl Into<Reading>) -> Self {
        let trace = Trace { format: format.into(), ..Trace::default() };
        Self { trace, reading: reading.into(), ..Self::default() }
    }

    /// The place of a device.
    pub fn device(&mut self, device: &Device) -> u16 {
        if let Some(place) = self.device_of.get(device) {
            return *place;
        }
        let devices = &mut self.trace.devices;
        if devices.len() >= MOST_DEVICES {
            return MOST_DEVICES as u16 - 1;
        }
        devices.push(device.clone());
        self.device_of.insert(device.clone(), devices.len() as u16 - 1);
        devices.len() as u16 - 1
    }

    /// The place of a process.
    pub fn process(&mut self, process: &Process) -> u32 {
        if let Some(place) = self.process_of.get(process) {
            return *place;
        }
        let processes = &mut self.trace.processes;
        if processes.len() >= MOST_PROCESSES {
            return MOST_PROCESSES as u32 - 1;
        }
        processes.push(process.clone());
        self.process_of.insert(process.clone(), processes.len() as u32 - 1);
        processes.len() as u32 - 1
    }

    /// Adds a request, with its response time if it is known. False when the trace is full: the reader may stop.
    pub fn push(&mut self, request: Request, response: Option<Nanos>) -> bool {
        if self.trace.requests.len().max(self.window.came as usize) >= self.reading.most {
            self.left_off += 1;
            return false;
        }
        let took = response.map_or(Request::UNKNOWN, |took| took.min(Request::UNKNOWN - 1));
        let request = Request { took, ..request };
        match &self.reading.visitor {
            Some(visitor) => self.window.push(request, &mut *visitor.borrow_mut()),
            None => self.trace.requests.push(request),
        }
        true
    }

    /// Something that a reader of the figures should know.
    pub fn note(&mut self, note: impl Into<String>) {
        self.trace.notes.push(note.into());
    }

    /// What the recorder said.
    pub fn recording(&mut self, recording: Recording) {
        self.trace.recording = Some(recording);
    }

    /// The trace: its requests in the order of their issue, and the first at 0.
    pub fn finish(mut self) -> Trace {
        if let Some(visitor) = &self.reading.visitor {
            while self.window.pop(&mut *visitor.borrow_mut()) {}
        }
        if self.window.late > 0 {
            let times = count(self.window.late, "request");
            self.trace.notes.push(format!("{times} not ordered by time, and used in their order"));
        }
        let requests = &mut self.trace.requests;
        // A recorder writes in the order of completions, which is not worth a note.
        let unordered = requests.windows(2).filter(|pair| pair[1].at < pair[0].at).count() as u64;
        if unordered > 0 {
            requests.sort_by_key(|request| request.at);
            if self.trace.recording.is_none() {
                let times = count(unordered, "request");
                self.trace.notes.push(format!("{times} not ordered by time; the trace was sorted"));
            }
        }
        let first = requests.first().map_or(0, |first| first.at);
        for request in requests {
            request.at -= first;
        }
        self.trace.origin = first;
        if self.left_off > 0 {
            let most = whole(self.reading.most as u64);
            self.trace.notes.push(format!(
                "only the first {most} requests were read; --max-requests sets another number"
            ));
        }
        self.trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Times(Vec<Nanos>);

    impl Visitor for Times {
        fn request(&mut self, request: &Request) {
            self.0.push(request.at);
        }
    }

    #[test]
    fn a_visitor_gets_requests_in_order_and_the_trace_none() {
        let times = Rc::new(RefCell::new(Times::default()));
        let reading = Reading { most: 20_000, visitor: Some(times.clone()) };
        let mut builder = Builder::new("test", reading);
        // As completions come: within 64 of their order.
        for n in 0..20_000_u64 {
            assert!(builder.push(request(100 + (n ^ 63), 0), None));
        }
        assert!(!builder.push(request(0, 0), None), "as many as were asked for");
        let trace = builder.finish();
        assert!(trace.requests.is_empty() && trace.notes.len() == 1, "{:?}", trace.notes);
        assert!(times.borrow().0.is_sorted() && times.borrow().0.len() == 20_000);
        let late = Rc::new(RefCell::new(Times::default()));
        let mut builder = Builder::new("test", Reading { most: usize::MAX, visitor: Some(late.clone()) });
        for n in (0..5000).chain([1]) {
            builder.push(request(n, 0), None);
        }
        let trace = builder.finish();
        assert!(trace.notes[0].starts_with("1 request not ordered by time"), "{:?}", trace.notes);
        assert_eq!(late.borrow().0.len(), 5001);
    }

    fn request(at: Nanos, offset: u64) -> Request {
        Request {
            at,
            offset,
            length: 4096,
            device: 0,
            process: 0,
            file: Request::NO_FILE,
            operation: Operation::Read,
            flags: Flags::default(),
            took: Request::UNKNOWN,
        }
    }

    #[test]
    fn the_kernels_letters_are_understood() {
        let parse = |letters: &str| Flags::of_letters(letters.as_bytes());
        assert_eq!(parse("R"), Some((Operation::Read, Flags::default())));
        assert_eq!(parse("RA"), Some((Operation::Read, Flags::AHEAD)));
        assert_eq!(parse("FF"), Some((Operation::Flush, Flags::PREFLUSH)));
        assert_eq!(parse("F"), Some((Operation::Flush, Flags::default())));
        let (operation, flags) = parse("FWFSM").unwrap();
        assert_eq!(operation, Operation::Write);
        assert!([Flags::PREFLUSH, Flags::FUA, Flags::SYNC, Flags::META].iter().all(|flag| flags.has(*flag)));
        assert_eq!((parse("N"), parse("")), (None, None));
    }

    #[test]
    fn an_unordered_trace_is_sorted_and_depths_follow_from_the_response_times() {
        let mut builder = Builder::new("test", 10);
        builder.device(&Device::default());
        // In flight: 100..400, 150..200, 300..350.
        for (at, took) in [(300, 50), (100, 300), (150, 50)] {
            assert!(builder.push(request(at, 0), Some(took)));
        }
        let trace = builder.finish();
        assert_eq!(trace.requests.iter().map(|request| request.at).collect::<Vec<_>>(), [0, 50, 200]);
        assert_eq!(trace.depths(), [Some(0), Some(1), Some(1)]);
        assert_eq!((trace.lasts(), trace.notes.len()), (300, 1));
    }

    #[test]
    fn a_full_trace_says_so() {
        let mut builder = Builder::new("test", 1);
        assert!(builder.push(request(5, 0), None));
        assert!(!builder.push(request(6, 0), None));
        let trace = builder.finish();
        assert_eq!((trace.requests.len(), trace.notes.len(), trace.requests[0].response()), (1, 1, None));
    }
}
