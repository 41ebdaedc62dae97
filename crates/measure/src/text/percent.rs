//! Shares and changes in per cent.

use super::NONE;
use super::number::without_zeros;

/// A share of one: "1.4 %", "50 %".
pub fn percent(share: f64) -> String {
    // A sum of nothing is minus zero.
    let percent = share * 100.0 + 0.0;
    if percent.abs() < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A share of one with a fixed number of decimals, as in the columns of a table: "50 %", "1.4 %"; a dash for none and for what
/// is not a number.
pub fn fixed_percent(share: Option<f64>, decimals: usize) -> String {
    let share = share.filter(|share| !share.is_nan());
    share.map_or_else(|| NONE.into(), |share| format!("{:.decimals$} %", share * 100.0))
}

/// A figure that is in per cent already: "99.9 %".
pub fn one_decimal(percent: Option<f64>) -> String {
    percent.map_or_else(|| NONE.into(), |v| format!("{v:.1} %"))
}

/// A share of one with two decimals at most: "1.5 %", "99.95 %".
pub fn plain_percent(share: f64) -> String {
    format!("{} %", without_zeros(&format!("{:.2}", share * 100.0)))
}

/// The same, whole from 10 % on: "0.85 %", "12 %".
pub fn trimmed_percent(share: f64) -> String {
    if (share * 100.0).abs() < 10.0 { plain_percent(share) } else { format!("{:.0} %", share * 100.0) }
}

/// A figure that is in per cent already, with four decimals if it is small: the smallest must not look like 0.
pub fn small_percent(percent: f64) -> String {
    match percent {
        percent if percent > 0.0 && percent < 0.0001 => "below 0.0001 %".into(),
        percent if percent < 0.1 => format!("{percent:.4} %"),
        percent => format!("{percent:.2} %"),
    }
}

/// A share of one with its sign: "+1.23 %".
pub fn signed_percent(share: f64) -> String {
    let percent = share * 100.0;
    // What rounds to nothing has no sign.
    let percent = if percent.abs() < 0.005 { 0.0 } else { percent };
    if !percent.is_finite() {
        NONE.into()
    } else if percent.abs() < 9.995 {
        format!("{percent:+.2} %")
    } else {
        format!("{percent:+.1} %")
    }
}

/// A ratio as a change: 0.968 is "-3.2 %".
pub fn change(ratio: f64) -> String {
    fixed_change(ratio, if (100.0 * (ratio - 1.0)).abs() < 0.95 { 2 } else { 1 })
}

/// The same with a fixed number of decimals.
pub fn fixed_change(ratio: f64, decimals: usize) -> String {
    format!("{:+.decimals$} %", 100.0 * (ratio - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_digits_that_matter() {
        assert_eq!([-0.0, 0.5, 0.014].map(percent), ["0.0 %", "50 %", "1.4 %"]);
        assert_eq!([one_decimal(Some(99.94)), one_decimal(None)], ["99.9 %", NONE]);
        assert_eq!([0.015, 0.9995, 0.95].map(plain_percent), ["1.5 %", "99.95 %", "95 %"]);
        assert_eq!([0.0085, 0.1234].map(trimmed_percent), ["0.85 %", "12 %"]);
        assert_eq!([fixed_percent(Some(0.014), 0), fixed_percent(Some(f64::NAN), 1)], ["1 %", NONE]);
        assert_eq!([5e-5, 0.01, 12.0].map(small_percent), ["below 0.0001 %", "0.0100 %", "12.00 %"]);
        assert_eq!([0.0123, -0.25, 1e-9].map(signed_percent), ["+1.23 %", "-25.0 %", "+0.00 %"]);
        assert_eq!([0.968, 1.0012].map(change), ["-3.2 %", "+0.12 %"]);
        assert_eq!(fixed_change(0.968, 0), "-3 %");
    }
}
