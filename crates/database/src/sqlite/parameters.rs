//! Parameters kept until they are bound, in memory that is reused.

use rusqlite::Statement;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::error::translate;
use crate::{Error, Result, Value};

/// A list of parameters that owns its texts.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    fields: Vec<Field>,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Null,
    Int(i64),
    Float(f64),
    Text { start: usize, end: usize },
}

impl Parameters {
    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.text.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Forgets all but the first `count`; their texts go with the next [`Parameters::clear`].
    pub(crate) fn truncate(&mut self, count: usize) {
        self.fields.truncate(count);
    }

    /// Appends a copy of `value`.
    pub(crate) fn push(&mut self, value: &Value<'_>) -> Result<()> {
        self.fields.push(match sqlite_value(value)? {
            ValueRef::Integer(value) => Field::Int(value),
            ValueRef::Real(value) => Field::Float(value),
            ValueRef::Text(text) => {
                let start = self.text.len();
                self.text.extend_from_slice(text);
                Field::Text { start, end: self.text.len() }
            }
            ValueRef::Null | ValueRef::Blob(_) => Field::Null,
        });
        Ok(())
    }

    /// Binds the parameters `first..first + count` to a statement's `?1`, `?2`, ….
    pub(crate) fn bind(&self, statement: &mut Statement<'_>, first: usize, count: usize) -> Result<()> {
        for (index, field) in self.fields[first..first + count].iter().enumerate() {
            let value = match *field {
                Field::Null => ValueRef::Null,
                Field::Int(value) => ValueRef::Integer(value),
                Field::Float(value) => ValueRef::Real(value),
                Field::Text { start, end } => ValueRef::Text(&self.text[start..end]),
            };
            statement.raw_bind_parameter(index + 1, ToSqlOutput::Borrowed(value)).map_err(translate)?;
        }
        Ok(())
    }
}

/// Binds parameters without keeping them.
pub(crate) fn bind(statement: &mut Statement<'_>, params: &[Value<'_>]) -> Result<()> {
    for (index, param) in params.iter().enumerate() {
        let value = ToSqlOutput::Borrowed(sqlite_value(param)?);
        statement.raw_bind_parameter(index + 1, value).map_err(translate)?;
    }
    Ok(())
}

/// What SQLite stores for a value: decimals as their unscaled integer, points in time as microseconds.
fn sqlite_value<'a>(value: &Value<'a>) -> Result<ValueRef<'a>> {
    Ok(match *value {
        Value::Null => ValueRef::Null,
        Value::Int(value) => ValueRef::Integer(value),
        // SQLite would store NaN as NULL without a word.
        Value::Float(value) if value.is_nan() => {
            return Err(Error::usage("SQLite cannot store NaN"));
        }
        Value::Float(value) => ValueRef::Real(value),
        Value::Decimal(value) => ValueRef::Integer(value.unscaled),
        Value::Text(value) => ValueRef::Text(value.as_bytes()),
        Value::Timestamp(value) => ValueRef::Integer(value.0),
        Value::IntArray(_) | Value::DecimalArray(_) | Value::TextArray(_) => {
            return Err(Error::usage("SQLite does not support array parameters"));
        }
    })
}
