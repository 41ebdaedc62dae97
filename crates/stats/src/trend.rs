//! A straight line through a series, and how sure its slope is.

use crate::ess::precision;
use crate::student::two_sided;

/// The line fitted by least squares to values at 0, 1, 2, …
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The fitted value at 0.
    pub start: f64,
    /// Change from one value to the next.
    pub slope: f64,
}

/// Fits a line; none for fewer than two values.
pub fn line(values: &[f64]) -> Option<Line> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let (middle, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let x = i as f64 - middle;
        xy += x * (value - mean);
        xx += x * x;
    }
    let slope = xy / xx;
    Some(Line { start: mean - slope * middle, slope })
}

/// The line of Theil and Sen through points (x, y): its slope is the median of the slopes between all pairs, so that a few
/// wild values do not turn it; its start, the value at x = 0, is the median of y − slope·x. The slope is a change for each
/// unit of x. None without two points of different finite x. The work grows with the square of the number of points.
pub fn theil_sen(points: &[(f64, f64)]) -> Option<Line> {
    let points: Vec<(f64, f64)> =
        points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let mut slopes = Vec::with_capacity(points.len().saturating_mul(points.len().saturating_sub(1)) / 2);
    for (at, (x, y)) in points.iter().enumerate() {
        let others = points.iter().skip(at + 1).filter(|other| other.0 - x != 0.0);
        slopes.extend(others.map(|other| (other.1 - y) / (other.0 - x)));
    }
    let slope = median(&mut slopes)?;
    let mut starts: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    Some(Line { start: median(&mut starts)?, slope })
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// A slope and whether it is more than chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The line.
    pub line: Line,
    /// Standard error of the slope.
    pub error: f64,
    /// The probability of a slope as steep as this one, up or down, when there is none (Student's t).
    pub p: f64,
    /// Change of the line from the first value to the last, of the mean of the values.
    pub change: f64,
}

/// The trend of values in the order of time. Neighbours resemble each other, so that the textbook's error, s/√Σ(x − x̄)²,
/// is too small: it is widened by √τ of the residuals, and the degrees of freedom are those of their effective number
/// (see [`crate::ess`]). None for fewer than five values or when their mean is 0.
pub fn trend(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < 5 {
        return None;
    }
    let line = line(values)?;
    let mean = values.iter().sum::<f64>() / n as f64;
    let residuals: Vec<f64> =
        values.iter().enumerate().map(|(i, v)| v - line.start - line.slope * i as f64).collect();
    let tau = precision(&residuals)?.tau;
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let middle = (n - 1) as f64 / 2.0;
    let xx: f64 = (0..n).map(|i| (i as f64 - middle).powi(2)).sum();
    let error = (squares / (n - 2) as f64 / xx * tau).sqrt();
    let freedom = (n as f64 / tau - 2.0).max(1.0);
    // Values on the very line leave nothing to chance.
    let p = if error > 0.0 { two_sided(line.slope / error, freedom)? } else { f64::from(line.slope == 0.0) };
    let change = line.slope * (n - 1) as f64 / mean;
    change.is_finite().then_some(Trend { line, error, p, change })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn a_line_and_its_error_are_those_worked_by_hand() {
        // Σxy = −2·1 − 1·3 + 1·4 + 2·6 = 11, Σx² = 10: slope 1.1. Residuals 0, 0.9, −1.2, −0.3, 0.6, squares 2.7:
        // s² = 0.9, error √(0.9/10) = 0.3, t = 3.667 at 3 degrees of freedom: p = 0.0351.
        let found = trend(&[1.0, 3.0, 2.0, 4.0, 6.0]).unwrap();
        assert!((found.line.slope - 1.1).abs() < 1e-12 && (found.line.start - 1.0).abs() < 1e-12);
        assert!((found.error - 0.3).abs() < 1e-12, "{found:?}");
        assert!((found.p - 0.0351).abs() < 2e-4, "{}", found.p);
        assert!((found.change - 4.4 / 3.2).abs() < 1e-12);
        assert_eq!(trend(&[1.0; 4]), None);
        assert_eq!(trend(&[2.0; 8]).unwrap().p, 1.0);
    }

    #[test]
    fn the_line_of_theil_and_sen_is_not_turned_by_wild_values() {
        // Slopes of the pairs of (0, 1), (1, 3), (2, 4): 2, 1.5, 1; their median 1.5; starts 1, 1.5, 1.
        let found = theil_sen(&[(0.0, 1.0), (1.0, 3.0), (2.0, 4.0)]).unwrap();
        assert_eq!(found, Line { start: 1.0, slope: 1.5 });
        let mut points: Vec<(f64, f64)> = (0..40).map(|i| (f64::from(i), 5.0 - 0.5 * f64::from(i))).collect();
        points[7].1 = 1e9;
        points[31].1 = f64::NAN;
        assert_eq!(theil_sen(&points).unwrap(), Line { start: 5.0, slope: -0.5 });
        assert_eq!(theil_sen(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(theil_sen(&[]), None);
    }

    #[test]
    fn noise_alone_is_a_trend_as_often_as_asked() {
        let mut random = Resampler::new(7);
        let found = (0..2000)
            .filter(|_| {
                let values: Vec<f64> = (0..30).map(|_| 100.0 + random.normal()).collect();
                trend(&values).unwrap().p < 0.05
            })
            .count();
        assert!((40..=110).contains(&found), "{found} of 2000 at 5 %");
    }
}
