//! Waiting between transactions: "100ms", or "100ms,exponential".

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kelvin_measure::Random;
use serde::{Deserialize, Serialize};

use crate::Span;

/// An exponential think time is cut at this multiple of its mean, as TPC-C does (5.2.5.4).
const LONGEST: f64 = 10.0;

/// How long a user waits after a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ThinkTime {
    mean: Span,
    exponential: bool,
}

impl ThinkTime {
    /// The next think time, from the user's random numbers.
    // One per transaction: compiled, and optimised, where it is called.
    #[inline]
    pub fn draw(self, random: &mut Random) -> Duration {
        let mean = self.mean.duration();
        if self.exponential {
            Duration::from_nanos(random.exponential(1e9).min(LONGEST * 1e9) as u64)
                .mul_f64(mean.as_secs_f64())
        } else {
            mean
        }
    }
}

impl FromStr for ThinkTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mean, exponential) = match text.split_once(',') {
            None => (text, false),
            Some((mean, word)) if word.trim() == "exponential" => (mean, true),
            Some((_, word)) => {
                return Err(format!(
                    "\"{}\" is not a valid distribution of think times; write 100ms, or 100ms,exponential",
                    word.trim()
                ));
            }
        };
        Ok(Self { mean: mean.parse()?, exponential })
    }
}

impl fmt::Display for ThinkTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.mean, if self.exponential { ",exponential" } else { "" })
    }
}

impl TryFrom<String> for ThinkTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ThinkTime> for String {
    fn from(think_time: ThinkTime) -> Self {
        think_time.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_written() {
        for text in ["100ms", "1m30s,exponential", "0s"] {
            assert_eq!(text.parse::<ThinkTime>().unwrap().to_string(), text);
        }
        assert!(
            "100ms,normal"
                .parse::<ThinkTime>()
                .unwrap_err()
                .contains("\"normal\" is not a valid distribution")
        );
        assert!("100".parse::<ThinkTime>().unwrap_err().contains("has no unit"));
    }

    #[test]
    fn the_drawn_times_have_the_mean_that_was_asked_for() {
        let mut random = Random::part(1, 2, 3);
        let fixed: ThinkTime = "20ms".parse().unwrap();
        assert_eq!(fixed.draw(&mut random), Duration::from_millis(20));
        let drawn: ThinkTime = "20ms,exponential".parse().unwrap();
        let times: Vec<f64> = (0..100_000).map(|_| drawn.draw(&mut random).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        // The standard error of the mean is 0.02 / √100000 = 63 µs.
        assert!((mean - 0.02).abs() < 0.000_25, "{mean}");
        assert!(times.iter().all(|&time| time <= 0.2));
    }
}
