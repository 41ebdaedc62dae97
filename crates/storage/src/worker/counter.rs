//! Counts between two ticks, and the sums of all ticks of a worker, which must agree with the worker's own counts.

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use crate::job::ReportOptions;
use crate::tick::{DepthCounts, Failures, PriorityTimes, Tally, Tick};
use crate::{Bins, Direction, Moments, PerDirection};

/// The times of I/Os that were submitted together and ended together.
#[derive(Debug, Clone, Copy)]
pub(super) struct IoTimes {
    /// 0 for an engine whose call returns when the I/O has ended.
    pub(super) submission: Nanos,
    pub(super) completion: Nanos,
    pub(super) total: Nanos,
}

/// The times that are recorded.
#[derive(Debug, Clone, Copy)]
struct Taken {
    submission: bool,
    completion: bool,
    total: bool,
    submission_bins: bool,
    total_bins: bool,
    response: bool,
}

/// Counts.
#[derive(Debug)]
pub(super) struct Counter {
    tick: Box<Tick>,
    /// Tallies that a tick did not need, for reuse.
    #[allow(clippy::vec_box, reason = "the boxes themselves are kept as part of a tick")]
    spare: Vec<Box<Tally>>,
    taken: Taken,
    synchronous: bool,
    /// Sums of the completed ticks: I/Os and bytes by direction.
    pub(super) done: PerDirection<(u64, u64)>,
    /// I/Os that failed.
    pub(super) failed: u64,
    /// I/Os that were abandoned.
    pub(super) dropped: u64,
    /// The sum of all total times, for Little's law.
    pub(super) in_flight: u128,
}

impl Counter {
    pub(super) fn new(
        worker: u32,
        targets: usize,
        report: &ReportOptions,
        response: bool,
        synchronous: bool,
        from: Nanos,
    ) -> Self {
        let disabled = report.disabled;
        let taken = Taken {
            // A call that returns when the I/O has ended has no separate submission time.
            submission: !disabled.submission && !synchronous,
            completion: !disabled.completion,
            total: !disabled.latency,
            submission_bins: report.submission_percentiles && !disabled.submission && !synchronous,
            total_bins: report.total_percentiles && !disabled.latency,
            response,
        };
        let tick = Box::new(blank(worker, targets, from));
        let (done, failed, dropped, in_flight) = (PerDirection::default(), 0, 0, 0);
        Self { tick, spare: Vec::new(), taken, synchronous, done, failed, dropped, in_flight }
    }

    /// When the current tick began.
    pub(super) fn from(&self) -> Nanos {
        self.tick.from
    }

    /// Counts `ios` I/Os of `bytes` together that had the same times.
    #[inline]
    pub(super) fn record(&mut self, target: u32, direction: Direction, ios: u32, bytes: u64, times: IoTimes) {
        let (taken, synchronous) = (self.taken, self.synchronous);
        let tally = self.tally(target, direction);
        tally.ios += u64::from(ios);
        tally.bytes += bytes;
        if !synchronous {
            tally.submission.record_many(times.submission, u64::from(ios));
            // Without submission times these are the completion times, and are copied when the tick is cut.
            tally.total.record_many(times.total, u64::from(ios));
        }
        tally.completion.record_many(times.completion, u64::from(ios));
        tally.completion_bins.record_many(times.completion, ios);
        if taken.submission_bins | taken.total_bins {
            if let Some(bins) = &mut tally.submission_bins {
                bins.record_many(times.submission, ios);
            }
            if let Some(bins) = &mut tally.total_bins {
                bins.record_many(times.total, ios);
            }
        }
    }

    /// Records the time of an I/O with this priority.
    pub(super) fn prioritized(&mut self, target: u32, direction: Direction, priority: u16, times: IoTimes) {
        let nanos = if self.taken.total_bins { times.total } else { times.completion };
        let known = &mut self.tally(target, direction).priorities;
        let place = known.iter().position(|one| one.priority == priority).unwrap_or_else(|| {
            known.push(PriorityTimes { priority, times: Moments::default(), bins: Bins::default() });
            known.len() - 1
        });
        known[place].times.record(nanos);
        known[place].bins.record(nanos);
    }

    /// Records the time of an I/O from its intended start.
    pub(super) fn respond(&mut self, target: u32, direction: Direction, response: Nanos) {
        let tally = self.tally(target, direction);
        tally.response.record(response);
        if let Some(bins) = &mut tally.response_bins {
            bins.record(response);
        }
    }

    /// The tally of a target and direction, created on first use.
    #[inline]
    pub(super) fn tally(&mut self, target: u32, direction: Direction) -> &mut Tally {
        let (taken, spare) = (self.taken, &mut self.spare);
        // `blank` created an entry for every target of the job.
        let place = &mut self.tick.targets[target as usize][direction];
        place.get_or_insert_with(|| spare.pop().unwrap_or_else(|| fresh(taken)))
    }

    /// Counts an issued I/O; `under_way` is the number in flight, including it.
    #[inline]
    pub(super) fn issued(&mut self, under_way: u32) {
        self.tick.depth.sum += u64::from(under_way);
        // 1, 2, 4 … 64 and above, by the next power of two above.
        let class = (32 - under_way.saturating_sub(1).leading_zeros()).min(6);
        self.tick.depth.at[class as usize] += 1;
    }

    /// Counts a call that submitted `count` I/Os.
    #[inline]
    pub(super) fn submitted(&mut self, count: usize) {
        self.tick.depth.submitted[batch_class(count)] += 1;
    }

    /// Counts a call that returned `count` completions.
    #[inline]
    pub(super) fn completed(&mut self, count: usize) {
        self.tick.depth.completed[batch_class(count)] += 1;
    }

    /// Counts a completed sync.
    pub(super) fn synced(&mut self, took: Nanos) {
        self.tick.syncs.record(took);
        self.tick.sync_bins.get_or_insert_default().record(took);
    }

    /// Counts a failed I/O or sync.
    pub(super) fn fail(&mut self, failure: Failures) {
        if let Some(direction) = failure.direction {
            self.tally(failure.target, direction).failed += 1;
        }
        let same = |one: &&mut Failures| {
            (one.target, one.direction, one.number) == (failure.target, failure.direction, failure.number)
        };
        match self.tick.failures.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => self.tick.failures.push(failure),
        }
    }

    /// Ends the tick at `to`: returns its content, ready to be sent, and begins a new one.
    pub(super) fn cut(&mut self, to: Nanos, part: LoadPart, spare: Option<Box<Tick>>) -> Box<Tick> {
        let (worker, targets) = (self.tick.worker, self.tick.targets.len());
        let fresh = match spare {
            Some(mut tick) => {
                recycle(&mut tick, worker, targets, to, self.taken);
                tick
            }
            None => Box::new(blank(worker, targets, to)),
        };
        let mut tick = std::mem::replace(&mut self.tick, fresh);
        (tick.to, tick.part) = (to, part);
        for target in &mut tick.targets {
            for (place, done) in target.0.iter_mut().zip(&mut self.done.0) {
                // A tally that was created for an earlier tick and not used in this one is empty.
                if place.as_ref().is_some_and(|tally| is_blank(tally)) {
                    self.spare.extend(place.take());
                }
                let Some(tally) = place else { continue };
                if self.synchronous {
                    tally.total = tally.completion;
                    if let Some(bins) = &mut tally.total_bins {
                        bins.clone_from(&tally.completion_bins);
                    }
                }
                self.in_flight += u128::from(tally.total.sum);
                self.failed += tally.failed;
                self.dropped += tally.dropped;
                done.0 += tally.ios;
                done.1 += tally.bytes;
                let taken = self.taken;
                for (wanted, moments) in [
                    (taken.submission, &mut tally.submission),
                    (taken.completion, &mut tally.completion),
                    (taken.total, &mut tally.total),
                ] {
                    if !wanted {
                        *moments = Moments::default();
                    }
                }
                if !taken.completion {
                    tally.completion_bins.clear();
                }
            }
        }
        tick
    }
}

/// 0, 1–4, 5–8, 9–16, 17–32, 33–64, above.
#[inline]
fn batch_class(count: usize) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        _ => ((usize::BITS - (count - 1).leading_zeros()) as usize - 1).min(6),
    }
}

fn blank(worker: u32, targets: usize, from: Nanos) -> Tick {
    Tick {
        worker,
        from,
        to: from,
        // Set when the tick is cut.
        part: LoadPart::Measured,
        targets: std::iter::repeat_with(PerDirection::default).take(targets).collect(),
        syncs: Moments::default(),
        sync_bins: None,
        depth: DepthCounts::default(),
        failures: Vec::new(),
    }
}

/// A tally with the histograms that are recorded.
fn fresh(taken: Taken) -> Box<Tally> {
    Box::new(Tally {
        total_bins: taken.total_bins.then(Bins::default),
        submission_bins: taken.submission_bins.then(Bins::default),
        response_bins: taken.response.then(Bins::default),
        ..Tally::default()
    })
}

fn is_blank(tally: &Tally) -> bool {
    tally.ios == 0 && tally.failed == 0 && tally.dropped == 0 && tally.short == 0
}

/// Resets a used tick, of this or another worker.
fn recycle(tick: &mut Tick, worker: u32, targets: usize, from: Nanos, taken: Taken) {
    (tick.worker, tick.from, tick.to) = (worker, from, from);
    tick.targets.resize_with(targets, PerDirection::default);
    for place in tick.targets.iter_mut().flat_map(|target| &mut target.0) {
        let Some(tally) = place else { continue };
        let Tally { mut completion_bins, mut total_bins, mut submission_bins, mut response_bins, .. } =
            std::mem::take(&mut **tally);
        completion_bins.clear();
        for (bins, wanted) in [
            (&mut total_bins, taken.total_bins),
            (&mut submission_bins, taken.submission_bins),
            (&mut response_bins, taken.response),
        ] {
            match bins {
                Some(bins) if wanted => bins.clear(),
                _ => *bins = wanted.then(Bins::default),
            }
        }
        **tally = Tally { completion_bins, total_bins, submission_bins, response_bins, ..Tally::default() };
    }
    tick.syncs = Moments::default();
    if let Some(bins) = &mut tick.sync_bins {
        bins.clear();
    }
    tick.depth = DepthCounts::default();
    tick.failures.clear();
}
