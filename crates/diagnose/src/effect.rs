//! The effect of a finding on the result: an upper bound, or the reason why it is unknown.
//!
//! All bounds come from one function, [`Effect::between`], and from one of three arguments:
//!
//! - **waiting**: transactions that spend the share s of their time on something would take s less time without it, and
//!   a closed loop would then complete 1 / (1 − s) as many: s is the lost share of the throughput.
//! - **stretches**: an event that lasts for a part of the window costs at most that part of the throughput; if there
//!   are values per second, that part × (1 − throughput during it / in the rest), with the ratio's interval.
//! - **not served**: if the share s of the work was served by something else (a cache, a hole) at no cost, the result
//!   is too high by at most s of it.
//!
//! A bound does not show what would replace it: the transactions may reach the next limit.

use kelvin_stats::ess::precision;
use serde::Serialize;

use crate::noise::WANTED;
use crate::{Evidence, Finding, Severity};
use kelvin_measure::text::percent;

/// The base of an effect's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectBasis {
    /// The result itself.
    Figure,
    /// The transactions per second.
    Throughput,
    /// The time from a transaction's beginning to its end.
    TransactionTime,
    /// The time that the database spent in statements.
    StatementTime,
    /// The transactions that were begun.
    Transactions,
    /// The time from an I/O's beginning to its end.
    IoTime,
    /// The bytes that the devices moved.
    DeviceBytes,
}

impl EffectBasis {
    /// As a sentence has it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Figure => "the result",
            Self::Throughput => "the throughput",
            Self::TransactionTime => "the transactions' time",
            Self::StatementTime => "the statements' time",
            Self::Transactions => "the transactions",
            Self::IoTime => "the I/Os' time",
            Self::DeviceBytes => "the bytes that the devices moved",
        }
    }
}

/// How much of the result a finding explains.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Effect {
    /// It lies between two shares, each from 0 to 1.
    Bounded {
        /// The certain part; 0 if nothing shows that it has a cost.
        low: f64,
        /// So much at most.
        high: f64,
        /// The base of the shares.
        of: EffectBasis,
    },
    /// The measurements do not bound it.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl Effect {
    /// From `low` to `high`, both as shares of `of`: the only place where bounds are created. NaN makes the effect
    /// unknown.
    pub fn between(low: f64, high: f64, of: EffectBasis) -> Self {
        if low.is_nan() || high.is_nan() {
            return Self::unknown("too few events were counted to calculate a share");
        }
        let high = high.clamp(0.0, 1.0);
        Self::Bounded { low: low.clamp(0.0, high), high, of }
    }

    /// At most this share of `of`.
    pub fn up_to(high: f64, of: EffectBasis) -> Self {
        Self::between(0.0, high, of)
    }

    /// The same if the share is known, else unknown for the reason `why`.
    pub(crate) fn up_to_or(high: Option<f64>, of: EffectBasis, why: &str) -> Self {
        high.map_or_else(|| Self::unknown(why), |high| Self::up_to(high, of))
    }

    /// Not bounded by the measurements.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }

    /// The most that it can be; none where that is not known.
    pub fn high(&self) -> Option<f64> {
        match self {
            Self::Bounded { high, .. } => Some(*high),
            Self::Unknown { .. } => None,
        }
    }

    /// As a line: "up to 22 % of the figure", "4.0 % to 9.0 % of the throughput", or "unknown: why".
    pub fn describe(&self) -> String {
        match self {
            Self::Bounded { low, high, of } if *low >= 0.001 && percent(*low) != percent(*high) => {
                format!("{} to {} of {}", percent(*low), percent(*high), of.label())
            }
            Self::Bounded { low, high, of } if *low >= 0.001 => {
                format!("{} of {}", percent(*high), of.label())
            }
            Self::Bounded { high, of, .. } if *high < 0.001 => format!("less than 0.1 % of {}", of.label()),
            Self::Bounded { high, of, .. } => format!("up to {} of {}", percent(*high), of.label()),
            Self::Unknown { why } => format!("unknown: {why}"),
        }
    }
}

/// Whether such a share of a result exceeds the precision of the result itself: half the width of the 95 % interval of
/// the mean of its seconds. A tenth always does: a short window, which is imprecise, must not hide that. If the
/// precision is unknown, any share does.
pub(crate) fn is_seen(share: f64, seconds: &[f64]) -> bool {
    let half = precision(seconds).and_then(|known| Some(known.half_width(0.95)? / known.mean));
    share >= WANTED || share > half.filter(|half| half.is_finite()).unwrap_or(0.0)
}

/// Marks the findings whose effect is below the run's own precision. A red one is not marked: it is red because of
/// proof, or because the result measures something else, and not because of its size.
pub(crate) fn mark(found: &mut [Finding], evidence: &Evidence) {
    let seen = |share: f64, point: Option<u32>| {
        if let Some(point) = point.and_then(|point| evidence.point(point)) {
            return is_seen(share, &point.throughput());
        }
        let mut points = evidence.points().peekable();
        points.peek().is_none() || points.any(|point| is_seen(share, &point.throughput()))
    };
    mark_by(found, seen);
}

/// The same for I/O jobs by the seconds of each: an effect below the precision of the most precise job is marked.
pub(crate) fn mark_io(found: &mut [Finding], series: &[&[f64]]) {
    mark_by(found, |share, _| series.is_empty() || series.iter().any(|one| is_seen(share, one)));
}

fn mark_by(found: &mut [Finding], seen: impl Fn(f64, Option<u32>) -> bool) {
    for finding in found.iter_mut().filter(|finding| finding.severity != Severity::Red) {
        let small = finding.effect.high().is_some_and(|share| !seen(share, finding.point));
        finding.below_precision |= small;
    }
}

/// Each finding states how much it explains, or why that is unknown: every finding in a test is checked for it.
#[cfg(test)]
pub(crate) fn check(finding: &Finding) {
    match &finding.effect {
        Effect::Bounded { low, high, .. } => assert!(
            0.0 <= *low && low <= high && *high <= 1.0,
            "effect of {}: {:?}",
            finding.id,
            finding.effect
        ),
        Effect::Unknown { why } => assert!(
            why.len() > 20 && why.starts_with(char::is_lowercase) && !why.ends_with('.'),
            "effect of {}: {why:?}",
            finding.id
        ),
    }
}

#[cfg(test)]
mod tests;
