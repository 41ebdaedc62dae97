//! Sums up the messages of the workers. The sums are the result, and their invariants are checked here.

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use super::samples::Windows;
use crate::job::Job;
use crate::message::WorkerEnd;
use crate::result::{DirectionOutcome, TargetOutcome, WorkerOutcome};
use crate::tick::{DepthCounts, Failures, Tick};
use crate::{BinSums, Direction, Error, Moments, PerDirection, Result, Target};

use super::PlannedWorker;

/// One worker's sums.
#[derive(Debug)]
pub(super) struct Collected {
    number: u32,
    planned: PlannedWorker,
    name: String,
    targets: Vec<TargetOutcome>,
    windows: PerDirection<(Windows, Windows)>,
    /// The first beginning and the last end of measured ticks: of all, and of those with I/O in a direction.
    measured: Option<(Nanos, Nanos)>,
    active: PerDirection<Option<(Nanos, Nanos)>>,
    /// The first and last time of any tick.
    seen: Option<(Nanos, Nanos)>,
    syncs: Moments,
    sync_bins: BinSums,
    depth: DepthCounts,
    failures: Vec<Failures>,
    /// I/Os and bytes of the measured part as received: a second count for comparison with the sums.
    passed: PerDirection<(u64, u64)>,
    /// Bytes of all parts, for the comparison with the kernel's count.
    moved: PerDirection<u64>,
    end: Option<WorkerEnd>,
    notes: Vec<String>,
    error: Option<(i32, String)>,
}

impl Collected {
    pub(super) fn new(number: u32, planned: PlannedWorker, job: &Job) -> Self {
        let targets = planned.targets.iter().map(Self::target).collect();
        let windows = || (Windows::new(job.report.bandwidth_window), Windows::new(job.report.iops_window));
        Self {
            number,
            name: job.name.clone(),
            targets,
            windows: PerDirection([windows(), windows(), windows()]),
            measured: None,
            active: PerDirection::default(),
            seen: None,
            syncs: Moments::default(),
            sync_bins: BinSums::default(),
            depth: DepthCounts::default(),
            failures: Vec::new(),
            passed: PerDirection::default(),
            moved: PerDirection::default(),
            end: None,
            notes: Vec::new(),
            error: None,
            planned,
        }
    }

    fn target(target: &Target) -> TargetOutcome {
        TargetOutcome {
            path: target.path.clone(),
            device: target.device.clone(),
            directions: PerDirection::default(),
        }
    }

    /// Adds a tick, which must follow the last one.
    pub(super) fn tick(&mut self, tick: &Tick) -> Result<()> {
        let wrong = |what: String| {
            Err(Error::Disagreement(format!("job {:?}, worker {}: {what}", self.name, self.number)))
        };
        let last = self.seen.map_or(0, |seen| seen.1);
        if tick.from < last || tick.to < tick.from {
            return wrong(format!(
                "a tick covers {} to {} ns, but the previous tick ended at {last} ns",
                tick.from, tick.to
            ));
        }
        if tick.targets.len() > self.targets.len() {
            let (found, known) = (tick.targets.len(), self.targets.len());
            return wrong(format!("a tick reports {found} targets, but the worker has {known}"));
        }
        self.seen = Some((self.seen.map_or(tick.from, |seen| seen.0), tick.to));
        let tallies = || tick.targets.iter().flat_map(PerDirection::iter);
        for (direction, tally) in tallies() {
            self.moved[direction] += tally.as_ref().map_or(0, |tally| tally.bytes);
        }
        if tick.part != LoadPart::Measured {
            return Ok(());
        }
        let mut sums: PerDirection<(u64, u64)> = PerDirection::default();
        for (outcome, target) in self.targets.iter_mut().zip(&tick.targets) {
            for (direction, tally) in target.iter() {
                let Some(tally) = tally else { continue };
                outcome.directions[direction].add(tally);
                sums[direction].0 += tally.ios;
                sums[direction].1 += tally.bytes;
            }
        }
        let time = tick.to - tick.from;
        for direction in Direction::ALL {
            let (ios, bytes) = sums[direction];
            self.passed[direction].0 += ios;
            self.passed[direction].1 += bytes;
            let (bandwidth, iops) = &mut self.windows[direction];
            bandwidth.add(time, bytes as f64 / 1024.0);
            iops.add(time, ios as f64);
            if ios > 0 {
                extend(&mut self.active[direction], tick);
            }
        }
        extend(&mut self.measured, tick);
        self.syncs.merge(&tick.syncs);
        if let Some(bins) = &tick.sync_bins {
            self.sync_bins.add(bins);
        }
        self.depth.merge(&tick.depth);
        for failures in &tick.failures {
            let same = |f: &&mut Failures| {
                (f.target, f.direction, f.number) == (failures.target, failures.direction, failures.number)
            };
            match self.failures.iter_mut().find(same) {
                Some(known) => known.count += failures.count,
                None => self.failures.push(failures.clone()),
            }
        }
        Ok(())
    }

    /// Processes the final message of the worker.
    pub(super) fn end(&mut self, end: WorkerEnd) {
        if self.error.is_none() {
            self.error.clone_from(&end.error);
        }
        // A second end comes only from a thread that panicked after its worker had ended.
        self.end.get_or_insert(end);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Records an error that the worker itself did not report.
    pub(super) fn fail(&mut self, number: i32, problem: String) {
        self.error.get_or_insert((number, problem));
    }

    pub(super) fn failed(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The beginning of the first and the end of the last tick.
    pub(super) fn course(&self) -> Option<(Nanos, Nanos)> {
        let course = self.end.as_ref().map(|end| end.course).filter(|course| course.1 > 0);
        course.or(self.seen)
    }

    /// Bytes of all its ticks.
    pub(super) fn moved(&self) -> &PerDirection<u64> {
        &self.moved
    }

    /// The result. `origin` is the start of the run in milliseconds since 1970.
    pub(super) fn outcome(
        self,
        origin: i64,
        steady: Option<crate::result::SteadyOutcome>,
    ) -> Result<WorkerOutcome> {
        self.check()?;
        let course = self.course();
        let end = self.end.unwrap_or_default();
        let length = |course: Option<(Nanos, Nanos)>| course.map_or(0, |(from, to)| to.saturating_sub(from));
        let mut notes = end.notes;
        notes.extend(self.notes);
        Ok(WorkerOutcome {
            job: self.planned.job,
            clone: self.planned.clone,
            group: self.planned.group,
            thread: end.thread,
            started: course.map(|(from, _)| origin + (from / 1_000_000) as i64),
            elapsed: length(course),
            measured: length(self.measured),
            runtime: PerDirection(self.active.0.map(length)),
            targets: self.targets,
            verified: end.verified,
            bandwidth: PerDirection(self.windows.0.each_ref().map(|(bandwidth, _)| bandwidth.samples())),
            iops: PerDirection(self.windows.0.each_ref().map(|(_, iops)| iops.samples())),
            syncs: self.syncs,
            sync_bins: self.sync_bins,
            depth: self.depth,
            cpu: end.cpu,
            run_delay: end.run_delay,
            counted: end.counted,
            switches: end.switches,
            faults: end.faults,
            failures: self.failures,
            error: self.error,
            latency_depth: end.latency_depth,
            steady,
            notes,
        })
    }

    /// Checks the invariants of every result: the sums equal the received counts, and each counted time is in a bin.
    fn check(&self) -> Result<()> {
        let mut sums: PerDirection<DirectionOutcome> = PerDirection::default();
        for target in &self.targets {
            for (direction, outcome) in target.directions.iter() {
                sums[direction].merge(outcome);
            }
        }
        for (direction, sum) in sums.iter() {
            let passed = self.passed[direction];
            let times = sum.completion_bins.count();
            let problem = if (sum.ios, sum.bytes) != passed {
                format!(
                    "the totals are {} I/Os and {} bytes, but the ticks add up to {} and {}",
                    sum.ios, sum.bytes, passed.0, passed.1
                )
            } else if sum.completion.count > sum.ios {
                format!("{} completion times were recorded for {} I/Os", sum.completion.count, sum.ios)
            } else if times > 0 && times != sum.completion.count {
                format!(
                    "the histogram contains {times} completion times, but {} were counted",
                    sum.completion.count
                )
            } else {
                continue;
            };
            let place = format!("job {:?}, worker {}, {direction}", self.name, self.number);
            return Err(Error::Disagreement(format!("{place}: {problem}")));
        }
        Ok(())
    }
}

/// Extends a time span by a tick.
fn extend(stretch: &mut Option<(Nanos, Nanos)>, tick: &Tick) {
    *stretch = Some((stretch.map_or(tick.from, |(from, _)| from), tick.to));
}
