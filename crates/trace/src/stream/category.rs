//! What a stream is called, by which rule, on what evidence.

use kelvin_measure::text::{percent, three_figures};
use serde::Serialize;

use super::{Arrivals, Sequence};

/// From this share of the bytes on a pattern names the stream.
const MOST: f64 = 0.8;
/// Up to this share of bytes in runs it is random.
const LEAST: f64 = 0.2;
/// A peak of so many times the mean makes a stream bursty.
const PEAK: f64 = 5.0;
/// If at the same time the arrivals scatter more than Poisson's by this factor.
const DISPERSION: f64 = 2.0;
/// From this share of the bytes on it is said that requests ascend with gaps.
const ASCENDS: f64 = 0.2;
/// Fewer requests are not called anything.
const ENOUGH: u64 = 20;

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// At least 80 % of the bytes are in sequential runs.
    Sequential,
    /// At least 80 % of the bytes are in runs, most of them with a stride.
    Strided,
    /// At most 20 % of the bytes are in runs.
    Random,
    /// Anything between.
    Mixed,
    /// Fewer than 20 requests that move data.
    Few,
}

impl Pattern {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Strided => "strided",
            Self::Random => "random",
            Self::Mixed => "mixed",
            Self::Few => "too few",
        }
    }
}

/// How requests arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalCategory {
    /// The busiest window has less than 5 times the requests of the mean one.
    Steady,
    /// It has 5 times as many or more, and their variance is at least twice that of Poisson arrivals.
    Bursty,
    /// The trace is too short, or its times too coarse.
    Unknown,
}

impl ArrivalCategory {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Bursty => "bursty",
            Self::Unknown => "too short",
        }
    }
}

/// What a stream is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Category {
    /// How requests follow each other.
    pub pattern: Pattern,
    /// How they arrive.
    pub arrivals: ArrivalCategory,
    /// The figures that decided.
    pub evidence: String,
}

pub(super) fn category(sequence: &Sequence, arrivals: &Arrivals, moving: u64) -> Category {
    let in_runs = sequence.sequential + sequence.strided;
    let pattern = match in_runs {
        _ if moving < ENOUGH => Pattern::Few,
        share if share <= LEAST => Pattern::Random,
        _ if sequence.sequential >= MOST => Pattern::Sequential,
        share if share >= MOST && sequence.strided > sequence.sequential => Pattern::Strided,
        _ => Pattern::Mixed,
    };
    let mut evidence = format!(
        "{} of the bytes in sequential runs, {} in strided ones",
        percent(sequence.sequential),
        percent(sequence.strided)
    );
    // What a reader would take for a sequence, and is none for the device.
    if sequence.ascending >= ASCENDS {
        evidence += &format!(", {} ascending with gaps", percent(sequence.ascending));
    }
    let window = arrivals.peak_window;
    let index = arrivals.dispersion.iter().find(|one| Some(one.window) == window).map(|one| one.index);
    let arrivals = match (arrivals.peak_to_mean, index, window) {
        (Some(peak), Some(index), Some(window)) => {
            evidence += &format!(
                "; the busiest {window} ms had {} times the mean, variance over mean {}",
                three_figures(peak),
                three_figures(index)
            );
            if peak >= PEAK && index >= DISPERSION {
                ArrivalCategory::Bursty
            } else {
                ArrivalCategory::Steady
            }
        }
        _ => ArrivalCategory::Unknown,
    };
    Category { pattern, arrivals, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Dispersion;

    #[test]
    fn rules_decide_at_their_limits() {
        let of = |sequential, strided, moving| {
            let sequence = Sequence { sequential, strided, ..Sequence::default() };
            category(&sequence, &Arrivals::default(), moving).pattern
        };
        assert_eq!(of(0.8, 0.0, 20), Pattern::Sequential);
        assert_eq!(of(0.8, 0.0, 19), Pattern::Few);
        assert_eq!(of(0.3, 0.6, 20), Pattern::Strided);
        assert_eq!(of(0.1, 0.1, 20), Pattern::Random);
        assert_eq!(of(0.5, 0.1, 20), Pattern::Mixed);
        let burst = |peak, index| {
            let arrivals = Arrivals {
                peak_to_mean: Some(peak),
                peak_window: Some(1000),
                dispersion: vec![Dispersion { window: 1000, index }],
                ..Arrivals::default()
            };
            category(&Sequence::default(), &arrivals, 100).arrivals
        };
        assert_eq!((burst(5.0, 2.0), burst(4.9, 9.0)), (ArrivalCategory::Bursty, ArrivalCategory::Steady));
        assert_eq!(burst(9.0, 1.0), ArrivalCategory::Steady, "few arrivals a window");
        assert_eq!(
            category(&Sequence::default(), &Arrivals::default(), 9).arrivals,
            ArrivalCategory::Unknown
        );
    }
}
