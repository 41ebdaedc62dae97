//! Rows on their way back from the database.

use crate::{Error, ErrorClass, Result, Timestamp};

/// One field of a row, already decoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// SQL NULL.
    Null,
    /// Any integer type.
    Int(i64),
    /// A binary floating-point number.
    Float(f64),
    /// An exact decimal of this many units and digits after the point.
    Decimal {
        /// The digits as one integer.
        unscaled: i64,
        /// Digits after the point.
        scale: u8,
    },
    /// A point in time.
    Timestamp(Timestamp),
    /// Text, as a range in the rows' buffer.
    Text {
        /// First byte.
        start: u32,
        /// One past the last byte.
        end: u32,
    },
}

/// The result of one statement: rows of decoded fields, and the number of rows affected.
///
/// Made to be reused: `clear` keeps the memory, so that a virtual user allocates nothing in steady state.
#[derive(Debug, Default)]
pub struct Rows {
    columns: usize,
    cells: Vec<Cell>,
    text: Vec<u8>,
    affected: u64,
    /// Rows of a result without columns, which leave no cells.
    empty: usize,
    /// Ends of the columns' names in `names`, where names were requested.
    name_ends: Vec<u32>,
    names: Vec<u8>,
    /// Engines without decimals (SQLite) store them as integers of the column's last place.
    integers_are_unscaled: bool,
}

impl Rows {
    /// An empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clears the content and keeps the memory. `columns` is the number of columns of the rows to come;
    /// `integers_are_unscaled` selects how the engine stores decimals.
    pub fn reset(&mut self, columns: usize, integers_are_unscaled: bool) {
        self.columns = columns;
        self.cells.clear();
        self.text.clear();
        self.name_ends.clear();
        self.names.clear();
        self.affected = 0;
        self.empty = 0;
        self.integers_are_unscaled = integers_are_unscaled;
    }

    /// Appends a row of a result without columns (`SELECT` alone has one).
    pub fn push_empty(&mut self) {
        self.empty += 1;
    }

    /// Appends a field; `columns` of them make a row.
    pub fn push(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    /// Appends a text field. An error, and no field, when the result's texts exceed 4 GiB together.
    #[inline]
    pub fn push_text(&mut self, text: &[u8]) -> Result<()> {
        let Some(range) = text_range(self.text.len(), text.len()) else { return Err(too_much_text()) };
        self.text.extend_from_slice(text);
        self.cells.push(range);
        Ok(())
    }

    /// Appends a column's name; they come after `reset` and before the rows.
    pub fn push_name(&mut self, name: &[u8]) {
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len() as u32);
    }

    /// The name of a column, for results that have names ([`crate::Session::query_text`]).
    pub fn name(&self, column: usize) -> Option<&[u8]> {
        let end = *self.name_ends.get(column)? as usize;
        let start = column.checked_sub(1).map_or(0, |before| self.name_ends[before] as usize);
        self.names.get(start..end)
    }

    /// The bytes of a text field; nothing for NULL.
    pub fn bytes(&self, row: usize, column: usize) -> Result<&[u8]> {
        match self.cell(row, column)? {
            Cell::Text { start, end } => Ok(&self.text[start as usize..end as usize]),
            Cell::Null => Ok(&[]),
            other => Err(mismatch("text", other, row, column)),
        }
    }

    /// Sets the number of rows that the statement inserted, updated, deleted or returned.
    pub fn set_affected(&mut self, affected: u64) {
        self.affected = affected;
    }

    /// Rows inserted, updated, deleted or returned.
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// Fields in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.cells.len().checked_div(self.columns).unwrap_or(self.empty)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The field at `row`, `column`, both from 0. An error names the requested type and the actual one.
    pub fn cell(&self, row: usize, column: usize) -> Result<Cell> {
        if column >= self.columns || row >= self.len() {
            return Err(Error::protocol(format!(
                "row {row}, column {column} was requested from a result of {} rows and {} columns",
                self.len(),
                self.columns
            )));
        }
        Ok(self.cells[row * self.columns + column])
    }

    /// Whether the field is NULL.
    pub fn is_null(&self, row: usize, column: usize) -> Result<bool> {
        Ok(matches!(self.cell(row, column)?, Cell::Null))
    }

    /// A field that may be NULL, read by one of the methods below.
    pub fn optional<'a, T>(
        &'a self,
        row: usize,
        column: usize,
        read: impl Fn(&'a Self, usize, usize) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.is_null(row, column)? { Ok(None) } else { read(self, row, column).map(Some) }
    }

    /// The field as an integer. A decimal without a fraction counts as one (PostgreSQL's `sum` of integers).
    pub fn int(&self, row: usize, column: usize) -> Result<i64> {
        match self.cell(row, column)? {
            Cell::Int(value) => Ok(value),
            Cell::Decimal { unscaled, scale } if unscaled % 10_i64.pow(u32::from(scale)) == 0 => {
                Ok(unscaled / 10_i64.pow(u32::from(scale)))
            }
            other => Err(mismatch("an integer", other, row, column)),
        }
    }

    /// The field as a decimal in units of 10^-`scale`. Digits beyond that scale are an error, not rounded.
    pub fn decimal(&self, row: usize, column: usize, scale: u8) -> Result<i64> {
        let cell = self.cell(row, column)?;
        let too_fine = || mismatch("a decimal within 64 bits and the scale", cell, row, column);
        match cell {
            Cell::Int(value) if self.integers_are_unscaled => Ok(value),
            Cell::Int(value) => value.checked_mul(10_i64.pow(u32::from(scale))).ok_or_else(too_fine),
            Cell::Decimal { unscaled, scale: have } if have <= scale => {
                unscaled.checked_mul(10_i64.pow(u32::from(scale - have))).ok_or_else(too_fine)
            }
            Cell::Decimal { unscaled, scale: have } => {
                let divisor = 10_i64.pow(u32::from(have - scale));
                if unscaled % divisor == 0 { Ok(unscaled / divisor) } else { Err(too_fine()) }
            }
            _ => Err(mismatch("a decimal", cell, row, column)),
        }
    }

    /// The field as a float; integers and decimals are converted.
    pub fn float(&self, row: usize, column: usize) -> Result<f64> {
        match self.cell(row, column)? {
            Cell::Int(value) => Ok(value as f64),
            Cell::Float(value) => Ok(value),
            Cell::Decimal { unscaled, scale } => Ok(unscaled as f64 / 10_f64.powi(i32::from(scale))),
            other => Err(mismatch("a number", other, row, column)),
        }
    }

    /// The field as a point in time.
    pub fn timestamp(&self, row: usize, column: usize) -> Result<Timestamp> {
        match self.cell(row, column)? {
            Cell::Timestamp(value) => Ok(value),
            Cell::Int(micros) if self.integers_are_unscaled => Ok(Timestamp(micros)),
            other => Err(mismatch("a timestamp", other, row, column)),
        }
    }

    /// A column of texts.
    pub fn texts(&self, column: usize) -> Result<Vec<String>> {
        (0..self.len()).map(|row| self.text(row, column).map(str::to_owned)).collect()
    }

    /// The field as text.
    pub fn text(&self, row: usize, column: usize) -> Result<&str> {
        match self.cell(row, column)? {
            Cell::Text { start, end } => std::str::from_utf8(&self.text[start as usize..end as usize])
                .map_err(|_| Error::protocol(format!("row {row}, column {column} is not valid UTF-8"))),
            other => Err(mismatch("text", other, row, column)),
        }
    }
}

#[inline]
fn text_range(start: usize, length: usize) -> Option<Cell> {
    let end = u32::try_from(start.checked_add(length)?).ok()?;
    // No larger than the end.
    Some(Cell::Text { start: start as u32, end })
}

#[cold]
fn too_much_text() -> Error {
    Error::new(ErrorClass::Statement, "the text values of one result exceed 4 GiB")
        .with_help("read fewer rows at a time")
}

/// A NULL is in the data: the server has followed its protocol.
#[cold]
fn mismatch(wanted: &str, found: Cell, row: usize, column: usize) -> Error {
    if found == Cell::Null {
        let message = format!("row {row}, column {column} is NULL; expected {wanted}");
        return Error::new(ErrorClass::Statement, message);
    }
    Error::protocol(format!("row {row}, column {column}: expected {wanted}, found {found:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_4_gib_is_refused_and_not_wrapped() {
        let limit = u32::MAX as usize;
        assert_eq!(text_range(limit - 1, 1), Some(Cell::Text { start: u32::MAX - 1, end: u32::MAX }));
        assert_eq!(text_range(limit, 1), None);
        assert_eq!(text_range(limit + 1, 0), None);
        assert_eq!(text_range(usize::MAX, 1), None);
    }

    #[test]
    fn trial_b3_a_null_where_a_value_must_be_is_the_datas_fault_and_not_the_protocols() {
        let mut rows = Rows::new();
        rows.reset(2, false);
        rows.push(Cell::Null);
        rows.push(Cell::Float(1.5));
        let null = rows.decimal(0, 0, 2).unwrap_err();
        assert_eq!(null.class(), ErrorClass::Statement);
        assert_eq!(null.message(), "row 0, column 0 is NULL; expected a decimal");
        assert_eq!(rows.int(0, 0).unwrap_err().class(), ErrorClass::Statement);
        assert_eq!(rows.int(0, 1).unwrap_err().class(), ErrorClass::Protocol);
    }

    #[test]
    fn trial_b9_rows_without_columns_are_counted() {
        let mut rows = Rows::new();
        rows.reset(0, false);
        assert!(rows.is_empty());
        rows.push_empty();
        assert_eq!(rows.len(), 1);
        rows.reset(0, false);
        assert!(rows.is_empty());
    }
}
