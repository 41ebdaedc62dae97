//! Replays traces: fio's iologs (versions 2 and 3) and blktrace's binary form. Writes iologs.

mod blktrace;
mod iolog;
mod trace;
mod write;

use std::path::{Path, PathBuf};

use kelvin_measure::Nanos;

pub use blktrace::{BlktraceRecord, Records as BlktraceRecords, is_trace as is_blktrace};
pub use trace::{Action, Input, Reader as TraceReader, Trace, TraceEvent, TraceFile};
pub use write::IologWriter;

use crate::job::{Job, Replay, ReplaySkip};
use crate::{Direction, Error, Io, NextIo, PerDirection, Result, Target, TargetKind};
use trace::Reader;

/// A file or device that a replay uses, and its I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayTarget {
    /// Its path, after `replay_redirect`.
    pub path: PathBuf,
    /// The end of the highest I/O: the size that it needs.
    pub end: u64,
    /// Bytes of each direction.
    pub bytes: PerDirection<u64>,
}

/// The files that a clone's trace uses, in the order in which the trace names them, with the information needed to lay
/// them out. Reads the whole trace once. Empty if the job replays none.
///
/// # Errors
///
/// Errors of reading the trace; a device that this machine does not have.
pub fn files(job: &Job, clone: u32) -> Result<Vec<ReplayTarget>> {
    let Some(replay) = &job.replay else { return Ok(Vec::new()) };
    Ok(Survey::of_traces(job, replay, clone, &mut |_| ())?.reached)
}

/// The trace of a clone.
fn file_of<'a>(job: &Job, replay: &'a Replay, clone: u32) -> Result<&'a Path> {
    let file = replay.files.get(clone as usize % replay.files.len().max(1));
    file.map(PathBuf::as_path).ok_or_else(|| Error::refused(&job.name, "read_iolog= does not name a trace"))
}

/// Applies the options to an event; `None` if it is excluded.
fn changed(replay: &Replay, event: TraceEvent) -> Option<TraceEvent> {
    let TraceEvent { at, name, action } = event;
    let action = match action {
        Action::Sync(_) if replay.skip.contains(&ReplaySkip::Sync) => return None,
        Action::Sync(how) => Action::Sync(how),
        Action::Io { direction, offset, length } => {
            let skip = [ReplaySkip::Read, ReplaySkip::Write, ReplaySkip::Trim];
            if skip.get(direction as usize).is_some_and(|skip| replay.skip.contains(skip)) {
                return None;
            }
            let offset = offset / replay.scale.unwrap_or(1).max(1);
            let align = replay.align.unwrap_or(1).max(1);
            Action::Io { direction, offset: offset - offset % align, length }
        }
    };
    let at = if replay.time_scale == 100.0 || replay.time_scale <= 0.0 {
        at
    } else {
        (at as f64 * 100.0 / replay.time_scale) as Nanos
    };
    Some(TraceEvent { at, name, action })
}

/// Facts from a first reading of a trace.
struct Survey {
    reached: Vec<ReplayTarget>,
    /// The index in `reached` for each name of the trace.
    places: Vec<u32>,
    /// The time of its last event.
    end: Nanos,
    /// The longest read or write in bytes.
    longest: u32,
}

impl Survey {
    fn of_traces(job: &Job, replay: &Replay, clone: u32, each: &mut dyn FnMut(TraceEvent)) -> Result<Self> {
        let mut reader = Reader::open(file_of(job, replay, clone)?)?;
        let mut all = Self { reached: Vec::new(), places: Vec::new(), end: 0, longest: 0 };
        while let Some(event) = reader.next()? {
            all.learn(job, replay, reader.names())?;
            let Some(event) = changed(replay, event) else { continue };
            all.end = all.end.max(event.at);
            if let Action::Io { direction, offset, length } = event.action
                && let Some(reached) =
                    all.places.get(event.name as usize).and_then(|place| all.reached.get_mut(*place as usize))
            {
                if direction != Direction::Trim {
                    all.longest = all.longest.max(length);
                }
                reached.end = reached.end.max(offset.saturating_add(u64::from(length)));
                reached.bytes[direction] = reached.bytes[direction].saturating_add(u64::from(length));
            }
            each(event);
        }
        all.learn(job, replay, reader.names())?;
        Ok(all)
    }

    /// Resolves names that are not known yet.
    fn learn(&mut self, job: &Job, replay: &Replay, names: &[TraceFile]) -> Result<()> {
        for name in names.iter().skip(self.places.len()) {
            let path = match &replay.redirect {
                Some(path) => path.clone(),
                None => name.path().map_err(|problem| Error::refused(&job.name, problem))?,
            };
            let known = self.reached.iter().position(|reached| reached.path == path);
            let place = known.unwrap_or_else(|| {
                self.reached.push(ReplayTarget { path, end: 0, bytes: PerDirection::default() });
                self.reached.len() - 1
            });
            self.places.push(place as u32);
        }
        Ok(())
    }
}

/// A trace being replayed.
#[derive(Debug)]
pub(crate) struct Replaying {
    replay: Replay,
    path: PathBuf,
    events: Events,
    /// The worker's target for each name of the trace.
    targets: Vec<u32>,
    bytes: u64,
    longest: u32,
    /// The duration of a pass, and the beginning of the current one, in the trace's time.
    lasts: Nanos,
    began: Nanos,
    /// The time that was requested last.
    waited_until: Nanos,
    upcoming: Option<TraceEvent>,
    problem: Option<Error>,
}

#[derive(Debug)]
enum Events {
    /// All events, and the index of the next.
    Whole(Vec<TraceEvent>, usize),
    /// Read when needed (`read_iolog_chunked`).
    Pieces(Option<Reader>),
}

impl Replaying {
    pub(crate) fn new(job: &Job, replay: &Replay, clone: u32, targets: &[Target]) -> Result<Self> {
        let path = file_of(job, replay, clone)?.to_path_buf();
        let mut events = Vec::new();
        let chunked = replay.chunked;
        let survey = Survey::of_traces(job, replay, clone, &mut |event| {
            if !chunked {
                events.push(event);
            }
        })?;
        let mut numbers = Vec::new();
        for reached in &survey.reached {
            let found = targets.iter().zip(0_u32..).find(|(target, _)| target.path == reached.path);
            let (target, number) = found.ok_or_else(|| {
                let problem = format!(
                    "the trace {} uses {}, which is not a target of the job; choose a target with \
                     replay_redirect=",
                    path.display(),
                    reached.path.display()
                );
                Error::refused(&job.name, problem)
            })?;
            let has_size = matches!(target.kind, TargetKind::File | TargetKind::Block);
            if has_size && reached.end > target.begin.saturating_add(target.length) {
                let problem = format!(
                    "the trace {} extends to byte {} of {}, which ends at {}; reduce offsets with \
                     replay_scale=",
                    path.display(),
                    reached.end,
                    reached.path.display(),
                    target.begin.saturating_add(target.length)
                );
                return Err(Error::refused(&job.name, problem));
            }
            numbers.push(number);
        }
        let place = |place: &u32| numbers.get(*place as usize).copied().unwrap_or(0);
        let bytes =
            survey.reached.iter().flat_map(|reached| reached.bytes.0).fold(0_u64, u64::saturating_add);
        Ok(Self {
            replay: replay.clone(),
            events: if chunked {
                Events::Pieces(Some(Reader::open(&path)?))
            } else {
                Events::Whole(events, 0)
            },
            path,
            targets: survey.places.iter().map(place).collect(),
            bytes,
            longest: survey.longest,
            lasts: survey.end,
            began: 0,
            waited_until: 0,
            upcoming: None,
            problem: None,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn longest(&self) -> u32 {
        self.longest
    }

    pub(crate) fn problem(&mut self) -> Option<Error> {
        self.problem.take()
    }

    fn event(&mut self) -> Option<TraceEvent> {
        if let Some(event) = self.upcoming.take() {
            return Some(event);
        }
        match &mut self.events {
            Events::Whole(events, next) => {
                let event = events.get(*next).copied();
                *next += 1;
                event
            }
            Events::Pieces(reader) => loop {
                match reader.as_mut()?.next() {
                    Ok(Some(event)) => {
                        if let Some(event) = changed(&self.replay, event) {
                            return Some(event);
                        }
                    }
                    Ok(None) => return None,
                    // It was read completely before, so it has been changed since.
                    Err(problem) => {
                        self.problem = Some(problem);
                        *reader = None;
                        return None;
                    }
                }
            },
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> NextIo {
        let Some(event) = self.event() else { return NextIo::End };
        let due = self.began.saturating_add(event.at);
        if !self.replay.no_stall && due > self.waited_until {
            self.waited_until = due;
            self.upcoming = Some(event);
            return NextIo::NotBefore(due);
        }
        let Some(target) = self.targets.get(event.name as usize).copied() else {
            let problem = format!("the files of the trace {} have changed", self.path.display());
            self.problem = Some(Error::system("replaying")(std::io::Error::other(problem)));
            return NextIo::End;
        };
        match event.action {
            Action::Io { direction, offset, length } => NextIo::Io(Io { direction, target, offset, length }),
            Action::Sync(how) => NextIo::Sync { target, how },
        }
    }

    /// Starts another pass; its times continue at the end of the previous one.
    pub(crate) fn restart(&mut self) {
        self.began = self.began.saturating_add(self.lasts);
        self.upcoming = None;
        match &mut self.events {
            Events::Whole(_, next) => *next = 0,
            Events::Pieces(reader) => match Reader::open(&self.path) {
                Ok(again) => *reader = Some(again),
                Err(problem) => {
                    self.problem = Some(problem);
                    *reader = None;
                }
            },
        }
    }
}
