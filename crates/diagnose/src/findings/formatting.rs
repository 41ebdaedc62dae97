//! Figures as people read them.

pub(super) use crate::load::percent;

/// Bytes on disk or in memory, in the binary units that PostgreSQL's settings have: "64 MB" is 67,108,864 bytes.
pub(super) fn size(bytes: f64) -> String {
    in_units(bytes, ["B", "kB", "MB", "GB", "TB"])
}

/// The same by the names that storage has for them: "64 MiB" beside rates in decimal megabytes.
pub(super) fn binary_size(bytes: f64) -> String {
    in_units(bytes, ["B", "KiB", "MiB", "GiB", "TiB"])
}

/// In the largest of units, each 1,024 times the one before, in which it is 1 or more.
fn in_units(bytes: f64, units: [&str; 5]) -> String {
    let mut value = bytes.max(0.0);
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value >= 10.0 || unit == 0 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// Bytes a second, in decimal megabytes as iostat and disks have them.
pub(super) fn rate(bytes: f64) -> String {
    format!("{} MB/s", number(bytes / 1e6))
}

/// A figure with three digits or, when it is large, all before the point, in groups of three.
pub(super) fn number(value: f64) -> String {
    // A sum of nothing is minus zero.
    let value = value + 0.0;
    let size = value.abs();
    if size >= 1000.0 {
        return grouped(value);
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

/// A whole number in groups of three.
pub(super) fn grouped(value: f64) -> String {
    let plain = format!("{:.0}", value.abs());
    let mut text = String::with_capacity(plain.len() * 4 / 3 + 1);
    if value <= -0.5 {
        text.push('-');
    }
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds, or milliseconds where that reads better.
pub(super) fn seconds(value: f64) -> String {
    if value < 1.0 { format!("{:.0} ms", value * 1e3) } else { format!("{value:.1} s") }
}

/// "1 checkpoint", "3 checkpoints".
pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A statement's beginning on one line.
pub(super) fn statement(text: &str) -> String {
    const LONGEST: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(LONGEST).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(size(67_108_864.0), "64 MB");
        assert_eq!(size(1_610_612_736.0), "1.5 GB");
        assert_eq!(size(12.0), "12 B");
        assert_eq!(rate(95e6), "95 MB/s");
        assert_eq!((percent(-0.0), number(-0.0)), ("0.0 %".into(), "0".into()));
        assert_eq!((percent(0.5), percent(0.014)), ("50 %".into(), "1.4 %".into()));
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(-1234.0), "-1,234");
        assert_eq!(
            (number(0.123), number(12.34), number(999.0)),
            ("0.12".into(), "12.3".into(), "999".into())
        );
        assert_eq!((seconds(0.25), seconds(3.0)), ("250 ms".into(), "3.0 s".into()));
        assert_eq!(
            (count(1, "checkpoint"), count(2, "checkpoint")),
            ("1 checkpoint".into(), "2 checkpoints".into())
        );
    }
}
