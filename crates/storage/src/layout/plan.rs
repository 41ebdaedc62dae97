//! The targets of each worker, and the preparation of files. Decisions are made for all workers in order, so that a
//! file that several share is laid out once.

use kelvin_host::disk::{device_name, device_number};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use kelvin_measure::Random;

use super::fill::Filling;
use super::name::{self, WorkerFileName};
use super::size::{self, ExistingTarget};
use super::{device, space};
use crate::job::{EngineName, Fallocate, Job};
use crate::stream::replay;
use crate::{Direction, Error, Result, Target, TargetKind};
use kelvin_host::SystemTree;
use kelvin_measure::text::exact;

/// A worker, as far as its files are concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayoutWorker<'a> {
    pub job: &'a Job,
    pub clone: u32,
    pub seed: u64,
}

/// Permitted actions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayoutRules<'a> {
    /// Nothing may be written.
    pub read_only: bool,
    /// Unwritten ranges are filled.
    pub prepare: bool,
    /// Devices that may be overwritten.
    pub destroy: &'a [PathBuf],
}

/// A step on the way to a file as the jobs need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayoutStep {
    /// Its content is dropped.
    Truncate,
    /// Space is reserved up to this size, or the size is set.
    Reserve { to: u64, how: Fallocate },
    /// Data is written between these offsets. With `reserve`, space is reserved first, so that they are contiguous.
    Data { from: u64, to: u64, reserve: bool },
    /// Data is written from here until the filesystem is full.
    UntilFull { from: u64 },
    /// Data is written where none was ever written, between these offsets.
    Fill { from: u64, to: u64 },
}

impl LayoutStep {
    /// The number of bytes that it processes, for progress.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Truncate | Self::Reserve { .. } | Self::UntilFull { .. } => 0,
            Self::Data { from, to, .. } | Self::Fill { from, to } => to.saturating_sub(from),
        }
    }
}

/// The layout of one file or device.
#[derive(Debug, Clone)]
pub(crate) struct TargetLayout {
    pub path: PathBuf,
    /// The worker that needs it first.
    pub worker: u32,
    pub job: String,
    pub kind: TargetKind,
    pub steps: Vec<LayoutStep>,
    /// Files of workers with `create_serialize=0` are made concurrently.
    pub serialize: bool,
    pub fsync: bool,
    /// `fallocate=` allows that space is reserved before data is written.
    pub fallocate: Fallocate,
    /// The content written into it.
    pub filling: Filling,
}

/// The layout before the first worker begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayoutPlan {
    pub directories: BTreeSet<PathBuf>,
    pub makings: Vec<TargetLayout>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The state of a file after the steps planned so far.
struct Known {
    kind: TargetKind,
    size: Option<u64>,
    device: Option<String>,
    capacity: u64,
    making: Option<usize>,
    /// An earlier worker needs its content.
    needed: bool,
    /// It exists, or an earlier worker makes it.
    there: bool,
}

/// Decides for all workers. Nothing is written.
pub(crate) fn plan_layout(
    workers: &[LayoutWorker<'_>],
    rules: LayoutRules<'_>,
    tree: &SystemTree,
) -> Result<(Vec<Vec<Target>>, LayoutPlan)> {
    let mut planner = Planner { rules, tree, known: HashMap::new(), plan: LayoutPlan::default() };
    let targets = workers.iter().enumerate().map(|(number, who)| planner.worker(number as u32, *who));
    let targets = targets.collect::<Result<_>>()?;
    planner.plan.makings.retain(|making| !making.steps.is_empty() || making.kind == TargetKind::File);
    Ok((targets, planner.plan))
}

struct Planner<'a> {
    rules: LayoutRules<'a>,
    tree: &'a SystemTree,
    known: HashMap<PathBuf, Known>,
    plan: LayoutPlan,
}

impl Planner<'_> {
    fn worker(&mut self, number: u32, who: LayoutWorker<'_>) -> Result<Vec<Target>> {
        let job = who.job;
        if let Some(missing) = job.targets.directories.iter().find(|directory| !directory.is_dir()) {
            return Err(Error::refused(
                &job.name,
                format!("directory={} does not exist: create it or correct the name", missing.display()),
            ));
        }
        let mut random = Random::part(who.seed, FILE_SIZES, 0);
        // A trace names its files and determines how far each is used.
        let (names, ends): (Vec<WorkerFileName>, Vec<Option<u64>>) = if job.replay.is_some() {
            let reached = replay::files(job, who.clone)?;
            self.may_replay(job, &reached)?;
            reached
                .into_iter()
                .map(|file| (WorkerFileName { path: file.path, made: false }, Some(file.end)))
                .unzip()
        } else {
            name::target_names(job, who.clone).into_iter().map(|name| (name, None)).unzip()
        };
        let mut targets = Vec::with_capacity(names.len());
        for (index, (name, end)) in names.iter().zip(ends).enumerate() {
            targets.push(self.target(number, who, name, (index, names.len()), end, &mut random)?);
        }
        let all: u64 = targets.iter().map(|target| target.length).fold(0, u64::saturating_add);
        let block = size::smallest_block(job);
        if all < block && job.replay.is_none() {
            return Err(Error::refused(
                &job.name,
                format!(
                    "its smallest block of {} does not fit in its region of {}",
                    exact(block),
                    exact(all)
                ),
            ));
        }
        Ok(targets)
    }

    /// Refuses a trace that changes targets which must only be read.
    fn may_replay(&self, job: &Job, reached: &[replay::ReplayTarget]) -> Result<()> {
        let changes = |file: &&replay::ReplayTarget| {
            [Direction::Write, Direction::Trim].into_iter().any(|direction| file.bytes[direction] > 0)
        };
        let Some(file) = reached.iter().find(changes).filter(|_| self.rules.read_only) else { return Ok(()) };
        Err(Error::refused(
            &job.name,
            format!(
                "its trace writes or trims {}, which --readonly forbids: add replay_skip=write,trim",
                file.path.display()
            ),
        ))
    }

    fn target(
        &mut self,
        number: u32,
        who: LayoutWorker<'_>,
        name: &WorkerFileName,
        place: (usize, usize),
        end: Option<u64>,
        random: &mut Random,
    ) -> Result<Target> {
        let job = who.job;
        let refused =
            |problem: String| Error::refused(&job.name, format!("{}: {problem}", name.path.display()));
        let key = self.examine(job, name)?;
        let diskless = job.engine.name == EngineName::Null;
        let Some(known) = self.known.get(&key) else { return Err(refused("it was not examined".into())) };
        let found = ExistingTarget { kind: known.kind, size: known.size, capacity: known.capacity };
        let region = match (end, known.kind, known.size) {
            (None, ..) => size::region(job, who.clone, place, found, random).map_err(refused)?,
            (Some(end), TargetKind::Block, Some(size)) if end > size => {
                return Err(refused(format!(
                    "the trace extends to {}, but the device has {}: give replay_scale= or another device",
                    exact(end),
                    exact(size)
                )));
            }
            (Some(end), _, size) => size::Region { begin: 0, length: end.max(size.unwrap_or(0)) },
        };
        let target = Target {
            path: name.path.clone(),
            kind: if diskless { TargetKind::None } else { known.kind },
            begin: region.begin,
            length: region.length,
            device: known.device.clone(),
        };
        if !diskless {
            match target.kind {
                TargetKind::File => self.file(number, who, name, &key, &target)?,
                TargetKind::Block => self.block(number, who, &key, &target),
                TargetKind::Character | TargetKind::None => {}
            }
        }
        Ok(target)
    }

    /// Examines the file under a name; returns the key under which it is stored.
    fn examine(&mut self, job: &Job, name: &WorkerFileName) -> Result<PathBuf> {
        let refused =
            |problem: String| Error::refused(&job.name, format!("{}: {problem}", name.path.display()));
        let path = &name.path;
        let facts = match fs::metadata(path) {
            Ok(facts) => Some(facts),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => {
                return Err(Error::System { what: format!("cannot inspect {}", path.display()), cause });
            }
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let key = match &facts {
            Some(_) => fs::canonicalize(path).ok(),
            None => fs::canonicalize(parent).ok().and_then(|parent| Some(parent.join(path.file_name()?))),
        };
        let key = key.unwrap_or_else(|| path.clone());
        if self.known.contains_key(&key) {
            return Ok(key);
        }
        let known = match facts {
            Some(facts) => self.existing(path, &facts).map_err(refused)?,
            None => self.missing(job, name, parent).map_err(refused)?,
        };
        self.known.insert(key.clone(), known);
        Ok(key)
    }

    fn existing(&self, path: &Path, facts: &Metadata) -> std::result::Result<Known, String> {
        let kind = facts.file_type();
        let known = |kind, size, device| Known {
            kind,
            size,
            device,
            capacity: 0,
            making: None,
            needed: false,
            there: true,
        };
        if kind.is_file() {
            let device = device::under(self.tree, path, facts);
            let capacity = space::capacity(path);
            return Ok(Known { capacity, ..known(TargetKind::File, Some(facts.len()), device) });
        }
        if kind.is_block_device() {
            let name = device_name(self.tree, &device_number(facts.rdev()))
                .ok_or("the kernel has no block device with this number")?;
            let size = device::size(self.tree, &name).ok_or("the kernel does not report its size")?;
            if size == 0 {
                return Err("the device has size 0: it has no medium, or nothing is attached to it".into());
            }
            return Ok(known(TargetKind::Block, Some(size), Some(name)));
        }
        if kind.is_char_device() {
            return Ok(known(TargetKind::Character, None, None));
        }
        let what = if kind.is_dir() { "a directory" } else { "neither a file nor a device" };
        Err(format!("it is {what}; I/O needs a file, a block device or a character device"))
    }

    fn missing(
        &mut self,
        job: &Job,
        name: &WorkerFileName,
        parent: &Path,
    ) -> std::result::Result<Known, String> {
        let diskless = job.engine.name == EngineName::Null;
        if !diskless && !job.targets.allow_create {
            return Err("it does not exist, and allow_file_create=0 forbids creating it".into());
        }
        let mut there = parent;
        if !diskless && !parent.is_dir() {
            if !name.made {
                return Err(format!(
                    "its directory {} does not exist: create it or correct the name (fio would create it \
                     even for a typo)",
                    parent.display()
                ));
            }
            self.plan.directories.insert(parent.to_owned());
            while !there.is_dir() {
                let Some(above) = there.parent() else { break };
                there = above;
            }
            if there.as_os_str().is_empty() {
                there = Path::new(".");
            }
        }
        let device = fs::metadata(there).ok().and_then(|facts| device::under(self.tree, there, &facts));
        let capacity = space::capacity(there);
        let kind = TargetKind::File;
        Ok(Known { kind, size: Some(0), device, capacity, making: None, needed: false, there: false })
    }

    /// Decides what a regular file needs for one more worker.
    fn file(
        &mut self,
        number: u32,
        who: LayoutWorker<'_>,
        name: &WorkerFileName,
        key: &Path,
        target: &Target,
    ) -> Result<()> {
        let job = who.job;
        let targets = &job.targets;
        let rules = self.rules;
        let Some(known) = self.known.get_mut(key) else { return Ok(()) };
        let size = known.size.unwrap_or(0);
        let end = target.begin.saturating_add(target.length);
        let writes = job.pattern.changes_data();
        if job.verify.as_ref().is_some_and(|verify| verify.only) {
            // It reads the existing content: the file is neither created nor emptied.
            known.needed = true;
            let problem =
                format!("{} does not exist, and verify_only does not write it", name.path.display());
            return if known.there { Ok(()) } else { Err(Error::refused(&job.name, problem)) };
        }
        known.there = true;
        // Without data there is nothing to read or to overwrite; a mapping cannot grow a file.
        let needs_data = job.pattern.reads
            || job.replay.is_some()
            || job.sync.overwrite
            || job.engine.name == EngineName::Mmap
            || rules.prepare;
        known.needed |= needs_data;
        let mut steps = Vec::new();
        if targets.create_on_open {
            // Files created on opening are left to the worker.
        } else if targets.fills() && !writes {
            steps.push(LayoutStep::UntilFull { from: size });
        } else if end > size && !targets.fills() {
            if rules.read_only {
                return Err(Error::refused(
                    &job.name,
                    format!(
                        "{} has {} and would have to be extended to {}, which --readonly forbids",
                        name.path.display(),
                        exact(size),
                        exact(end)
                    ),
                ));
            }
            if needs_data {
                let reserve =
                    matches!(targets.fallocate, Fallocate::Native | Fallocate::Posix | Fallocate::Keep);
                steps.push(LayoutStep::Data { from: size, to: end, reserve });
                known.size = Some(end);
            } else {
                // As in fio, whose writers begin with a new file if the existing one is too small. Nothing before the
                // region is dropped.
                if size > 0 && target.begin == 0 && !targets.append && !known.needed {
                    steps.push(LayoutStep::Truncate);
                    known.size = Some(0);
                }
                if targets.fallocate != Fallocate::None {
                    steps.push(LayoutStep::Reserve { to: end, how: targets.fallocate });
                }
                if matches!(targets.fallocate, Fallocate::Native | Fallocate::Posix | Fallocate::Truncate) {
                    known.size = Some(end);
                }
            }
        }
        if rules.prepare && size > target.begin && !rules.read_only {
            steps.push(LayoutStep::Fill { from: target.begin, to: end.min(size) });
        }
        let create = !targets.create_on_open && !rules.read_only;
        if steps.is_empty() && (!create || known.making.is_some() || name.path.exists()) {
            return Ok(());
        }
        let filling =
            Filling::new(job, Random::part(who.seed, CONTENT, self.plan.makings.len() as u64).bits());
        let making = *known.making.get_or_insert_with(|| {
            self.plan.makings.push(TargetLayout {
                path: name.path.clone(),
                worker: number,
                job: job.name.clone(),
                kind: TargetKind::File,
                steps: Vec::new(),
                serialize: targets.create_serialize,
                fsync: false,
                fallocate: targets.fallocate,
                filling,
            });
            self.plan.makings.len() - 1
        });
        if let Some(making) = self.plan.makings.get_mut(making) {
            for step in steps {
                if !making.steps.contains(&step) {
                    making.steps.push(step);
                }
            }
            making.fsync |= targets.create_fsync;
        }
        Ok(())
    }

    /// A device is filled only if that was requested and confirmed.
    fn block(&mut self, number: u32, who: LayoutWorker<'_>, key: &Path, target: &Target) {
        if !self.rules.prepare || self.rules.read_only {
            return;
        }
        let confirmed =
            self.rules.destroy.iter().any(|path| fs::canonicalize(path).is_ok_and(|path| path == *key));
        if !confirmed {
            let note = format!(
                "{0} is not prepared: filling a device needs --i-know-it-destroys {0}",
                target.path.display()
            );
            if !self.plan.notes.contains(&note) {
                self.plan.notes.push(note);
            }
            return;
        }
        let step = LayoutStep::Fill { from: target.begin, to: target.begin + target.length };
        if self.plan.makings.iter().any(|making| making.path == target.path && making.steps.contains(&step)) {
            return;
        }
        self.plan.makings.push(TargetLayout {
            path: target.path.clone(),
            worker: number,
            job: who.job.name.clone(),
            kind: TargetKind::Block,
            steps: vec![step],
            serialize: who.job.targets.create_serialize,
            fsync: true,
            fallocate: Fallocate::None,
            filling: Filling::new(
                who.job,
                Random::part(who.seed, CONTENT, self.plan.makings.len() as u64).bits(),
            ),
        });
    }
}

/// The substream of a worker's random numbers for the content of its files.
const CONTENT: u64 = 0x64_61_74_61;

/// The substream of a worker's random numbers for the sizes of its files.
const FILE_SIZES: u64 = 0x66_69_6c_65;
