//! `ci<1%`: the required precision of the mean.

use std::fmt;
use std::str::FromStr;

/// The required half-width of the interval of the mean over runs, as a share of the mean. The interval is the one
/// that covers the true mean in 95 % of the cases although it decides when the runs end
/// ([`Plan::confidence`](super::Plan::confidence)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until(f64);

impl Until {
    /// As a share: 0.01 for 1 %.
    pub fn half_width(self) -> f64 {
        self.0
    }
}

/// The smallest accepted value: no number of runs on a real machine reaches less.
const CLOSEST: f64 = 0.01;

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("\"{text}\" is not a valid stop rule; write for example ci<1%");
        let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let bound = squeezed.strip_prefix("ci").ok_or_else(form)?;
        let bound = bound.strip_prefix("<=").or_else(|| bound.strip_prefix('<')).ok_or_else(form)?;
        let number = bound.strip_suffix('%').ok_or_else(|| {
            format!("\"{text}\" needs a %: the bound is a percentage of the mean; write for example ci<1%")
        })?;
        let percent: f64 = number.parse().map_err(|_| form())?;
        if !(CLOSEST..=50.0).contains(&percent) {
            return Err(format!("\"{text}\": the bound must be between {CLOSEST}% and 50%"));
        }
        Ok(Self(percent / 100.0))
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded, because dividing by 100 and multiplying again may leave a remainder.
        write!(f, "ci<{}%", (self.0 * 1e8).round() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_is_written() {
        for (text, half_width) in
            [("ci<1%", 0.01), ("ci < 0.5 %", 0.005), ("ci<=2%", 0.02), ("ci<50%", 0.5), ("ci<0.01%", 0.0001)]
        {
            let until: Until = text.parse().unwrap();
            assert!((until.half_width() - half_width).abs() < 1e-12, "{text}");
        }
    }

    #[test]
    fn refusals_say_what_to_write() {
        for (text, expected) in [
            ("ci<1", "needs a %"),
            ("ci", "write for example ci<1%"),
            ("cv<1%", "write for example ci<1%"),
            ("ci<0%", "between"),
            ("ci<nan%", "between"),
            ("ci<99%", "between"),
            ("ci<%", "write for example"),
        ] {
            let error = text.parse::<Until>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = text.parse::<Until>();
        }

        #[test]
        fn what_is_printed_is_read_again(thousandths in 10_u32..=50_000) {
            let until: Until = format!("ci<{}%", f64::from(thousandths) / 1000.0).parse().unwrap();
            proptest::prop_assert_eq!(until.to_string().parse::<Until>().unwrap(), until);
        }
    }
}
