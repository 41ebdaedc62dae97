//! Numbers without a unit.

use crate::Bounded;

/// What stands where a figure cannot be given.
pub const NONE: &str = "–";

/// What stands before a figure that is known from below only.
pub const AT_LEAST: &str = "≥ ";

/// A whole number with its thousands apart: "1,234,567".
pub fn whole(value: u64) -> String {
    thousands_apart(&value.to_string())
}

/// The nearest whole number with its thousands apart: "-1,234".
pub fn rounded(value: f64) -> String {
    let sign = if value <= -0.5 { "-" } else { "" };
    format!("{sign}{}", thousands_apart(&format!("{:.0}", value.abs())))
}

fn thousands_apart(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate, rounded to a whole number; a small one keeps a decimal.
pub fn rate(value: Option<f64>) -> String {
    match value {
        Some(v) if (0.0..100.0).contains(&v) && v.fract() != 0.0 => format!("{v:.1}"),
        Some(v) if v >= 0.0 => rounded(v.round()),
        _ => NONE.into(),
    }
}

/// A small figure with two decimals, such as busy cores.
pub fn decimal(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), |v| if v < 100.0 { format!("{v:.2}") } else { rate(Some(v)) })
}

/// Three figures, of which at most two are decimals: "0.12", "9.99", "12.3", "1235".
pub fn three_figures(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Three figures, a whole number without decimals, thousands apart: "0.12", "5", "12.3", "1,235".
pub fn number(value: f64) -> String {
    // A sum of nothing is minus zero.
    let value = value + 0.0;
    let size = value.abs();
    if size >= 1000.0 {
        return rounded(value);
    }
    let digits = if value.fract() == 0.0 || size >= 100.0 {
        0
    } else if size >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

/// A count in few characters: "950", "12.3k", "4.5M".
pub fn short(value: f64) -> String {
    match value {
        value if value >= 999_950.0 => format!("{:.1}M", value / 1e6),
        value if value >= 9_999.5 => format!("{:.1}k", value / 1e3),
        value if value >= 10.0 || value == value.trunc() => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

/// A figure of any size with four figures, as a table of many sorts of them needs.
pub fn significant(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.into()
    } else if size >= 1000.0 {
        rounded(value.round())
    } else if size == 0.0 || size >= 1.0 {
        without_zeros(&format!("{value:.2}")).to_owned()
    } else if size >= 0.1 {
        format!("{value:.3}")
    } else if size >= 0.001 {
        format!("{value:.4}")
    } else {
        format!("{value:.1e}")
    }
}

/// A decimal number without the zeros at its end.
pub(super) fn without_zeros(text: &str) -> &str {
    text.trim_end_matches('0').trim_end_matches('.')
}

/// The same, where the figure may not be known.
pub fn significant_or_none(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), significant)
}

/// A fitted coefficient with three figures, however small.
pub fn coefficient(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.into()
    } else if size >= 100.0 {
        rounded(value.round())
    } else if size >= 0.01 {
        format!("{value:.3}")
    } else if size > 0.0 {
        format!("{value:.2e}")
    } else {
        "0".into()
    }
}

/// A probability: "0.031", "< 0.001".
pub fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => "< 0.001".into(),
        Some(p) => format!("{p:.3}"),
        None => NONE.into(),
    }
}

/// A value as `text` writes it, with a sign before it where it is known from below only: "≥ 68.50".
pub fn bounded(value: Option<Bounded>, text: impl Fn(Option<f64>) -> String) -> String {
    let sign = if value.is_some_and(|value| value.at_least) { AT_LEAST } else { "" };
    format!("{sign}{}", text(value.map(|value| value.value)))
}

/// An interval of a ratio, of which an end may not be known: 0 stands for no lower and infinity for no upper one.
pub fn ends(low: f64, high: f64, text: impl Fn(f64) -> String) -> String {
    match (low > 0.0, high.is_finite()) {
        (true, true) => format!("{} to {}", text(low), text(high)),
        (true, false) => format!("{} or more", text(low)),
        (false, true) => format!("{} or less", text(high)),
        (false, false) => "unbounded".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        assert_eq!([0, 999, 1000, 1_234_567].map(whole), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1_234_567.4, -1234.0, -0.4, 0.5].map(rounded), ["1,234,567", "-1,234", "0", "0"]);
        assert_eq!([coefficient(0.0), coefficient(12_345.0), coefficient(-0.25)], ["0", "12,345", "-0.250"]);
        assert_eq!(
            [coefficient(1.5e-4), coefficient(f64::NAN), decimal(Some(0.037))],
            ["1.50e-4", NONE, "0.04"]
        );
        assert_eq!(
            [0.0, 1.5, 12.0, 123.456, 1234.5, 0.01234, 0.000_012, -5000.4].map(significant),
            ["0", "1.5", "12", "123.46", "1,235", "0.0123", "1.2e-5", "-5,000"]
        );
        assert_eq!([rate(Some(12.34)), rate(Some(1234.5)), rate(None)], ["12.3", "1,235", NONE]);
        assert_eq!([-0.0, 0.123, 12.34, 999.0, 1000.4].map(number), ["0", "0.12", "12.3", "999", "1,000"]);
        assert_eq!(
            [0.0, 9.99, 9.999, 12.34, 99.96, 12_345.6].map(three_figures),
            ["0.00", "9.99", "10.0", "12.3", "100", "12346"]
        );
        assert_eq!([0.0, 0.5, 950.0, 12_345.0, 4_500_000.0].map(short), ["0", "0.5", "950", "12.3k", "4.5M"]);
        assert_eq!(decimal(Some(1234.5)), "1,235");
    }
}
