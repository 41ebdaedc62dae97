//! A length of time as people write it: "90s", "1m30s", "500ms".

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A length of time, never negative, at most 30 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(Duration);

const LONGEST: Duration = Duration::from_hours(30 * 24);

impl Span {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// So many milliseconds.
    pub const fn milliseconds(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }

    /// Of a time that was computed; 30 days at most.
    pub fn from_duration(duration: Duration) -> Self {
        Self(duration.min(LONGEST))
    }

    /// As the standard library's type.
    pub fn duration(self) -> Duration {
        self.0
    }

    /// In nanoseconds; 30 days fit.
    pub fn nanos(self) -> u64 {
        self.0.as_nanos() as u64
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("\"{text}\" has no unit; write {text}s, {text}m or {text}h"));
        }
        let parsed: jiff::SignedDuration = text.parse().map_err(|_| {
            format!("\"{text}\" is not a valid duration; write for example 30s, 1m30s or 500ms")
        })?;
        if parsed.is_negative() {
            return Err(format!("\"{text}\" is negative; a duration must be 0s or more"));
        }
        let span = parsed.unsigned_abs();
        if span > LONGEST {
            return Err(format!("\"{text}\" is longer than 30 days"));
        }
        Ok(Self(span))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 30 days fit by construction.
        let signed = jiff::SignedDuration::try_from(self.0).unwrap_or(jiff::SignedDuration::MAX);
        write!(f, "{}", format!("{signed:#}").replace(' ', ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read_again() {
        for text in ["0s", "5s", "1m30s", "500ms", "2h", "1m", "90s"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span, "{text} -> {span}");
        }
    }

    #[test]
    fn refusals_say_what_to_write() {
        assert!("5".parse::<Span>().unwrap_err().contains("write 5s"));
        assert!("-5s".parse::<Span>().unwrap_err().contains("negative"));
        assert!("soon".parse::<Span>().unwrap_err().contains("1m30s"));
        assert!("9999h".parse::<Span>().unwrap_err().contains("30 days"));
        assert!("".parse::<Span>().is_err());
    }
}
