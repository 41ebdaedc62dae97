//! Decimals of 64 bits, out of what servers send.

use crate::stream::printable;
use crate::{Cell, Error, Result};

/// The largest power of ten in an i64.
pub(crate) const MAX_SCALE: u8 = 18;

pub(crate) const POWERS: [u64; 19] = {
    let mut powers = [1_u64; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Brings `value × 10^exponent`, in units of 10^-`scale`, into 64 bits and at most 18 digits after the point.
pub(crate) fn fit(mut value: i128, mut exponent: i32, mut scale: i32, negative: bool) -> Result<(i64, u8)> {
    if value == 0 {
        return Ok((0, scale.clamp(0, i32::from(MAX_SCALE)) as u8));
    }
    if negative {
        value = -value;
    }
    // The usual case, money: the last group of digits has zeros beyond the scale, and all fits a machine word.
    if let (Some(&unit), Ok(small)) = (POWERS.get(exponent.unsigned_abs() as usize), i64::try_from(value))
        && exponent < 0
        && small % unit as i64 == 0
    {
        (value, exponent) = (i128::from(small / unit as i64), 0);
    }
    loop {
        let wanted = usize::try_from(exponent).ok().and_then(|e| POWERS.get(e));
        let unscaled =
            wanted.and_then(|&p| value.checked_mul(i128::from(p))).and_then(|v| i64::try_from(v).ok());
        match (unscaled, u8::try_from(scale)) {
            (Some(unscaled), Ok(scale)) if scale <= MAX_SCALE => {
                return Ok((unscaled, scale));
            }
            // Digits that the scale has no place for do not occur, except as zeros.
            _ if exponent < 0 => {
                if value % 10 != 0 {
                    return Err(too_long());
                }
                value /= 10;
                exponent += 1;
            }
            // Too many places for 64 bits: do without zeros at the end.
            _ if scale > 0 && exponent > 0 => {
                exponent -= 1;
                scale -= 1;
            }
            _ if scale > 0 && value % 10 == 0 => {
                value /= 10;
                scale -= 1;
            }
            _ => return Err(too_long()),
        }
    }
}

#[cold]
pub(crate) fn too_long() -> Error {
    Error::protocol("a numeric has more digits than a 64-bit decimal can hold")
        .with_help("round it or cast it to double precision in the statement")
}

/// The number that these digits are, as servers write it.
pub(crate) fn from_text(text: &[u8]) -> Result<Cell> {
    let (negative, digits) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let mut value = 0_i128;
    let mut scale = None;
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                let digit = i128::from(byte - b'0');
                value = value
                    .checked_mul(10)
                    .and_then(|v| v.checked_add(digit))
                    .ok_or_else(|| not_decimal(text))?;
                scale = scale.map(|s: i32| s + 1);
            }
            b'.' if scale.is_none() => scale = Some(0),
            _ => return Err(not_decimal(text)),
        }
    }
    if digits.is_empty() {
        return Err(not_decimal(text));
    }
    let (unscaled, scale) = fit(value, 0, scale.unwrap_or(0), negative)?;
    Ok(Cell::Decimal { unscaled, scale })
}

fn not_decimal(text: &[u8]) -> Error {
    Error::protocol(format!("{:?} does not fit in a 64-bit decimal", printable(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        assert_eq!(from_text(b"-12.340").unwrap(), Cell::Decimal { unscaled: -12_340, scale: 3 });
        assert_eq!(
            from_text(b"0.50000000000000000000").unwrap(),
            Cell::Decimal { unscaled: 500_000_000_000_000_000, scale: 18 }
        );
        for text in ["NaN", "Infinity", "", "-", "1.2.3", "99999999999999999999"] {
            assert!(from_text(text.as_bytes()).is_err(), "{text}");
        }
    }
}
