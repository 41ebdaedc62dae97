//! A share in the notation "3%".

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A share of a value: above 0, and at most 100 times the value.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Share(f64);

impl Share {
    pub(super) const TWO_PERCENT: Self = Self(2.0);

    /// A share from a percentage; none if it is out of range.
    pub fn percent(percent: f64) -> Option<Self> {
        (percent > 0.0 && percent <= 10_000.0).then_some(Self(percent))
    }

    /// As a ratio: 0.03 of "3%".
    pub fn ratio(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_suffix('%').map(str::trim_end);
        let parsed = number.and_then(|number| number.parse().ok()).and_then(Self::percent);
        parsed.ok_or_else(|| {
            format!(
                "\"{text}\" is not a valid percentage; write a value above 0%, such as \"3%\" or \"0.5%\""
            )
        })
    }
}

impl TryFrom<String> for Share {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Share> for String {
    fn from(share: Share) -> Self {
        share.to_string()
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_cent_with_their_sign() {
        for text in ["3%", "0.5%", "100 %", " 12.25% "] {
            let share: Share = text.parse().unwrap();
            assert_eq!(share.to_string().parse::<Share>().unwrap(), share, "{text} -> {share}");
        }
        assert_eq!("3%".parse::<Share>().unwrap().ratio(), 0.03);
        for text in ["3", "0.03", "0%", "-1%", "NaN%", "inf%", "1e9%", "%", "", "three %"] {
            assert!(text.parse::<Share>().unwrap_err().contains("valid percentage"), "{text}");
        }
    }
}
