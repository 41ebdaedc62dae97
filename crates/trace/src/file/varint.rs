//! Whole numbers in as few bytes as they need: seven bits a byte, the lowest first (LEB128); signed ones interleaved.

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a difference: small ones of either sign are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Reads from the beginning of bytes.
#[derive(Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// A byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number; none at the end, or for one of more than 64 bits.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A difference.
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(values: Vec<u64>, signed: Vec<i64>, junk: Vec<u8>) {
            let mut out = Vec::new();
            for value in &values {
                put(&mut out, *value);
            }
            for value in &signed {
                put_signed(&mut out, *value);
            }
            let mut input = Input(&out);
            for value in &values {
                prop_assert_eq!(input.number(), Some(*value));
            }
            for value in &signed {
                prop_assert_eq!(input.signed(), Some(*value));
            }
            prop_assert_eq!(input.number(), None);
            let mut input = Input(&junk);
            while input.number().is_some() {}
        }
    }

    #[test]
    fn small_numbers_are_short() {
        for (value, length) in [(0, 1), (-64, 1), (64, 2), (i64::MIN, 10)] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            assert_eq!(out.len(), length, "{value}");
        }
    }
}
