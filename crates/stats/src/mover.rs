//! The interval of a difference from those of its two sides.
//!
//! Zou and Donner's method of variance estimates recovery (Statistics in Medicine 27, 2008): each end of the difference's
//! interval takes the error of each side from the end of that side's interval towards which it lies, so that sides whose
//! intervals are not symmetric, as those of percentiles, keep what they say. Of symmetric ones it is the root of the sum of
//! squares. The sides must be independent.

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite where there is none.
    pub high: f64,
}

/// The ratio b/a with its interval, as a [`Side`]; none unless all values, and the lower ends, are above 0.
///
/// ```
/// use kelvin_stats::mover::{Side, ratio};
/// let side = |value: f64| Side { value, low: value / 1.1, high: value * 1.1 };
/// let found = ratio(side(100.0), side(50.0)).unwrap();
/// // Both are known to a factor of 1.1: their ratio to one of 1.1^√2.
/// let factor = 1.1_f64.powf(2.0_f64.sqrt());
/// assert!((found.high / (0.5 * factor) - 1.0).abs() < 1e-12 && (found.low * factor / 0.5 - 1.0).abs() < 1e-12);
/// ```
pub fn ratio(a: Side, b: Side) -> Option<Side> {
    let above_zero = |side: &Side| side.low > 0.0 && side.value >= side.low && side.high >= side.value;
    if !(above_zero(&a) && above_zero(&b) && a.value.is_finite() && b.value.is_finite()) {
        return None;
    }
    let [a, b] = [a, b].map(|side| Side { value: side.value.ln(), low: side.low.ln(), high: side.high.ln() });
    let difference = b.value - a.value;
    let below = (b.value - b.low).hypot(a.high - a.value);
    let above = (b.high - b.value).hypot(a.value - a.low);
    Some(Side { value: difference.exp(), low: (difference - below).exp(), high: (difference + above).exp() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_takes_the_errors_that_lie_towards_it() {
        let exact = Side { value: 2.0, low: 2.0, high: 2.0 };
        let skew = Side { value: 4.0, low: 3.0, high: 40.0 };
        assert_eq!(ratio(exact, skew).map(round), Some(Side { value: 2.0, low: 1.5, high: 20.0 }));
        let turned = ratio(skew, exact).map(round).unwrap();
        assert_eq!(turned, Side { value: 0.5, low: 0.05, high: 0.666_666_667 });
        let open = ratio(exact, Side { high: f64::INFINITY, ..skew }).unwrap();
        assert_eq!(open.high, f64::INFINITY);
        assert!((open.low - 1.5).abs() < 1e-9);
        assert_eq!(ratio(exact, Side { value: 0.0, low: 0.0, high: 1.0 }), None);
    }

    fn round(side: Side) -> Side {
        let nine = |value: f64| (value * 1e9).round() / 1e9;
        Side { value: nine(side.value), low: nine(side.low), high: nine(side.high) }
    }
}
