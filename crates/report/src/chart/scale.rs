//! Axes: their ranges, their tick marks, and the positions of values.

use kelvin_measure::text::{coefficient, whole};

/// An axis before its range is known.
pub(crate) struct Axis {
    /// Its label, with the unit.
    pub(crate) label: String,
    /// Whether it is logarithmic.
    pub(crate) log: bool,
    /// Tick marks with their labels, in place of round numbers.
    pub(crate) ticks: Vec<(f64, String)>,
    /// Formats the label of a tick mark.
    words: fn(f64) -> String,
    /// Whether the axis ends at the last value and not at the next tick mark.
    ends: bool,
}

/// Nanoseconds with a suitable unit: an axis may range from nanoseconds to seconds.
fn time(nanos: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
    let (unit, size) = units.into_iter().find(|unit| nanos >= unit.1 * 0.999).unwrap_or(("ns", 1.0));
    format!("{} {unit}", number(nanos / size))
}

impl Axis {
    /// A linear axis from 0, with round numbers.
    pub(crate) fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: false, ticks: Vec::new(), words: number, ends: false }
    }

    /// A logarithmic axis.
    pub(crate) fn log(label: impl Into<String>) -> Self {
        Self { log: true, ..Self::linear(label) }
    }

    /// A logarithmic axis of nanoseconds.
    pub(crate) fn times(label: impl Into<String>) -> Self {
        Self { log: true, words: time, ..Self::linear(label) }
    }

    /// The same axis, ending at the last value.
    pub(crate) fn ending_with_data(self) -> Self {
        Self { ends: true, ..self }
    }

    /// The scale that contains these values.
    pub(crate) fn over(&self, values: impl Iterator<Item = f64>) -> Scale {
        let usable: Vec<f64> = values.filter(|v| v.is_finite() && (*v > 0.0 || !self.log)).collect();
        let most = usable.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // If all values are 0, the axis still needs a length.
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let least = usable.iter().copied().fold(most, f64::min);
        let mut marks = self.ticks.clone();
        if marks.is_empty() {
            let round = if self.log { decades(least, most) } else { ticks(most) };
            let range = (if self.log { least } else { 0.0 }, most);
            let within = |tick: &f64| (range.0 * 0.999..=range.1 * 1.001).contains(tick);
            // At least two marks are needed to read the scale; with fewer, the axis extends to the next
            // marks.
            if self.ends && range.1 > range.0 && round.iter().filter(|tick| within(tick)).count() > 1 {
                let marks = round.into_iter().filter(within).map(|tick| (tick, (self.words)(tick))).collect();
                return Scale { low: range.0, high: range.1, log: self.log, marks };
            }
            marks = round.into_iter().map(|tick| (tick, (self.words)(tick))).collect();
        }
        let high =
            marks.last().map_or(most, |last| if self.ticks.is_empty() { last.0.max(most) } else { most });
        let low = if self.log { marks.first().map_or(least, |first| first.0.min(least)) } else { 0.0 };
        marks.retain(|tick| tick.0 <= high * 1.000_001);
        Scale { low, high, log: self.log, marks }
    }
}

/// An axis with its range.
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// Values with their labels, ascending.
    pub(crate) marks: Vec<(f64, String)>,
}

impl Scale {
    /// From `low` to `high`, with round numbers between them.
    pub(crate) fn between(low: f64, high: f64, words: impl Fn(f64) -> String) -> Self {
        let marks = ticks_within(low, high).into_iter().map(|tick| (tick, words(tick))).collect();
        Self { low, high, log: false, marks }
    }

    /// A range around values that differ by a few per cent, which would be invisible on an axis from 0; none
    /// without values.
    pub(crate) fn around(values: impl Iterator<Item = f64>, words: impl Fn(f64) -> String) -> Option<Self> {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let room = if high > low { (high - low) * 0.08 } else { high.abs().max(1.0) * 0.01 };
        (low <= high).then(|| Self::between(low - room, high + room, words))
    }

    /// The position of a value, 0 to 1; none for NaN.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.is_finite().then_some(share.clamp(0.0, 1.0))
    }
}

/// The smallest round step of at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= least * 0.999).unwrap_or(10.0 * power)
}

/// About six round numbers from 0 to at least `most`.
pub(crate) fn ticks(most: f64) -> Vec<f64> {
    let step = round_step(most / 5.0);
    (0..=10).map(|i| f64::from(i) * step).take_while(|v| v - step < most * 0.999).collect()
}

/// 1, 2 and 5 times powers of ten around a range; only the powers if there would be many.
pub(crate) fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) =
        (low.log10().floor() as i32, high.log10().ceil().max(low.log10().floor() + 1.0) as i32);
    let steps: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (first..=last).flat_map(|e| steps.iter().map(move |s| s * 10_f64.powi(e)));
    let all: Vec<f64> = all.collect();
    // One mark beyond each end is enough.
    let from = all.iter().rposition(|v| *v <= low * 1.001).unwrap_or(0);
    let to = all.iter().position(|v| *v >= high * 0.999 && *v > all[from]).unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value.fract() == 0.0 && value.abs() < 1e12 {
        return whole(value as u64);
    }
    let text = if value < 0.01 { coefficient(value) } else { format!("{value:.3}") };
    if text.contains('e') { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Four to eight round numbers in the range.
fn ticks_within(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let step = round_step(rough);
    let first = (low / step).ceil();
    (0..20).map(|i| (first + f64::from(i)) * step).take_while(|tick| *tick <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        assert_eq!(ticks(8.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(10_400.0), [0.0, 2500.0, 5000.0, 7500.0, 10_000.0, 12_500.0]);
        assert_eq!(decades(0.3, 4.0), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(decades(0.3, 4000.0), [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        for value in [1e-6, 0.37, 1.0, 99.0, 1e9] {
            assert!(ticks(value).last().unwrap() >= &(value * 0.998), "{value}");
            let around = decades(value, value);
            assert!(around.len() >= 2 && around[0] <= value * 1.001, "{value}: {around:?}");
        }
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks_within(95.0, 131.0), [100.0, 110.0, 120.0, 130.0]);
        assert_eq!(
            ticks_within(712_000.0, 805_000.0),
            [720_000.0, 740_000.0, 760_000.0, 780_000.0, 800_000.0]
        );
        for (low, high) in
            [(0.0, 1.0), (0.00011, 0.00012), (1e6, 1.01e6), (-5.0, 3.0), (0.0, 1e-9), (1e9, 1e9 + 1.0)]
        {
            let found = ticks_within(low, high);
            assert!((3..=8).contains(&found.len()), "{low} {high}: {found:?}");
            assert!(found.iter().all(|t| *t >= low && *t <= high), "{found:?}");
        }
        assert!(ticks_within(1.0, 1.0).is_empty() && ticks_within(f64::NAN, 1.0).is_empty());
    }
}
