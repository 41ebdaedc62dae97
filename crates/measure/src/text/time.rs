//! Times and durations.

use super::NONE;
use super::number::{number, whole};

/// Nanoseconds in the largest unit in which they are at least 1, and its name: "ns", "µs", "ms" or "s".
pub fn time_unit(nanos: f64) -> (f64, &'static str) {
    match nanos {
        n if n >= 1e9 => (n / 1e9, "s"),
        n if n >= 1e6 => (n / 1e6, "ms"),
        n if n >= 1e3 => (n / 1e3, "µs"),
        n => (n, "ns"),
    }
}

/// Nanoseconds in the unit that reads best: "523 ns", "84.3 µs", "5 ms".
pub fn nanos(nanos: f64) -> String {
    let (value, unit) = time_unit(nanos);
    format!("{} {unit}", number(if unit == "ns" { value.round() } else { value }))
}

/// Microseconds as milliseconds with three decimals at most, without the unit: "0.512", "10.00", "1,235".
pub fn ms(us: Option<f64>) -> String {
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

/// A latency in milliseconds with a precision that fits its size; a short one, as of an I/O, in microseconds.
pub fn latency(nanos: f64) -> String {
    let ms = nanos / 1e6;
    if (1e-9..0.1).contains(&ms) {
        return format!("{:.1} µs", ms * 1e3);
    }
    let decimals = if ms < 1.0 {
        3
    } else if ms < 100.0 {
        2
    } else {
        0
    };
    format!("{ms:.decimals$} ms")
}

/// Seconds with as many decimals as they deserve: "12.34 s", "120.5 s".
pub fn seconds(value: f64) -> String {
    if value >= 100.0 { format!("{value:.1} s") } else { format!("{value:.2} s") }
}

/// Seconds, or milliseconds where that reads better: "250 ms", "3.0 s".
pub fn short_seconds(value: f64) -> String {
    if value < 1.0 { format!("{:.0} ms", value * 1e3) } else { format!("{value:.1} s") }
}

/// A length of time for a person, rounded up to what matters: "45 s", "12 min", "3 h 20 min", "2 d 4 h".
pub fn duration(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.max(0.0).ceil() as u64 } else { 0 };
    let minutes = seconds.div_ceil(60);
    match minutes {
        _ if seconds < 100 => format!("{seconds} s"),
        0..60 => format!("{minutes} min"),
        60..2880 => format!("{} h {:02} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1440, (minutes % 1440).div_ceil(60)),
    }
}

/// What is left of it, in a display that moves every second: "42 s", "3 min 5 s", "2 h 10 min".
pub fn countdown(left: std::time::Duration) -> String {
    let seconds = left.as_secs_f64().ceil() as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_read_well() {
        assert_eq!(
            [0.4, 523.0, 84_321.0, 5e6, 1.5e9].map(nanos),
            ["0 ns", "523 ns", "84.3 µs", "5 ms", "1.50 s"]
        );
        assert_eq!(
            [Some(512.0), Some(9_996.0), Some(123_456.0), Some(1_234_567.0), None].map(ms),
            ["0.512", "10.00", "123.5", "1,235", NONE]
        );
        assert_eq!([0.25, 3.0].map(short_seconds), ["250 ms", "3.0 s"]);
        let read = [0.0, 0.2, 99.0, 100.0, 3_540.0, 3_541.0, 12_000.0, 200_000.0].map(duration);
        assert_eq!(read, ["0 s", "1 s", "99 s", "2 min", "59 min", "1 h 00 min", "3 h 20 min", "2 d 8 h"]);
        let left = [41, 185, 7800].map(|s| countdown(Duration::from_secs(s)));
        assert_eq!(left, ["41 s", "3 min 5 s", "2 h 10 min"]);
    }
}
