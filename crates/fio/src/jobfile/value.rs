//! The value of an option, and how its text is read.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use kelvin_measure::Nanos;

use super::guess;
use super::number::{self, Unit};
use crate::PerDirection;
use crate::job::Amount;

/// What was written behind an option's `=`.
pub(crate) struct Value<'a> {
    text: Option<&'a str>,
    thousand: bool,
    remarks: RefCell<Vec<String>>,
}

impl<'a> Value<'a> {
    /// `thousand` is whether `kb_base=1000` holds.
    pub(crate) fn new(text: Option<&'a str>, thousand: bool) -> Self {
        Self { text: text.map(str::trim), thousand, remarks: RefCell::default() }
    }

    /// Says something to the reader, without refusing the value.
    pub(crate) fn remark(&self, remark: impl Into<String>) {
        self.remarks.borrow_mut().push(remark.into());
    }

    /// What there was to say.
    pub(crate) fn into_remarks(self) -> Vec<String> {
        self.remarks.into_inner()
    }

    /// The text; an error where there is none.
    pub(crate) fn text(&self) -> Result<&'a str, String> {
        self.text.filter(|text| !text.is_empty()).ok_or_else(|| "a value is missing".into())
    }

    /// The text, empty where there is none.
    pub(crate) fn text_or_empty(&self) -> &'a str {
        self.text.unwrap_or_default()
    }

    /// For options that are on without a value, or with 1, and off with 0.
    pub(crate) fn flag(&self) -> Result<bool, String> {
        match self.text {
            None | Some("") => Ok(true),
            Some(_) => self.boolean(),
        }
    }

    /// 0 or 1.
    pub(crate) fn boolean(&self) -> Result<bool, String> {
        match self.text()? {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err("use 1 for yes or 0 for no".into()),
        }
    }

    /// One of the words that the option knows, which are given with their help.
    pub(crate) fn word(
        &self,
        known: &'static [(&'static str, &'static str)],
    ) -> Result<&'static str, String> {
        word(self.text()?, known)
    }

    /// A word of those known, and what follows it behind a colon.
    pub(crate) fn word_and_rest(
        &self,
        known: &'static [(&'static str, &'static str)],
    ) -> Result<(&'static str, Option<&'a str>), String> {
        let text = self.text()?;
        let (first, rest) = text.split_once(':').map_or((text, None), |(first, rest)| (first, Some(rest)));
        Ok((word(first, known)?, rest))
    }

    fn whole_of(&self, text: &str) -> Result<i128, String> {
        let lower = text.to_ascii_lowercase();
        if !self.thousand && lower.ends_with("ib") && lower.len() > 2 && !lower.starts_with("0x") {
            self.remark(format!(
                "{text} is a power of ten, as in fio with kb_base=1024: use {} for the power of two",
                &text[..text.len() - 2]
            ));
        }
        number::whole(text, self.thousand)
    }

    /// A whole number within bounds, of a part of the value.
    pub(crate) fn number_of(&self, text: &str, bounds: &RangeInclusive<i128>) -> Result<i128, String> {
        let value = self.whole_of(text)?;
        if bounds.contains(&value) {
            return Ok(value);
        }
        let (least, most) = (*bounds.start(), *bounds.end());
        Err(if value < least {
            format!("must be at least {least}")
        } else {
            format!("must be at most {most}")
        })
    }

    /// A whole number within bounds.
    pub(crate) fn signed(&self, bounds: RangeInclusive<i64>) -> Result<i64, String> {
        let bounds = i128::from(*bounds.start())..=i128::from(*bounds.end());
        Ok(self.number_of(self.text()?, &bounds)? as i64)
    }

    /// A whole number of at least `least`.
    pub(crate) fn count(&self, least: u64) -> Result<u64, String> {
        self.count_of(self.text()?, least)
    }

    /// The same of a part of the value. Files cannot be longer than `i64::MAX` bytes, so nothing counts higher.
    pub(crate) fn count_of(&self, text: &str, least: u64) -> Result<u64, String> {
        Ok(self.number_of(text, &(i128::from(least)..=i128::from(i64::MAX)))? as u64)
    }

    /// A whole number within bounds.
    pub(crate) fn small(&self, bounds: RangeInclusive<u32>) -> Result<u32, String> {
        self.small_of(self.text()?, bounds)
    }

    /// The same of a part of the value.
    pub(crate) fn small_of(&self, text: &str, bounds: RangeInclusive<u32>) -> Result<u32, String> {
        let bounds = i128::from(*bounds.start())..=i128::from(*bounds.end());
        Ok(self.number_of(text, &bounds)? as u32)
    }

    /// The length of an I/O: 1 byte to 1 GiB, beyond which no kernel does it in one call.
    pub(crate) fn block_of(&self, text: &str) -> Result<u32, String> {
        self.small_of(text, 1..=1 << 30)
    }

    /// A time.
    pub(crate) fn nanos(&self, alone: Unit) -> Result<Nanos, String> {
        number::nanos(self.text()?, alone)
    }

    /// A percentage of 0 to 100.
    pub(crate) fn percent(&self) -> Result<f64, String> {
        percent(self.text()?.trim_end_matches('%'))
    }

    /// Bytes, or percent of what there is.
    pub(crate) fn amount(&self) -> Result<Amount, String> {
        let text = self.text()?;
        match text.strip_suffix('%') {
            Some(share) => percent(share).map(Amount::Percent),
            None => self.count(0).map(Amount::Bytes),
        }
    }

    /// `least-most` or `least:most`; one number is both.
    pub(crate) fn range_of<T: Ord + Copy>(
        text: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<(T, T), String> {
        // A minus within parentheses is of an expression.
        let mut nesting = 0_i32;
        let cut = text.char_indices().find(|(at, letter)| {
            nesting += i32::from(*letter == '(') - i32::from(*letter == ')');
            *at > 0 && nesting <= 0 && matches!(letter, '-' | ':')
        });
        let Some((at, _)) = cut else { return read(text).map(|one| (one, one)) };
        let (one, other) = (read(text[..at].trim())?, read(text[at + 1..].trim())?);
        // As fio: the smaller is the lower bound, wherever it stands.
        Ok((one.min(other), one.max(other)))
    }

    /// Up to three values, for reads, writes and trims: one not followed by a comma holds for those behind it too, an
    /// empty one leaves what was there before.
    pub(crate) fn triple<T: Clone>(
        &self,
        into: &mut PerDirection<T>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<(), String> {
        let parts: Vec<&str> = self.text()?.split(',').map(str::trim).collect();
        let extra = parts.get(3..).unwrap_or_default();
        if extra.len() > 1 || extra.iter().any(|part| !part.is_empty()) {
            return Err("at most three values are allowed: for reads, writes and trims".into());
        }
        if parts.iter().all(|part| part.is_empty()) {
            return Err("a value is missing".into());
        }
        for (place, slot) in into.0.iter_mut().enumerate() {
            let part = parts.get(place).or(parts.last()).copied().unwrap_or_default();
            if !part.is_empty() {
                *slot = read(part)?;
            }
        }
        Ok(())
    }

    /// Decimal numbers between colons.
    pub(crate) fn decimals(&self) -> Result<Vec<f64>, String> {
        self.text()?.split(':').map(decimal).collect()
    }
}

/// One of the known words.
pub(crate) fn word(
    text: &str,
    known: &'static [(&'static str, &'static str)],
) -> Result<&'static str, String> {
    if let Some((word, _)) = known.iter().find(|(word, _)| *word == text) {
        return Ok(word);
    }
    let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
    let guess = guess::question(text, words.iter().copied());
    Err(format!("must be one of {}{guess}", words.join(", ")))
}

/// A decimal number.
pub(crate) fn decimal(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("{text:?} is not a number"))
}

/// 0 to 100.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = if text.starts_with('(') { number::whole(text, false)? as f64 } else { decimal(text)? };
    if (0.0..=100.0).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{text} % is not between 0 and 100"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(text: &str) -> Result<[u64; 3], String> {
        let value = Value::new(Some(text), false);
        let mut into = PerDirection([1, 2, 3]);
        value.triple(&mut into, |part| value.count_of(part, 0))?;
        Ok(into.0)
    }

    #[test]
    fn a_triple_leaves_what_its_commas_leave_out() {
        for (text, expected) in [
            ("8k", [8192, 8192, 8192]),
            ("8k,32k", [8192, 32768, 32768]),
            ("8k,32k,", [8192, 32768, 3]),
            (",8k", [1, 8192, 8192]),
            (",8k,", [1, 8192, 3]),
            ("8k,", [8192, 2, 3]),
            (",,8k", [1, 2, 8192]),
            (",,8k,", [1, 2, 8192]),
            ("7,,9", [7, 2, 9]),
        ] {
            assert_eq!(triple(text), Ok(expected), "{text}");
        }
        for wrong in ["", ",", "1,2,3,4", ",,,1", "1,x"] {
            assert!(triple(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_read_in_either_order() {
        let read = |text: &str| Value::range_of(text, |part| number::whole(part, false));
        assert_eq!(read("1k-4k"), Ok((1024, 4096)));
        assert_eq!(read("4k:1k"), Ok((1024, 4096)));
        assert_eq!(read("4k"), Ok((4096, 4096)));
        assert_eq!(read("(3-1)-(2+2)"), Ok((2, 4)));
        assert!(read("4k-").is_err());
        assert!(read("").is_err());
    }

    #[test]
    fn kib_is_remarked_on() {
        let value = Value::new(Some("4KiB"), false);
        assert_eq!(value.count(1), Ok(4000));
        assert_eq!(value.into_remarks().len(), 1);
    }
}
