//! Parameters on their way to the server, in binary format and as literals.

use super::decode::{kind, put_decimal, put_integer};
use super::wire::put_bytes;
use crate::calendar::{DAY, civil_from_days};
use crate::{ColumnType, Decimal, Error, ErrorClass, Result, Timestamp, Value};

/// The type that a value is sent as.
#[inline]
pub(crate) fn kind_of(value: Value<'_>) -> u8 {
    match value {
        Value::Int(_) => kind::LONGLONG,
        Value::Float(_) => kind::DOUBLE,
        Value::Decimal(_) => kind::NEWDECIMAL,
        Value::Text(_) => kind::VAR_STRING,
        Value::Timestamp(_) => kind::DATETIME,
        Value::Null | Value::IntArray(_) | Value::DecimalArray(_) | Value::TextArray(_) => kind::NULL,
    }
}

/// The type that a column's values are sent as where they are not NULL.
pub(crate) fn kind_of_column(column: ColumnType) -> u8 {
    match column {
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => kind::LONGLONG,
        ColumnType::Decimal(_) => kind::NEWDECIMAL,
        ColumnType::Text => kind::VAR_STRING,
        ColumnType::Timestamp | ColumnType::Date => kind::DATETIME,
    }
}

/// Appends a value in binary format; nothing for NULL.
#[inline]
pub(crate) fn value(out: &mut Vec<u8>, value: Value<'_>) -> Result<()> {
    match value {
        Value::Null => {}
        Value::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Float(value) => out.extend_from_slice(&finite(value)?.to_le_bytes()),
        Value::Decimal(value) => decimal(out, value)?,
        Value::Text(text) => put_bytes(out, text.as_bytes()),
        Value::Timestamp(at) => date_time(out, at)?,
        Value::IntArray(_) | Value::DecimalArray(_) | Value::TextArray(_) => return Err(no_arrays()),
    }
    Ok(())
}

/// Its digits, with their number before them: at most 21.
#[inline]
fn decimal(out: &mut Vec<u8>, value: Decimal) -> Result<()> {
    let start = out.len();
    out.push(0);
    put_decimal(out, value)?;
    out[start] = (out.len() - start - 1) as u8;
    Ok(())
}

fn date_time(out: &mut Vec<u8>, at: Timestamp) -> Result<()> {
    let (year, month, day, in_day) = parts(at)?;
    let [low, high] = year.to_le_bytes();
    let (seconds, micros) = (in_day / 1_000_000, (in_day % 1_000_000) as u32);
    let clock = [(seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8];
    out.push(if micros == 0 { 7 } else { 11 });
    out.extend_from_slice(&[low, high, month, day]);
    out.extend_from_slice(&clock);
    if micros != 0 {
        out.extend_from_slice(&micros.to_le_bytes());
    }
    Ok(())
}

/// Year, month, day, and the microseconds of the day.
fn parts(at: Timestamp) -> Result<(u16, u8, u8, i64)> {
    let (year, month, day) = civil_from_days(at.0.div_euclid(DAY));
    match u16::try_from(year) {
        Ok(year @ 0..=9999) => Ok((year, month, day, at.0.rem_euclid(DAY))),
        _ => Err(Error::new(ErrorClass::Statement, "a timestamp is outside the years 0 to 9999")),
    }
}

fn finite(value: f64) -> Result<f64> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::new(ErrorClass::Statement, format!("MySQL cannot represent the number {value}")))
}

#[cold]
fn no_arrays() -> Error {
    Error::usage("MySQL and MariaDB do not support array parameters")
}

/// How a text is written into a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// A backslash begins an escape.
    Backslash,
    /// The server's mode is `NO_BACKSLASH_ESCAPES`.
    None,
}

/// Appends a value as it is written in a statement.
pub(crate) fn literal(out: &mut Vec<u8>, value: Value<'_>, escapes: Escapes) -> Result<()> {
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Int(value) => integer(out, value),
        // With an exponent it is a double; without, it would be a decimal.
        Value::Float(value) => out.extend_from_slice(format!("{:e}", finite(value)?).as_bytes()),
        Value::Decimal(value) => put_decimal(out, value)?,
        Value::Text(text) => quoted(out, text.as_bytes(), escapes),
        Value::Timestamp(at) => {
            out.extend_from_slice(b"TIMESTAMP'");
            plain_time(out, at)?;
            out.push(b'\'');
        }
        Value::IntArray(_) | Value::DecimalArray(_) | Value::TextArray(_) => return Err(no_arrays()),
    }
    Ok(())
}

fn integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_integer(out, value.unsigned_abs(), 1);
}

/// "2024-02-29 12:34:56.789000", without a fraction that is zero.
fn plain_time(out: &mut Vec<u8>, at: Timestamp) -> Result<()> {
    let (year, month, day, in_day) = parts(at)?;
    let seconds = (in_day / 1_000_000) as u64;
    put_integer(out, year.into(), 4);
    for (sign, part) in [
        (b'-', u64::from(month)),
        (b'-', u64::from(day)),
        (b' ', seconds / 3600),
        (b':', seconds / 60 % 60),
        (b':', seconds % 60),
    ] {
        out.push(sign);
        put_integer(out, part, 2);
    }
    let micros = (in_day % 1_000_000) as u64;
    if micros != 0 {
        out.push(b'.');
        put_integer(out, micros, 6);
    }
    Ok(())
}

fn quoted(out: &mut Vec<u8>, text: &[u8], escapes: Escapes) {
    out.push(b'\'');
    for &byte in text {
        match (byte, escapes) {
            (b'\'', _) => out.extend_from_slice(b"''"),
            (b'\\', Escapes::Backslash) => out.extend_from_slice(b"\\\\"),
            (0, Escapes::Backslash) => out.extend_from_slice(b"\\0"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}

/// Appends a value as a field of LOAD DATA with tabulators between fields and backslashes before what would mean
/// something else.
pub(crate) fn field(out: &mut Vec<u8>, value: Value<'_>) -> Result<()> {
    match value {
        Value::Null => out.extend_from_slice(b"\\N"),
        Value::Int(value) => integer(out, value),
        Value::Float(value) => out.extend_from_slice(format!("{:e}", finite(value)?).as_bytes()),
        Value::Decimal(value) => put_decimal(out, value)?,
        Value::Timestamp(at) => plain_time(out, at)?,
        Value::Text(text) => {
            for &byte in text.as_bytes() {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    0 => out.extend_from_slice(b"\\0"),
                    _ => out.push(byte),
                }
            }
        }
        Value::IntArray(_) | Value::DecimalArray(_) | Value::TextArray(_) => return Err(no_arrays()),
    }
    Ok(())
}

/// A name as SQL.
pub fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_literals() {
        let text = |value, escapes| {
            let mut out = Vec::new();
            literal(&mut out, value, escapes).unwrap();
            String::from_utf8(out).unwrap()
        };
        let slash = Escapes::Backslash;
        assert_eq!(text(Value::Text("a'b\\c\0"), slash), "'a''b\\\\c\\0'");
        assert_eq!(text(Value::Text("a'b\\c"), Escapes::None), "'a''b\\c'");
        assert_eq!(text(Value::Int(i64::MIN), slash), "-9223372036854775808");
        assert_eq!(text(Value::Float(0.1), slash), "1e-1");
        assert_eq!(text(Value::Decimal(Decimal::new(-5, 2)), slash), "-0.05");
        let at = Timestamp(1_709_210_096_789_000);
        assert_eq!(text(Value::Timestamp(at), slash), "TIMESTAMP'2024-02-29 12:34:56.789000'");
        assert!(literal(&mut Vec::new(), Value::Float(f64::NAN), slash).is_err());
        assert!(literal(&mut Vec::new(), Value::Timestamp(Timestamp(i64::MAX)), slash).is_err());
        assert!(literal(&mut Vec::new(), Value::IntArray(&[1]), slash).is_err());
    }

    #[test]
    fn fields_hold_no_tabulator_and_no_end_of_line() {
        let mut out = Vec::new();
        field(&mut out, Value::Text("a\tb\nc\\N")).unwrap();
        assert_eq!(out, b"a\\tb\\nc\\\\N");
    }
}
