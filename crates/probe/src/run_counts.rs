//! Counts that grow during the run: the sums of its ticks, by job and second, and the counters at its beginning.

use std::time::{Duration, Instant};

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use super::counters::{self, Reading};
use kelvin_fio::tick::Tick;
use kelvin_fio::{Direction, PerDirection};

/// Interval between two readings of the kernel's threads.
const LOOK: Duration = Duration::from_millis(200);
/// The time that a value of a series covers.
const STEP: Nanos = 1_000_000_000;
/// Tolerance at the beginning and end of a second that counts as complete: clones do not begin simultaneously.
const HAIR: Nanos = STEP / 100;
/// Maximum number of values of a series while it grows: eleven days.
const MOST: usize = 1_000_000;
/// Maximum number of values of a stored series.
const KEPT: usize = 1000;

/// Counts that grow during the run. They are not stored.
#[derive(Debug, Clone, Default)]
pub struct RunCounts {
    /// The counters when the jobs began; until then those before layout.
    pub(crate) begun: Option<Reading>,
    /// Whether a worker has been started, and whether one does I/O.
    pub(crate) created: bool,
    pub(crate) running: bool,
    /// Files were laid out in this run.
    pub(crate) laid_out: bool,
    /// Bytes in all ticks.
    pub(crate) bytes: PerDirection<u64>,
    /// I/Os in all ticks.
    pub(crate) ios: PerDirection<u64>,
    /// The job of each worker.
    pub(crate) jobs: Vec<usize>,
    /// Bytes by second, by job.
    pub(crate) series: Vec<Series>,
    /// The largest number of kernel threads at a time.
    pub(crate) io_workers: u32,
    looked: Option<Instant>,
}

/// Bytes of a job by second of the measured part.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    /// Where seconds begin on the run's clock, so that the first begins with the job. Otherwise a run of two seconds
    /// would have only one complete second.
    offset: Option<Nanos>,
    first: usize,
    bytes: Vec<f64>,
    /// The beginning and end of each worker's measured part.
    workers: Vec<(u32, Nanos, Nanos)>,
}

impl Series {
    fn add(&mut self, tick: &Tick, bytes: u64) {
        match self.workers.iter_mut().find(|worker| worker.0 == tick.worker) {
            Some(worker) => worker.2 = worker.2.max(tick.to),
            None => self.workers.push((tick.worker, tick.from, tick.to)),
        }
        let offset = *self.offset.get_or_insert(tick.from % STEP);
        let length = tick.to.saturating_sub(tick.from);
        if bytes == 0 || length == 0 {
            return;
        }
        let (mut from, end) = (tick.from.saturating_sub(offset), tick.to.saturating_sub(offset));
        while from < end {
            let second = from / STEP;
            let to = ((second + 1) * STEP).min(end);
            let share = (to - from) as f64 / length as f64;
            if let Some(sum) = self.at(second as usize) {
                *sum += bytes as f64 * share;
            }
            from = to;
        }
    }

    fn at(&mut self, second: usize) -> Option<&mut f64> {
        if self.bytes.is_empty() {
            self.first = second;
        }
        if second < self.first {
            // A worker whose first tick came late may have begun before the others.
            let missing = self.first - second;
            if missing + self.bytes.len() > MOST {
                return None;
            }
            self.bytes.splice(..0, std::iter::repeat_n(0.0, missing));
            self.first = second;
        }
        let place = second - self.first;
        if place >= MOST {
            return None;
        }
        if place >= self.bytes.len() {
            self.bytes.resize(place + 1, 0.0);
        }
        self.bytes.get_mut(place)
    }

    /// Bytes per second of the complete seconds in which all workers measured, and the number of seconds per value.
    pub(crate) fn done(&self) -> (Vec<f64>, f64) {
        let offset = self.offset.unwrap_or(0);
        let begun = self.workers.iter().map(|worker| worker.1).max().unwrap_or(0).saturating_sub(offset);
        let ended = self.workers.iter().map(|worker| worker.2).min().unwrap_or(0).saturating_sub(offset);
        let (from, to) =
            (begun.saturating_sub(HAIR).div_ceil(STEP) as usize, ((ended + HAIR) / STEP) as usize);
        let mut values: Vec<f64> = (from..to)
            .map(|second| {
                let place = second.checked_sub(self.first);
                place.and_then(|place| self.bytes.get(place)).copied().unwrap_or(0.0)
            })
            .collect();
        let mut step = 1.0;
        while values.len() > KEPT {
            values = values.chunks(2).map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).collect();
            step *= 2.0;
        }
        (values, step)
    }
}

impl RunCounts {
    pub(crate) fn take(&mut self, tick: &Tick) {
        let mut sum = 0;
        for directions in &tick.targets {
            for (direction, tally) in directions.iter() {
                if let Some(tally) = tally {
                    self.bytes[direction] += tally.bytes;
                    self.ios[direction] += tally.ios;
                    if direction != Direction::Trim {
                        sum += tally.bytes;
                    }
                }
            }
        }
        let Some(job) = self.jobs.get(tick.worker as usize) else { return };
        if tick.part == LoadPart::Measured
            && let Some(series) = self.series.get_mut(*job)
        {
            series.add(tick, sum);
        }
    }

    pub(crate) fn look(&mut self) {
        if self.running && self.looked.is_none_or(|looked| looked.elapsed() > LOOK) {
            self.io_workers = self.io_workers.max(counters::io_workers());
            self.looked = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick of the measured part, in milliseconds.
    fn tick(worker: u32, from: Nanos, to: Nanos) -> Tick {
        Tick {
            worker,
            from: from * 1_000_000,
            to: to * 1_000_000,
            part: LoadPart::Measured,
            targets: Vec::new(),
            syncs: kelvin_fio::Moments::default(),
            sync_bins: None,
            depth: kelvin_fio::tick::DepthCounts::default(),
            failures: Vec::new(),
        }
    }

    #[test]
    fn seconds_begin_with_the_job_and_not_with_the_clock() {
        let mut series = Series::default();
        for half in 0..4 {
            series.add(&tick(0, 700 + half * 500, 1200 + half * 500), 50);
        }
        assert_eq!(series.done(), (vec![100.0, 100.0], 1.0));
        // A clone that begins slightly later leaves the first second complete; one that begins much later does not.
        let mut late = series.clone();
        for half in 0..4 {
            late.add(&tick(1, 703 + half * 500, 1203 + half * 500), 50);
        }
        assert_eq!(late.done().0.len(), 2);
        let mut later = series.clone();
        for half in 0..4 {
            later.add(&tick(1, 900 + half * 500, 1400 + half * 500), 50);
        }
        assert_eq!(later.done().0.len(), 1);
    }
}
