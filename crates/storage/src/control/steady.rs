//! `steadystate=`: whether a metric has stopped changing over the last window, by fio's criteria.

use std::collections::VecDeque;

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use crate::job::{SteadyFigure, SteadyState};
use crate::result::SteadyOutcome;
use crate::tick::Tick;

/// The I/O completed in one interval.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    ios: f64,
    bytes: f64,
    /// The sum of completion times and their number.
    times: (f64, f64),
}

/// A watched worker.
#[derive(Debug, Clone, Copy)]
struct Member {
    worker: u32,
    /// The time up to which its ticks were received; `None` before the first.
    known: Option<Nanos>,
    over: bool,
}

/// Watches the workers that are judged together: one, or a group that is reported together.
#[derive(Debug)]
pub(super) struct Watch {
    rule: SteadyState,
    members: Vec<Member>,
    /// Start of the first interval: the beginning of the measured part plus `ss_ramp`.
    origin: Option<Nanos>,
    /// The incomplete intervals; the first begins at `origin` + `done` intervals.
    open: VecDeque<Interval>,
    done: u64,
    /// The last window's intervals: I/Os per second, bytes per second, mean completion time.
    window: VecDeque<[f64; 3]>,
    verdict: SteadyWindow,
    attained: bool,
}

/// Result of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct SteadyWindow {
    criterion: f64,
    deviation: f64,
    slope: f64,
}

impl Watch {
    pub(super) fn new(rule: SteadyState, workers: impl IntoIterator<Item = u32>) -> Self {
        let members = workers.into_iter().map(|worker| Member { worker, known: None, over: false }).collect();
        Self {
            rule,
            members,
            origin: None,
            open: VecDeque::new(),
            done: 0,
            window: VecDeque::new(),
            verdict: SteadyWindow::default(),
            attained: false,
        }
    }

    /// The watched workers.
    pub(super) fn workers(&self) -> impl Iterator<Item = u32> {
        self.members.iter().map(|member| member.worker)
    }

    /// Adds a tick of one of the workers. True if the state is now steady: all of them must end.
    pub(super) fn tick(&mut self, tick: &Tick) -> bool {
        let Some(member) = self.members.iter_mut().find(|member| member.worker == tick.worker) else {
            return false;
        };
        member.known = Some(tick.to);
        if tick.part == LoadPart::Measured {
            let origin = *self.origin.get_or_insert(tick.from + self.rule.ramp);
            self.spread(tick, origin);
        }
        self.judge()
    }

    /// A worker has ended: no more ticks of it are expected.
    pub(super) fn over(&mut self, worker: u32) {
        for member in self.members.iter_mut().filter(|member| member.worker == worker) {
            member.over = true;
        }
    }

    /// Distributes a tick over the intervals that it overlaps, in proportion to time.
    fn spread(&mut self, tick: &Tick, origin: Nanos) {
        let mut all = Interval::default();
        for tally in tick.targets.iter().flat_map(|target| target.0.iter().flatten()) {
            all.ios += tally.ios as f64;
            all.bytes += tally.bytes as f64;
            all.times.0 += tally.completion.sum as f64;
            all.times.1 += tally.completion.count as f64;
        }
        let span = tick.to.saturating_sub(tick.from).max(1) as f64;
        let length = self.rule.interval;
        let first = origin + self.done * length;
        let mut from = tick.from.max(first);
        while from < tick.to {
            let index = ((from - first) / length) as usize;
            let to = tick.to.min(first + (index as u64 + 1) * length);
            if self.open.len() <= index {
                self.open.resize(index + 1, Interval::default());
            }
            let part = (to - from) as f64 / span;
            if let Some(interval) = self.open.get_mut(index) {
                interval.ios += all.ios * part;
                interval.bytes += all.bytes * part;
                interval.times.0 += all.times.0 * part;
                interval.times.1 += all.times.1 * part;
            }
            from = to;
        }
    }

    /// Evaluates the window after each complete interval.
    fn judge(&mut self) -> bool {
        let Some(origin) = self.origin else { return false };
        let length = self.rule.interval;
        // Workers that have not begun are ignored.
        let running = self.members.iter().filter(|member| !member.over).filter_map(|member| member.known);
        let Some(known) = running.min() else { return false };
        let seconds = length as f64 / 1e9;
        let size = (self.rule.window / length) as usize;
        while origin + (self.done + 1) * length <= known && !self.attained {
            let interval = self.open.pop_front().unwrap_or_default();
            self.done += 1;
            let time = if interval.times.1 > 0.0 { interval.times.0 / interval.times.1 } else { 0.0 };
            self.window.push_back([interval.ios / seconds, interval.bytes / seconds, time]);
            if self.window.len() > size {
                self.window.pop_front();
            }
            if self.window.len() == size {
                let figure = match self.rule.figure {
                    SteadyFigure::Iops => 0,
                    SteadyFigure::Bandwidth => 1,
                    SteadyFigure::Latency => 2,
                };
                let values: Vec<f64> = self.window.iter().map(|row| row[figure]).collect();
                self.verdict = verdict(&values, self.rule);
                // A device without any I/O is not steady.
                let moved = values.iter().any(|value| *value > 0.0);
                self.attained = moved && self.verdict.criterion.abs() < self.rule.limit;
                if self.attained {
                    return true;
                }
            }
        }
        false
    }

    /// The result.
    pub(super) fn outcome(&self) -> SteadyOutcome {
        let column = |at: usize| self.window.iter().filter_map(|row| row.get(at).copied()).collect();
        SteadyOutcome {
            attained: self.attained,
            criterion: self.verdict.criterion,
            max_deviation: self.verdict.deviation,
            slope: self.verdict.slope,
            iops: column(0),
            bandwidth: column(1),
            latency: column(2),
        }
    }
}

/// The largest deviation from the mean, and the slope of the least-squares line over the number of the interval. The
/// criterion is the requested one, in percent of the mean if so requested.
fn verdict(values: &[f64], rule: SteadyState) -> SteadyWindow {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let middle = (n - 1.0) / 2.0;
    let deviation = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    let (mut over, mut under) = (0.0, 0.0);
    for (x, value) in values.iter().enumerate() {
        over += (x as f64 - middle) * (value - mean);
        under += (x as f64 - middle).powi(2);
    }
    let slope = if under > 0.0 { over / under } else { 0.0 };
    let chosen = if rule.slope { slope } else { deviation };
    let criterion = match (rule.percent, mean > 0.0) {
        (false, _) => chosen,
        (true, true) => 100.0 * chosen / mean,
        (true, false) => 0.0,
    };
    SteadyWindow { criterion, deviation, slope }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::SECOND;

    use super::*;
    use crate::PerDirection;
    use crate::tick::Tally;

    fn rule(slope: bool, limit: f64, percent: bool) -> SteadyState {
        let figure = SteadyFigure::Iops;
        SteadyState { figure, slope, limit, percent, window: 4 * SECOND, ramp: 0, interval: SECOND }
    }

    fn tick(worker: u32, from: Nanos, to: Nanos, ios: u64) -> Tick {
        let tally = Tally { ios, bytes: ios * 4096, ..Tally::default() };
        Tick {
            worker,
            from,
            to,
            part: LoadPart::Measured,
            targets: vec![PerDirection([Some(Box::new(tally)), None, None])],
            syncs: crate::Moments::default(),
            sync_bins: None,
            depth: crate::tick::DepthCounts::default(),
            failures: Vec::new(),
        }
    }

    #[test]
    fn deviation_and_slope_are_those_of_the_textbook() {
        let values = [10.0, 12.0, 11.0, 15.0];
        let flat = verdict(&values, rule(false, 1.0, false));
        // Mean 12, Σ(x−1.5)(y−12) = 3 − 0 − 0.5 + 4.5 = 7, Σ(x−1.5)² = 5.
        assert_eq!(flat, SteadyWindow { criterion: 3.0, deviation: 3.0, slope: 1.4 });
        assert!((verdict(&values, rule(false, 1.0, true)).criterion - 25.0).abs() < 1e-12);
        assert!((verdict(&values, rule(true, 1.0, true)).criterion - 100.0 * 1.4 / 12.0).abs() < 1e-12);
    }

    #[test]
    fn a_group_is_steady_when_its_sum_is() {
        let mut watch = Watch::new(rule(false, 2.0, true), [3, 4, 9]);
        let mut attained_after = None;
        // One rises as the other falls; the first two seconds have more. The third never begins.
        for half in 0..16_u64 {
            let from = 5 * SECOND + half * SECOND / 2;
            let more = if half < 4 { 300 } else { 0 };
            let one = watch.tick(&tick(3, from, from + SECOND / 2, 100 + 10 * half + more));
            assert!(!one, "the other's tick of this time is not here yet");
            if watch.tick(&tick(4, from, from + SECOND / 2, 400 - 10 * half)) && attained_after.is_none() {
                attained_after = Some(half);
            }
        }
        assert_eq!(attained_after, Some(11), "the first full window without the first two seconds");
        let outcome = watch.outcome();
        assert!(outcome.attained);
        assert_eq!(outcome.iops.len(), 4);
        assert!(outcome.iops.iter().all(|iops| (iops - 1000.0).abs() < 1e-6), "{:?}", outcome.iops);
        assert!(outcome.bandwidth.iter().all(|bytes| (bytes - 4_096_000.0).abs() < 1e-3));
    }

    #[test]
    fn a_rising_figure_is_not_steady_and_a_tick_over_several_intervals_is_shared_among_them() {
        let mut watch = Watch::new(rule(true, 1.0, true), [0]);
        for second in 0..10 {
            assert!(!watch.tick(&tick(0, second * SECOND, (second + 1) * SECOND, 100 + 10 * second)));
        }
        assert!(!watch.outcome().attained);
        assert!((watch.outcome().slope - 10.0).abs() < 1e-9);
        let mut watch = Watch::new(rule(true, 1.0, true), [0]);
        assert!(watch.tick(&tick(0, 0, 8 * SECOND, 800)));
        assert_eq!(watch.outcome().iops, [100.0; 4]);
    }
}
