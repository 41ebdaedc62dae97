//! The answer of a comparison to a piece of advice.

use kelvin_diagnose::Better;
use kelvin_stats::compare::ChangeVerdict;
use serde::Serialize;

use crate::ab::{AbSummary, Compared};

/// The verdict on a piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofVerdict {
    /// The metric is better with the change, by more than the noise.
    Confirmed,
    /// The metric is worse with the change, by more than the noise.
    Worse,
    /// A gain larger than the noise is ruled out.
    Refuted,
    /// The metric differs, but the estimate does not exceed the noise.
    WithinNoise,
    /// No change is shown, and none is excluded.
    NotShown,
    /// Too few blocks for any answer.
    NotTestable,
}

impl ProofVerdict {
    /// Whether the comparison decided.
    pub fn is_decided(self) -> bool {
        !matches!(self, Self::WithinNoise | Self::NotShown | Self::NotTestable)
    }

    /// The verdict as text for lists.
    pub fn label(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Worse => "worse",
            Self::Refuted => "refuted",
            Self::WithinNoise => "within noise",
            Self::NotShown => "no change shown",
            Self::NotTestable => "not testable",
        }
    }
}

/// The proof of a piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Proof {
    /// The verdict.
    pub verdict: ProofVerdict,
    /// The ratio of B to A; none without a complete block.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Number of complete blocks.
    pub blocks: u32,
}

impl Proof {
    /// The proof from the comparison of B with A.
    pub fn of(summary: &AbSummary) -> Self {
        let blocks = summary.complete;
        let Some(compared) = summary.comparisons.first() else {
            let verdict = ProofVerdict::NotTestable;
            return Self { verdict, ratio: None, low: None, high: None, blocks };
        };
        let verdict = verdict(compared, summary.figure.better == Some(Better::Lower));
        let Compared { ratio, low, high, .. } = *compared;
        Self { verdict, ratio: Some(ratio), low: Some(low), high: Some(high), blocks }
    }
}

/// The ratio is inverted for metrics that are better when they are lower.
fn verdict(compared: &Compared, lower: bool) -> ProofVerdict {
    let (ratio, high) =
        if lower { (1.0 / compared.ratio, 1.0 / compared.low) } else { (compared.ratio, compared.high) };
    match compared.verdict {
        ChangeVerdict::NotTestable => ProofVerdict::NotTestable,
        ChangeVerdict::Changed if ratio > 1.0 => ProofVerdict::Confirmed,
        ChangeVerdict::Changed => ProofVerdict::Worse,
        _ if high - 1.0 <= compared.noise => ProofVerdict::Refuted,
        ChangeVerdict::WithinNoise => ProofVerdict::WithinNoise,
        ChangeVerdict::NoChange | ChangeVerdict::Undetermined => ProofVerdict::NotShown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_confirmed_or_ruled_out_in_the_direction_of_its_figure() {
        use ChangeVerdict::{Changed, NoChange, NotTestable, WithinNoise};

        let compared = |ratio, low, high, verdict| Compared {
            side: "B".into(),
            ratio,
            low,
            high,
            confidence: 0.95,
            p: 0.03,
            p_of_t: 0.01,
            hodges_lehmann: ratio,
            noise: 0.02,
            verdict,
        };
        for (ratio, low, high, of, throughput, latency) in [
            (2.0, 1.8, 2.2, Changed, ProofVerdict::Confirmed, ProofVerdict::Worse),
            (0.5, 0.4, 0.6, Changed, ProofVerdict::Worse, ProofVerdict::Confirmed),
            (1.01, 1.005, 1.015, WithinNoise, ProofVerdict::Refuted, ProofVerdict::Refuted),
            (1.015, 1.005, 1.03, WithinNoise, ProofVerdict::WithinNoise, ProofVerdict::Refuted),
            (0.98, 0.95, 1.01, NoChange, ProofVerdict::Refuted, ProofVerdict::NotShown),
            (1.03, 0.99, 1.07, NoChange, ProofVerdict::NotShown, ProofVerdict::Refuted),
            (1.0, 0.5, 2.0, NotTestable, ProofVerdict::NotTestable, ProofVerdict::NotTestable),
        ] {
            let one = compared(ratio, low, high, of);
            assert_eq!((verdict(&one, false), verdict(&one, true)), (throughput, latency), "{one:?}");
        }
    }
}
