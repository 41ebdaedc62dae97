//! How far the jobs are, and how long they will take.

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use crate::event::WorkerState;
use crate::job::{Amount, Job, Jobs};
use crate::tick::Tick;

#[derive(Debug)]
struct Course {
    /// Jobs of a later stage begin when those of the earlier ones have ended.
    stage: usize,
    /// Ramp-up and runtime, where the job ends by time.
    time: Option<Nanos>,
    /// Whether it ends at that time and not when its bytes are done.
    by_time: bool,
    ramp: Nanos,
    /// Bytes in all, where that is known.
    bytes: Option<u64>,
    began: Option<Nanos>,
    ended: bool,
    moved: u64,
    /// Bytes a second of the last tick, to estimate the rest of a job that ends by its bytes.
    rate: f64,
}

impl Course {
    fn new(job: &Job, stage: usize) -> Self {
        let bytes = |amount: Option<Amount>| match amount {
            Some(Amount::Bytes(bytes)) if bytes > 0 => Some(bytes),
            _ => None,
        };
        let size = bytes(job.targets.io_size).or_else(|| bytes(job.targets.size));
        let course = &job.course;
        Self {
            stage,
            time: course.runtime.map(|runtime| course.ramp + runtime),
            by_time: course.time_based,
            ramp: course.ramp,
            bytes: size.map(|size| size.saturating_mul(course.loops.max(1))),
            began: None,
            ended: false,
            moved: 0,
            rate: 0.0,
        }
    }

    /// What is left at `now`, with what it took so far; none if unknown.
    fn remaining(&self, now: Nanos) -> Option<Nanos> {
        if self.ended {
            return Some(0);
        }
        let gone = self.began.map_or(0, |began| now.saturating_sub(began));
        let by_time = self.time.map(|time| time.saturating_sub(gone));
        if self.by_time {
            return by_time;
        }
        let by_bytes = self.bytes.filter(|_| self.rate > 0.0).map(|bytes| {
            let rest = bytes.saturating_sub(self.moved) as f64 / self.rate * 1e9;
            // In the ramp-up nothing counts yet.
            rest as Nanos + self.ramp.saturating_sub(gone)
        });
        match (by_time, by_bytes) {
            (Some(time), Some(bytes)) => Some(time.min(bytes)),
            (known, None) | (None, known) => known,
        }
    }
}

/// Of all workers.
#[derive(Debug)]
pub(super) struct Progress {
    workers: Vec<Course>,
    began: Option<Nanos>,
}

impl Progress {
    pub(super) fn new(jobs: &Jobs) -> Self {
        let (mut workers, mut stage) = (Vec::new(), 0);
        for job in &jobs.jobs {
            if (job.course.stonewall || job.course.wait_for.is_some()) && !workers.is_empty() {
                stage += 1;
            }
            for _ in 0..job.clones {
                workers.push(Course::new(job, stage));
            }
        }
        Self { workers, began: None }
    }

    pub(super) fn state(&mut self, worker: u32, state: WorkerState, now: Nanos) {
        let Some(course) = self.workers.get_mut(worker as usize) else { return };
        match state {
            WorkerState::RampUp | WorkerState::Running => {
                self.began.get_or_insert(now);
                course.began.get_or_insert(now);
            }
            WorkerState::Ended | WorkerState::Failed => course.ended = true,
            _ => {}
        }
    }

    pub(super) fn tick(&mut self, tick: &Tick) {
        let Some(course) = self.workers.get_mut(tick.worker as usize) else { return };
        let moved: u64 = tick
            .targets
            .iter()
            .flat_map(|directions| directions.0.iter().flatten())
            .map(|tally| tally.bytes)
            .sum();
        if tick.part == LoadPart::Measured {
            course.moved += moved;
        }
        let seconds = tick.to.saturating_sub(tick.from) as f64 / 1e9;
        if seconds > 0.0 {
            // Smoothed, so that the time left does not jump with every tick.
            let rate = moved as f64 / seconds;
            course.rate = if course.rate > 0.0 { course.rate * 0.7 + rate * 0.3 } else { rate };
        }
    }

    /// The time left: of each stage the longest, one stage after the other; none if a job has no estimate.
    pub(super) fn remaining(&self, now: Nanos) -> Option<Nanos> {
        let mut stages: Vec<Nanos> = Vec::new();
        for course in &self.workers {
            let rest = course.remaining(now)?;
            if stages.len() <= course.stage {
                stages.resize(course.stage + 1, 0);
            }
            if let Some(longest) = stages.get_mut(course.stage) {
                *longest = rest.max(*longest);
            }
        }
        Some(stages.iter().sum())
    }

    /// How much is done, 0 to 1.
    pub(super) fn share(&self, now: Nanos) -> Option<f64> {
        let gone = now.saturating_sub(self.began?) as f64;
        let rest = self.remaining(now)? as f64;
        if gone + rest > 0.0 { Some(gone / (gone + rest)) } else { None }
    }
}
