//! Rows of the server as cells.

use super::backend::{Column, Fields};
use super::oid::{self, BinaryFormat};
use super::{numeric, text};
use crate::{Cell, Error, Result, Rows, Timestamp};

/// 2000-01-01, where PostgreSQL's time begins, in microseconds since 1970.
pub(crate) const EPOCH: i64 = 946_684_800_000_000;

/// Appends a DataRow in binary format.
#[inline]
pub(crate) fn row(body: &[u8], kinds: &[BinaryFormat], rows: &mut Rows) -> Result<()> {
    let mut fields = Fields(body);
    width(&mut fields, kinds.len())?;
    if kinds.is_empty() {
        rows.push_empty();
    }
    for &kind in kinds {
        match fields.cell()? {
            None => rows.push(Cell::Null),
            Some(bytes) => push(bytes, kind, rows)?,
        }
    }
    fields.end()
}

/// Appends a DataRow in text format.
pub(crate) fn text_row(body: &[u8], columns: &[Column], rows: &mut Rows) -> Result<()> {
    let mut fields = Fields(body);
    width(&mut fields, columns.len())?;
    if columns.is_empty() {
        rows.push_empty();
    }
    for column in columns {
        match fields.cell()? {
            None => rows.push(Cell::Null),
            Some(bytes) => text::push(bytes, column.oid, rows).map_err(|e| e.context(&column.name))?,
        }
    }
    fields.end()
}

#[inline]
fn width(fields: &mut Fields<'_>, expected: usize) -> Result<()> {
    let found = fields.int2()?;
    if usize::try_from(found) == Ok(expected) {
        Ok(())
    } else {
        Err(Error::protocol(format!("the server sent a row of {found} fields, but announced {expected}")))
    }
}

#[inline]
fn push(bytes: &[u8], kind: BinaryFormat, rows: &mut Rows) -> Result<()> {
    let cell = match kind {
        BinaryFormat::Text => {
            return rows.push_text(bytes);
        }
        BinaryFormat::Int4 => Cell::Int(i32::from_be_bytes(fixed(bytes)?).into()),
        BinaryFormat::Int8 => Cell::Int(i64::from_be_bytes(fixed(bytes)?)),
        BinaryFormat::Int2 => Cell::Int(i16::from_be_bytes(fixed(bytes)?).into()),
        BinaryFormat::Numeric => {
            let (unscaled, scale) = numeric::get(bytes)?;
            Cell::Decimal { unscaled, scale }
        }
        BinaryFormat::Timestamp => timestamp(i64::from_be_bytes(fixed(bytes)?), 1)?,
        BinaryFormat::Date => timestamp(i32::from_be_bytes(fixed(bytes)?).into(), 86_400_000_000)?,
        BinaryFormat::Bool => Cell::Int(i64::from(u8::from_be_bytes(fixed(bytes)?) != 0)),
        BinaryFormat::Oid => Cell::Int(u32::from_be_bytes(fixed(bytes)?).into()),
        BinaryFormat::Float4 => Cell::Float(f32::from_be_bytes(fixed(bytes)?).into()),
        BinaryFormat::Float8 => Cell::Float(f64::from_be_bytes(fixed(bytes)?)),
        BinaryFormat::Void => Cell::Null,
        BinaryFormat::Array(_, element) => {
            return Err(Error::protocol(format!("arrays of {} are not supported", oid::name(element))));
        }
        BinaryFormat::Unsupported(unknown) => {
            return Err(Error::protocol(format!("{} is not supported", oid::name(unknown))));
        }
    };
    rows.push(cell);
    Ok(())
}

#[inline]
fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| wrong_size(N, bytes.len()))
}

#[cold]
fn wrong_size(expected: usize, found: usize) -> Error {
    Error::protocol(format!("the server sent a field of {found} bytes; its type has {expected}"))
}

#[inline]
fn timestamp(value: i64, unit: i64) -> Result<Cell> {
    let infinite = if unit == 1 {
        value == i64::MAX || value == i64::MIN
    } else {
        value == i64::from(i32::MAX) || value == i64::from(i32::MIN)
    };
    value
        .checked_mul(unit)
        .and_then(|micros| micros.checked_add(EPOCH))
        .filter(|_| !infinite)
        .map(|micros| Cell::Timestamp(Timestamp(micros)))
        .ok_or_else(|| Error::protocol("a timestamp is infinite or beyond the year 294276"))
}
