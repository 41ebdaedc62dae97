//! The line that is updated while jobs run: the states of the workers, the progress, and the rates of the last
//! interval, not the mean since the beginning, which hides every change.

mod dump;
mod progress;

use std::fmt::Write as _;
use std::io::Write;

use kelvin_measure::{Clock, Nanos};

pub use dump::Dumps;
use progress::Progress;

use super::unit::{Units, short_time};
use crate::event::{IoEvent, IoWatcher, WorkerState};
use crate::job::{Jobs, Pattern};
use crate::{BinSums, Direction, PerDirection};

/// `--eta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eta {
    /// On a terminal (the default).
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Eta {
    /// Parses fio's keyword.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }

    /// Whether a line is shown on a stream.
    pub fn shows(self, is_terminal: bool) -> bool {
        match self {
            Self::Auto => is_terminal,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// When the line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusOptions {
    /// Whether there is a line at all.
    pub line: bool,
    /// `--eta-interval=`: the interval, default one second.
    pub interval: Nanos,
    /// `--eta-newline=`: a line that stays, so often.
    pub newline: Option<Nanos>,
}

impl Default for StatusOptions {
    fn default() -> Self {
        Self { line: true, interval: 1_000_000_000, newline: None }
    }
}

/// The state of a worker, and its I/O since the last line.
#[derive(Debug)]
struct Worker {
    state: WorkerState,
    /// Letter while it runs, small for sequential.
    letter: char,
    files: usize,
    units: Units,
    /// I/Os and bytes since the last line, and the time that they cover.
    recent: PerDirection<(u64, u64)>,
    covered: Nanos,
}

/// fio's status line with the rates of the last interval. To be passed to the code that runs the jobs; it writes only
/// to `out`. It passes events on to a second watcher, if there is one.
pub struct StatusLine {
    options: StatusOptions,
    clock: Clock,
    out: Box<dyn Write + Send>,
    workers: Vec<Worker>,
    progress: Progress,
    times: BinSums,
    layout: Option<String>,
    next: Nanos,
    next_newline: Nanos,
    /// Columns of the last line, which the next must cover.
    columns: usize,
    dumps: Option<Dumps>,
}

/// The letter of fio's run string for a running job.
fn letter(pattern: &Pattern) -> char {
    let letter = match (pattern.reads, pattern.writes, pattern.trims) {
        (true, true, _) => 'm',
        (true, false, _) => 'r',
        (false, true, _) => 'w',
        _ => 'd',
    };
    if pattern.random { letter.to_ascii_uppercase() } else { letter }
}

impl StatusLine {
    /// For the workers of all jobs in their order; lines go to `out`, which must not be where a program reads.
    pub fn new(jobs: &Jobs, options: StatusOptions, clock: Clock, out: Box<dyn Write + Send>) -> Self {
        let workers = jobs
            .jobs
            .iter()
            .flat_map(|job| std::iter::repeat_n(job, job.clones as usize))
            .map(|job| Worker {
                state: WorkerState::Planned,
                letter: letter(&job.pattern),
                files: job.targets.filenames.len().max(job.targets.files as usize),
                units: Units::for_report(&job.report),
                recent: PerDirection::default(),
                covered: 0,
            })
            .collect();
        let now = clock.now();
        Self {
            options,
            workers,
            progress: Progress::new(jobs),
            times: BinSums::default(),
            layout: None,
            next: now + options.interval,
            next_newline: now + options.newline.unwrap_or(Nanos::MAX / 2),
            columns: 0,
            dumps: None,
            clock,
            out,
        }
    }

    /// With the result so far at intervals (`--status-interval`).
    #[must_use]
    pub fn with_dumps(mut self, dumps: Dumps) -> Self {
        self.dumps = Some(dumps);
        self
    }

    /// `P` and its like for every worker, run-length coded: `R(10),_(2)`.
    fn run_string(&self) -> String {
        let mut parts: Vec<(char, usize)> = Vec::new();
        for worker in &self.workers {
            let letter = match worker.state {
                WorkerState::Planned => 'P',
                WorkerState::Created => 'C',
                WorkerState::SettingUp => 'I',
                WorkerState::PreReading => 'p',
                WorkerState::RampUp => '/',
                WorkerState::Running => worker.letter,
                WorkerState::Syncing => 'F',
                WorkerState::Verifying => 'V',
                WorkerState::Finishing => 'f',
                WorkerState::Ended => '_',
                WorkerState::Failed => 'X',
            };
            match parts.last_mut() {
                Some((last, times)) if *last == letter => *times += 1,
                _ => parts.push((letter, 1)),
            }
        }
        parts.iter().map(|(letter, times)| format!("{letter}({times})")).collect::<Vec<_>>().join(",")
    }

    /// The present line; resets the counts for it.
    fn line(&mut self, now: Nanos) -> String {
        let active = |worker: &&Worker| {
            matches!(
                worker.state,
                WorkerState::PreReading
                    | WorkerState::RampUp
                    | WorkerState::Running
                    | WorkerState::Syncing
                    | WorkerState::Verifying
            )
        };
        let running = self.workers.iter().filter(active).count();
        let files: usize = self.workers.iter().filter(active).map(|worker| worker.files).sum();
        let mut line = format!("Jobs: {running} (f={files}): [{}]", self.run_string());
        let mut rates = PerDirection::<(f64, f64)>::default();
        let mut any = false;
        for worker in &mut self.workers {
            for direction in Direction::ALL {
                let (ios, bytes) = std::mem::take(&mut worker.recent[direction]);
                // Each worker over the time that it reported: ticks do not come when lines are written.
                if worker.covered > 0 {
                    let seconds = worker.covered as f64 / 1e9;
                    rates[direction].0 += ios as f64 / seconds;
                    rates[direction].1 += bytes as f64 / seconds;
                    any = true;
                }
            }
            worker.covered = 0;
        }
        match self.progress.share(now) {
            // Writing to a String cannot fail.
            Some(share) => {
                let _ = write!(line, "[{:.1}%]", share * 100.0);
            }
            None => line.push_str("[-.-%]"),
        }
        if any {
            let units = self.workers.first().map_or_else(Units::default, |worker| worker.units);
            let marks = PerDirection(['r', 'w', 't']);
            let shown: Vec<Direction> =
                Direction::ALL.into_iter().filter(|direction| rates[*direction].0 > 0.0).collect();
            let join = |figure: &dyn Fn(Direction) -> String| {
                shown
                    .iter()
                    .map(|direction| format!("{}={}", marks[*direction], figure(*direction)))
                    .collect::<Vec<_>>()
                    .join(",")
            };
            if shown.is_empty() {
                line.push_str("[0 IOPS]");
            } else {
                let _ = write!(
                    line,
                    "[{}][{} IOPS]",
                    join(&|direction| units.rate(rates[direction].1)),
                    join(&|direction| units.count(rates[direction].0))
                );
            }
        }
        if let (Some(half), Some(late)) = (self.times.percentile(50.0), self.times.percentile(99.0)) {
            let _ = write!(line, "[p50={},p99={}]", short_time(half as f64), short_time(late as f64));
        }
        self.times = BinSums::default();
        match self.progress.remaining(now) {
            Some(rest) => {
                let _ = write!(line, "[eta {}]", clock_time(rest));
            }
            None => line.push_str("[eta --]"),
        }
        if let Some(layout) = &self.layout {
            let _ = write!(line, " {layout}");
        }
        line
    }

    fn write_due(&mut self) {
        let now = self.clock.now();
        if let Some(dumps) = &mut self.dumps {
            dumps.write_due(now);
        }
        if !self.options.line || now < self.next {
            return;
        }
        self.next = now + self.options.interval;
        let line = self.line(now);
        let columns = line.chars().count();
        let padding = self.columns.saturating_sub(columns);
        self.columns = columns;
        let mut end = "\r";
        if now >= self.next_newline {
            self.next_newline = now + self.options.newline.unwrap_or(Nanos::MAX / 2);
            (end, self.columns) = ("\n", 0);
        }
        // A closed stream is ignored; the run continues.
        let _ = write!(self.out, "{line}{:padding$}{end}", "").and_then(|()| self.out.flush());
    }

    /// Clears the line, so that subsequent output begins at its beginning.
    pub fn clear(&mut self) {
        if self.options.line && self.columns > 0 {
            let columns = std::mem::take(&mut self.columns);
            let _ = write!(self.out, "{:columns$}\r", "").and_then(|()| self.out.flush());
        }
    }

    /// Nothing more is written.
    pub fn end(&mut self) {
        self.clear();
        self.options.line = false;
    }
}

/// "00m:05s", "01h:02m:03s".
fn clock_time(nanos: Nanos) -> String {
    let seconds = nanos.div_ceil(1_000_000_000);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let mut text = String::new();
    if days > 0 {
        text.push_str(&format!("{days:02}d:"));
    }
    if seconds >= 3600 {
        text.push_str(&format!("{hours:02}h:"));
    }
    text.push_str(&format!("{minutes:02}m:{:02}s", seconds % 60));
    text
}

impl IoWatcher for StatusLine {
    fn event(&mut self, event: &IoEvent<'_>) {
        match event {
            IoEvent::State { worker, state } => {
                if let Some(known) = self.workers.get_mut(*worker as usize) {
                    known.state = *state;
                }
                if *state != WorkerState::SettingUp {
                    self.layout = None;
                }
                self.progress.state(*worker, *state, self.clock.now());
            }
            IoEvent::Layout { what, done, total, .. } => {
                let units = Units::default();
                self.layout = (done < total).then(|| {
                    format!(
                        "{what}: {} of {} ({:.0}%)",
                        units.amount(*done),
                        units.amount(*total),
                        *done as f64 / (*total).max(1) as f64 * 100.0
                    )
                });
            }
            IoEvent::Tick(tick) => {
                if let Some(worker) = self.workers.get_mut(tick.worker as usize) {
                    worker.files = worker.files.max(tick.targets.len());
                    worker.covered += tick.to.saturating_sub(tick.from);
                    for directions in &tick.targets {
                        for (direction, tally) in directions.iter() {
                            if let Some(tally) = tally {
                                worker.recent[direction].0 += tally.ios;
                                worker.recent[direction].1 += tally.bytes;
                                self.times.add(&tally.completion_bins);
                            }
                        }
                    }
                }
                self.progress.tick(tick);
                if let Some(dumps) = &mut self.dumps {
                    dumps.tick(tick);
                }
            }
            IoEvent::Note(note) => {
                if self.options.line {
                    let columns = std::mem::take(&mut self.columns);
                    let padding = columns.saturating_sub(note.chars().count());
                    let _ = writeln!(self.out, "{note}{:padding$}", "");
                }
            }
        }
        self.write_due();
    }

    fn idle(&mut self) {
        self.write_due();
    }
}
