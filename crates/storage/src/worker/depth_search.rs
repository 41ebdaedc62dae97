//! `latency_target=`: searches for the largest depth that meets the latency target, window by window.

use kelvin_measure::Nanos;

use crate::job::LatencyGoal;

/// The result of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Continue with this depth; the flag is set if it is the result of the search.
    Depth(u32, bool),
    /// The window at the final depth has ended.
    Over,
}

/// The search.
#[derive(Debug)]
pub(super) struct Search {
    target: Nanos,
    window: Nanos,
    /// The share of I/Os that must meet the target, 0 to 1.
    share: f64,
    keep_running: bool,
    /// The largest depth known to meet it, and the smallest known not to.
    good: u32,
    bad: u32,
    depth: u32,
    found: bool,
    /// When the window ends.
    pub(super) next: Nanos,
    kept: u64,
    missed: u64,
}

impl Search {
    /// `None` without a target.
    pub(super) fn new(goal: &LatencyGoal, depth: u32, now: Nanos) -> Option<Self> {
        let target = goal.target?;
        let window = goal.window.max(1_000_000);
        Some(Self {
            target,
            window,
            share: goal.percentile.clamp(0.0, 100.0) / 100.0,
            keep_running: goal.keep_running,
            good: 0,
            bad: depth + 1,
            depth: 1,
            found: false,
            next: now + window,
            kept: 0,
            missed: 0,
        })
    }

    /// The current depth.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// The depth that was found: 0 if not even 1 meets the target; `None` until then.
    pub(super) fn result(&self) -> Option<u32> {
        self.found.then_some(self.good)
    }

    /// Whether times before the end of the search are excluded from the results.
    pub(super) fn is_apart(&self) -> bool {
        !self.keep_running
    }

    /// Records a completed I/O.
    #[inline]
    pub(super) fn record(&mut self, completion: Nanos) {
        if completion <= self.target { self.kept += 1 } else { self.missed += 1 }
    }

    /// Ends the window.
    pub(super) fn close(&mut self, now: Nanos) -> Step {
        let all = self.kept + self.missed;
        let good = all > 0 && self.kept as f64 >= self.share * all as f64;
        (self.kept, self.missed, self.next) = (0, 0, now + self.window);
        if self.found {
            if !self.keep_running {
                return Step::Over;
            }
            if good || self.depth == 1 {
                return Step::Depth(self.depth, true);
            }
            // The depth no longer meets the target: reduce it by one, and continue from there.
            self.good = self.depth - 1;
            self.depth = self.good;
            return Step::Depth(self.depth, true);
        }
        // A window without completions gives no result: wait for the next.
        if all == 0 {
            return Step::Depth(self.depth, false);
        }
        if good {
            self.good = self.depth;
        } else {
            self.bad = self.depth;
        }
        self.found = self.good + 1 >= self.bad;
        self.depth = if self.found {
            self.good.max(1)
        } else if self.bad_is_a_guess() {
            (self.good * 2).clamp(1, self.bad - 1)
        } else {
            self.good.midpoint(self.bad).max(1)
        };
        Step::Depth(self.depth, self.found)
    }

    /// No depth has failed yet: it is doubled.
    fn bad_is_a_guess(&self) -> bool {
        self.good == self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a device whose latency grows with the depth: 100 µs for each I/O in flight.
    fn search_depth(target: Nanos, most: u32) -> (Option<u32>, u32) {
        let goal = LatencyGoal {
            target: Some(target),
            window: 1_000_000,
            percentile: 99.0,
            ..LatencyGoal::default()
        };
        let mut search = Search::new(&goal, most, 0).unwrap();
        for windows in 1..100 {
            for _ in 0..100 {
                let depth = u64::from(search.depth());
                search.record(depth * 100_000);
            }
            if search.close(windows) == Step::Over {
                return (search.result(), windows as u32);
            }
        }
        panic!("no end: {search:?}");
    }

    #[test]
    fn the_largest_depth_that_keeps_the_target_is_found() {
        for (target, most, expected) in
            [(100_000, 32, 1), (700_000, 32, 7), (1_650_000, 64, 16), (99_000, 32, 0), (u64::MAX, 48, 48)]
        {
            let (depth, windows) = search_depth(target, most);
            assert_eq!(depth, Some(expected), "target {target}");
            assert!(windows < 20, "{windows} windows for {target}");
        }
    }
}
