//! What the storage got by stream so far, while it is recorded.
//!
//! A stream is a class of files, as far as it was looked up where they lie, or a device's requests at no known file's
//! place. Sums only grow, so that whoever samples them takes differences. The memory of a stream is bounded.

use kelvin_measure::Nanos;

use crate::SECTOR;
use crate::attribution::CurrentFiles;
use crate::file_class::FileClass;
use crate::matcher::{EventKind, Matched, Matcher, RequestEvent};
use crate::recording::{FileChanges, HeaderDevice};
use crate::stream::runs::Tracker;
use crate::{Operation, Request};

/// Streams at most; the requests of further ones are in no stream.
const MOST_STREAMS: usize = 64;
/// Devices at most; of further ones nothing is known.
const MOST_DEVICES: usize = 256;
/// Runs that are followed at once in a stream: fewer than of a trace that is read, as the recorder must not fall behind.
const OPEN: usize = 16;

/// The sums of all streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveTotals {
    /// Everything that was issued until then is in them, in nanoseconds of `CLOCK_MONOTONIC`.
    pub until: Nanos,
    /// Events that found no room in the kernel's buffers.
    pub lost: u64,
    /// The streams that had a request, in the order of their first.
    pub streams: Vec<StreamTotals>,
}

/// The sums of a stream since the recording began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamTotals {
    /// The class's name in data ([`FileClass::id`]), or the device's.
    pub name: String,
    /// Requests, flushes and discards included.
    pub requests: u64,
    /// Bytes that were read and written.
    pub bytes: u64,
    /// Those in sequential runs, by the rule of [`crate::stream`] with 16 runs at a time.
    pub sequential: u64,
    /// Requests that each found in flight on its device, itself excluded.
    pub depths: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Class(FileClass),
    Device(u16),
}

#[derive(Debug)]
struct Stream {
    key: Key,
    totals: StreamTotals,
    runs: Tracker,
    /// The lowest and the highest byte so far.
    span: (u64, u64),
}

#[derive(Debug)]
struct LiveDevice {
    number: (u32, u32),
    name: String,
    in_flight: u32,
}

/// Takes events in the order of time.
#[derive(Debug, Default)]
pub(super) struct LiveStreams {
    files: CurrentFiles,
    devices: Vec<LiveDevice>,
    streams: Vec<Stream>,
    lost: u64,
    /// Requests in flight are those that were issued since: the completions of earlier ones may have been lost.
    counted_from: Nanos,
    until: Nanos,
}

/// Matches an event, which the streams take if there are any; `each` gets the requests that it ends.
pub(super) fn match_event(
    event: RequestEvent,
    matcher: &mut Matcher,
    mut live: Option<&mut LiveStreams>,
    each: &mut dyn FnMut(&Matched),
) {
    if let Some(live) = &mut live {
        live.event(&event, matcher.is_issued_again(&event));
    }
    matcher.event(event, &mut |matched| {
        if let Some(live) = &mut live {
            live.ended(&matched);
        }
        each(&matched);
    });
}

impl LiveStreams {
    /// Of these devices, and of others that have requests.
    pub(super) fn new(devices: &[HeaderDevice]) -> Self {
        let mut new = Self::default();
        for device in devices.iter().take(MOST_DEVICES) {
            new.devices.push(LiveDevice { number: device.number, name: device.name.clone(), in_flight: 0 });
        }
        new
    }

    /// Where files lie now.
    pub(super) fn files(&mut self, found: &FileChanges) {
        self.files.take(found);
    }

    /// Takes an event; one that is issued again was counted the first time.
    pub(super) fn event(&mut self, event: &RequestEvent, again: bool) {
        match event.kind {
            EventKind::Issue { command, .. } => self.issued(event, &command, again),
            EventKind::Requeue => self.left(event.device),
            EventKind::Complete { .. } => {}
        }
    }

    /// Takes a request that ended.
    pub(super) fn ended(&mut self, matched: &Matched) {
        if matched.issue.at >= self.counted_from {
            self.left(matched.issue.device);
        }
    }

    fn left(&mut self, number: (u32, u32)) {
        if let Some(device) = self.devices.iter_mut().find(|device| device.number == number) {
            device.in_flight = device.in_flight.saturating_sub(1);
        }
    }

    fn issued(&mut self, event: &RequestEvent, command: &[u8; 16], again: bool) {
        let Some(place) = self.device(event.device) else { return };
        let Some(device) = self.devices.get_mut(usize::from(place)) else { return };
        let depth = device.in_flight;
        device.in_flight = device.in_flight.saturating_add(1);
        let has_place = event.sectors > 0 && event.operation != Operation::Flush;
        let offset = if has_place { event.sector.saturating_mul(SECTOR) } else { 0 };
        let class =
            if has_place { self.files.class(event.device, offset, event.flags, command) } else { None };
        // A loop device's requests are also those to the disk of its image.
        if again || self.files.is_through(event.device) {
            return;
        }
        let key = class.map_or(Key::Device(place), Key::Class);
        let Some(stream) = self.stream(key) else { return };
        stream.totals.requests += 1;
        stream.totals.depths += u64::from(depth);
        if !matches!(event.operation, Operation::Read | Operation::Write) {
            return;
        }
        let length = u32::try_from(u64::from(event.sectors) * SECTOR).unwrap_or(u32::MAX);
        stream.totals.bytes += u64::from(length);
        let request = Request {
            at: event.at,
            offset,
            length,
            device: place,
            process: 0,
            file: Request::NO_FILE,
            operation: event.operation,
            flags: event.flags,
            took: Request::UNKNOWN,
        };
        stream.span = (stream.span.0.min(offset), stream.span.1.max(request.end()));
        stream.runs.set_span(stream.span.1 - stream.span.0);
        stream.runs.request(&request);
        stream.runs.ended.clear();
        stream.totals.sequential = stream.runs.sequential_bytes();
    }

    fn device(&mut self, number: (u32, u32)) -> Option<u16> {
        let known = self.devices.iter().position(|device| device.number == number);
        let place = known.or_else(|| {
            let room = self.devices.len() < MOST_DEVICES;
            room.then(|| {
                let name = format!("{}:{}", number.0, number.1);
                self.devices.push(LiveDevice { number, name, in_flight: 0 });
                self.devices.len() - 1
            })
        })?;
        u16::try_from(place).ok()
    }

    fn stream(&mut self, key: Key) -> Option<&mut Stream> {
        let known = self.streams.iter().position(|stream| stream.key == key);
        let place = match known {
            Some(place) => place,
            None if self.streams.len() >= MOST_STREAMS => return None,
            None => {
                let name = match key {
                    Key::Class(class) => class.id(),
                    Key::Device(place) => self.devices.get(usize::from(place))?.name.clone(),
                };
                let totals = StreamTotals { name, ..StreamTotals::default() };
                let runs = Tracker::sequential_only(OPEN);
                self.streams.push(Stream { key, totals, runs, span: (u64::MAX, 0) });
                self.streams.len() - 1
            }
        };
        self.streams.get_mut(place)
    }

    /// Everything until then has been taken, and the kernel has lost so many events in all.
    pub(super) fn settled(&mut self, until: Nanos) {
        self.until = until;
    }

    /// The sums, where the kernel has lost so many events in all.
    pub(super) fn totals(&mut self, lost: u64) -> LiveTotals {
        if lost > self.lost {
            self.lost = lost;
            self.counted_from = self.until;
            self.devices.iter_mut().for_each(|device| device.in_flight = 0);
        }
        let streams = self.streams.iter().map(|stream| stream.totals.clone()).collect();
        LiveTotals { until: self.until, lost, streams }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flags;
    use crate::recording::{Change, TracedFile};

    const VDA: (u32, u32) = (254, 0);
    const LOOP: (u32, u32) = (7, 0);

    fn issue(at: Nanos, device: (u32, u32), sector: u64, sectors: u32) -> RequestEvent {
        let operation = if sectors == 0 { Operation::Flush } else { Operation::Write };
        let kind = EventKind::Issue { pid: 7, command: *b"postgres\0\0\0\0\0\0\0\0" };
        RequestEvent { at, device, sector, sectors, operation, flags: Flags::default(), kind }
    }

    fn done(event: RequestEvent, at: Nanos) -> RequestEvent {
        RequestEvent { at, kind: EventKind::Complete { failed: false }, ..event }
    }

    /// As [`super::super::Capture`] does with what the kernel has.
    fn feed(live: &mut LiveStreams, matcher: &mut Matcher, events: &[RequestEvent]) {
        for event in events {
            match_event(*event, matcher, Some(live), &mut |_| {});
            live.settled(event.at);
        }
    }

    fn stream_totals<'a>(totals: &'a LiveTotals, name: &str) -> &'a StreamTotals {
        totals.streams.iter().find(|stream| stream.name == name).unwrap()
    }

    fn devices() -> Vec<HeaderDevice> {
        vec![HeaderDevice { name: "vda".into(), number: VDA, bytes: 1 << 40 }]
    }

    #[test]
    fn requests_are_counted_by_what_their_file_is() {
        let mut live = LiveStreams::new(&devices());
        let mut matcher = Matcher::default();
        let file = |class, behind| TracedFile { class, behind, ..TracedFile::default() };
        let change = |device, range: std::ops::Range<u64>, file| Change {
            seen: 0,
            device,
            begin: range.start,
            length: range.end - range.start,
            file: Some(file),
            logical: 0,
        };
        live.files(&FileChanges {
            files: vec![
                file(FileClass::PostgresWal, None),
                file(FileClass::Other, Some((LOOP, 0))),
                file(FileClass::PostgresData, None),
            ],
            changes: vec![
                change(VDA, 0..1 << 20, 0),
                change(VDA, 1 << 30..2 << 30, 1),
                change(LOOP, 0..1 << 30, 2),
            ],
        });
        let mut events = Vec::new();
        for at in 0..10 {
            let log = issue(at * 100, VDA, at * 8, 8);
            events.extend([log, done(log, at * 100 + 50)]);
        }
        // Pages behind the loop device, which the device sees as well; a flush; a place that no file has.
        let image = issue(2000, VDA, (1 << 21) + 4096, 16);
        let inner = issue(1990, LOOP, 4096, 16);
        let again = issue(2100, LOOP, 8192, 16);
        let flush = issue(2200, VDA, 0, 0);
        events.extend([inner, image, again, flush, issue(2300, VDA, 1 << 40, 8)]);
        feed(&mut live, &mut matcher, &events);
        let totals = live.totals(0);
        let log = stream_totals(&totals, "postgres-wal");
        assert_eq!((log.requests, log.bytes, log.sequential, log.depths), (10, 40_960, 40_960, 0));
        let data = stream_totals(&totals, "postgres-data");
        assert_eq!(
            (data.requests, data.bytes, data.sequential),
            (2, 16_384, 0),
            "the first of the loop device's came before"
        );
        let rest = stream_totals(&totals, "vda");
        assert_eq!((rest.requests, rest.bytes, rest.depths), (2, 4096, 1 + 2));
        assert_eq!((totals.until, totals.streams.len()), (2300, 3));
    }

    #[test]
    fn depths_are_right_again_after_events_were_lost_and_requests_taken_back() {
        let mut live = LiveStreams::new(&devices());
        let mut matcher = Matcher::default();
        let at = |at: Nanos| issue(at, VDA, at * 1000, 8);
        // Three are in flight, of which one is taken back and issued again: two are found by the fifth.
        let back = RequestEvent { kind: EventKind::Requeue, ..at(3) };
        feed(&mut live, &mut matcher, &[at(1), at(2), at(3), RequestEvent { at: 4, ..back }]);
        feed(&mut live, &mut matcher, &[at(5), RequestEvent { at: 6, ..at(3) }]);
        let totals = live.totals(0);
        assert_eq!(
            (stream_totals(&totals, "vda").requests, stream_totals(&totals, "vda").depths),
            (4, 1 + 2 + 2)
        );
        // All their completions are lost but one, which is not of what is counted from here on.
        live.settled(10);
        assert_eq!(live.totals(3).lost, 3);
        feed(&mut live, &mut matcher, &[at(11), done(at(1), 12), at(13), done(at(11), 14), at(15)]);
        let after = live.totals(3);
        let depths = stream_totals(&after, "vda").depths - stream_totals(&totals, "vda").depths;
        assert_eq!(depths, 1 + 1);
    }

    #[test]
    fn streams_and_devices_are_bounded() {
        let mut live = LiveStreams::new(&[]);
        let mut matcher = Matcher::default();
        for number in 0..1000 {
            feed(&mut live, &mut matcher, &[issue(number, (8, number as u32), 0, 8)]);
        }
        let totals = live.totals(0);
        assert_eq!((totals.streams.len(), live.devices.len()), (MOST_STREAMS, MOST_DEVICES));
        assert_eq!(totals.streams[3].name, "8:3");
    }
}
