//! Numbers as people read them.

use kelvin_measure::Bounded;
use kelvin_measure::event::AuditLine;

/// What stands where a figure cannot be given.
pub const NONE: &str = "–";

/// What stands before a figure that is known from below only.
pub const AT_LEAST: &str = "≥ ";

/// A whole number with its thousands apart: 1,234,567.
pub(crate) fn whole(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate, rounded to a whole number; a small one keeps a decimal.
pub(crate) fn rate(value: Option<f64>) -> String {
    match value {
        Some(v) if (0.0..100.0).contains(&v) && v.fract() != 0.0 => format!("{v:.1}"),
        Some(v) if v >= 0.0 => whole(v.round() as u64),
        _ => NONE.into(),
    }
}

/// A small figure with two decimals, such as busy cores.
pub(crate) fn decimal(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), |v| if v < 100.0 { format!("{v:.2}") } else { rate(Some(v)) })
}

/// Bytes in decimal units: "14.2 MB".
pub(crate) fn amount(bytes: f64) -> String {
    for (unit, name) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if bytes.abs() >= unit {
            return format!("{:.1} {name}", bytes / unit);
        }
    }
    format!("{bytes:.0} B")
}

/// A figure of any size with four figures, as a table of many sorts of them needs.
pub fn significant(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.into()
    } else if size >= 1000.0 {
        format!("{}{}", if value < 0.0 { "-" } else { "" }, whole(size.round() as u64))
    } else if size == 0.0 || size >= 1.0 {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else if size >= 0.1 {
        format!("{value:.3}")
    } else if size >= 0.001 {
        format!("{value:.4}")
    } else {
        format!("{value:.1e}")
    }
}

/// A share, "12.3 %".
pub fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), |v| format!("{v:.1} %"))
}

/// A fitted coefficient with three figures, however small.
pub(crate) fn coefficient(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        NONE.into()
    } else if size >= 100.0 {
        format!("{}{}", if value < 0.0 { "-" } else { "" }, whole(size.round() as u64))
    } else if size >= 0.01 {
        format!("{value:.3}")
    } else if size > 0.0 {
        format!("{value:.2e}")
    } else {
        "0".into()
    }
}

/// "1 virtual user", "8 virtual users".
pub(crate) fn users(count: u32) -> String {
    format!("{} virtual user{}", whole(u64::from(count)), if count == 1 { "" } else { "s" })
}

/// Microseconds as milliseconds with three figures.
pub(crate) fn ms(us: Option<f64>) -> String {
    let Some(us) = us else { return NONE.into() };
    let value = us / 1e3;
    if value < 9.995 {
        format!("{value:.3}")
    } else if value < 99.95 {
        format!("{value:.2}")
    } else if value < 999.5 {
        format!("{value:.1}")
    } else {
        whole(value.round() as u64)
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

/// Seconds with as many decimals as they deserve.
pub(crate) fn seconds(value: f64) -> String {
    if value >= 100.0 { format!("{value:.1} s") } else { format!("{value:.2} s") }
}

/// An audit line's figure with its bounds: "0.42 %, allowed 0.90 to 1.10 %".
pub(crate) fn bounds(line: &AuditLine) -> String {
    let unit = if line.unit.is_empty() { String::new() } else { format!(" {}", line.unit) };
    let number = |v: f64| if v.is_finite() { format!("{v:.2}") } else { NONE.into() };
    let value = format!("{}{unit}", number(line.value));
    match (line.low.is_finite(), line.high.is_finite()) {
        (true, true) => format!("{value}, allowed {} to {}{unit}", number(line.low), number(line.high)),
        (true, false) => format!("{value}, at least {}{unit}", number(line.low)),
        (false, true) => format!("{value}, at most {}{unit}", number(line.high)),
        (false, false) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([whole(0), whole(999), whole(1000), whole(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([ms(Some(512.0)), ms(Some(9_996.0)), ms(Some(123_456.0))], ["0.512", "10.00", "123.5"]);
        assert_eq!([ms(Some(1_234_567.0)), ms(None)], ["1,235", NONE]);
        assert_eq!([coefficient(0.0), coefficient(12_345.0), coefficient(-0.25)], ["0", "12,345", "-0.250"]);
        assert_eq!(
            [coefficient(1.5e-4), coefficient(f64::NAN), decimal(Some(0.037))],
            ["1.50e-4", NONE, "0.04"]
        );
        assert_eq!([amount(0.0), amount(999.0), amount(14_230_000.0)], ["0 B", "999 B", "14.2 MB"]);
        assert_eq!(
            [0.0, 1.5, 12.0, 123.456, 1234.5, 0.01234, 0.000_012, -5000.4].map(significant),
            ["0", "1.5", "12", "123.46", "1,235", "0.0123", "1.2e-5", "-5,000"]
        );
        assert_eq!([percent(Some(99.94)), percent(None), decimal(Some(1234.5))], ["99.9 %", NONE, "1,235"]);
        assert_eq!([rate(Some(12.34)), rate(Some(1234.5)), rate(None)], ["12.3", "1,235", NONE]);
    }
}
