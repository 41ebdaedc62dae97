//! Recorded noise: the deviations between real runs of the same specification, in their order.

use kelvin_stats::bootstrap::Resampler;

/// The probability that a walk along the record reverses at a run.
const TURN: f64 = 1.0 / 6.0;

/// Values of real repeated runs, each relative to the mean of its series.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    series: Vec<Vec<f64>>,
}

/// Why a record is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the record {what}")]
pub struct NoiseError {
    line: usize,
    what: &'static str,
}

impl Noise {
    /// Parses a record: lines of `series,value` in the order in which the runs were made, above 0; empty lines and
    /// lines that begin with # are ignored.
    ///
    /// # Errors
    /// A line in another form, or a series of fewer than ten runs.
    pub fn parse(text: &str) -> Result<Self, NoiseError> {
        let mut series: Vec<(&str, Vec<f64>)> = Vec::new();
        let mut last = 0;
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            last = index + 1;
            let wrong = |what| NoiseError { line: index + 1, what };
            let (name, value) = line.split_once(',').ok_or_else(|| wrong("is not series,value"))?;
            let value: f64 = value.trim().parse().map_err(|_| wrong("has no number"))?;
            if !(value > 0.0 && value.is_finite()) {
                return Err(wrong("has a value that is not positive"));
            }
            match series.last_mut().filter(|(of, _)| *of == name) {
                Some((_, values)) => values.push(value),
                None => series.push((name, vec![value])),
            }
        }
        if series.is_empty() || series.iter().any(|(_, values)| values.len() < 10) {
            return Err(NoiseError { line: last, what: "ends a series of fewer than ten runs" });
        }
        let relative = |(_, values): (&str, Vec<f64>)| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.into_iter().map(|value| value / mean).collect()
        };
        Ok(Self { series: series.into_iter().map(relative).collect() })
    }

    /// The noise of `n` consecutive runs: a walk along a series from a random position in a random direction, which
    /// reverses at its ends and, with a probability of one sixth, elsewhere. Adjacent values were adjacent in the
    /// record, so its drift and autocorrelation are preserved, and walks differ from each other although the record
    /// is short.
    pub fn draw(&self, random: &mut Resampler, n: usize) -> Vec<f64> {
        let Some(series) = self.series.get(random.below(self.series.len())) else { return Vec::new() };
        let last = series.len() - 1;
        let (mut place, mut forth) = (random.below(series.len()), random.unit() < 0.5);
        let mut drawn = Vec::with_capacity(n);
        for _ in 0..n {
            drawn.push(series[place]);
            forth ^= random.unit() < TURN;
            forth = place == 0 || forth && place < last;
            place = if forth { place + 1 } else { place - 1 };
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_a_draw_were_neighbours_in_the_record() {
        let lines: Vec<String> = (1..=12).map(|n| format!("a,{n}")).collect();
        let noise = Noise::parse(&format!("# made by hand\n\n{}\n", lines.join("\n"))).unwrap();
        let drawn = noise.draw(&mut Resampler::new(3), 200);
        let steps: Vec<f64> = drawn.windows(2).map(|pair| (pair[1] - pair[0]).abs() * 6.5).collect();
        assert!(steps.iter().all(|step| (step - 1.0).abs() < 1e-9), "{steps:?}");
        assert!((drawn.iter().copied().fold(0.0, f64::max) - 12.0 / 6.5).abs() < 1e-9, "it gets to the ends");
        assert_eq!(drawn, noise.draw(&mut Resampler::new(3), 200));
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_line() {
        for (text, expected) in [
            ("a;1", "line 1 of the record is not series,value"),
            ("# x\na,one", "line 2 of the record has no number"),
            ("a,0", "line 1 of the record has a value that is not positive"),
            ("a,1\na,2", "line 2 of the record ends a series of fewer than ten runs"),
            ("", "line 0 of the record ends a series of fewer than ten runs"),
        ] {
            assert_eq!(Noise::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
