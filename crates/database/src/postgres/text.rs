//! Cells in text format, for statements outside the measured path.

use super::oid;
use crate::calendar::timestamp;
use crate::decimal::from_text;
use crate::{Cell, Error, Result, Rows};

/// Appends `text` of type `oid` as a cell; a type without a cell type stays text.
pub(crate) fn push(text: &[u8], type_oid: u32, rows: &mut Rows) -> Result<()> {
    let known = || std::str::from_utf8(text).ok();
    let cell = match type_oid {
        oid::BOOL => Some(Cell::Int(i64::from(text == b"t"))),
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => known().and_then(|t| t.parse().ok()).map(Cell::Int),
        oid::FLOAT4 | oid::FLOAT8 => known().and_then(|t| t.parse().ok()).map(Cell::Float),
        oid::NUMERIC => Some(from_text(text)?),
        oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::DATE => known().and_then(timestamp).map(Cell::Timestamp),
        oid::VOID => Some(Cell::Null),
        _ => {
            return rows.push_text(text);
        }
    };
    let cell = cell.ok_or_else(|| {
        Error::protocol(format!("{:?} is not a {}", crate::stream::printable(text), oid::name(type_oid)))
    })?;
    rows.push(cell);
    Ok(())
}
