//! The texts of one row, written one after another into a reused buffer.

use kelvin_database::{Error, Result};
use kelvin_measure::Random;

/// The texts of one row.
#[derive(Default)]
pub(super) struct Filler {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Filler {
    /// Starts a row.
    pub(super) fn begin(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// A text of `low` to `high` letters and digits.
    #[inline]
    pub(super) fn alphanumeric(&mut self, random: &mut Random, low: usize, high: usize) {
        let length = if low == high { low } else { random.range(low as i64, high as i64) as usize };
        random.alphanumeric(&mut self.bytes, length);
        self.ends.push(self.bytes.len());
    }

    /// A text of `low` to `high` letters and digits; in one of ten rows it contains "ORIGINAL" at a random
    /// position.
    pub(super) fn maybe_original(&mut self, random: &mut Random, low: usize, high: usize) {
        const WORD: &[u8] = b"ORIGINAL";
        let start = self.bytes.len();
        self.alphanumeric(random, low, high);
        if random.chance(1, 10) {
            let last = self.bytes.len() - WORD.len();
            let at = random.range(start as i64, last as i64) as usize;
            self.bytes[at..at + WORD.len()].copy_from_slice(WORD);
        }
    }

    /// A text of digits.
    pub(super) fn digits(&mut self, random: &mut Random, length: usize) {
        random.digits(&mut self.bytes, length);
        self.ends.push(self.bytes.len());
    }

    /// A given text.
    pub(super) fn literal(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// Two streets, city, state and zip: five texts.
    pub(super) fn address(&mut self, random: &mut Random) {
        for _ in 0..3 {
            self.alphanumeric(random, 10, 20);
        }
        for _ in 0..2 {
            self.bytes.push(b'A' + random.range(0, 25) as u8);
        }
        self.ends.push(self.bytes.len());
        random.digits(&mut self.bytes, 4);
        self.literal("11111");
    }

    /// The row's texts in the order in which they were written; exactly `N` of them.
    pub(super) fn texts<const N: usize>(&self) -> Result<[&str; N]> {
        let all = std::str::from_utf8(&self.bytes).ok().filter(|_| self.ends.len() == N);
        let all = all.ok_or_else(|| {
            Error::usage(format!("the generator produced {} texts instead of {N}", self.ends.len()))
        })?;
        let mut texts = [""; N];
        let mut start = 0;
        for (text, &end) in texts.iter_mut().zip(&self.ends) {
            *text = &all[start..end];
            start = end;
        }
        Ok(texts)
    }
}
