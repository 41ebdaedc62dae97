//! The result so far, written while the jobs run: `--status-interval`.

use std::io::Write;

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use crate::PerDirection;
use crate::job::Jobs;
use crate::output::{Format, OutputOptions, render_formats};
use crate::result::{JobsOutcome, Samples, TargetOutcome, WorkerOutcome};
use crate::tick::{DepthCounts, Tick};

/// Adds up the ticks as the result does, and writes intermediate results at intervals. Values that only the end of a
/// run provides (CPU time, switches, disks) are left out.
pub struct Dumps {
    interval: Nanos,
    next: Nanos,
    formats: Vec<Format>,
    out: Box<dyn Write + Send>,
    outcome: JobsOutcome,
    seen: bool,
}

impl Dumps {
    /// Every `interval`, in these formats, to `out`. `now` is on the run's clock, `started` is the clock of the day.
    pub fn new(
        jobs: &Jobs,
        interval: Nanos,
        now: Nanos,
        started: i64,
        formats: Vec<Format>,
        out: Box<dyn Write + Send>,
    ) -> Self {
        let mut group = 0;
        let mut workers = Vec::new();
        for (number, job) in jobs.jobs.iter().enumerate() {
            if number > 0 && (job.course.stonewall || job.course.new_group) {
                group += 1;
            }
            for clone in 0..job.clones {
                workers.push(worker(number, clone, group));
            }
        }
        let outcome = JobsOutcome {
            jobs: jobs.clone(),
            started,
            elapsed: 0,
            workers,
            disks: Vec::new(),
            interrupted: false,
        };
        Self { interval: interval.max(1), next: now + interval, formats, out, outcome, seen: false }
    }

    pub(super) fn tick(&mut self, tick: &Tick) {
        if tick.part != LoadPart::Measured {
            return;
        }
        let Some(worker) = self.outcome.workers.get_mut(tick.worker as usize) else { return };
        self.seen = true;
        let over = tick.to.saturating_sub(tick.from);
        worker.measured += over;
        worker.elapsed += over;
        let mut moved = PerDirection::<(u64, u64)>::default();
        for (place, directions) in tick.targets.iter().enumerate() {
            while worker.targets.len() <= place {
                // Only the layout code knows the names; the result has them.
                worker.targets.push(TargetOutcome {
                    path: format!("target {}", worker.targets.len()).into(),
                    device: None,
                    directions: PerDirection::default(),
                });
            }
            let Some(target) = worker.targets.get_mut(place) else { continue };
            for (direction, tally) in directions.iter() {
                if let Some(tally) = tally {
                    target.directions[direction].add(tally);
                    moved[direction].0 += tally.ios;
                    moved[direction].1 += tally.bytes;
                }
            }
        }
        for (direction, (ios, bytes)) in moved.iter().map(|(direction, moved)| (direction, *moved)) {
            let sums: u64 = worker.targets.iter().map(|target| target.directions[direction].ios).sum();
            if sums > 0 {
                worker.runtime[direction] += over;
            }
            if ios > 0 && over > 0 {
                let seconds = over as f64 / 1e9;
                worker.iops[direction].record(ios as f64 / seconds);
                worker.bandwidth[direction].record(bytes as f64 / 1024.0 / seconds);
            }
        }
        worker.syncs.merge(&tick.syncs);
        if let Some(bins) = &tick.sync_bins {
            worker.sync_bins.add(bins);
        }
        worker.depth.merge(&tick.depth);
        worker.failures.extend(tick.failures.iter().cloned());
    }

    pub(super) fn write_due(&mut self, now: Nanos) {
        if now < self.next {
            return;
        }
        self.next = now + self.interval;
        if !self.seen {
            return;
        }
        let options = OutputOptions { partial: true, ..OutputOptions::new() };
        if let Ok(text) = render_formats(&self.outcome, &self.formats, &options) {
            // A closed stream is ignored; the run continues.
            let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        }
    }
}

fn worker(job: usize, clone: u32, group: u32) -> WorkerOutcome {
    WorkerOutcome {
        job,
        clone,
        group,
        thread: 0,
        started: None,
        elapsed: 0,
        measured: 0,
        runtime: PerDirection::default(),
        targets: Vec::new(),
        verified: None,
        bandwidth: PerDirection([Samples::default(); 3]),
        iops: PerDirection([Samples::default(); 3]),
        syncs: crate::Moments::default(),
        sync_bins: crate::BinSums::default(),
        depth: DepthCounts::default(),
        cpu: (0, 0),
        run_delay: None,
        counted: 0,
        switches: (0, 0),
        faults: (0, 0),
        failures: Vec::new(),
        error: None,
        latency_depth: None,
        steady: None,
        notes: Vec::new(),
    }
}
