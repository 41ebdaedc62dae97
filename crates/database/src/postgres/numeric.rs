//! PostgreSQL's numeric in binary: digits of base 10,000, the first with weight 10,000^weight.

use super::backend::Fields;
use crate::decimal::{MAX_SCALE, POWERS, fit, too_long};
use crate::{Decimal, Error, Result};

const NEGATIVE: u16 = 0x4000;
/// Appends the length and the content of `value`.
pub(crate) fn put(out: &mut Vec<u8>, value: Decimal) -> Result<()> {
    if value.scale > MAX_SCALE {
        return Err(Error::usage(format!(
            "a decimal has {} digits after the point; at most 18 are supported",
            value.scale
        )));
    }
    let scale = usize::from(value.scale);
    let magnitude = value.unscaled.unsigned_abs();
    let (mut whole, part) = (magnitude / POWERS[scale], magnitude % POWERS[scale]);
    // Groups of four digits, the least significant first: at most 5 of the fraction and 5 of the whole.
    let mut groups = [0_u16; 10];
    let mut count = 0;
    let fraction_groups = scale.div_ceil(4);
    let mut part = u128::from(part) * u128::from(POWERS[fraction_groups * 4 - scale]);
    for _ in 0..fraction_groups {
        // Fractions of up to 16 digits, all that money has, stay in one machine word.
        let (rest, group) = match u64::try_from(part) {
            Ok(small) => (u128::from(small / 10_000), small % 10_000),
            Err(_) => (part / 10_000, (part % 10_000) as u64),
        };
        groups[count] = group as u16;
        part = rest;
        count += 1;
    }
    while whole > 0 {
        groups[count] = (whole % 10_000) as u16;
        whole /= 10_000;
        count += 1;
    }
    let mut weight = count as i16 - fraction_groups as i16 - 1;
    let mut used = &groups[..count];
    while let [0, rest @ ..] = used {
        used = rest;
    }
    while let [rest @ .., 0] = used {
        used = rest;
        weight -= 1;
    }
    if used.is_empty() {
        weight = 0;
    }
    let mut bytes = [0_u8; 32];
    let length = 8 + 2 * used.len();
    let sign = if value.unscaled < 0 { NEGATIVE } else { 0 };
    bytes[0..4].copy_from_slice(&(length as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&(used.len() as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&weight.to_be_bytes());
    bytes[8..10].copy_from_slice(&sign.to_be_bytes());
    bytes[10..12].copy_from_slice(&u16::from(value.scale).to_be_bytes());
    for (place, group) in bytes[12..].chunks_exact_mut(2).zip(used.iter().rev()) {
        place.copy_from_slice(&group.to_be_bytes());
    }
    out.extend_from_slice(&bytes[..4 + length]);
    Ok(())
}

/// Reads a numeric that an i64 of units of its last place can hold; trailing zeros are given up for that.
pub(crate) fn get(bytes: &[u8]) -> Result<(i64, u8)> {
    let mut fields = Fields(bytes);
    let count = fields.int2()?;
    let weight = i32::from(fields.int2()?);
    let sign = fields.int2()? as u16;
    let scale = i32::from(fields.int2()? as u16 & 0x3fff);
    if sign != 0 && sign != NEGATIVE {
        let which = match sign {
            0xc000 => "NaN",
            0xd000 | 0xf000 => "an infinity",
            _ => return Err(Error::protocol("the server sent a numeric with an unknown sign")),
        };
        return Err(Error::protocol(format!("a numeric is {which}, which a decimal cannot represent")));
    }
    if !(0..=32).contains(&count) {
        return Err(too_long());
    }
    let mut value = 0_i128;
    for _ in 0..count {
        let group = fields.int2()?;
        if !(0..10_000).contains(&group) {
            return Err(Error::protocol("the server sent a numeric with an invalid digit"));
        }
        value =
            value.checked_mul(10_000).and_then(|v| v.checked_add(i128::from(group))).ok_or_else(too_long)?;
    }
    fields.end()?;
    // value × 10^exponent is the number in units of its last place.
    let exponent = 4 * (weight + 1 - i32::from(count)) + scale;
    fit(value, exponent, scale, sign == NEGATIVE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(value: Decimal) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, value).unwrap();
        assert_eq!(out.len() - 4, u32::from_be_bytes(out[..4].try_into().unwrap()) as usize);
        out.split_off(4)
    }

    #[test]
    fn known_layouts() {
        // As PostgreSQL's numeric_send writes 12345.6700, 0.0001, 10000 and 0.00.
        assert_eq!(bytes(Decimal::new(123_456_700, 4)), [0, 3, 0, 1, 0, 0, 0, 4, 0, 1, 9, 41, 26, 44]);
        assert_eq!(bytes(Decimal::new(-1, 4)), [0, 1, 255, 255, 64, 0, 0, 4, 0, 1]);
        assert_eq!(bytes(Decimal::new(10_000, 0)), [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes(Decimal::new(0, 2)), [0, 0, 0, 0, 0, 0, 0, 2]);
        assert!(put(&mut Vec::new(), Decimal::new(1, 19)).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for sign in [0xc0, 0xd0, 0xf0, 0x01] {
            assert!(get(&[0, 0, 0, 0, sign, 0, 0, 0]).is_err());
        }
        // 10^20, and 1/3 with 20 digits.
        assert!(get(&[0, 1, 0, 5, 0, 0, 0, 0, 0, 1]).is_err());
        assert!(get(&[0, 5, 255, 255, 0, 0, 0, 20, 13, 5, 13, 5, 13, 5, 13, 5, 13, 5]).is_err());
        // 0.5 with 20 digits, 18 zeros of which can go.
        assert_eq!(get(&[0, 1, 255, 255, 0, 0, 0, 20, 19, 136]).unwrap(), (500_000_000_000_000_000, 18));
    }

    proptest! {
        #[test]
        fn round_trip(unscaled in any::<i64>(), shift in 0_u32..63, scale in 0_u8..=18) {
            let value = Decimal::new(unscaled >> shift, scale);
            prop_assert_eq!(get(&bytes(value)).unwrap(), (value.unscaled, scale));
        }
    }
}
