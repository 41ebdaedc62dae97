//! Reading the blocks that were drawn, from the devices themselves.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use kelvin_host::SystemTree;
use kelvin_host::disk::{device_name, device_number};
use kelvin_measure::text::{count, few, whole};
use kelvin_storage::probe::extents::walk;
use kelvin_storage::probe::{BlockReader, is_zero};

use super::BLOCK;
use super::draw::{Changes, Draw, block};
use crate::file::append_sample;
use crate::recording::{BlockContent, DiskRange, DrawnByte, ReadSample};
use crate::{Error, Reading, Result, Trace, Visitor, import};

/// How much is read.
#[derive(Debug, Clone, Copy)]
pub struct SampleOptions {
    /// Bytes that are drawn: as many blocks are read at most.
    pub draws: usize,
    /// Blocks a second at most.
    pub rate: f64,
    /// No block is read after this time.
    pub longest: Duration,
}

impl Default for SampleOptions {
    fn default() -> Self {
        // The interval of a share of one half is 4.4 points wide.
        Self { draws: 2000, rate: 1000.0, longest: Duration::from_secs(5) }
    }
}

/// Draws of the reads of a recording that has ended, reads these blocks from the devices (past the page cache, and only
/// reading), and adds to the recording what was found. None if nothing was read during the recording, or it has no end.
///
/// # Errors
/// When the recording cannot be read, or nothing can be added to it. Devices that cannot be read are no error, but in
/// [`ReadSample::problems`].
pub fn add_sample(recording: &Path, options: SampleOptions) -> Result<Option<ReadSample>> {
    let visit = |visitor: Rc<RefCell<dyn Visitor>>| {
        import::open(recording, Reading { most: usize::MAX, visitor: Some(visitor) })
    };
    let began = |trace: &Trace| trace.recording.as_ref().map_or(0, |recording| recording.header.began);
    let draw = Rc::new(RefCell::new(Draw::new(options.draws, 1)));
    let trace = visit(draw.clone())?;
    let is_complete = trace.recording.as_ref().is_some_and(|recording| recording.complete);
    let draw = draw.borrow();
    if !is_complete || trace.sample.is_some() || draw.read_bytes() == 0 {
        return Ok(None);
    }
    let changes = Rc::new(RefCell::new(Changes::for_sectors(draw.drawn())));
    let again = visit(changes.clone())?;
    debug_assert_eq!(began(&trace), began(&again));
    let changes = changes.borrow();
    let start = Instant::now();
    let mut look = Look::new(&trace.unwritten, options, start);
    let mut sample = ReadSample { read_bytes: draw.read_bytes(), ..ReadSample::default() };
    for (at, device, place) in draw.drawn() {
        let number = trace.devices.get(usize::from(device)).and_then(|device| device.number);
        let Some(number) = number else { continue };
        let begin = block(place) * u64::from(BLOCK);
        let never = look.is_never_written(number, begin);
        let is_changed = changes.changed.contains(&(device, block(place)));
        let found = if is_changed { BlockContent::Changed } else { look.found(number, begin) };
        // Room that this file has not written may have been another's: what holds data was written.
        sample.drawn.push(DrawnByte(at, number, place, found, never && found != BlockContent::Data));
    }
    sample.problems = look.problems();
    if trace.recording.as_ref().is_some_and(|recording| recording.full || recording.lost > 0) {
        let blocks = "blocks written where the recording was full or lost events are counted as if they were not written";
        sample.problems.push(blocks.into());
    }
    let left_out = trace.recording.as_ref().map_or(0, |recording| recording.unwritten_left_out);
    if left_out > 0 {
        let kept = trace.unwritten.len() as u64;
        sample.problems.push(format!(
            "the recording lists only the first {} of {} never-written ranges: bytes read from the others \
             are counted as written, so only the lower end of the share's interval is valid",
            whole(kept),
            whole(kept + left_out)
        ));
    }
    sample.took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let doing = format!("adding a sample to {}", recording.display());
    append_sample(recording, &sample).map_err(Error::system(doing))?;
    Ok(Some(sample))
}

/// A device that is looked at.
struct Looked {
    name: String,
    reader: Option<BlockReader>,
    /// The image behind a loop device, and where the device begins in it.
    image: Option<(File, u64)>,
}

struct Look<'a> {
    tree: SystemTree,
    unwritten: &'a [DiskRange],
    options: SampleOptions,
    start: Instant,
    devices: HashMap<(u32, u32), Looked>,
    known: HashMap<((u32, u32), u64), BlockContent>,
    reads: u32,
    refused: Vec<String>,
    /// Blocks that could not be read, and the first reason.
    failed: (u64, Option<String>),
    late: u64,
}

impl<'a> Look<'a> {
    fn new(unwritten: &'a [DiskRange], options: SampleOptions, start: Instant) -> Self {
        Self {
            tree: SystemTree::default(),
            unwritten,
            options,
            start,
            devices: HashMap::new(),
            known: HashMap::new(),
            reads: 0,
            refused: Vec::new(),
            failed: (0, None),
            late: 0,
        }
    }

    fn device(&mut self, number: (u32, u32)) -> &mut Looked {
        let (tree, refused) = (&self.tree, &mut self.refused);
        self.devices.entry(number).or_insert_with(|| {
            let looked = Looked::open(tree, number);
            looked.unwrap_or_else(|(name, problem)| {
                refused.push(format!("{name}: {problem}"));
                Looked { name, reader: None, image: None }
            })
        })
    }

    /// What a block holds.
    fn found(&mut self, number: (u32, u32), begin: u64) -> BlockContent {
        let known = self.known.get(&(number, begin)).copied();
        let is_late = self.start.elapsed() > self.options.longest;
        let due = self.start + Duration::from_secs_f64(f64::from(self.reads) / self.options.rate);
        let Looked { name, reader: Some(reader), .. } = self.device(number) else {
            return BlockContent::Unread;
        };
        if is_late {
            // Known ones too: with them alone, the hottest blocks would stand for all.
            self.late += 1;
            return BlockContent::Unread;
        }
        if let Some(found) = known {
            return found;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let found = match reader.read_at(begin) {
            Ok(read) if is_zero(read) => BlockContent::Zeros,
            Ok(_) => BlockContent::Data,
            Err(error) => {
                let problem = format!("{name}: byte {begin}: {error}");
                self.failed.0 += 1;
                self.failed.1.get_or_insert(problem);
                BlockContent::Unread
            }
        };
        self.reads += 1;
        self.known.insert((number, begin), found);
        found
    }

    /// Whether a block is in room that was reserved and never written, or in a hole of a loop device's image.
    fn is_never_written(&mut self, number: (u32, u32), begin: u64) -> bool {
        let end = begin + u64::from(BLOCK);
        let behind = self.unwritten.partition_point(|(device, from, _)| (*device, *from) <= (number, begin));
        let before = behind.checked_sub(1).and_then(|place| self.unwritten.get(place));
        if before
            .is_some_and(|(device, from, length)| *device == number && from.saturating_add(*length) >= end)
        {
            return true;
        }
        let Some((image, offset)) = &self.device(number).image else { return false };
        let mut written = false;
        let looked = walk(image, offset + begin..offset + end, false, &mut |part| {
            written |= !part.is_unwritten() && part.logical.end > part.logical.start;
            !written
        });
        looked.is_ok() && !written
    }

    fn problems(self) -> Vec<String> {
        let mut problems = self.refused;
        if let (failed, Some(first)) = self.failed {
            problems.push(format!("{} could not be read, such as {first}", count(failed, "block")));
        }
        if self.late > 0 {
            let names = few(self.devices.values().map(|device| device.name.as_str()), 4);
            let late = count(self.late, "block");
            let longest = self.options.longest.as_secs_f64();
            problems.push(format!("{late} of {names} were not read within {longest} s"));
        }
        problems
    }
}

impl Looked {
    /// Else its name and why it cannot be read.
    fn open(tree: &SystemTree, number: (u32, u32)) -> std::result::Result<Self, (String, String)> {
        let numbers = format!("{}:{}", number.0, number.1);
        let Some(name) = device_name(tree, &numbers) else {
            return Err((numbers, "the device no longer exists".into()));
        };
        // sysfs has "!" where a device's name has a directory.
        let path = PathBuf::from("/dev").join(name.replace('!', "/"));
        let reader = open_device(&path, &numbers).map_err(|error| (name.clone(), error.to_string()))?;
        let home = format!("/sys/block/{name}/loop");
        let image = tree.line(format!("{home}/backing_file")).and_then(|path| open_image(Path::new(&path)));
        let offset = tree.number(format!("{home}/offset")).unwrap_or(0);
        Ok(Self { name, reader: Some(reader), image: image.map(|image| (image, offset)) })
    }
}

/// The image behind a loop device. Whatever has its name now, the opening does not wait.
fn open_image(path: &Path) -> Option<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path).ok()
}

/// A reader of the device that has this number, and of no other of its name.
fn open_device(path: &Path, number: &str) -> io::Result<BlockReader> {
    let reader = BlockReader::open(path, BLOCK)?;
    let about = reader.file().metadata()?;
    if !about.file_type().is_block_device() || device_number(about.rdev()) != number {
        return Err(io::Error::other(format!("{} is now a different device", path.display())));
    }
    if !reader.is_direct {
        return Err(io::Error::other("it cannot be read without the page cache"));
    }
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use kelvin_measure::text::percent;

    use super::*;
    use crate::file::FileWriter;
    use crate::matcher::{EventKind, Matched, RequestEvent};
    use crate::recording::{Header, Recording};
    use crate::stream::profiles;
    use crate::{Flags, Operation, import};

    #[test]
    fn ranges_that_were_left_out_are_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = FileWriter::new(file.reopen().unwrap(), &Header::default()).unwrap();
        let kind = EventKind::Issue { pid: 1, command: [0; 16] };
        // No host has a device of this number.
        let (device, operation, flags) = ((0, 0), Operation::Read, Flags::default());
        let issue = RequestEvent { at: 5, device, sector: 0, sectors: 16, operation, flags, kind };
        writer.request(&Matched { issue, pid: 1, command: [0; 16], response: None }).unwrap();
        writer.unwritten(&[(device, 0, 4096)]).unwrap();
        let end = Recording { complete: true, unwritten_left_out: 4321, ..Recording::default() };
        writer.finish(&end).unwrap();
        let sample = add_sample(file.path(), SampleOptions::default()).unwrap().unwrap();
        let expected = "only the first 1 of 4,322 never-written ranges: bytes read from the others are counted as written";
        assert!(sample.problems.iter().any(|problem| problem.contains(expected)), "{:?}", sample.problems);
        let trace = import::open(file.path(), import::MOST).unwrap();
        assert!(trace.notes.iter().any(|note| note.contains(expected)), "{:?}", trace.notes);
        let all = profiles(&trace).remove(0).zeros.unwrap();
        // The first of the two blocks is in the range that is known.
        let never = all.never_written.unwrap();
        assert!((0.45..0.55).contains(&never.share), "{all:?}");
        assert!(all.describe().contains(&format!("at least {} in space", percent(never.low))), "{all:?}");
    }
}
