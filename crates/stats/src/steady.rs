//! Whether a metric has come to rest: the rule of SNIA's Solid State Storage Performance Test Specification.
//!
//! Five rounds are steady when their largest and smallest value lie within 20 % of the mean, and the line fitted to them
//! by least squares rises or falls by at most 10 % of the mean from the first round to the last (SNIA, Solid State Storage
//! Performance Test Specification, Enterprise, definition of "Steady State"). A round there takes a minute or more.

use crate::trend::line;

/// Rounds of a measurement window.
pub const ROUNDS: usize = 5;

/// The range of the rounds may be so much of their mean.
pub const RANGE: f64 = 0.20;

/// The fitted line may change by so much of their mean.
pub const DRIFT: f64 = 0.10;

/// What rounds show.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// The metric's mean in each round, in the order of time.
    pub rounds: Vec<f64>,
    /// Mean of the rounds.
    pub mean: f64,
    /// Largest less smallest, of the mean.
    pub range: f64,
    /// Change of the fitted line from the first round to the last, of the mean; negative when it falls.
    pub drift: f64,
}

impl Rounds {
    /// Whether both bounds hold, each widened `times`.
    pub fn within(&self, times: f64) -> bool {
        self.range <= RANGE * times && self.drift.abs() <= DRIFT * times
    }
}

/// Cuts `values`, evenly spaced in time, into five rounds of the same length; what does not fill the last one is left
/// out at the beginning. None for fewer than ten values, or when their mean is not above 0.
pub fn rounds(values: &[f64]) -> Option<Rounds> {
    let each = values.len() / ROUNDS;
    if each < 2 {
        return None;
    }
    let used = &values[values.len() - each * ROUNDS..];
    let rounds: Vec<f64> = used.chunks_exact(each).map(|c| c.iter().sum::<f64>() / each as f64).collect();
    judge(rounds)
}

fn judge(rounds: Vec<f64>) -> Option<Rounds> {
    let mean = rounds.iter().sum::<f64>() / rounds.len() as f64;
    let (smallest, largest) =
        rounds.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &r| (low.min(r), high.max(r)));
    let slope = line(&rounds)?.slope;
    let (range, drift) = ((largest - smallest) / mean, slope * (rounds.len() - 1) as f64 / mean);
    (mean > 0.0).then_some(Rounds { rounds, mean, range, drift })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_worked_by_hand() {
        // Mean 100, range 8; slope (−2·96 − 1·98 + 1·101 + 2·104)/10 = 1.9, over four steps 7.6.
        let found = judge(vec![96.0, 98.0, 101.0, 101.0, 104.0]).unwrap();
        assert_eq!(found.mean, 100.0);
        assert!((found.range - 0.08).abs() < 1e-12 && (found.drift - 0.076).abs() < 1e-12, "{found:?}");
        assert!(found.within(1.0) && !found.within(0.5));
        // A peak in the middle has no slope: the range finds it.
        let peak = judge(vec![90.0, 90.0, 140.0, 90.0, 90.0]).unwrap();
        assert!(peak.drift.abs() < 1e-12 && !peak.within(1.0) && peak.within(2.6));
        // A slow rise stays within the range: the slope finds it.
        let rise = judge(vec![94.0, 97.0, 100.0, 103.0, 106.0]).unwrap();
        assert!((rise.range - 0.12).abs() < 1e-12 && !rise.within(1.0));
    }

    #[test]
    fn rounds_take_the_last_values() {
        let mut values = vec![1.0, 1.0];
        values.extend([10.0; 15]);
        let found = rounds(&values).unwrap();
        assert_eq!((found.rounds.len(), found.mean, found.range), (5, 10.0, 0.0));
        assert_eq!(rounds(&values[..9]), None);
        assert_eq!(rounds(&[0.0; 20]), None);
    }
}
