//! Recording block requests from the kernel's ring buffers.
//!
//! The events `block_rq_issue`, `block_rq_complete` and `block_rq_requeue` go to an [`Instance`] of our own, stamped with
//! `CLOCK_MONOTONIC`, the clock of Kelvin's runs. [`Capture::drain`] reads the pages of every processor, merges their
//! records by time, matches them to requests and writes these to a file. Memory is bounded by the buffers and the
//! requests in flight, the file by its size.

mod format;
mod groups;
mod instance;
mod live;
#[cfg(test)]
mod live_cost;
mod page;

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelvin_host::disk::{DiskCounters, whole_disk};
use kelvin_host::{Buffer, SystemTree};
use kelvin_measure::Nanos;
use rustix::time::{ClockId, clock_gettime};

pub use format::{EventFormat, PageFormat};
pub use instance::{Instance, tracefs};
pub use live::{LiveTotals, StreamTotals};

use crate::SECTOR;
use crate::attribution::FileThread;
use crate::file::FileWriter;
use crate::matcher::{EventKind, Matched, Matcher, RequestEvent};
use crate::recording::{DeviceCheck, Header, HeaderDevice, Recording};
use crate::{Error, Flags, Operation, Result};
use format::FieldLocation;
use groups::GroupLookup;
use live::LiveStreams;

/// The events of a request.
const EVENTS: [&str; 3] = ["block_rq_issue", "block_rq_complete", "block_rq_requeue"];

/// How long a record may need from its time to its place in the buffer: an interrupt may come between.
const SETTLES: Nanos = 2_000_000;

/// What is recorded, and with how much.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// Only these devices: names such as "vda" or paths such as "/dev/vda". All if none.
    pub devices: Vec<String>,
    /// KiB of the kernel's buffer of each processor.
    pub buffer_kib: u64,
    /// The file ends when it has so many bytes.
    pub most_bytes: u64,
    /// Whether to look up where files lie, and in which directories beside those of open files.
    pub files: Option<Vec<PathBuf>>,
    /// Whether the streams are summed up while they are recorded, for [`Capture::live`].
    pub live: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            buffer_kib: 4096,
            most_bytes: 1 << 30,
            files: Some(Vec::new()),
            live: false,
        }
    }
}

/// Where the fields are that a request consists of.
#[derive(Debug, Clone, Copy)]
struct Fields {
    device: FieldLocation,
    sector: FieldLocation,
    sectors: FieldLocation,
    letters: FieldLocation,
    pid: FieldLocation,
    /// Only issues have it.
    command: Option<FieldLocation>,
    /// Only completions have it.
    error: Option<FieldLocation>,
}

impl Fields {
    fn of_event(event: &EventFormat) -> Option<Self> {
        Some(Self {
            device: event.place("dev")?,
            sector: event.place("sector")?,
            sectors: event.place("nr_sector")?,
            letters: event.place("rwbs")?,
            pid: event.place("common_pid")?,
            command: event.place("comm"),
            error: event.place("error"),
        })
    }
}

/// Reads records of the events.
#[derive(Debug, Clone, Copy)]
struct Records {
    issue: (u16, Fields),
    complete: (u16, Fields),
    requeue: (u16, Fields),
}

impl Records {
    /// None for other events, and for requests that move no data of the device's content.
    fn event(&self, at: Nanos, record: &[u8]) -> Option<RequestEvent> {
        let id = u16::from_ne_bytes(*record.first_chunk()?);
        let events = [&self.issue, &self.complete, &self.requeue];
        let (_, fields) = events.into_iter().find(|(other, _)| *other == id)?;
        let device = fields.device.number(record)? as u32;
        let (operation, flags) = Flags::of_letters(fields.letters.text(record))?;
        let kind = if id == self.issue.0 {
            let mut command = [0; 16];
            let name = fields.command.map_or(&[][..], |place| place.text(record));
            for (to, from) in command.iter_mut().zip(name) {
                *to = *from;
            }
            EventKind::Issue { pid: fields.pid.number(record)? as u32 as i32, command }
        } else if id == self.requeue.0 {
            EventKind::Requeue
        } else {
            let error = fields.error.and_then(|place| place.number(record)).unwrap_or(0);
            EventKind::Complete { failed: error != 0 }
        };
        Some(RequestEvent {
            at,
            // The kernel's own numbers have 20 bits for the minor.
            device: (device >> 20, device & 0xf_ffff),
            sector: fields.sector.number(record)?,
            sectors: fields.sectors.number(record)? as u32,
            operation,
            flags,
            kind,
        })
    }
}

/// A recording in progress. Its fields are dropped in this order: the instance goes after what reads it.
#[derive(Debug)]
pub struct Capture<W: Write> {
    processors: Vec<(String, File)>,
    instance: Instance,
    page: PageFormat,
    records: Records,
    buffer: Vec<u8>,
    /// Records that may still be followed by older ones of another processor.
    waiting: Vec<RequestEvent>,
    matcher: Matcher,
    writer: FileWriter<W>,
    checks: Vec<DeviceCheck>,
    tree: SystemTree,
    most_bytes: u64,
    /// Readings of a processor's buffer in one pass.
    most_pages: u64,
    /// Between which times completions are compared with the kernel's counters.
    checked: (Nanos, Nanos),
    began: Nanos,
    cpu_before: Nanos,
    unreadable_pages: u64,
    files: Option<FileThread>,
    groups: GroupLookup,
    live: Option<LiveStreams>,
}

fn now(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

impl<W: Write> Capture<W> {
    /// Creates the instance and begins to record into `out`. `command` is the name of the program that is run meanwhile.
    ///
    /// # Errors
    /// What this host lacks, or the kernel refuses.
    pub fn start(options: &CaptureOptions, command: Option<String>, out: W) -> Result<Self> {
        let tree = SystemTree::default();
        let chosen = options.devices.iter().map(|device| disk_named(&tree, device));
        let chosen = chosen.collect::<Result<Vec<HeaderDevice>>>()?;
        let place = tracefs(&tree)?;
        let instance = Instance::create(&place)?;
        let format = |name: &str| {
            let text = instance.text(format!("events/block/{name}/format"))?;
            let event = EventFormat::parse(&text);
            let found = event.and_then(|event| Some((event.id, Fields::of_event(&event)?)));
            found.ok_or_else(|| {
                Error::Unavailable(format!(
                    "the kernel's event {name} lacks a field that a request consists of"
                ))
            })
        };
        let records = Records {
            issue: format("block_rq_issue")?,
            complete: format("block_rq_complete")?,
            requeue: format("block_rq_requeue")?,
        };
        // The layout of pages is the same for all instances, and only the first one has its text.
        // The kernel gives it to the first reading of the file only.
        let mut buffer = Buffer::default();
        let header = buffer.open(&place.join("events/header_page"));
        let page =
            header.and_then(|text| PageFormat::parse(&String::from_utf8_lossy(text))).ok_or_else(|| {
                Error::Unavailable(
                    "the form of the kernel's ring buffer (events/header_page) is not known".into(),
                )
            })?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &options.buffer_kib.to_string())?;
        // What does not fit is dropped and counted, so that what is there is without holes between.
        instance.write("options/overwrite", "0")?;
        if !chosen.is_empty() {
            let one = |disk: &HeaderDevice| format!("dev == {}", disk.number.0 << 20 | disk.number.1);
            let filter = chosen.iter().map(one).collect::<Vec<_>>().join(" || ");
            for event in EVENTS {
                instance.write(&format!("events/block/{event}/filter"), &filter)?;
            }
        }
        let mut processors = Vec::new();
        let names = std::fs::read_dir(instance.file("per_cpu"));
        let names = names.map_err(Error::system("reading per_cpu of the tracing instance"))?;
        for name in names.flatten() {
            let name = format!("per_cpu/{}", name.file_name().to_string_lossy());
            let path = instance.file(format!("{name}/trace_pipe_raw"));
            let mut open = File::options();
            open.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
            let file = open.open(&path).map_err(Error::system(format!("opening {}", path.display())))?;
            processors.push((name, file));
        }
        let disks = if chosen.is_empty() { all_disks(&tree) } else { chosen };
        let files = options.files.clone().map(FileThread::start).transpose();
        let files = files.map_err(Error::system("starting a thread"))?;
        let began = now(ClockId::Monotonic);
        let header = Header::of_this_host(&tree, began, command, &disks);
        let writer = FileWriter::new(out, &header).map_err(Error::system("writing the trace"))?;
        for event in EVENTS {
            instance.write(&format!("events/block/{event}/enable"), "1")?;
        }
        instance.write("tracing_on", "1")?;
        // Completions count from here on, as the kernel's counters do.
        let checked_from = now(ClockId::Monotonic);
        let counters = DiskCounters::all(&tree);
        let live = options.live.then(|| LiveStreams::new(&disks));
        let checks = disks.iter().map(|disk| DeviceCheck::begin(disk, counters.get(&disk.name))).collect();
        Ok(Self {
            processors,
            buffer: vec![0; page.size],
            instance,
            page,
            records,
            waiting: Vec::new(),
            matcher: Matcher::default(),
            writer,
            checks,
            tree,
            most_bytes: options.most_bytes,
            // What a full buffer has, of which the kernel may give a page in two parts, or have a few more than asked for.
            most_pages: (options.buffer_kib << 10) / page.size.max(1) as u64 * 2 + 8,
            checked: (checked_from, Nanos::MAX),
            began,
            cpu_before: now(ClockId::ThreadCPUTime),
            unreadable_pages: 0,
            files,
            groups: GroupLookup::default(),
            live,
        })
    }

    /// Reads what the kernel has, and writes the requests that ended. False when the file has its full size, and
    /// recording should end. To be called some times a second, from the thread that started.
    ///
    /// # Errors
    /// When the buffers cannot be read or the file cannot be written.
    pub fn drain(&mut self) -> Result<bool> {
        // Whatever is older than this is in the buffers when they are read below.
        let settled = now(ClockId::Monotonic).saturating_sub(SETTLES);
        self.read_pages()?;
        self.write_until(settled)?;
        for found in self.files.iter().flat_map(FileThread::take) {
            if let Some(live) = &mut self.live {
                live.files(&found);
            }
            self.writer.files(&found).map_err(Error::system("writing the trace"))?;
        }
        Ok(self.writer.written() < self.most_bytes)
    }

    /// Reads what the buffers had at the beginning: a processor may write as fast as it is read. Returns how many pages.
    fn read_pages(&mut self) -> Result<u64> {
        let mut pages = 0;
        for (name, file) in &mut self.processors {
            for _ in 0..self.most_pages {
                let length = match file.read(&mut self.buffer) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(Error::system(format!("reading {name}/trace_pipe_raw"))(error)),
                };
                let (records, waiting) = (&self.records, &mut self.waiting);
                let page = self.buffer.get(..length).unwrap_or_default();
                let read = page::decode(page, self.page, &mut |at, record| {
                    waiting.extend(records.event(at, record));
                });
                pages += 1;
                self.unreadable_pages += u64::from(read.is_err());
            }
        }
        Ok(pages)
    }

    fn write_until(&mut self, settled: Nanos) -> Result<()> {
        // Issue before completion where both have one time.
        self.waiting.sort_by_key(|event| (event.at, matches!(event.kind, EventKind::Complete { .. })));
        let end = self.waiting.partition_point(|event| event.at <= settled);
        let mut failed = None;
        for event in self.waiting.drain(..end) {
            if let EventKind::Complete { .. } = event.kind
                && (self.checked.0..=self.checked.1).contains(&event.at)
                && let Some(check) = self.checks.iter_mut().find(|check| check.number == event.device)
            {
                check.completed(event.operation, u64::from(event.sectors));
            }
            if let EventKind::Issue { pid, command } = event.kind {
                self.groups.see(pid, command);
            }
            let writer = &mut self.writer;
            live::match_event(event, &mut self.matcher, self.live.as_mut(), &mut |matched| {
                if let Err(error) = writer.request(matched) {
                    failed.get_or_insert(error);
                }
            });
        }
        if let Some(live) = &mut self.live {
            live.settled(settled);
        }
        let groups = self.groups.take();
        let written = failed.map_or(Ok(()), Err).and_then(|()| self.writer.groups(&groups));
        written.map_err(Error::system("writing the trace"))
    }

    /// Names objects of databases: what [`crate::attribution::classify`] calls them, and their name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn name_objects(&mut self, names: &[(String, String)]) -> Result<()> {
        self.writer.names(names).map_err(Error::system("writing the trace"))
    }

    /// What the storage got by stream so far, if that was asked for. To be called about once a second: the events that were
    /// lost are read of each processor.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    pub fn live(&mut self) -> Result<Option<LiveTotals>> {
        if self.live.is_none() {
            return Ok(None);
        }
        let lost = self.lost()?;
        Ok(self.live.as_mut().map(|live| live.totals(lost)))
    }

    /// Events that found no room in the buffers.
    fn lost(&self) -> Result<u64> {
        let mut lost = 0;
        for (name, _) in &self.processors {
            let text = self.instance.text(format!("{name}/stats"))?;
            let of = |key: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(key));
                line.and_then(|line| line.trim().parse::<u64>().ok()).unwrap_or(0)
            };
            lost += of("dropped events:") + of("overrun:") + of("commit overrun:");
        }
        Ok(lost)
    }

    /// Ends the recording: reads what is left, removes the instance, and completes the file.
    ///
    /// # Errors
    /// When the buffers cannot be read or the file cannot be written.
    pub fn finish(mut self) -> Result<(Recording, W)> {
        let counters = DiskCounters::all(&self.tree);
        self.checked.1 = now(ClockId::Monotonic);
        self.instance.write("tracing_on", "0")?;
        let ended = now(ClockId::Monotonic);
        for check in &mut self.checks {
            check.end(counters.get(&check.name));
        }
        while self.read_pages()? > 0 {}
        self.write_until(Nanos::MAX)?;
        let mut left: Vec<Matched> = Vec::new();
        self.matcher.give_up(&mut |matched| left.push(matched));
        for matched in &left {
            self.writer.request(matched).map_err(Error::system("writing the trace"))?;
        }
        let lost = self.lost()?;
        let files = self.files.take().map(FileThread::finish).unwrap_or_default();
        for found in &files.changes {
            self.writer.files(found).map_err(Error::system("writing the trace"))?;
        }
        self.writer.unwritten(&files.unwritten).map_err(Error::system("writing the trace"))?;
        let counts = self.matcher.counts;
        self.checks.retain(DeviceCheck::is_used);
        let recording = Recording {
            lasted: ended.saturating_sub(self.began),
            requests: self.writer.requests(),
            issues: counts.issues,
            completions: counts.completions,
            lost,
            unreadable_pages: self.unreadable_pages,
            without_issue: counts.without_issue,
            without_completion: counts.without_completion,
            requeued: counts.requeued,
            cpu: now(ClockId::ThreadCPUTime).saturating_sub(self.cpu_before),
            files_cpu: files.cpu,
            files_partial: files.is_partial,
            unwritten_left_out: files.unwritten_left_out,
            full: self.writer.written() >= self.most_bytes,
            devices: self.checks,
            complete: true,
            ..Recording::default()
        };
        let out = self.writer.finish(&recording).map_err(Error::system("writing the trace"))?;
        Ok((recording, out))
    }

    /// How long it has been recording.
    pub fn lasted(&self) -> Duration {
        Duration::from_nanos(now(ClockId::Monotonic).saturating_sub(self.began))
    }

    /// Whether so much time is over.
    pub fn is_over(&self, duration: Option<Duration>) -> bool {
        duration.is_some_and(|duration| self.lasted() >= duration)
    }
}

/// The disk of a device that somebody named.
fn disk_named(tree: &SystemTree, device: &str) -> Result<HeaderDevice> {
    let real = std::fs::canonicalize(device).ok().filter(|_| device.contains('/'));
    let named = real.as_deref().unwrap_or(Path::new(device));
    let name = named.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let disk = whole_disk(tree, &name);
    let found = header_device(tree, &disk).ok_or_else(|| {
        let known: Vec<String> = all_disks(tree).into_iter().map(|disk| disk.name).collect();
        Error::Unavailable(format!("{device} is not a block device; there are {}", known.join(", ")))
    })?;
    if !has_queue(tree, &disk) {
        return Err(Error::Unavailable(format!(
            "{device} has no request queue (a mapped, RAID or memory device): record the underlying devices"
        )));
    }
    Ok(found)
}

/// Whether a device has requests of its own: those that only map others have no events, but counters in diskstats.
fn has_queue(tree: &SystemTree, disk: &str) -> bool {
    tree.has(format!("/sys/block/{disk}/mq"))
}

fn header_device(tree: &SystemTree, name: &str) -> Option<HeaderDevice> {
    let (major, minor) = tree
        .line(format!("/sys/block/{name}/dev"))?
        .split_once(':')
        .map(|(major, minor)| (major.parse().ok(), minor.parse().ok()))?;
    let sectors = tree.number(format!("/sys/block/{name}/size")).unwrap_or(0);
    Some(HeaderDevice {
        name: name.to_owned(),
        number: (major?, minor?),
        bytes: sectors.saturating_mul(SECTOR),
    })
}

fn all_disks(tree: &SystemTree) -> Vec<HeaderDevice> {
    let names = tree.names("/sys/block");
    names.iter().filter(|name| has_queue(tree, name)).filter_map(|name| header_device(tree, name)).collect()
}

impl DeviceCheck {
    fn completed(&mut self, operation: Operation, sectors: u64) {
        let place = match operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Discard => 2,
            Operation::Flush => return,
        };
        if let Some(sum) = self.traced.get_mut(place) {
            *sum += sectors;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::format::tests::{COMPLETE, ISSUE};
    use super::*;

    #[test]
    fn records_become_events() {
        let format = |text: &str| {
            let event = EventFormat::parse(text).unwrap();
            (event.id, Fields::of_event(&event).unwrap())
        };
        let records =
            Records { issue: format(ISSUE), complete: format(COMPLETE), requeue: (7, format(COMPLETE).1) };
        let mut record = vec![0; 64];
        record[..2].copy_from_slice(&2104_u16.to_ne_bytes());
        record[4..8].copy_from_slice(&77_i32.to_ne_bytes());
        record[8..12].copy_from_slice(&(254_u32 << 20 | 3).to_ne_bytes());
        record[16..24].copy_from_slice(&1000_u64.to_ne_bytes());
        record[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        record[34..36].copy_from_slice(b"WS");
        record[44..47].copy_from_slice(b"fio");
        let event = records.event(5, &record).unwrap();
        assert_eq!((event.device, event.sector, event.sectors), ((254, 3), 1000, 8));
        assert_eq!((event.operation, event.flags), (Operation::Write, Flags::SYNC));
        assert!(matches!(event.kind, EventKind::Issue { pid: 77, command } if command.starts_with(b"fio\0")));
        record[..2].copy_from_slice(&2107_u16.to_ne_bytes());
        record[28..32].copy_from_slice(&(-5_i32).to_ne_bytes());
        assert_eq!(records.event(5, &record).unwrap().kind, EventKind::Complete { failed: true });
        assert_eq!(records.event(5, &record[..40]), None);
        assert_eq!(records.event(5, &[]), None);
    }
}
