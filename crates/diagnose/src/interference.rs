//! What the arrival, the end, or a change of one tenant's load did to the others: each of them before the step against after
//! it, with intervals that allow for seconds being alike.
//!
//! A stretch of time reaches from one change of any load to the next. Of the first stretch of a tenant the warm-up is cut off,
//! by MSER-5 where it is long enough; it is never assumed. Throughput is compared as the mean of the seconds, with the
//! conservative error of dependent values ([`ess::conservative_precision`]); percentiles with the interval of clustered ones
//! ([`percentile::interval`]); the ratio of both sides by the recovery of their variances ([`mover::ratio`]). What the ratio
//! says is of this one run: that the step caused it, and nothing else at the same time, only repetitions without the neighbour
//! can show.

use std::ops::Range;

use kelvin_measure::event::Step;
use kelvin_measure::{Histogram, SECOND};
use kelvin_stats::mover::Side;
use kelvin_stats::{ess, mover, mser, percentile};
use serde::Serialize;

use crate::bands::{self, BandChange};
use crate::tenants::{TenantSeries, WaitChanges};

/// All intervals hold at this confidence.
const CONFIDENCE: f64 = 0.95;

/// A rate counts as held if so much of it was done.
const HELD: f64 = 0.99;

/// One tenant before and after one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interference {
    /// The step, by its number in the timeline; 0 where a load ended by itself.
    pub step: u32,
    /// What it did.
    pub text: String,
    /// When, in seconds since the scenario's clock began.
    pub at_s: f64,
    /// The tenants whose load it changed.
    pub causes: Vec<String>,
    /// The tenant that is compared.
    pub tenant: String,
    /// Seconds before the step that are compared, and after it.
    pub seconds: (u64, u64),
    /// Seconds of warm-up that were cut off before them; none if the series is too short or did not settle.
    pub warm_up_s: Option<u64>,
    /// Completed transactions or I/Os a second.
    pub throughput: RelativeChange,
    /// Median of the times as clients see them, in microseconds.
    pub p50_us: RelativeChange,
    /// Their 99th percentile.
    pub p99_us: RelativeChange,
    /// Share of the scheduled arrivals that were done, before and after; none in a closed loop.
    pub held: Option<(f64, f64)>,
    /// Where its points lie in the bands of its arrivals, by the seconds that a point counts; none of other arrivals than a
    /// Poisson process of one rate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<BandChange>,
    /// What the sessions of its database did, before and after; none where nobody saw that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitChanges>,
    /// What follows.
    pub verdict: InterferenceVerdict,
}

/// A figure before and after.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct RelativeChange {
    /// Before the step.
    pub before: Option<f64>,
    /// After it.
    pub after: Option<f64>,
    /// After / before.
    pub ratio: Option<f64>,
    /// Lower end of its interval at 95 %; none where there are too few seconds or values.
    pub low: Option<f64>,
    /// Upper end; none where it has none.
    pub high: Option<f64>,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterferenceVerdict {
    /// Throughput fell, or a percentile rose: the interval excludes that it did not.
    Worse,
    /// Throughput rose, or a percentile fell.
    Better,
    /// Neither; and what is not excluded.
    NotShown {
        /// The largest loss of throughput that the interval holds, in per cent; none where there is no interval.
        throughput_percent: Option<f64>,
        /// The largest rise of p99.
        p99_percent: Option<f64>,
    },
    /// The stretches are too short for an interval.
    TooShort,
}

/// Every tenant against every step that changed another's load.
pub fn interference(tenants: &[TenantSeries], steps: &[Step]) -> Vec<Interference> {
    let mut changes: Vec<&Step> = steps.iter().filter(|step| step.kind.changes_load()).collect();
    changes.sort_by_key(|step| step.at);
    let mut found = Vec::new();
    for (index, step) in changes.iter().enumerate() {
        // Steps at the same moment are one change.
        if index > 0 && changes[index - 1].at == step.at {
            continue;
        }
        let same: Vec<&Step> = changes[index..].iter().take_while(|one| one.at == step.at).copied().collect();
        let before = changes[..index].last().map_or(0, |step| step.at);
        let after = changes[index + same.len()..].first().map_or(u64::MAX, |step| step.at);
        let causes: Vec<String> = same.iter().flat_map(|step| step.tenants.clone()).collect();
        for tenant in tenants.iter().filter(|tenant| !causes.contains(&tenant.name)) {
            let stretches = (seconds_of(tenant, before..step.at), seconds_of(tenant, step.at..after));
            if stretches.0.is_empty() || stretches.1.is_empty() {
                continue;
            }
            let own = changes[..index].last().is_some_and(|last| last.tenants.contains(&tenant.name));
            let text: Vec<&str> = same.iter().map(|step| step.text.as_str()).collect();
            let named = (step.number, text.join("; "), step.at as f64 / 1e9);
            found.push(compare(tenant, named, causes.clone(), stretches, own));
        }
    }
    found
}

/// The whole seconds of a tenant's load within a stretch of time.
fn seconds_of(tenant: &TenantSeries, span: Range<u64>) -> Vec<i64> {
    let within = |second: &i64| {
        let from = i128::from(*second) * i128::from(SECOND);
        i128::from(span.start) <= from && from + i128::from(SECOND) <= i128::from(span.end)
    };
    tenant.seconds.keys().copied().filter(within).filter(|second| tenant.is_at_work(*second)).collect()
}

fn compare(
    tenant: &TenantSeries,
    (step, text, at_s): (u32, String, f64),
    causes: Vec<String>,
    (mut before, after): (Vec<i64>, Vec<i64>),
    own: bool,
) -> Interference {
    // A stretch that began with the tenant's own start has its warm-up in it.
    let warm_up = if own { cut_warm_up(tenant, &mut before) } else { Some(0) };
    let [a, b] = [&before, &after].map(|seconds| Figures::from_seconds(tenant, seconds));
    let throughput = change(a.throughput, b.throughput);
    let p50_us = change(a.p50, b.p50);
    let p99_us = change(a.p99, b.p99);
    Interference {
        step,
        text,
        at_s,
        causes,
        tenant: tenant.name.clone(),
        seconds: (before.len() as u64, after.len() as u64),
        warm_up_s: warm_up,
        throughput,
        p50_us,
        p99_us,
        held: a.held.zip(b.held),
        bands: bands::compare(tenant, &before, &after),
        waits: tenant.waits.as_ref().and_then(|waits| waits.compare(&before, &after)),
        verdict: verdict(&throughput, &p50_us, &p99_us),
    }
}

/// Cuts off the seconds in which the throughput had not settled; how many, or none where that is unknown.
fn cut_warm_up(tenant: &TenantSeries, seconds: &mut Vec<i64>) -> Option<u64> {
    let cut = mser::mser5(&throughput(tenant, seconds)).filter(|cut| cut.settled)?.values;
    seconds.drain(..cut);
    Some(cut as u64)
}

fn throughput(tenant: &TenantSeries, seconds: &[i64]) -> Vec<f64> {
    seconds.iter().filter_map(|second| tenant.seconds.get(second)).map(|second| second.good as f64).collect()
}

/// A figure, and its interval where there is one.
#[derive(Debug, Clone, Copy)]
struct Figure {
    value: Option<f64>,
    interval: Option<(f64, f64)>,
}

struct Figures {
    throughput: Figure,
    p50: Figure,
    p99: Figure,
    held: Option<f64>,
}

impl Figures {
    fn from_seconds(tenant: &TenantSeries, seconds: &[i64]) -> Self {
        let values = throughput(tenant, seconds);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let precise = ess::conservative_precision(&values);
        let half = precise.and_then(|precise| precise.half_width(CONFIDENCE));
        let sums = tenant.sums(|second| seconds.binary_search(&second).is_ok());
        let batches = batches(tenant, seconds);
        let at = |percent: f64| {
            let known = sums.percentile(percent).map(|nanos| nanos / 1e3);
            let interval = percentile::interval(&batches, sums.unanswered() as f64, percent, CONFIDENCE);
            let interval =
                interval.map(|one| (one.low / 1e3, one.high.map_or(f64::INFINITY, |high| high / 1e3)));
            Figure { value: known, interval: interval.filter(|_| known.is_some()) }
        };
        Self {
            throughput: Figure {
                value: (!values.is_empty()).then_some(mean),
                interval: half.map(|half| (mean - half, mean + half)),
            },
            p50: at(50.0),
            p99: at(99.0),
            held: sums.held(),
        }
    }
}

/// The times of stretches of seconds that are alike in length.
fn batches(tenant: &TenantSeries, seconds: &[i64]) -> Vec<Vec<(f64, u64)>> {
    let times_of = tenant.times();
    let count = seconds.len().min(percentile::MOST_BATCHES);
    let part = |batch: usize| seconds.len() * batch / count.max(1);
    let each = (0..count).map(|batch| {
        let mut times = Histogram::new();
        for own in
            seconds[part(batch)..part(batch + 1)].iter().filter_map(|second| tenant.seconds.get(second))
        {
            times.add(times_of(own));
        }
        times.buckets().map(|(nanos, count)| (nanos as f64, count)).collect()
    });
    each.collect()
}

fn change(before: Figure, after: Figure) -> RelativeChange {
    let side = |figure: Figure| {
        let (low, high) = figure.interval?;
        Some(Side { value: figure.value?, low, high })
    };
    let found = side(before).zip(side(after)).and_then(|(a, b)| mover::ratio(a, b));
    let plain = before.value.zip(after.value).filter(|(before, _)| *before > 0.0);
    RelativeChange {
        before: before.value,
        after: after.value,
        ratio: plain.map(|(before, after)| after / before),
        low: found.map(|found| found.low),
        high: found.map(|found| found.high).filter(|high| high.is_finite()),
    }
}

impl RelativeChange {
    /// Whether its interval excludes that nothing changed.
    pub fn is_shown(&self) -> bool {
        self.rose() || self.fell()
    }

    fn rose(&self) -> bool {
        self.low.is_some_and(|low| low > 1.0)
    }

    fn fell(&self) -> bool {
        self.high.is_some_and(|high| high < 1.0)
    }
}

fn verdict(throughput: &RelativeChange, p50: &RelativeChange, p99: &RelativeChange) -> InterferenceVerdict {
    if throughput.fell() || p50.rose() || p99.rose() {
        InterferenceVerdict::Worse
    } else if throughput.rose() || p50.fell() || p99.fell() {
        InterferenceVerdict::Better
    } else if throughput.low.is_none() && p99.high.is_none() {
        InterferenceVerdict::TooShort
    } else {
        let percent = |part: f64| (part * 100.0).max(0.0);
        InterferenceVerdict::NotShown {
            throughput_percent: throughput.low.map(|low| percent(1.0 - low)),
            p99_percent: p99.high.map(|high| percent(high - 1.0)),
        }
    }
}

impl Interference {
    /// Whether a tenant with a rate held it, before and after.
    pub fn rate_held(&self) -> Option<(bool, bool)> {
        self.held.map(|(before, after)| (before >= HELD, after >= HELD))
    }
}

#[cfg(test)]
mod tests;
