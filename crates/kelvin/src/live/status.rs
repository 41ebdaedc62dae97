//! The status line: one second of the load in words. Pure, so that it can be tested to the letter.

use kelvin_measure::event::{Part, Phase, Second};
use kelvin_measure::{Histogram, Nanos};

/// What the line is made of, second by second.
#[derive(Debug, Clone, Default)]
pub(super) struct Status {
    /// Name of the headline figure per minute.
    headline: String,
    /// Index of its transaction type.
    kind: usize,
    users: u32,
    /// Length of the measured window in seconds; none when it ends by count.
    planned: Option<u64>,
    measured_seconds: u64,
    measured: u64,
    /// Errors of the point so far.
    errors: u64,
    /// The newest second that has had its line.
    printed: Option<i64>,
}

impl Status {
    pub(super) fn new(headline: &str, kind: usize) -> Self {
        Self { headline: headline.into(), kind, ..Self::default() }
    }

    /// A phase began.
    pub(super) fn phase(&mut self, phase: Phase, users: u32, planned: Option<Nanos>) {
        if phase == Phase::Connect {
            *self = Self { headline: std::mem::take(&mut self.headline), kind: self.kind, ..Self::default() };
        }
        self.users = users;
        // The last measured second is complete a moment after the window has closed.
        if phase == Phase::Measure {
            self.planned = planned.map(|nanos| nanos.div_ceil(1_000_000_000));
        }
    }

    /// Errors were counted.
    pub(super) fn errors(&mut self, count: u64) {
        self.errors += count;
    }

    /// The line for a second; none for what came after the window, nor for what is added to a second whose
    /// line was printed.
    pub(super) fn second(&mut self, second: &Second, ramp_up: u64) -> Option<String> {
        let now = second.kinds.get(self.kind).map_or(0, |kind| kind.committed) * 60;
        let mut latency = Histogram::new();
        for kind in &second.kinds {
            latency.add(&kind.latency);
        }
        let p95 = latency.percentile(95.0).map_or("–".to_owned(), |nanos| milliseconds(nanos as f64));
        let (name, at, total) = match second.part {
            Part::Tail => return None,
            Part::RampUp => ("ramp-up", ramp_up.saturating_add_signed(second.second) + 1, Some(ramp_up)),
            Part::Measured => {
                self.measured_seconds = self.measured_seconds.max(second.second as u64 + 1);
                self.measured += now / 60;
                ("measure", second.second as u64 + 1, self.planned)
            }
        };
        let users = if self.users == 1 { "1 user".into() } else { format!("{} users", self.users) };
        let errors =
            if self.errors == 1 { "1 error".into() } else { format!("{} errors", grouped(self.errors)) };
        let mean = match (second.part, self.measured_seconds) {
            (Part::Measured, seconds @ 1..) => grouped(self.measured * 60 / seconds),
            _ => "–".into(),
        };
        let clock = total.map_or(format!("{at} s"), |total| format!("{} s left", total.saturating_sub(at)));
        if self.printed.is_some_and(|printed| printed >= second.second) {
            return None;
        }
        self.printed = Some(second.second);
        Some(format!(
            "{name} {clock} · {} {} now {mean} mean · p95 {p95} · {errors} · {users}",
            self.headline,
            grouped(now),
        ))
    }
}

/// A latency in milliseconds with a precision that fits its size.
pub(super) fn milliseconds(nanos: f64) -> String {
    let ms = nanos / 1e6;
    let decimals = if ms < 1.0 {
        3
    } else if ms < 100.0 {
        2
    } else {
        0
    };
    format!("{ms:.decimals$} ms")
}

/// An integer with a comma after every three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::KindCounts;

    use super::*;

    fn second(at: i64, part: Part, committed: u64) -> Second {
        let mut kind = KindCounts { committed, ..KindCounts::default() };
        for _ in 0..committed {
            kind.latency.record(1_500_000);
        }
        Second { point: 0, second: at, part, kinds: vec![kind] }
    }

    #[test]
    fn the_line_says_where_we_are_and_what_it_is() {
        let mut status = Status::new("NOPM", 0);
        status.phase(Phase::RampUp, 4, Some(5_000_000_000));
        let line = status.second(&second(-5, Part::RampUp, 100), 5).unwrap();
        assert_eq!(line, "ramp-up 4 s left · NOPM 6,000 now – mean · p95 – · 0 errors · 4 users");
        status.phase(Phase::Measure, 4, Some(20_000_000_000));
        status.second(&second(0, Part::Measured, 1000), 5);
        status.errors(3);
        let line = status.second(&second(1, Part::Measured, 500), 5).unwrap();
        assert_eq!(
            line,
            "measure 18 s left · NOPM 30,000 now 45,000 mean · p95 1.50 ms · 3 errors · 4 users"
        );
        assert!(status.second(&second(20, Part::Tail, 1), 5).is_none());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!((grouped(0), grouped(999), grouped(1000), grouped(1_234_567)).3, "1,234,567");
    }
}
