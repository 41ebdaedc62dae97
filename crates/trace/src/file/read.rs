//! Reading a recording.

use std::collections::HashMap;
use std::io::{BufRead, ErrorKind, Read};
use std::path::Path;

use kelvin_measure::Nanos;
use kelvin_measure::text::count;

use super::varint::Input;
use super::write::bytes;
use super::{CHUNK_HEAD, LONGEST_CHUNK, MAGIC, checksum, places};
use crate::attribution::{attribute, name_objects};
use crate::recording::{Change, DiskRange, Header, ProcessGroup, ReadSample, Recording, TracedFile};
use crate::{Builder, Device, Error, Flags, Operation, Process, Reading, Request, Result, Trace};

/// Whether these are the first bytes of a recording, of whatever version.
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..7])
}

/// Reads a recording. A file that was cut off is read as far as it goes, with a note.
///
/// # Errors
/// Where it is damaged: the byte and what is wrong there.
pub fn read(mut input: impl BufRead, path: &Path, reading: impl Into<Reading>) -> Result<Trace> {
    let doing = || format!("reading {}", path.display());
    let mut magic = [0; MAGIC.len()];
    fill(&mut input, &mut magic).map_err(Error::system(doing()))?;
    if !is_ours(&magic) {
        return Err(Error::byte(path, 0, "not a recording of kelvin trace record"));
    }
    if !(1..=MAGIC[7]).contains(&magic[7]) {
        let (version, mine) = (magic[7], MAGIC[7]);
        return Err(Error::byte(
            path,
            7,
            format!("version {version} of the format; this kelvin reads {mine}"),
        ));
    }
    let mut file = File {
        builder: Builder::new("kelvin", reading),
        header: None,
        end: None,
        found: 0,
        files: Files::default(),
        groups: HashMap::new(),
        unwritten: Vec::new(),
        sample: None,
    };
    let mut at = MAGIC.len() as u64;
    let mut content = Vec::new();
    loop {
        let mut head = [0; CHUNK_HEAD];
        let got = fill(&mut input, &mut head).map_err(Error::system(doing()))?;
        if got < CHUNK_HEAD {
            // Killed while it wrote: what is whole counts.
            break;
        }
        if file.end.is_some() && (head[0] != b'Z' || file.sample.is_some()) {
            return Err(Error::byte(path, at, "data follows the end of the recording"));
        }
        let [kind, lengths @ ..] = head;
        let length = u32::from_le_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
        let sum = u32::from_le_bytes([lengths[4], lengths[5], lengths[6], lengths[7]]);
        if length > LONGEST_CHUNK {
            return Err(Error::byte(
                path,
                at,
                format!("a part of {length} bytes, which is too long: damaged"),
            ));
        }
        content.resize(length, 0);
        if fill(&mut input, &mut content).map_err(Error::system(doing()))? < length {
            break;
        }
        if checksum(&head, &content) != sum {
            return Err(Error::byte(path, at, "the checksum of this part is wrong: the file is damaged"));
        }
        let full = file.chunk(kind, &content).map_err(|problem| Error::byte(path, at, problem))?;
        at += (CHUNK_HEAD + length) as u64;
        if full {
            break;
        }
    }
    file.finish().ok_or_else(|| Error::byte(path, at, "the recording is truncated before its first part"))
}

/// Reads as much as there is, up to the length of `into`.
fn fill(input: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match input.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

struct File {
    builder: Builder,
    header: Option<Header>,
    end: Option<Recording>,
    found: u64,
    files: Files,
    /// The control groups of processes by number and name.
    groups: HashMap<(i32, String), String>,
    /// Room of files that was never written.
    unwritten: Vec<DiskRange>,
    /// What reads found.
    sample: Option<ReadSample>,
}

/// What the recording has about files.
#[derive(Default)]
struct Files {
    list: Vec<TracedFile>,
    changes: Vec<Change>,
    names: HashMap<String, String>,
    /// Whether there were more than are kept.
    is_partial: bool,
}

impl Files {
    fn chunk(&mut self, kind: u8, content: &[u8]) -> std::result::Result<(), String> {
        let json = |error: serde_json::Error| format!("files: {error}");
        match kind {
            b'F' => {
                let list: Vec<TracedFile> = serde_json::from_slice(content).map_err(json)?;
                self.list.extend(list);
            }
            b'N' => {
                let names: Vec<(String, String)> = serde_json::from_slice(content).map_err(json)?;
                self.names.extend(names);
            }
            _ => {
                let decoded = places::decode(content, &mut self.changes);
                decoded.ok_or("invalid or too many file mappings: the file is damaged")?;
            }
        }
        // What is beyond is left out: requests that it would name have no file.
        self.is_partial |= self.list.len() > places::MOST_FILES || self.changes.len() >= places::MOST_CHANGES;
        self.list.truncate(places::MOST_FILES);
        if self.names.len() > places::MOST_FILES {
            return Err("too many names of objects".into());
        }
        Ok(())
    }

    /// Gives the requests of a trace their files.
    fn attribute(mut self, trace: &mut Trace) {
        name_objects(&mut self.list, &self.names);
        // A damaged number names no file.
        let known = self.list.len() as u64;
        self.changes.retain(|change| change.file.is_none_or(|file| u64::from(file) < known));
        trace.files = self.list;
        attribute(trace, self.changes);
    }
}

struct Class {
    number: (u32, u32),
    device: u16,
    process: u32,
    operation: Operation,
    flags: Flags,
}

impl File {
    /// True when the trace is full.
    fn chunk(&mut self, kind: u8, content: &[u8]) -> std::result::Result<bool, String> {
        match (kind, self.header.is_some()) {
            (b'H', false) => {
                let header =
                    serde_json::from_slice(content).map_err(|error| format!("the header: {error}"))?;
                self.header = Some(header);
                Ok(false)
            }
            (b'B', true) => self.block(content),
            (b'F' | b'X' | b'N', true) => self.files.chunk(kind, content).map(|()| false),
            (b'G', true) => {
                let groups: Vec<ProcessGroup> =
                    serde_json::from_slice(content).map_err(|error| format!("control groups: {error}"))?;
                // More processes than that have no group; the requests are what matters.
                let room = places::MOST_FILES.saturating_sub(self.groups.len());
                self.groups
                    .extend(groups.into_iter().take(room).map(|(pid, name, group)| ((pid, name), group)));
                Ok(false)
            }
            (b'U', true) => {
                let ranges: Vec<DiskRange> =
                    serde_json::from_slice(content).map_err(|error| format!("unwritten room: {error}"))?;
                let room = places::MOST_FILES.saturating_sub(self.unwritten.len());
                self.unwritten.extend(ranges.into_iter().take(room));
                Ok(false)
            }
            (b'Z', true) if self.end.is_some() => {
                let sample: ReadSample = serde_json::from_slice(content)
                    .map_err(|error| format!("the sample of what reads found: {error}"))?;
                self.sample = Some(sample);
                Ok(false)
            }
            (b'E', true) => {
                let end = serde_json::from_slice(content).map_err(|error| format!("the end: {error}"))?;
                self.end = Some(end);
                Ok(false)
            }
            _ => Err("a part of this kind is not valid here".into()),
        }
    }

    fn block(&mut self, content: &[u8]) -> std::result::Result<bool, String> {
        let mut input = Input(content);
        let mut classes = Vec::new();
        let mut ends = HashMap::new();
        let mut last: Nanos = 0;
        let damaged = || "a request of this part is invalid: the file is damaged".to_owned();
        while !input.0.is_empty() {
            let class = self.class(&mut input, &mut classes).ok_or_else(damaged)?;
            let mut request = || {
                last = last.wrapping_add(input.signed()? as u64);
                let response = input.number()?.checked_sub(1);
                let end = ends.entry(class.number).or_insert(0_u64);
                let sector = end.wrapping_add(input.signed()? as u64);
                let sectors = input.number()?;
                *end = sector.wrapping_add(sectors);
                let (offset, length) = bytes(sector, sectors)?;
                let Class { device, process, operation, flags, .. } = *class;
                let (file, took) = (Request::NO_FILE, Request::UNKNOWN);
                Some((
                    Request { at: last, offset, length, device, process, file, operation, flags, took },
                    response,
                ))
            };
            let (request, response) = request().ok_or_else(damaged)?;
            if !self.builder.push(request, response) {
                return Ok(true);
            }
            self.found += 1;
        }
        Ok(false)
    }

    fn class<'a>(&mut self, input: &mut Input<'_>, classes: &'a mut Vec<Class>) -> Option<&'a Class> {
        let number = usize::try_from(input.number()?).ok()?;
        if number == classes.len() {
            let major = u32::try_from(input.number()?).ok()?;
            let minor = u32::try_from(input.number()?).ok()?;
            let operation = *Operation::ALL.get(usize::from(input.byte()?))?;
            let flags = Flags(input.byte()?);
            let pid = i32::try_from(input.signed()?).ok()?;
            let length = usize::try_from(input.number()?).ok()?;
            let command = String::from_utf8_lossy(input.bytes(length)?).into_owned();
            let named = self.header.iter().flat_map(|header| &header.devices);
            let name = named.into_iter().find(|device| device.number == (major, minor));
            let name = name.map_or_else(|| format!("{major}:{minor}"), |device| device.name.clone());
            let device = self.builder.device(&Device { name, number: Some((major, minor)) });
            let process = self.builder.process(&Process { pid, command });
            classes.push(Class { number: (major, minor), device, process, operation, flags });
        }
        classes.get(number)
    }

    fn finish(mut self) -> Option<Trace> {
        let header = self.header?;
        let recording = match self.end {
            Some(end) => Recording { header, ..end },
            None => Recording { header, requests: self.found, ..Recording::default() },
        };
        if !recording.complete {
            self.builder.note(format!(
                "the recording has no end: it is truncated, or it has more requests than --max-requests; {} read",
                count(self.found, "request")
            ));
        }
        if recording.lost > 0 {
            self.builder.note(format!(
                "{} lost while it was recorded: requests are missing, or have no response time",
                count(recording.lost, "event")
            ));
        }
        if recording.files_partial || self.files.is_partial {
            self.builder.note("there were too many files to map all of them: some requests have no file");
        }
        if let Some(sample) = &self.sample {
            // What another host wrote is neither long nor steers a terminal.
            for problem in sample.problems.iter().take(32) {
                let problem: String = problem.chars().filter(|one| !one.is_control()).take(300).collect();
                self.builder.note(format!("sample of what reads found: {problem}"));
            }
        }
        self.builder.recording(recording);
        let mut trace = self.builder.finish();
        self.unwritten.sort_unstable();
        (trace.unwritten, trace.sample) = (self.unwritten, self.sample);
        self.files.attribute(&mut trace);
        let groups = &self.groups;
        let group = |process: &Process| groups.get(&(process.pid, process.command.clone())).cloned();
        trace.groups = trace.processes.iter().map(group).collect();
        Some(trace)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::FileWriter;
    use super::*;
    use crate::attribution::attribution;
    use crate::matcher::{EventKind, Matched, RequestEvent};
    use crate::recording::FileChanges;

    type RequestFields = ((u64, Option<u64>), (u64, u32), (u8, u8), (i32, u8));

    fn given() -> impl Strategy<Value = RequestFields> {
        let place = (0..1_u64 << 50, 0..1_u32 << 20);
        let time = (0..1_u64 << 62, prop::option::of(0..1_u64 << 40));
        (time, place, (0..4_u8, 0..64_u8), (any::<i32>(), 0..3_u8))
    }

    fn write(given: &[RequestFields]) -> Vec<u8> {
        let mut writer = FileWriter::new(Vec::new(), &Header::default()).unwrap();
        for ((at, response), (sector, sectors), (operation, flags), (pid, device)) in given {
            let mut command = [0; 16];
            command[..4].copy_from_slice(b"fio1");
            let issue = RequestEvent {
                at: *at,
                device: (8, u32::from(*device)),
                sector: *sector,
                sectors: *sectors,
                operation: Operation::ALL[usize::from(*operation)],
                flags: Flags(*flags),
                kind: EventKind::Issue { pid: *pid, command },
            };
            writer.request(&Matched { issue, pid: *pid, command, response: *response }).unwrap();
        }
        writer.finish(&Recording { complete: true, lost: 3, ..Recording::default() }).unwrap()
    }

    fn parse(bytes: &[u8]) -> Result<Trace> {
        read(bytes, Path::new("file"), 1_000_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read(given in prop::collection::vec(given(), 0..300)) {
            let mut expected: Vec<RequestFields> = given.clone();
            expected.sort_by_key(|((at, _), ..)| *at);
            let trace = parse(&write(&given)).unwrap();
            prop_assert_eq!(trace.requests.len(), given.len());
            for (request, ((at, response), (sector, sectors), (operation, flags), (pid, device))) in trace.requests.iter().zip(expected) {
                prop_assert_eq!(request.at + trace.origin, at);
                prop_assert_eq!(request.response(), response);
                let place = if sectors == 0 { (0, 0) } else { (sector * 512, sectors * 512) };
                prop_assert_eq!((request.offset, request.length), place);
                prop_assert_eq!(request.operation as u8, operation);
                prop_assert_eq!(request.flags, Flags(flags));
                prop_assert_eq!(trace.processes[request.process as usize].pid, pid);
                prop_assert_eq!(trace.devices[usize::from(request.device)].number, Some((8, u32::from(device))));
            }
        }

        #[test]
        fn damage_is_seen_and_no_bytes_make_it_panic(given in prop::collection::vec(given(), 1..50), at: prop::sample::Index, to: u8, length: prop::sample::Index, junk: Vec<u8>) {
            let good = write(&given);
            let mut bad = good.clone();
            let at = at.index(bad.len());
            prop_assume!(bad[at] != to);
            bad[at] = to;
            match parse(&bad) {
                // A chunk whose length became larger than what follows looks cut off.
                Ok(trace) => prop_assert!(trace.recording.is_some_and(|recording| !recording.complete)),
                Err(error) => prop_assert!(error.to_string().starts_with("file: byte "), "{}", error),
            }
            let short = &good[..length.index(good.len())];
            match parse(short) {
                Ok(trace) => prop_assert!(!trace.notes.is_empty()),
                Err(error) => prop_assert!(error.to_string().starts_with("file: byte "), "{}", error),
            }
            let _ = parse(&junk);
            let _ = parse(&MAGIC.iter().copied().chain(junk).collect::<Vec<_>>());
        }
    }

    #[test]
    fn requests_get_the_files_that_the_recording_knows() {
        let mut writer = FileWriter::new(Vec::new(), &Header::default()).unwrap();
        let file = |object: &str| TracedFile { object: object.into(), ..TracedFile::default() };
        let change = |begin, file| Change { seen: 1, device: (8, 0), begin, length: 4096, file, logical: 0 };
        let files = vec![file("relation 5/1"), file("WAL")];
        let changes = vec![change(0, Some(0)), change(4096, Some(1)), change(8192, Some(7))];
        writer.files(&FileChanges { files, changes }).unwrap();
        for sector in [8, 0, 16] {
            let issue = RequestEvent {
                at: 5,
                device: (8, 0),
                sector,
                sectors: 8,
                operation: Operation::Write,
                flags: Flags::default(),
                kind: EventKind::Issue { pid: 1, command: [0; 16] },
            };
            writer.request(&Matched { issue, pid: 1, command: [0; 16], response: None }).unwrap();
        }
        writer.groups(&[(1, String::new(), "/db".into()), (2, "x".into(), "/other".into())]).unwrap();
        writer.names(&[("relation 5/1".into(), "public.t".into())]).unwrap();
        let bytes = writer.finish(&Recording { complete: true, ..Recording::default() }).unwrap();
        let trace = parse(&bytes).unwrap();
        let objects: Vec<Option<&str>> = trace
            .requests
            .iter()
            .map(|request| Some(trace.files.get(request.file as usize)?.object.as_str()))
            .collect();
        assert_eq!(objects, [Some("WAL"), Some("public.t"), None]);
        let parts = attribution(&trace).unwrap();
        assert!((parts.attributed - 2.0 / 3.0).abs() < 1e-9 && parts.objects.len() == 2, "{parts:?}");
        assert_eq!(parts.unattributed.len(), 1);
        assert_eq!(trace.groups, [Some("/db".to_owned())]);
    }

    #[test]
    fn what_was_lost_or_left_off_is_noted() {
        let whole = write(&[((0, Some(5)), (8, 8), (0, 0), (7, 0)), ((9, None), (16, 8), (0, 0), (7, 0))]);
        let notes = parse(&whole).unwrap().notes;
        assert!(notes.len() == 1 && notes[0].starts_with("3 events lost"), "{notes:?}");
        let trace = read(whole.as_slice(), Path::new("file"), 1).unwrap();
        let recording = trace.recording.unwrap();
        assert_eq!((recording.complete, recording.requests, recording.lost), (false, 1, 0));
        assert!(trace.notes[0].ends_with("; 1 request read"), "{:?}", trace.notes);
        // Another letter with the old checksum.
        let mut other = whole.clone();
        other[MAGIC.len()] = b'E';
        assert!(parse(&other).unwrap_err().to_string().contains("checksum"));
    }

    #[test]
    fn a_request_takes_few_bytes() {
        // Random reads of 8 KiB on a device of 256 GiB, every 20 µs, answered within 1 ms.
        let mut random = kelvin_measure::Random::part(1, 2, 3);
        let given: Vec<RequestFields> = (0..10_000_u64)
            .map(|number| {
                let sector = random.range(0, 1 << 25) as u64 * 16;
                let response = random.range(50_000, 1_000_000) as u64;
                ((number * 20_000, Some(response)), (sector, 16), (0, 0), (7, 0))
            })
            .collect();
        let each = write(&given).len() as f64 / given.len() as f64;
        assert!(each < 15.0, "{each} bytes for the two events of a request");
    }
}
