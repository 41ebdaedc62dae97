//! Rows of the server as cells.
//!
//! A row whose form is broken is a protocol error; a value that a cell cannot hold is an error of the statement, and the
//! session goes on.

use super::packet::Column;
use super::wire::Fields;
use crate::calendar::{DAY, days_from_civil};
use crate::decimal::{POWERS, from_text};
use crate::stream::printable;
use crate::{Cell, Error, ErrorClass, Result, Rows, Timestamp};

/// The types of columns, by the protocol's numbers.
pub(crate) mod kind {
    pub(crate) const DECIMAL: u8 = 0;
    pub(crate) const TINY: u8 = 1;
    pub(crate) const SHORT: u8 = 2;
    pub(crate) const LONG: u8 = 3;
    pub(crate) const FLOAT: u8 = 4;
    pub(crate) const DOUBLE: u8 = 5;
    pub(crate) const NULL: u8 = 6;
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const LONGLONG: u8 = 8;
    pub(crate) const INT24: u8 = 9;
    pub(crate) const DATE: u8 = 10;
    pub(crate) const TIME: u8 = 11;
    pub(crate) const DATETIME: u8 = 12;
    pub(crate) const YEAR: u8 = 13;
    pub(crate) const BIT: u8 = 16;
    pub(crate) const NEWDECIMAL: u8 = 246;
    pub(crate) const VAR_STRING: u8 = 253;
}

/// Appends a row in binary format.
#[inline]
pub(crate) fn binary_row(body: &[u8], columns: &[Column], rows: &mut Rows) -> Result<()> {
    let mut fields = Fields(body);
    if fields.u8()? != 0 {
        return Err(Error::protocol("the server sent a row with an invalid first byte"));
    }
    let nulls = fields.take((columns.len() + 9) / 8)?;
    for (index, &column) in columns.iter().enumerate() {
        let bit = index + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            rows.push(Cell::Null);
        } else {
            binary_value(&mut fields, column, rows)?;
        }
    }
    fields.end()
}

#[inline]
fn binary_value(fields: &mut Fields<'_>, column: Column, rows: &mut Rows) -> Result<()> {
    let cell = match column.kind {
        kind::LONG | kind::INT24 => {
            let value = fields.u32()?;
            Cell::Int(if column.unsigned { i64::from(value) } else { i64::from(value as i32) })
        }
        kind::LONGLONG => {
            let value = u64::from_le_bytes(fields.array()?);
            if column.unsigned && value > i64::MAX as u64 {
                return Err(beyond_64_bits(value));
            }
            Cell::Int(value as i64)
        }
        kind::SHORT | kind::YEAR => {
            let value = fields.u16()?;
            Cell::Int(if column.unsigned { i64::from(value) } else { i64::from(value as i16) })
        }
        kind::TINY => {
            let value = fields.u8()?;
            Cell::Int(if column.unsigned { i64::from(value) } else { i64::from(value as i8) })
        }
        kind::DECIMAL | kind::NEWDECIMAL => decimal(fields.bytes()?)?,
        kind::DOUBLE => Cell::Float(f64::from_le_bytes(fields.array()?)),
        kind::FLOAT => Cell::Float(f32::from_le_bytes(fields.array()?).into()),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => return date_time(fields, column.kind, rows),
        kind::TIME => return time(fields, rows),
        kind::BIT => bits(fields.bytes()?)?,
        kind::NULL => Cell::Null,
        _ => return rows.push_text(fields.bytes()?),
    };
    rows.push(cell);
    Ok(())
}

/// Length, then year, month, day, then hour, minute, second, then microseconds; what is zero at the end is left out.
fn date_time(fields: &mut Fields<'_>, of: u8, rows: &mut Rows) -> Result<()> {
    let length = fields.u8()?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(Error::protocol(format!("the server sent a date of {length} bytes")));
    }
    let mut parts = Fields(fields.take(length.into())?);
    let (year, month, day) = if length >= 4 { (parts.u16()?, parts.u8()?, parts.u8()?) } else { (0, 0, 0) };
    let [hour, minute, second] = if length >= 7 { parts.array()? } else { [0; 3] };
    let micros = if length == 11 { parts.u32()? } else { 0 };
    if month > 12 || day > 31 || hour > 23 || minute > 59 || second > 60 || micros > 999_999 {
        return Err(Error::protocol("the server sent an invalid date"));
    }
    if month == 0 || day == 0 {
        // MySQL's dates "0000-00-00" and "2024-00-00" are no points in time.
        let date = format!("{year:04}-{month:02}-{day:02}");
        let clock = format!(" {hour:02}:{minute:02}:{second:02}");
        return rows.push_text(if of == kind::DATE { date } else { date + &clock }.as_bytes());
    }
    let days = days_from_civil(year.into(), month.into(), day.into());
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    rows.push(Cell::Timestamp(Timestamp(days * DAY + seconds * 1_000_000 + i64::from(micros))));
    Ok(())
}

/// A length of time, as its text.
fn time(fields: &mut Fields<'_>, rows: &mut Rows) -> Result<()> {
    let length = fields.u8()?;
    if !matches!(length, 0 | 8 | 12) {
        return Err(Error::protocol(format!("the server sent a time of {length} bytes")));
    }
    let mut parts = Fields(fields.take(length.into())?);
    let (mut sign, mut hours, mut minute, mut second, mut micros) = ("", 0_u64, 0, 0, 0);
    if length >= 8 {
        if parts.u8()? != 0 {
            sign = "-";
        }
        let days = parts.u32()?;
        hours = u64::from(days) * 24 + u64::from(parts.u8()?);
        (minute, second) = (parts.u8()?, parts.u8()?);
    }
    if length == 12 {
        micros = parts.u32()?;
    }
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    rows.push_text(format!("{sign}{hours:02}:{minute:02}:{second:02}{fraction}").as_bytes())
}

/// Up to 64 bits, the first the highest.
fn bits(bytes: &[u8]) -> Result<Cell> {
    if bytes.len() > 8 {
        return Err(Error::protocol("the server sent a bit field of more than 64 bits"));
    }
    let value = bytes.iter().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    i64::try_from(value).map(Cell::Int).map_err(|_| beyond_64_bits(value))
}

#[inline]
fn decimal(text: &[u8]) -> Result<Cell> {
    // The usual case, money: few digits, all of which fit.
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if (1..=18).contains(&digits.len()) {
        let (mut value, mut scale) = (0_i64, 0);
        let mut after_point = false;
        for &byte in digits {
            match byte {
                b'0'..=b'9' => {
                    value = value * 10 + i64::from(byte - b'0');
                    scale += u8::from(after_point);
                }
                b'.' if !after_point => after_point = true,
                _ => return Err(Error::protocol(format!("{:?} is not a decimal", printable(text)))),
            }
        }
        return Ok(Cell::Decimal { unscaled: if negative { -value } else { value }, scale });
    }
    from_text(text).map_err(|e| {
        let error = Error::new(ErrorClass::Statement, e.message());
        if let Some(help) = e.help() { error.with_help(help) } else { error }
    })
}

/// Appends a row in text format; numbers and times are read as what they are.
pub(crate) fn text_row(body: &[u8], columns: &[Column], rows: &mut Rows) -> Result<()> {
    let mut fields = Fields(body);
    for &column in columns {
        if let [0xfb, rest @ ..] = fields.0 {
            fields.0 = rest;
            rows.push(Cell::Null);
        } else {
            text_value(fields.bytes()?, column, rows)?;
        }
    }
    fields.end()
}

fn text_value(text: &[u8], column: Column, rows: &mut Rows) -> Result<()> {
    let known = || std::str::from_utf8(text).ok();
    let cell = match column.kind {
        kind::TINY | kind::SHORT | kind::LONG | kind::INT24 | kind::LONGLONG | kind::YEAR => {
            let value: Option<i128> = known().and_then(|text| text.parse().ok());
            match value.map(i64::try_from) {
                Some(Ok(value)) => Some(Cell::Int(value)),
                Some(Err(_)) => return Err(too_large(&printable(text))),
                None => None,
            }
        }
        kind::FLOAT | kind::DOUBLE => known().and_then(|text| text.parse().ok()).map(Cell::Float),
        kind::DECIMAL | kind::NEWDECIMAL => Some(decimal(text)?),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => match known().and_then(crate::calendar::timestamp) {
            Some(value) => Some(Cell::Timestamp(value)),
            None => return rows.push_text(text),
        },
        kind::BIT => Some(bits(text)?),
        kind::NULL => Some(Cell::Null),
        _ => return rows.push_text(text),
    };
    let cell = cell.ok_or_else(|| {
        Error::protocol(format!("{:?} is not a value of its column's type", printable(text)))
    })?;
    rows.push(cell);
    Ok(())
}

#[cold]
fn beyond_64_bits(value: u64) -> Error {
    too_large(&value.to_string())
}

#[cold]
fn too_large(text: &str) -> Error {
    Error::new(ErrorClass::Statement, format!("the unsigned integer {text} exceeds 9223372036854775807"))
        .with_help("cast it in the statement: CAST(… AS CHAR)")
}

/// The digits of a decimal of `unscaled` units of 10^-`scale`, into `out`.
pub(crate) fn put_decimal(out: &mut Vec<u8>, value: crate::Decimal) -> Result<()> {
    let Some(&unit) = POWERS.get(usize::from(value.scale)) else {
        return Err(Error::usage(format!(
            "a decimal has {} digits after the point; at most 18 are supported",
            value.scale
        )));
    };
    if value.unscaled < 0 {
        out.push(b'-');
    }
    let magnitude = value.unscaled.unsigned_abs();
    put_integer(out, magnitude / unit, 1);
    if value.scale > 0 {
        out.push(b'.');
        put_integer(out, magnitude % unit, value.scale.into());
    }
    Ok(())
}

/// The digits of an integer, with zeros before it up to `width` digits.
pub(crate) fn put_integer(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[at.min(digits.len() - width.min(digits.len()))..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decimal;

    fn one(kind: u8, unsigned: bool, value: &[u8]) -> Result<Rows> {
        let mut rows = Rows::new();
        rows.reset(1, false);
        let body = [&[0, 0], value].concat();
        binary_row(&body, &[Column { kind, unsigned }], &mut rows)?;
        Ok(rows)
    }

    #[test]
    fn integers_have_their_sign_and_what_no_cell_holds_is_refused() {
        assert_eq!(one(kind::TINY, false, &[255]).unwrap().int(0, 0).unwrap(), -1);
        assert_eq!(one(kind::TINY, true, &[255]).unwrap().int(0, 0).unwrap(), 255);
        assert_eq!(one(kind::LONG, true, &[255; 4]).unwrap().int(0, 0).unwrap(), 0xffff_ffff);
        assert_eq!(one(kind::LONGLONG, false, &[255; 8]).unwrap().int(0, 0).unwrap(), -1);
        let error = one(kind::LONGLONG, true, &[255; 8]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Statement, "{error}");
        assert_eq!(one(kind::LONG, false, &[1, 2]).unwrap_err().class(), ErrorClass::Protocol);
        assert_eq!(one(kind::LONG, false, &[1, 2, 3, 4, 5]).unwrap_err().class(), ErrorClass::Protocol);
        assert_eq!(one(kind::BIT, true, &[2, 1, 5]).unwrap().int(0, 0).unwrap(), 261);
    }

    #[test]
    fn times_are_read_in_every_length() {
        let micros = |value: &[u8]| one(kind::DATETIME, false, value).unwrap().timestamp(0, 0).unwrap().0;
        assert_eq!(micros(&[4, 0xb2, 7, 1, 2]), DAY);
        assert_eq!(micros(&[7, 0xb2, 7, 1, 1, 0, 0, 1]), 1_000_000);
        assert_eq!(micros(&[11, 0xb2, 7, 1, 1, 0, 0, 1, 5, 0, 0, 0]), 1_000_005);
        assert_eq!(one(kind::DATETIME, false, &[0]).unwrap().text(0, 0).unwrap(), "0000-00-00 00:00:00");
        assert!(one(kind::DATETIME, false, &[4, 0xb2, 7, 13, 1]).is_err());
        assert!(one(kind::DATETIME, false, &[5, 0xb2, 7, 1, 1, 1]).is_err());
        let time = one(kind::TIME, false, &[8, 1, 1, 0, 0, 0, 2, 3, 4]).unwrap();
        assert_eq!(time.text(0, 0).unwrap(), "-26:03:04");
    }

    #[test]
    fn decimals_are_exact() {
        for (text, unscaled, scale) in [
            ("0.00", 0, 2),
            ("-12.34", -1234, 2),
            ("99999999999999.9999", 999_999_999_999_999_999, 4),
            ("9223372036854775807", i64::MAX, 0),
        ] {
            assert_eq!(decimal(text.as_bytes()).unwrap(), Cell::Decimal { unscaled, scale }, "{text}");
            let mut out = Vec::new();
            put_decimal(&mut out, Decimal::new(unscaled, scale)).unwrap();
            assert_eq!(out, text.as_bytes());
        }
        assert_eq!(decimal(b"99999999999999999999").unwrap_err().class(), ErrorClass::Statement);
        for text in ["", "1.2.3", "x"] {
            assert!(decimal(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
