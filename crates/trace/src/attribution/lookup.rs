//! Which file had a request's place at its time.
//!
//! Files are looked up about once a second, and requests come between. The file that had a place when it was last looked
//! up before the request has it; if there was none, the one that has it at the next time: a file that grew. So there are
//! two passes, one through the changes as they came and one back through them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::file_class::FileClass;
use crate::recording::{Change, FileChanges, TracedFile};
use crate::{Flags, Operation, Request, Trace};

/// A loop device on a file on a loop device, and so on, at most so often.
const DEEPEST: usize = 4;

/// What a range holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MappedRange {
    end: u64,
    file: u32,
    logical: u64,
}

/// The ranges of each disk by their first byte; none overlap.
#[derive(Debug, Default)]
struct DeviceMap(HashMap<(u32, u32), BTreeMap<u64, MappedRange>>);

impl DeviceMap {
    fn set(&mut self, change: &Change) {
        let end = change.begin.saturating_add(change.length);
        let ranges = self.0.entry(change.device).or_default();
        let inside = |part: &MappedRange, at: u64, begin: u64| MappedRange {
            logical: part.logical + (at - begin),
            ..*part
        };
        // The range before, which may reach into the new one, or beyond it.
        if let Some((&begin, &part)) = ranges.range(..change.begin).next_back()
            && part.end > change.begin
        {
            ranges.insert(begin, MappedRange { end: change.begin, ..part });
            if part.end > end {
                ranges.insert(end, inside(&part, end, begin));
            }
        }
        let covered: Vec<(u64, MappedRange)> =
            ranges.range(change.begin..end).map(|(begin, part)| (*begin, *part)).collect();
        for (begin, part) in covered {
            ranges.remove(&begin);
            if part.end > end {
                ranges.insert(end, inside(&part, end, begin));
            }
        }
        if let Some(file) = change.file
            && end > change.begin
        {
            ranges.insert(change.begin, MappedRange { end, file, logical: change.logical });
        }
    }

    /// The part at a place, and where its file has that byte.
    fn file_at(&self, device: (u32, u32), place: u64) -> Option<(u32, u64)> {
        let (begin, part) = self.0.get(&device)?.range(..=place).next_back()?;
        (place < part.end).then(|| (part.file, part.logical + (place - begin)))
    }

    /// The file that a request's first byte is in; behind a loop device the file of its filesystem. Adds the loop devices
    /// that the request went through.
    fn file(
        &self,
        files: &[TracedFile],
        device: (u32, u32),
        place: u64,
        through: &mut HashSet<(u32, u32)>,
    ) -> Option<u32> {
        let (mut found, mut logical) = self.file_at(device, place)?;
        for _ in 0..DEEPEST {
            let Some((behind, begin)) = files.get(found as usize).and_then(|file| file.behind) else { break };
            let inner = logical.checked_sub(begin).and_then(|place| self.file_at(behind, place));
            let Some(inner) = inner else { break };
            through.insert(behind);
            (found, logical) = inner;
        }
        Some(found)
    }
}

/// Where files lie, as far as that has been looked up: for requests that are seen while they are recorded.
#[derive(Debug, Default)]
pub(crate) struct CurrentFiles {
    map: DeviceMap,
    /// Without their names.
    files: Vec<TracedFile>,
    through: HashSet<(u32, u32)>,
}

impl CurrentFiles {
    /// Takes what was found since the last time.
    pub(crate) fn take(&mut self, found: &FileChanges) {
        let bare = |file: &TracedFile| TracedFile {
            class: file.class,
            behind: file.behind,
            ..TracedFile::default()
        };
        self.files.extend(found.files.iter().map(bare));
        found.changes.iter().for_each(|change| self.map.set(change));
    }

    /// What the file at a place is, or the filesystem's own by the request's mark or sender; none if neither is known.
    pub(crate) fn class(
        &mut self,
        device: (u32, u32),
        place: u64,
        flags: Flags,
        command: &[u8],
    ) -> Option<FileClass> {
        let file = self.map.file(&self.files, device, place, &mut self.through);
        let class = file.and_then(|file| self.files.get(file as usize)).map(|file| file.class);
        class.or_else(|| match is_journals(command) {
            Some(true) => Some(FileClass::FilesystemJournal),
            Some(false) => Some(FileClass::FilesystemMetadata),
            None => flags.has(Flags::META).then_some(FileClass::FilesystemMetadata),
        })
    }

    /// Whether a device's requests were seen to be also those to the disk of its image.
    pub(crate) fn is_through(&self, device: (u32, u32)) -> bool {
        self.through.contains(&device)
    }
}

/// Whether a process writes a filesystem's journal; some write its metadata. None for others.
fn is_journals(command: &[u8]) -> Option<bool> {
    if command.starts_with(b"jbd2/") {
        return Some(true);
    }
    command.starts_with(b"xfsaild").then_some(false)
}

/// Whether a request has a place that a file may have.
fn has_place(request: &Request) -> bool {
    request.operation != Operation::Flush && request.length > 0
}

/// Sets the file of each request of a trace from the changes that its recording has, in the order of their times. Requests
/// at no file's place that the kernel marked as a filesystem's own, or that its journal's thread sent, become the
/// filesystem's.
pub fn attribute(trace: &mut Trace, mut changes: Vec<Change>) {
    if trace.files.is_empty() && changes.is_empty() {
        return;
    }
    changes.sort_by_key(|change| change.seen);
    let origin = trace.origin;
    let numbers: Vec<Option<(u32, u32)>> = trace.devices.iter().map(|device| device.number).collect();
    let number = |request: &Request| numbers.get(usize::from(request.device)).copied().flatten();
    let files = &trace.files;
    let mut through = HashSet::new();
    let mut map = DeviceMap::default();
    let mut coming = changes.iter().peekable();
    for request in &mut trace.requests {
        while let Some(change) = coming.next_if(|change| change.seen <= request.at.saturating_add(origin)) {
            map.set(change);
        }
        if let Some(device) = number(request).filter(|_| has_place(request)) {
            request.file = map.file(files, device, request.offset, &mut through).unwrap_or(Request::NO_FILE);
        }
    }
    let mut map = DeviceMap::default();
    // The changes of one look belong together, in their order.
    let mut coming = changes.chunk_by(|a, b| a.seen == b.seen).rev().peekable();
    for request in trace.requests.iter_mut().rev() {
        let at = request.at.saturating_add(origin);
        while let Some(look) = coming.next_if(|look| look.first().is_some_and(|change| change.seen > at)) {
            // What is free at the next look may have been any file's before: nobody's.
            for change in look {
                map.set(change);
            }
        }
        if request.file == Request::NO_FILE
            && let Some(device) = number(request).filter(|_| has_place(request))
        {
            request.file = map.file(files, device, request.offset, &mut through).unwrap_or(Request::NO_FILE);
        }
    }
    let is_through = |device: &crate::Device| device.number.is_some_and(|number| through.contains(&number));
    for (place, device) in trace.devices.iter().enumerate().filter(|(_, device)| is_through(device)) {
        trace.repeated.push(place as u16);
        trace.notes.push(format!(
            "requests to {} also appear at the disk of its image: classes and objects count only those at \
                the disk",
            device.name
        ));
    }
    by_sender(trace);
}

/// Blocks of directories and extent trees have no file that could be asked for its place.
fn by_sender(trace: &mut Trace) {
    let mut added: [Option<u32>; 2] = [None; 2];
    let is_journal: Vec<Option<bool>> =
        trace.processes.iter().map(|process| is_journals(process.command.as_bytes())).collect();
    for request in &mut trace.requests {
        if request.file != Request::NO_FILE || !has_place(request) {
            continue;
        }
        let sender = is_journal.get(request.process as usize).copied().flatten();
        let marked = request.flags.has(Flags::META).then_some(false);
        let Some(is_journal) = sender.or(marked) else { continue };
        let files = &mut trace.files;
        let file = added[usize::from(is_journal)].get_or_insert_with(|| {
            files.push(filesystem_file(is_journal, "by mark or sender"));
            files.len() as u32 - 1
        });
        request.file = *file;
    }
}

/// A name for what a filesystem keeps for itself.
pub(super) fn filesystem_file(is_journal: bool, whose: &str) -> TracedFile {
    let class = if is_journal { FileClass::FilesystemJournal } else { FileClass::FilesystemMetadata };
    let object = format!("{} {whose}", class.name());
    TracedFile { path: object.clone(), class, object, ..TracedFile::default() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Builder, Device, Process};

    fn change(seen: u64, range: std::ops::Range<u64>, file: Option<u32>, logical: u64) -> Change {
        let device = (254, 0);
        Change { seen, device, begin: range.start, length: range.end - range.start, file, logical }
    }

    proptest! {
        #[test]
        fn a_map_has_what_was_set_last(given in prop::collection::vec((0..60_u64, 0..20_u64, prop::option::of(0..5_u32), 0..1000_u64), 0..40)) {
            let mut map = DeviceMap::default();
            let mut plain = vec![None; 100];
            for (begin, length, file, logical) in given {
                map.set(&change(0, begin..begin + length, file, logical));
                for at in begin..begin + length {
                    plain[at as usize] = file.map(|file| (file, logical + at - begin));
                }
            }
            for (at, expected) in plain.iter().enumerate() {
                prop_assert_eq!(map.file_at((254, 0), at as u64), *expected, "at {}", at);
            }
        }
    }

    fn file(path: &str, behind: Option<((u32, u32), u64)>) -> TracedFile {
        TracedFile { path: path.into(), object: path.into(), behind, ..TracedFile::default() }
    }

    /// The files' places in the list, of requests (time, place, sender).
    fn found(
        files: Vec<TracedFile>,
        changes: Vec<Change>,
        requests: &[(u64, u64, &str)],
    ) -> (Trace, Vec<u32>) {
        let mut builder = Builder::new("test", 100);
        builder.device(&Device { name: "vda".into(), number: Some((254, 0)) });
        for (at, offset, sender) in requests {
            let process = builder.process(&Process { pid: 1, command: (*sender).into() });
            let flags = if *sender == "meta" { Flags::META } else { Flags::default() };
            builder.push(
                Request {
                    at: *at,
                    offset: *offset,
                    length: 512,
                    device: 0,
                    process,
                    file: Request::NO_FILE,
                    operation: Operation::Write,
                    flags,
                    took: Request::UNKNOWN,
                },
                None,
            );
        }
        let mut trace = builder.finish();
        trace.files = files;
        attribute(&mut trace, changes);
        let numbers = trace.requests.iter().map(|request| request.file).collect();
        (trace, numbers)
    }

    #[test]
    fn a_place_is_the_files_that_had_it_before_or_else_after() {
        let files = vec![file("a", None), file("b", None)];
        let changes = vec![
            change(10, 0..100, Some(0), 0),
            // a goes, b takes a part of its place; b grows later.
            change(20, 0..100, None, 0),
            change(20, 50..100, Some(1), 0),
            change(30, 100..150, Some(1), 50),
        ];
        let requests = [
            (5, 60, ""), // before any look: the next one
            (15, 60, ""),
            (25, 60, ""),
            (25, 120, ""), // b's after it grew
            (25, 10, ""),  // nobody's
            (25, 200, "meta"),
            (26, 200, "jbd2/vda-8"),
            (26, 200, "kworker"),
        ];
        let (trace, numbers) = found(files, changes, &requests);
        let none = Request::NO_FILE;
        assert_eq!(numbers, [0, 0, 1, 1, none, 2, 3, none]);
        assert_eq!(trace.files[2].class, FileClass::FilesystemMetadata);
        assert_eq!(trace.files[3].class, FileClass::FilesystemJournal);
    }

    #[test]
    fn behind_a_loop_device_is_the_file_of_its_filesystem() {
        let files = vec![file("disk.img", Some(((7, 0), 1000))), file("inner", None)];
        let inner = Change { device: (7, 0), ..change(0, 64..128, Some(1), 0) };
        let outer = change(0, 10_000..20_000, Some(0), 0);
        // Byte 1064 of the image is byte 64 of the loop device.
        let requests = [(1, 11_064, ""), (2, 11_128, ""), (3, 10_500, "")];
        let (trace, numbers) = found(files.clone(), vec![outer, inner], &requests);
        assert_eq!((numbers, trace.repeated), (vec![1, 0, 0], Vec::new()));
        // With the loop device in the trace as well: its request is the disk's.
        let mut trace = Trace { devices: trace.devices, requests: trace.requests, files, ..Trace::default() };
        trace.devices.push(Device { name: "loop0".into(), number: Some((7, 0)) });
        trace.requests.push(Request { device: 1, offset: 64, ..trace.requests[2] });
        attribute(&mut trace, vec![outer, inner]);
        assert_eq!((trace.requests[3].file, trace.repeated.as_slice(), trace.notes.len()), (1, &[1][..], 1));
        assert_eq!(super::super::attribution(&trace).unwrap().bytes, 3 * 512);
    }
}
