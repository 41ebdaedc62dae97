//! Parameters on their way to the server.

use super::column::{MAX, kind};
use super::wire::{put_short_text, put_utf16, units};
use crate::calendar::{DAY, days_from_civil};
use crate::decimal::MAX_SCALE;
use crate::{Decimal, Error, ErrorClass, Result, Timestamp, Value};

/// Status of a parameter: the server returns its value.
pub(crate) const OUTPUT: u8 = 1;
/// The most characters of an nvarchar that is not nvarchar(max).
pub(crate) const LONGEST_TEXT: usize = 4000;
/// Digits and bytes of a decimal of 64 bits.
const PRECISION: u8 = 19;
const DECIMAL_SIZE: u8 = 9;
/// Digits behind the second of a time that we send.
const TIME_SCALE: u8 = 6;

/// A type as which a value is sent, and as which a statement declares it where the server does not say which it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Int,
    Float,
    Decimal { precision: u8, scale: u8 },
    Text,
    LongText,
    Time,
}

impl Wire {
    /// The type of a value; of NULL one that becomes any other.
    pub(crate) fn from_value(value: Value<'_>) -> Self {
        match value {
            Value::Int(_) => Self::Int,
            Value::Float(_) => Self::Float,
            Value::Decimal(value) => Self::Decimal { precision: PRECISION, scale: value.scale },
            Value::Text(text) if text.len() > LONGEST_TEXT && units(text) > LONGEST_TEXT => Self::LongText,
            Value::Timestamp(_) => Self::Time,
            _ => Self::Text,
        }
    }

    /// Its name in a declaration.
    pub(crate) fn declared(self) -> String {
        match self {
            Self::Int => "bigint".into(),
            Self::Float => "float".into(),
            Self::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            Self::Text => format!("nvarchar({LONGEST_TEXT})"),
            Self::LongText => "nvarchar(max)".into(),
            Self::Time => format!("datetime2({TIME_SCALE})"),
        }
    }

    /// Whether what is declared as this can be sent as `other` without loss.
    pub(crate) fn holds(self, other: Self) -> bool {
        match (self, other) {
            (Self::Decimal { scale, .. }, Self::Decimal { scale: wanted, .. }) => scale >= wanted,
            (Self::LongText, Self::Text) => true,
            _ => self == other,
        }
    }

    fn put(self, out: &mut Vec<u8>, collation: [u8; 5]) {
        match self {
            Self::Int => out.extend_from_slice(&[kind::INT_N, 8]),
            Self::Float => out.extend_from_slice(&[kind::FLOAT_N, 8]),
            Self::Decimal { precision, scale } => {
                let size = match precision {
                    0..=9 => 5,
                    10..=19 => DECIMAL_SIZE,
                    20..=28 => 13,
                    _ => 17,
                };
                out.extend_from_slice(&[kind::DECIMAL, size, precision, scale]);
            }
            Self::Text | Self::LongText => {
                let size = if self == Self::Text { 2 * LONGEST_TEXT as u16 } else { MAX };
                out.push(kind::NVARCHAR);
                out.extend_from_slice(&size.to_le_bytes());
                out.extend_from_slice(&collation);
            }
            Self::Time => out.extend_from_slice(&[kind::DATETIME2, TIME_SCALE]),
        }
    }

    fn put_null(self, out: &mut Vec<u8>) {
        match self {
            Self::Text => out.extend_from_slice(&[0xff; 2]),
            Self::LongText => out.extend_from_slice(&[0xff; 8]),
            _ => out.push(0),
        }
    }
}

/// Appends a parameter without a name.
#[inline]
pub(crate) fn unnamed(out: &mut Vec<u8>, value: Value<'_>, collation: [u8; 5]) -> Result<()> {
    out.extend_from_slice(&[0, 0]);
    typed(out, value, collation)
}

/// Appends a parameter's type and value.
#[inline]
pub(crate) fn typed(out: &mut Vec<u8>, value: Value<'_>, collation: [u8; 5]) -> Result<()> {
    let wire = Wire::from_value(value);
    wire.put(out, collation);
    put_value(out, value, wire)
}

/// Appends a NULL of a type.
pub(crate) fn typed_null(out: &mut Vec<u8>, wire: Wire, collation: [u8; 5]) {
    wire.put(out, collation);
    wire.put_null(out);
}

#[inline]
fn put_value(out: &mut Vec<u8>, value: Value<'_>, wire: Wire) -> Result<()> {
    match value {
        Value::Null => wire.put_null(out),
        Value::Int(value) => {
            out.push(8);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Value::Float(value) => {
            out.push(8);
            out.extend_from_slice(&finite(value)?.to_le_bytes());
        }
        Value::Decimal(value) => {
            if value.scale > MAX_SCALE {
                return Err(too_fine(value));
            }
            out.push(DECIMAL_SIZE);
            put_decimal(out, value.unscaled);
        }
        Value::Text(text) => put_text(out, text, wire),
        Value::Timestamp(at) => {
            let (day, micros) = parts(at)?;
            out.push(8);
            out.extend_from_slice(&micros.to_le_bytes()[..5]);
            out.extend_from_slice(&day.to_le_bytes()[..3]);
        }
        Value::IntArray(_) | Value::DecimalArray(_) | Value::TextArray(_) => return Err(is_array()),
    }
    Ok(())
}

/// Sign and digits: [`DECIMAL_SIZE`] bytes.
#[inline]
pub(crate) fn put_decimal(out: &mut Vec<u8>, unscaled: i64) {
    out.push(u8::from(unscaled >= 0));
    out.extend_from_slice(&unscaled.unsigned_abs().to_le_bytes());
}

#[inline]
fn put_text(out: &mut Vec<u8>, text: &str, wire: Wire) {
    if wire == Wire::Text {
        let start = out.len();
        out.extend_from_slice(&[0; 2]);
        put_utf16(out, text);
        let length = ((out.len() - start - 2) as u16).to_le_bytes();
        out[start..start + 2].copy_from_slice(&length);
    } else {
        put_parts(out, |out| {
            put_utf16(out, text);
            Ok(())
        })
        .unwrap_or_default();
    }
}

/// Appends a value in parts: one, which `content` appends.
pub(crate) fn put_parts(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 12]);
    content(out)?;
    let length = out.len() - start - 12;
    out[start..start + 8].copy_from_slice(&(length as u64).to_le_bytes());
    if length == 0 {
        // No part: the end follows at once.
        out.truncate(start + 8);
    } else {
        out[start + 8..start + 12].copy_from_slice(&(length as u32).to_le_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    Ok(())
}

/// Days from 0001-01-01, and the microseconds of the day.
pub(crate) fn parts(at: Timestamp) -> Result<(u32, u64)> {
    const LAST: i64 = 3_652_058;
    let day = at.0.div_euclid(DAY) - days_from_civil(1, 1, 1);
    if !(0..=LAST).contains(&day) {
        return Err(Error::new(ErrorClass::Statement, "a timestamp is outside the years 1 to 9999"));
    }
    Ok((day as u32, at.0.rem_euclid(DAY) as u64))
}

pub(crate) fn finite(value: f64) -> Result<f64> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::new(ErrorClass::Statement, format!("SQL Server cannot represent the number {value}")))
}

#[cold]
fn too_fine(value: Decimal) -> Error {
    let scale = value.scale;
    Error::usage(format!("a decimal has {scale} digits after the point; at most 18 are supported"))
}

#[cold]
fn is_array() -> Error {
    Error::usage("SQL Server supports arrays only as the columns of a table parameter").with_help(
        "EXEC procedure @rows = ($1, $2): a parameter of a table type, with an array for each column",
    )
}

/// Appends a table parameter's type and rows: an array for each column. `schema` and `name` are those of the type.
pub(crate) fn table(
    out: &mut Vec<u8>,
    (schema, name): (&str, &str),
    arrays: &[Value<'_>],
    collation: [u8; 5],
) -> Result<()> {
    const NULLABLE: u8 = 1;
    out.extend_from_slice(&[kind::TABLE, 0]);
    put_short_text(out, schema)?;
    put_short_text(out, name)?;
    out.extend_from_slice(&(arrays.len() as u16).to_le_bytes());
    let mut length = None;
    for array in arrays {
        let (wire, count) = array_type(*array)?;
        if *length.get_or_insert(count) != count {
            return Err(Error::usage("the arrays of a table parameter have different lengths"));
        }
        out.extend_from_slice(&[0, 0, 0, 0, NULLABLE, 0]);
        wire.put(out, collation);
        out.push(0);
    }
    out.push(0);
    for row in 0..length.unwrap_or(0) {
        out.push(1);
        for array in arrays {
            let (value, wire) = match *array {
                Value::IntArray(values) => (Value::Int(values[row]), Wire::Int),
                Value::DecimalArray(values) => (Value::Decimal(values[row]), Wire::Int),
                Value::TextArray(values) => (Value::Text(values[row]), Wire::Text),
                _ => return Err(Error::usage("a column of a table parameter is not an array")),
            };
            put_value(out, value, wire)?;
        }
    }
    out.push(0);
    Ok(())
}

/// The type of an array's elements, and their number.
fn array_type(array: Value<'_>) -> Result<(Wire, usize)> {
    match array {
        Value::IntArray(values) => Ok((Wire::Int, values.len())),
        Value::DecimalArray(values) => {
            let scale = values.first().map_or(0, |first| first.scale);
            if values.iter().any(|value| value.scale != scale) {
                return Err(Error::usage("the decimals of an array have different scales"));
            }
            Ok((Wire::Decimal { precision: PRECISION, scale }, values.len()))
        }
        Value::TextArray(values) => {
            if values.iter().any(|text| units(text) > LONGEST_TEXT) {
                return Err(Error::usage("a text of an array has more than 4000 characters"));
            }
            Ok((Wire::Text, values.len()))
        }
        _ => Err(Error::usage("a column of a table parameter is not an array")),
    }
}
