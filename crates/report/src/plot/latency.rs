//! Latency histograms and percentile curves, several results on one scale.

use crate::chart::Axis;
use std::collections::BTreeMap;

use kelvin_storage::Direction;

use super::Chart;
use super::draw::{COLOURS, Line, Lines, Stroke};

/// Largest number of results on one chart: more cannot be distinguished.
const TOGETHER: usize = 8;
/// Bars per decade of the histogram. Each is wider than the bins that it combines.
const A_DECADE: f64 = 12.0;
/// Smallest number of samples beyond a percentile that is drawn.
const BEYOND: f64 = 10.0;

/// One of several results: its index, which determines its colour, its latencies, and its points.
type Drawn<'a> = (usize, &'a CompletionTimes, Vec<(f64, f64)>);

/// Completion times of one direction of one result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompletionTimes {
    /// Its label, which distinguishes it from the others.
    pub name: String,
    /// Number of I/Os.
    pub count: u64,
    /// Latency in nanoseconds and number of I/Os of each bin, ascending; empty if only percentiles are known.
    pub bins: Vec<(u64, u64)>,
    /// Per cent and nanoseconds, ascending; used if there are no bins.
    pub percentiles: Vec<(f64, f64)>,
}

/// The sum of counts; saturates, because a hand-written file may contain any values.
pub(super) fn count<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

impl CompletionTimes {
    /// Adds the counts of another result.
    pub(super) fn add(&mut self, other: &Self) {
        let mut bins: BTreeMap<u64, u64> = self.bins.iter().copied().collect();
        for (nanos, count) in &other.bins {
            let sum = bins.entry(*nanos).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.bins = bins.into_iter().collect();
        self.count = self.count.saturating_add(other.count);
    }

    /// Per cent and nanoseconds, for percentiles with at least ten samples beyond them.
    pub(super) fn curve(&self) -> Vec<(f64, f64)> {
        let known = |percent: f64| self.count as f64 * (1.0 - percent / 100.0) + 1e-9 >= BEYOND;
        if self.bins.is_empty() {
            return self.percentiles.iter().copied().filter(|(p, _)| *p < 100.0 && known(*p)).collect();
        }
        let count = count(self.bins.iter().map(|bin| &bin.1));
        let mut seen = 0_u64;
        let curve = self.bins.iter().map(|(nanos, here)| {
            // A bin's latency is the percentile at the middle of the bin.
            let percent = (seen as f64 + *here as f64 / 2.0) / count as f64 * 100.0;
            seen = seen.saturating_add(*here);
            (percent, *nanos as f64)
        });
        curve.filter(|(percent, _)| known(*percent)).collect()
    }

    /// Nanoseconds at the middle of each bar, and per cent of all I/Os.
    fn bars(&self) -> Vec<(f64, f64)> {
        let count = count(self.bins.iter().map(|bin| &bin.1));
        let bar = |nanos: u64| ((nanos.max(1) as f64).log10() * A_DECADE).floor() as i64;
        let (Some(first), Some(last)) = (self.bins.first(), self.bins.last()) else { return Vec::new() };
        let (first, last) = (bar(first.0), bar(last.0));
        let mut bars = vec![0_u64; (last - first + 1).max(1) as usize];
        for (nanos, here) in &self.bins {
            if let Some(sum) = bars.get_mut((bar(*nanos) - first) as usize) {
                *sum = sum.saturating_add(*here);
            }
        }
        // As steps, from zero before the first bar to zero after the last.
        let edge = |bar: i64| 10_f64.powf(bar as f64 / A_DECADE);
        let mut steps = vec![(edge(first), 0.0)];
        for (at, sum) in (first..).zip(&bars) {
            let share = *sum as f64 / count as f64 * 100.0;
            steps.push((edge(at), share));
            steps.push((edge(at + 1), share));
        }
        steps.push((edge(last + 1), 0.0));
        steps
    }
}

/// The charts of one direction.
pub(super) fn charts(direction: Direction, all: &[CompletionTimes]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (part, some) in all.chunks(TOGETHER).enumerate() {
        let suffix = if part > 0 { format!("-{}", part + 1) } else { String::new() };
        charts.extend(histogram(direction, some, &suffix));
        charts.extend(percentiles(direction, some, &suffix));
    }
    charts
}

/// The histograms of one direction.
pub(super) fn histograms(direction: Direction, all: &[CompletionTimes]) -> Vec<Chart> {
    all.chunks(TOGETHER).filter_map(|some| histogram(direction, some, "")).collect()
}

/// The results that have points; `None` if there are none.
fn drawn(
    all: &[CompletionTimes],
    points: impl Fn(&CompletionTimes) -> Vec<(f64, f64)>,
) -> Option<Vec<Drawn<'_>>> {
    let each = all.iter().enumerate().map(|(at, times)| (at, times, points(times)));
    let found: Vec<_> = each.filter(|(_, _, points)| !points.is_empty()).collect();
    (!found.is_empty()).then_some(found)
}

fn histogram(direction: Direction, all: &[CompletionTimes], suffix: &str) -> Option<Chart> {
    let bars = drawn(all, CompletionTimes::bars)?;
    let line = |(at, times, bars): &Drawn<'_>| {
        Line::new(named(times), COLOURS[at % COLOURS.len()], Stroke::Full, bars.clone())
    };
    let picture = Lines {
        title: format!("histogram of completion times, {direction}"),
        about: vec![format!("{A_DECADE} bars per factor of ten; their heights sum to 100 %")],
        x: Axis::times("completion time (log scale)").ending_with_data(),
        y: Axis::linear(format!("share of the {direction}s, %")),
        panels: vec![(String::new(), bars.iter().map(line).collect())],
    };
    Some(Chart::new(&format!("latency-histogram-{direction}{suffix}"), &picture.title, picture.svg()))
}

fn named(times: &CompletionTimes) -> String {
    if times.count == u64::MAX {
        return times.name.clone();
    }
    format!("{} ({} I/Os)", times.name, kelvin_measure::text::whole(times.count))
}

fn percentiles(direction: Direction, all: &[CompletionTimes], suffix: &str) -> Option<Chart> {
    let curves = drawn(all, CompletionTimes::curve)?;
    // Each step to the right is a tenth of the remaining share.
    let place = |percent: f64| -(1.0 - percent / 100.0).log10();
    let line = |(at, times, curve): &Drawn<'_>| {
        let points = curve.iter().map(|(percent, nanos)| (place(*percent), *nanos)).collect();
        Line::new(named(times), COLOURS[at % COLOURS.len()], Stroke::Full, points)
    };
    let mut x = Axis::linear("percentage of I/Os that took at most this long");
    x.ticks = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999]
        .into_iter()
        .map(|percent| (place(percent), format!("{percent} %")))
        .collect();
    let picture = Lines {
        title: format!("completion times by percentile, {direction}"),
        about: vec!["each line ends where fewer than ten I/Os took longer".into()],
        x,
        y: Axis::times(format!("completion time of {direction}s (log scale)")),
        panels: vec![(String::new(), curves.iter().map(line).collect())],
    };
    Some(Chart::new(&format!("latency-percentiles-{direction}{suffix}"), &picture.title, picture.svg()))
}
