//! Numbers as fio writes them: at most so many digits, then the next prefix.

use kelvin_measure::text::{three_figures, time_unit};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Bytes,
    BytesPerSecond,
    BitsPerSecond,
}

/// A number with the prefix that leaves it with at most `digits` digits; what was cut is rounded, with decimals as far
/// as there is room (the point counts as a digit). `binary` takes steps of 1024 (Ki, Mi …), otherwise of 1000 (k, M …).
pub(super) fn scaled(value: f64, digits: usize, binary: bool, unit: Unit) -> String {
    let (step, prefixes) = if binary {
        (1024.0, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
    } else {
        (1000.0, ["", "k", "M", "G", "T", "P", "E"])
    };
    let (mut scaled, mut power) = (value.max(0.0), 0);
    if unit == Unit::BitsPerSecond {
        scaled *= 8.0;
    }
    // An unscaled number is whole: there are no parts of a byte or of an I/O.
    scaled = scaled.floor();
    let whole_digits = |value: f64| format!("{:.0}", value.floor()).len();
    while whole_digits(scaled) > digits && power + 1 < prefixes.len() {
        scaled /= step;
        power += 1;
    }
    let mut text = fitted(scaled, digits, power > 0);
    if text.len() > digits && power + 1 < prefixes.len() {
        power += 1;
        text = fitted(scaled / step, digits, true);
    }
    text.push_str(prefixes.get(power).copied().unwrap_or(""));
    text.push_str(match unit {
        Unit::None => "",
        Unit::Bytes => "B",
        Unit::BytesPerSecond => "B/s",
        Unit::BitsPerSecond => "bit/s",
    });
    text
}

/// A number with the decimals that there is room for, if there may be any.
fn fitted(value: f64, digits: usize, decimals: bool) -> String {
    let whole = format!("{:.0}", value.floor()).len();
    let room = if decimals { digits.saturating_sub(whole + 1) } else { 0 };
    let text = format!("{value:.room$}");
    // Rounding up may have added a digit: 9.999 is 10.00, which is one character too long.
    if room > 0 && text.len() > digits { format!("{value:.*}", room - 1) } else { text }
}

/// How amounts of data are written: `kb_base`, `unit_base` and `significant_figures`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Units {
    pub(super) thousand: bool,
    pub(super) bits: bool,
    pub(super) digits: usize,
}

impl Default for Units {
    fn default() -> Self {
        Self { thousand: false, bits: false, digits: 4 }
    }
}

impl Units {
    pub(super) fn for_report(report: &crate::job::ReportOptions) -> Self {
        let digits = usize::from(report.significant_figures);
        Self { thousand: report.thousand, bits: report.bits, digits }
    }

    /// A count such as I/Os a second: 46.8k.
    pub(super) fn count(self, value: f64) -> String {
        scaled(value, self.digits, false, Unit::None)
    }

    fn rate_unit(self) -> Unit {
        if self.bits { Unit::BitsPerSecond } else { Unit::BytesPerSecond }
    }

    /// Bytes a second in the units asked for: 183MiB/s.
    pub(super) fn rate(self, bytes: f64) -> String {
        scaled(bytes, self.digits, !self.thousand, self.rate_unit())
    }

    /// The same in the other base: 192MB/s.
    pub(super) fn other_rate(self, bytes: f64) -> String {
        scaled(bytes, self.digits, self.thousand, self.rate_unit())
    }

    /// Bytes: 4096KiB.
    pub(super) fn amount(self, bytes: u64) -> String {
        scaled(bytes as f64, self.digits, !self.thousand, Unit::Bytes)
    }

    /// Bytes in the other base.
    pub(super) fn other_amount(self, bytes: u64) -> String {
        scaled(bytes as f64, self.digits, self.thousand, Unit::Bytes)
    }
}

/// Which unit a line of times is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Nano,
    Micro,
    Milli,
}

impl TimeUnit {
    /// As fio chooses: a coarser one when the least is still thousands of the finer one.
    pub(super) fn for_range(least: u64, greatest: u64) -> Self {
        if least > 2_000_000 && greatest > 99_999_999 {
            Self::Milli
        } else if least > 2_000 && greatest > 99_999 {
            Self::Micro
        } else {
            Self::Nano
        }
    }

    /// Of a line with a deviation, which must stay visible too.
    pub(super) fn for_line(least: u64, greatest: u64, deviation: f64) -> Self {
        match Self::for_range(least, greatest) {
            Self::Milli if deviation > 1e6 => Self::Milli,
            Self::Milli | Self::Micro if deviation > 1e3 => Self::Micro,
            _ => Self::Nano,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Nano => "nsec",
            Self::Micro => "usec",
            Self::Milli => "msec",
        }
    }

    pub(super) fn nanos(self) -> u64 {
        match self {
            Self::Nano => 1,
            Self::Micro => 1_000,
            Self::Milli => 1_000_000,
        }
    }
}

/// A time of nanoseconds with its unit, three figures: "84.3 us".
pub(super) fn time(nanos: f64) -> String {
    match time_unit(nanos) {
        (value, "ns") => format!("{value:.*} ns", usize::from(value < 99.95)),
        (value, unit) => format!("{} {}", three_figures(value), if unit == "µs" { "us" } else { unit }),
    }
}

/// As in a column: without the blank.
pub(super) fn short_time(nanos: f64) -> String {
    time(nanos).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_fio_prints() {
        // Each of these stands in an output of fio 3.33.
        assert_eq!(Units::default().count(46_761.9), "46.8k");
        assert_eq!(Units::default().count(999.47), "999");
        let fine = Units { digits: 7, ..Units::default() };
        assert_eq!((fine.count(1_365_333.0), fine.amount(1 << 20)), ("1365333".into(), "1048576B".into()));
        assert_eq!(Units::default().count(1_365_333.0), "1365k");
        assert_eq!(Units::default().count(4_592_246.0), "4592k");
        let units = Units::default();
        assert_eq!(units.rate(191_536_761.0), "183MiB/s");
        assert_eq!(units.other_rate(191_536_761.0), "192MB/s");
        assert_eq!(units.amount(3928 << 10), "3928KiB");
        assert_eq!(units.amount(16 << 20), "16.0MiB");
        assert_eq!(units.other_amount(16 << 20), "16.8MB");
        assert_eq!(units.rate(5_592_405_333.0), "5333MiB/s");
        assert_eq!(units.amount(0), "0B");
        assert_eq!(units.amount(4096), "4096B");
        assert_eq!(units.amount(64 << 10), "64.0KiB");
        assert_eq!(units.rate(4_093_838.0), "3998KiB/s");
        assert_eq!(units.other_rate(4_093_838.0), "4094kB/s");
        let bits = Units { bits: true, ..Units::default() };
        assert_eq!(bits.rate(58_254_222.0), "444Mibit/s");
        assert_eq!(bits.other_rate(58_254_222.0), "466Mbit/s");
        let thousand = Units { thousand: true, ..Units::default() };
        assert_eq!(thousand.rate(59_074_704.0), "59.1MB/s");
        assert_eq!(thousand.other_rate(59_074_704.0), "56.3MiB/s");
        assert_eq!(scaled(2_118_100.0, 6, false, Unit::None), "2118.1k");
        assert_eq!(scaled(431_494.0, 6, false, Unit::None), "431494");
        // At the edges no digit is lost or added.
        assert_eq!(Units::default().count(9_999.0), "9999");
        assert_eq!(Units::default().count(10_000.0), "10.0k");
        assert_eq!(Units::default().count(99_960.0), "100k");
        assert_eq!(units.amount(10_000 << 10), "9.77MiB");
        assert_eq!(units.amount(10_239 << 10), "10.0MiB");
        assert_eq!(scaled(9_999_700.0, 4, false, Unit::None), "10.0M");
    }

    #[test]
    fn times_have_three_figures() {
        assert_eq!(
            [0.0, 523.0, 9_994.0, 84_321.0, 999_400.0, 1.5e9].map(time),
            ["0.0 ns", "523 ns", "9.99 us", "84.3 us", "999 us", "1.50 s"]
        );
    }
}
