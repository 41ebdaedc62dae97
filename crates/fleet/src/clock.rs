//! Estimates the offset between two hosts' clocks from exchanges of messages, with a guaranteed bound.
//!
//! The controller records `t0`, the agent answers with the times `t1` and `t2` of its own clock, and the
//! controller records `t3`. In the middle of the exchange the agent's clock minus the controller's is
//! ((t1−t0)+(t2−t3))/2, with an error of at most half the time that the messages took, however that time was
//! divided between them (RFC 5905, section 8). An exchange is therefore an interval that contains the offset.
//! If the rates of the clocks differ by a constant, the offsets are on a line through all these intervals.
//! The possible lines bound the offset at every other moment, without any assumption about the distribution
//! of delays.

use kelvin_measure::Nanos;
use serde::{Deserialize, Serialize};

/// The largest assumed drift between two clocks: 200 ppm, twice the deviation of a bad quartz.
const MOST_DRIFT: f64 = 200e-6;

/// Iterations of a search on an interval. Each reduces the interval to a half or to two thirds.
const STEPS: u32 = 100;

/// The largest number of stored exchanges; beyond it the slower one of each pair of neighbours is dropped.
const KEPT: usize = 512;

/// An exchange: two times of the controller's clock, and two of the agent's in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// The controller sent the request, by its clock.
    pub(crate) t0: Nanos,
    /// The agent received the request, by its clock.
    pub(crate) t1: Nanos,
    /// The agent sent the answer, by its clock.
    pub(crate) t2: Nanos,
    /// The controller received the answer, by its clock.
    pub(crate) t3: Nanos,
}

impl Exchange {
    /// The time that the messages took; `None` if the times are out of order.
    pub(crate) fn delay(&self) -> Option<Nanos> {
        let whole = self.t3.checked_sub(self.t0)?;
        whole.checked_sub(self.t2.checked_sub(self.t1)?)
    }

    /// The agent's clock minus the controller's at [`Exchange::middle`].
    fn offset(&self) -> i128 {
        let forth = i128::from(self.t1) - i128::from(self.t0);
        let back = i128::from(self.t2) - i128::from(self.t3);
        i128::midpoint(forth, back)
    }

    fn middle(&self) -> Nanos {
        self.t0.midpoint(self.t3)
    }
}

/// The estimate of an agent's clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClockEstimate {
    exchanges: Vec<Exchange>,
    /// The number of exchanges, including dropped ones.
    count: u32,
}

/// The agent's clock minus the controller's at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offset {
    /// The middle of the possible range, in nanoseconds.
    pub(crate) nanos: i128,
    /// The largest possible error, in nanoseconds.
    pub(crate) bound: Nanos,
    /// Nanoseconds per second that the agent's clock gains on the controller's: the middle of the possible
    /// range.
    pub(crate) drift: f64,
}

impl ClockEstimate {
    /// Adds an exchange; one with impossible times is ignored.
    pub(crate) fn add(&mut self, exchange: Exchange) {
        if exchange.delay().is_none() {
            return;
        }
        self.count += 1;
        self.exchanges.push(exchange);
        if self.exchanges.len() > KEPT {
            let faster = |pair: &[Exchange]| pair.iter().min_by_key(|exchange| exchange.delay()).copied();
            self.exchanges = self.exchanges.chunks(2).filter_map(faster).collect();
        }
    }

    /// The number of exchanges.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The shortest time that the messages of an exchange took.
    pub(crate) fn smallest_delay(&self) -> Option<Nanos> {
        self.exchanges.iter().filter_map(Exchange::delay).min()
    }

    /// The offset when the controller's clock shows `at`; `None` without an exchange.
    pub(crate) fn at(&self, at: Nanos) -> Option<Offset> {
        let base = self.exchanges.first()?.offset();
        let strips: Vec<Strip> =
            self.exchanges.iter().map(|exchange| Strip::from_exchange(exchange, base, at)).collect();
        let (low, high, drift) = feasible(&strips).unwrap_or_else(|| loose(&strips));
        let middle = f64::midpoint(low, high);
        Some(Offset {
            nanos: base + middle.round() as i128,
            // Rounding changes the bound by less than a nanosecond.
            bound: (((high - low) / 2.0).ceil() as Nanos).saturating_add(1),
            drift: drift * 1e9,
        })
    }
}

/// The offsets that an exchange allows, relative to a base. Its moment is relative to the requested one.
#[derive(Debug, Clone, Copy)]
struct Strip {
    at: f64,
    low: f64,
    high: f64,
}

impl Strip {
    fn from_exchange(exchange: &Exchange, base: i128, at: Nanos) -> Self {
        let (middle, half) = ((exchange.offset() - base) as f64, exchange.delay().unwrap_or(0) as f64 / 2.0);
        // The agent's part of an exchange is short: the clocks drift by less than a nanosecond in it.
        let at = exchange.middle() as f64 - at as f64;
        Self { at, low: middle - half - 1.0, high: middle + half + 1.0 }
    }
}

/// The lowest and the highest offset at the requested moment, over all lines through every strip, and the
/// middle of their slopes. `None` when no line exists, because the rate was not constant.
fn feasible(strips: &[Strip]) -> Option<(f64, f64, f64)> {
    let highest = |slope: f64| strips.iter().map(|s| s.high - slope * s.at).fold(f64::INFINITY, f64::min);
    let lowest = |slope: f64| strips.iter().map(|s| s.low - slope * s.at).fold(f64::NEG_INFINITY, f64::max);
    // This is concave, so the possible slopes are one interval.
    let room = |slope: f64| highest(slope) - lowest(slope);
    let best = maximum(-MOST_DRIFT, MOST_DRIFT, room);
    if room(best) < 0.0 {
        return None;
    }
    let (least, most) = (border(best, -MOST_DRIFT, room), border(best, MOST_DRIFT, room));
    let high = highest(maximum(least, most, highest));
    let low = lowest(maximum(least, most, |slope| -lowest(slope)));
    Some((low.min(high), high.max(low), f64::midpoint(least, most)))
}

/// The same for a rate that may change within [`MOST_DRIFT`]. If that is impossible too, a clock has jumped
/// or drifts faster; then the offset may be anywhere between the lowest and the highest that the exchanges
/// allow.
fn loose(strips: &[Strip]) -> (f64, f64, f64) {
    let apart = |strip: &Strip| MOST_DRIFT * strip.at.abs();
    let high = strips.iter().map(|s| s.high + apart(s)).fold(f64::INFINITY, f64::min);
    let low = strips.iter().map(|s| s.low - apart(s)).fold(f64::NEG_INFINITY, f64::max);
    if low <= high {
        return (low, high, 0.0);
    }
    // The moment may belong to the exchange before or after it, and one of them may be much further away than
    // the other.
    let nearest =
        |before: bool| strips.iter().filter(|strip| (strip.at <= 0.0) == before).map(apart).reduce(f64::min);
    let nearest = [nearest(true), nearest(false)].into_iter().flatten().fold(0.0, f64::max);
    let high = strips.iter().map(|s| s.high).fold(f64::NEG_INFINITY, f64::max);
    let low = strips.iter().map(|s| s.low).fold(f64::INFINITY, f64::min);
    (low - nearest, high + nearest, 0.0)
}

/// The maximum point of a concave function on an interval.
fn maximum(mut from: f64, mut to: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let third = (to - from) / 3.0;
        if function(from + third) < function(to - third) {
            from += third;
        } else {
            to -= third;
        }
    }
    f64::midpoint(from, to)
}

/// The last possible slope from `inside` towards `outside`.
fn border(inside: f64, outside: f64, room: impl Fn(f64) -> f64) -> f64 {
    if room(outside) >= 0.0 {
        return outside;
    }
    let (mut inside, mut outside) = (inside, outside);
    for _ in 0..STEPS {
        let middle = f64::midpoint(inside, outside);
        if room(middle) >= 0.0 {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    // The impossible side, so that rounding does not make the bound too small.
    outside
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A clock that is off by `shift` at the controller's time 0 and gains `drift` nanoseconds per
    /// nanosecond.
    fn agent_time(at: Nanos, shift: i64, drift: f64) -> Nanos {
        (at as i128 + i128::from(shift) + (at as f64 * drift).round() as i128) as Nanos
    }

    fn estimate(shift: i64, drift: f64, exchanges: &[(u64, u64, u64)]) -> ClockEstimate {
        let mut estimate = ClockEstimate::default();
        for &(start, forth, back) in exchanges {
            let t0 = 10_000_000_000 + start;
            let (arrives, leaves) = (t0 + forth, t0 + forth + 1_000);
            estimate.add(Exchange {
                t0,
                t1: agent_time(arrives, shift, drift),
                t2: agent_time(leaves, shift, drift),
                t3: leaves + back,
            });
        }
        estimate
    }

    /// The clock is set back by 0.1 s just after an exchange, and the next one follows 2 s later.
    #[test]
    fn a_moment_beside_one_exchange_may_belong_to_the_next() {
        let (drift, jumps, at) = (180e-6, 34_000_001_001, 34_000_525_439);
        let shown =
            |at: Nanos| agent_time(at, 5_000_000_000 + if at >= jumps { -100_000_002_i64 } else { 0 }, drift);
        let mut estimate = ClockEstimate::default();
        for t0 in (10_000_000_000..70_000_000_000).step_by(2_000_000_000) {
            let t1 = shown(t0 + 1_000);
            estimate.add(Exchange { t0, t1, t2: t1 + 1_000, t3: t0 + 3_000 });
        }
        let offset = estimate.at(at).unwrap();
        let error = (offset.nanos - (shown(at) as i128 - at as i128)).unsigned_abs();
        assert!(error <= u128::from(offset.bound) + 8, "{offset:?}, {error} off");
    }

    proptest! {
        /// The true offset is within the bound at any moment, for all delays and however they are divided.
        #[test]
        fn the_bound_holds(
            shift in -3_000_000_000_i64..3_000_000_000,
            drift in -190e-6_f64..190e-6,
            exchanges in prop::collection::vec((0_u64..60_000_000_000, 1_000_u64..5_000_000, 1_000_u64..5_000_000), 1..60),
            at in 10_000_000_000_u64..80_000_000_000,
        ) {
            let offset = estimate(shift, drift, &exchanges).at(at).unwrap();
            let real = agent_time(at, shift, drift) as i128 - at as i128;
            let error = (offset.nanos - real).unsigned_abs();
            prop_assert!(error <= u128::from(offset.bound) + 8, "{offset:?}, really {real}");
        }

        /// This also holds at all moments between exchanges for a clock that jumps, or drifts faster than
        /// assumed.
        #[test]
        fn the_bound_holds_for_a_clock_that_jumps_or_runs_away(
            (drift, jump) in prop_oneof![
                (300e-6_f64..2000e-6, Just(0_i64)),
                (-2000e-6_f64..-300e-6, Just(0)),
                (-190e-6_f64..190e-6, 100_000_000_i64..3_000_000_000),
                (-190e-6_f64..190e-6, -3_000_000_000_i64..-100_000_000),
            ],
            delays in prop::collection::vec((1_000_u64..100_000, 1_000_u64..100_000), 30),
            jumps in 12_500_000_000_u64..66_000_000_000,
            at in 10_500_000_000_u64..67_500_000_000,
        ) {
            let shown = |at: Nanos| agent_time(at, 5_000_000_000 + if at >= jumps { jump } else { 0 }, drift);
            let mut estimate = ClockEstimate::default();
            for (t0, (forth, back)) in (10_000_000_000..).step_by(2_000_000_000).zip(delays) {
                let (t1, t2) = (shown(t0 + forth), shown(t0 + forth) + 1_000);
                estimate.add(Exchange { t0, t1, t2, t3: t0 + forth + 1_000 + back });
            }
            let offset = estimate.at(at).unwrap();
            let error = (offset.nanos - (shown(at) as i128 - at as i128)).unsigned_abs();
            prop_assert!(error <= u128::from(offset.bound) + 8, "{offset:?}, {error} off");
        }

        /// Whatever times an agent reports, in any order: there is a bound, or no estimate.
        #[test]
        fn times_that_no_clock_shows_break_nothing(
            exchanges in prop::collection::vec((any::<u64>(), edge(), edge(), any::<u64>()), 0..700),
            at in edge(),
        ) {
            let mut estimate = ClockEstimate::default();
            for &(t0, t1, t2, t3) in &exchanges {
                estimate.add(Exchange { t0, t1, t2, t3 });
            }
            let possible = exchanges.iter().filter(|(t0, t1, t2, t3)| t3 >= t0 && t2 >= t1 && t3 - t0 >= t2 - t1);
            prop_assert_eq!(estimate.count() as usize, possible.count());
            prop_assert_eq!(estimate.at(at).is_some(), estimate.count() > 0);
        }

        /// Additional exchanges do not make the bound larger, apart from rounding.
        #[test]
        fn more_exchanges_never_loosen_the_bound(
            drift in -150e-6_f64..150e-6,
            exchanges in prop::collection::vec((0_u64..20_000_000_000, 50_000_u64..900_000, 50_000_u64..900_000), 2..40),
        ) {
            let at = 20_000_000_000;
            let few = estimate(5, drift, &exchanges[..=exchanges.len() / 2]).at(at).unwrap();
            let all = estimate(5, drift, &exchanges).at(at).unwrap();
            prop_assert!(all.bound <= few.bound + 2, "{all:?} after {few:?}");
        }
    }

    fn edge() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0..1_000_000_u64]
    }

    #[test]
    fn drift_is_found_and_carried_on() {
        let exchanges: Vec<_> = (0..20).map(|n| (n * 500_000_000, 100_000 + n * 1_000, 120_000)).collect();
        let estimate = estimate(3_000_000_000, 50e-6, &exchanges);
        let offset = estimate.at(15_000_000_000).unwrap();
        assert!((offset.drift - 50_000.0).abs() < 25_000.0, "{offset:?}");
        let real = 3_000_000_000 + 750_000;
        assert!((offset.nanos - real).unsigned_abs() <= u128::from(offset.bound), "{offset:?}");
        assert!(offset.bound < 200_000, "{offset:?}");
        assert_eq!((estimate.count(), estimate.smallest_delay()), (20, Some(220_000)));
    }

    #[test]
    fn impossible_times_are_no_exchange() {
        let mut estimate = ClockEstimate::default();
        estimate.add(Exchange { t0: 10, t1: 5, t2: 4, t3: 20 });
        estimate.add(Exchange { t0: 10, t1: 5, t2: 6, t3: 9 });
        estimate.add(Exchange { t0: 10, t1: 0, t2: 50, t3: 20 });
        assert_eq!(estimate.at(10), None);
    }

    #[test]
    fn a_clock_that_jumped_widens_the_bound_instead_of_hiding_it() {
        let mut estimate = estimate(0, 0.0, &[(0, 1_000, 1_000), (1_000, 1_000, 1_000)]);
        estimate.add(Exchange {
            t0: 10_000_005_000,
            t1: 11_000_006_000,
            t2: 11_000_006_000,
            t3: 10_000_007_000,
        });
        assert!(estimate.at(10_000_000_000).unwrap().bound > 400_000_000);
    }

    #[test]
    fn the_number_of_kept_exchanges_has_a_limit() {
        let many: Vec<_> = (0..3000).map(|n| (n * 10_000_000, 50_000 + n % 7 * 1_000, 50_000)).collect();
        let estimate = estimate(0, 1e-6, &many);
        assert!(estimate.exchanges.len() <= KEPT);
        assert_eq!(estimate.count(), 3000);
    }
}
