//! Cells in text format, for statements outside the measured path.

use super::{numeric, oid};
use crate::{Cell, Error, Result, Rows, Timestamp};

/// Appends the cell that `text` of type `oid` means; what has no cell type of its own stays text.
pub(crate) fn push(text: &[u8], type_oid: u32, rows: &mut Rows) -> Result<()> {
    let known = || std::str::from_utf8(text).ok();
    let cell = match type_oid {
        oid::BOOL => Some(Cell::Int(i64::from(text == b"t"))),
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => known().and_then(|t| t.parse().ok()).map(Cell::Int),
        oid::FLOAT4 | oid::FLOAT8 => known().and_then(|t| t.parse().ok()).map(Cell::Float),
        oid::NUMERIC => Some(decimal(text)?),
        oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::DATE => known().and_then(timestamp).map(Cell::Timestamp),
        oid::VOID => Some(Cell::Null),
        _ => {
            return rows.push_text(text);
        }
    };
    let cell = cell.ok_or_else(|| {
        Error::protocol(format!("{:?} is not a {}", super::error::printable(text), oid::name(type_oid)))
    })?;
    rows.push(cell);
    Ok(())
}

fn decimal(text: &[u8]) -> Result<Cell> {
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
    let (unscaled, scale) = numeric::fit(value, 0, scale.unwrap_or(0), negative)?;
    Ok(Cell::Decimal { unscaled, scale })
}

fn not_decimal(text: &[u8]) -> Error {
    Error::protocol(format!("{:?} cannot be held as a decimal of 64 bits", super::error::printable(text)))
}

/// "2024-02-29 12:34:56.789+05:30" and its shorter forms, as DateStyle ISO writes them. `None` for years before
/// Christ and infinities.
fn timestamp(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(' ').map_or((text, None), |(d, t)| (d, Some(t)));
    let mut parts = date.split('-');
    let (year, month, day): (i64, i64, i64) =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    if parts.next().is_some()
        || !(0..=294_276).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    let mut micros = days_from_civil(year, month, day) * 86_400_000_000;
    if let Some(time) = time {
        let zone_at = time.find(['+', '-']).unwrap_or(time.len());
        let (clock, zone) = time.split_at(zone_at);
        micros += clock_micros(clock)?;
        if let Some(sign) = zone.chars().next() {
            let offset = clock_micros(&zone[1..])?;
            micros += if sign == '+' { -offset } else { offset };
        }
    }
    Some(Timestamp(micros))
}

/// "12", "12:34", "12:34:56" or "12:34:56.789" in microseconds.
fn clock_micros(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut total = 0_i64;
    let mut unit = 3_600_000_000_i64;
    for part in whole.split(':') {
        let value: i64 = part.parse().ok().filter(|v| (0..=99).contains(v))?;
        total += value * unit;
        unit /= 60;
    }
    if fraction.len() > 6 {
        return None;
    }
    let padded: i64 = if fraction.is_empty() { 0 } else { fraction.parse().ok().filter(|v| *v >= 0)? };
    Some(total + padded * 10_i64.pow(6 - fraction.len() as u32))
}

/// Days from 1970-01-01 in the Gregorian calendar: years begin in March, so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, micros) in [
            ("1970-01-01", Some(0)),
            ("2000-01-01 00:00:00", Some(946_684_800_000_000)),
            ("2024-02-29 12:34:56.789+00", Some(1_709_210_096_789_000)),
            ("2024-02-29 18:04:56.789+05:30", Some(1_709_210_096_789_000)),
            ("2024-02-29 07:34:56.789-05", Some(1_709_210_096_789_000)),
            ("1969-12-31 23:59:59.999999+00", Some(-1)),
            ("infinity", None),
            ("2024-13-01", None),
            ("2024-01-01 x", None),
        ] {
            assert_eq!(timestamp(text).map(|t| t.0), micros, "{text}");
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal(b"-12.340").unwrap(), Cell::Decimal { unscaled: -12_340, scale: 3 });
        assert_eq!(
            decimal(b"0.50000000000000000000").unwrap(),
            Cell::Decimal { unscaled: 500_000_000_000_000_000, scale: 18 }
        );
        for text in ["NaN", "Infinity", "", "-", "1.2.3", "99999999999999999999"] {
            assert!(decimal(text.as_bytes()).is_err(), "{text}");
        }
    }
}
