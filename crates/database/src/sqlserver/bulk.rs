//! Loading: INSERT BULK, and the rows as the server itself describes them. The load has a lock of the whole table, which loads
//! of other sessions share as long as the table has no index.

use super::collation::{self, Encoding};
use super::column::{Column, Length, MAX, kind};
use super::encode::{finite, parts, put_parts};
use super::packet;
use super::session::SqlServerSession;
use super::token::number;
use super::wire::{put_short_text, put_utf16, quote};
use crate::calendar::DAY;
use crate::{BulkLoad, BulkTable, Error, ErrorClass, Result, Rows, Value};

/// Rows are sent when they have grown beyond this.
const SEND_AT: usize = 64 << 10;

/// Begins a load.
pub(crate) fn begin<'a>(
    session: &'a mut SqlServerSession,
    table: &'a BulkTable<'a>,
) -> Result<Box<dyn BulkLoad + 'a>> {
    let names: Vec<String> = table.columns.iter().map(|(name, _)| quote(name)).collect();
    let name = quote(table.name);
    let mut rows = Rows::new();
    session.run_text(&format!("SELECT TOP 0 {} FROM {name}", names.join(", ")), Some(&mut rows))?;
    let columns = session.answer.columns.clone();
    if columns.len() != names.len() {
        return Err(Error::protocol("the server did not describe the columns of the table"));
    }
    let described: Vec<String> = names
        .iter()
        .zip(&columns)
        .map(|(name, column)| Ok(format!("{name} {}", declared(column)?)))
        .collect::<Result<_>>()?;
    session.send_batch(&format!("INSERT BULK {name} ({}) WITH (TABLOCK)", described.join(", ")))?;
    session.read_quietly()?;
    let mut buffer = std::mem::take(&mut session.load_buffer);
    buffer.clear();
    buffer.push(number::COLUMNS);
    buffer.extend_from_slice(&(columns.len() as u16).to_le_bytes());
    for ((name, _), column) in table.columns.iter().zip(&columns) {
        buffer.extend_from_slice(&[0; 4]);
        buffer.extend_from_slice(&column.flags.to_le_bytes());
        put_type(&mut buffer, column);
        put_short_text(&mut buffer, name)?;
    }
    session.inbox.source.begin()?;
    Ok(Box::new(Load { session, columns, names: table.columns, buffer, packets: 1, rows: 0, ended: false }))
}

struct Load<'a> {
    session: &'a mut SqlServerSession,
    columns: Vec<Column>,
    names: &'a [(&'a str, crate::ColumnType)],
    /// What waits to be sent.
    buffer: Vec<u8>,
    /// The number of the next packet.
    packets: u8,
    rows: u64,
    /// The load is finished or failed.
    ended: bool,
}

impl Load<'_> {
    /// Sends whole packets of what waits, or all of it at the end.
    fn send(&mut self, ends: bool) -> Result<()> {
        if self.session.inbox.source.is_cancelled() {
            return Err(super::error::cancelled());
        }
        let size = self.session.answer.packet_size;
        let content = size - packet::HEADER;
        let whole = if ends { self.buffer.len() } else { self.buffer.len() / content * content };
        let out = &mut self.session.out;
        out.clear();
        packet::frame(out, packet::kind::BULK_LOAD, &self.buffer[..whole], size, &mut self.packets, ends);
        self.buffer.drain(..whole);
        let inbox = &mut self.session.inbox;
        let sent = inbox.source.stream.send(&self.session.out, &mut inbox.buffer);
        sent.map_err(|e| self.session.lost_sending(e))
    }
}

impl BulkLoad for Load<'_> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        if values.len() != self.columns.len() {
            return Err(Error::usage(format!(
                "{} values were given for {} columns",
                values.len(),
                self.columns.len()
            )));
        }
        let before = self.buffer.len();
        self.buffer.push(number::ROW);
        for (at, (value, column)) in values.iter().zip(&self.columns).enumerate() {
            if let Err(error) = put(&mut self.buffer, *value, column) {
                self.buffer.truncate(before);
                return Err(error.context(&format!("column {}", self.names[at].0)));
            }
        }
        self.rows += 1;
        if self.buffer.len() >= SEND_AT { self.send(false) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.buffer.push(number::DONE);
        self.buffer.extend_from_slice(&[0; 12]);
        self.session.inbox.expect(packet::kind::RESPONSE);
        self.send(true)?;
        self.ended = true;
        let mut rows = std::mem::take(&mut self.session.unwanted);
        let outcome = self.session.read_answer(&mut rows);
        let affected = rows.affected();
        self.session.unwanted = rows;
        outcome?;
        if affected != self.rows {
            self.session.failed |= self.session.begun;
            return Err(Error::new(
                ErrorClass::Statement,
                format!("the server loaded {affected} of {} rows", self.rows),
            ));
        }
        Ok(affected)
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // Half a message cannot be taken back: without its end the server forgets all of it.
            self.session.broken = true;
            self.session.inbox.source.stream.shut_down();
        }
        self.session.load_buffer = std::mem::take(&mut self.buffer);
    }
}

/// The type of a column in SQL.
fn declared(column: &Column) -> Result<String> {
    let sized = |name: &str, unit: u16| match column.size {
        MAX => format!("{name}(max)"),
        size => format!("{name}({})", size / unit),
    };
    let size = match column.length {
        Length::Fixed(size) => u16::from(size),
        _ => column.size,
    };
    Ok(match (column.kind, size) {
        (kind::INT_N | kind::INT1 | kind::INT2 | kind::INT4 | kind::INT8, 1) => "tinyint".into(),
        (kind::INT_N | kind::INT2, 2) => "smallint".into(),
        (kind::INT_N | kind::INT4, 4) => "int".into(),
        (kind::INT_N | kind::INT8, 8) => "bigint".into(),
        (kind::BIT | kind::BIT_N, _) => "bit".into(),
        (kind::FLOAT_N | kind::REAL, 4) => "real".into(),
        (kind::FLOAT_N | kind::FLOAT, 8) => "float".into(),
        (kind::MONEY_N | kind::SMALLMONEY, 4) => "smallmoney".into(),
        (kind::MONEY_N | kind::MONEY, 8) => "money".into(),
        (kind::DECIMAL | kind::NUMERIC, _) => format!("decimal({},{})", column.precision, column.scale),
        (kind::CHAR, _) => sized("char", 1),
        (kind::VARCHAR, _) => sized("varchar", 1),
        (kind::NCHAR, _) => sized("nchar", 2),
        (kind::NVARCHAR, _) => sized("nvarchar", 2),
        (kind::DATETIME_N | kind::SMALLDATETIME, 4) => "smalldatetime".into(),
        (kind::DATETIME_N | kind::DATETIME, 8) => "datetime".into(),
        (kind::DATE, _) => "date".into(),
        (kind::DATETIME2, _) => format!("datetime2({})", column.scale),
        (other, _) => {
            return Err(Error::usage(format!("a column of the type {other:#04x} cannot be loaded")));
        }
    })
}

/// Appends a column's type, by its number for columns that can be NULL.
fn put_type(out: &mut Vec<u8>, column: &Column) {
    let size = match column.length {
        Length::Fixed(size) => size,
        _ => column.size as u8,
    };
    match column.kind {
        kind::INT_N | kind::INT1 | kind::INT2 | kind::INT4 | kind::INT8 => {
            out.extend_from_slice(&[kind::INT_N, size]);
        }
        kind::BIT | kind::BIT_N => out.extend_from_slice(&[kind::BIT_N, 1]),
        kind::FLOAT_N | kind::REAL | kind::FLOAT => out.extend_from_slice(&[kind::FLOAT_N, size]),
        kind::MONEY_N | kind::SMALLMONEY | kind::MONEY => out.extend_from_slice(&[kind::MONEY_N, size]),
        kind::DATETIME_N | kind::SMALLDATETIME | kind::DATETIME => {
            out.extend_from_slice(&[kind::DATETIME_N, size]);
        }
        kind::DECIMAL | kind::NUMERIC => {
            out.extend_from_slice(&[column.kind, size, column.precision, column.scale]);
        }
        kind::DATETIME2 => out.extend_from_slice(&[column.kind, column.scale]),
        kind::DATE => out.push(column.kind),
        _ => {
            out.push(column.kind);
            out.extend_from_slice(&column.size.to_le_bytes());
            out.extend_from_slice(&column.collation);
        }
    }
}

/// Appends a value as its column has it.
fn put(out: &mut Vec<u8>, value: Value<'_>, column: &Column) -> Result<()> {
    let size = match column.length {
        Length::Fixed(size) => usize::from(size),
        _ => usize::from(column.size),
    };
    match (value, column.kind) {
        (Value::Null, _) => match column.length {
            Length::Short => out.extend_from_slice(&[0xff; 2]),
            Length::Parts => out.extend_from_slice(&[0xff; 8]),
            _ => out.push(0),
        },
        (Value::Int(value), kind::INT_N | kind::INT1 | kind::INT2 | kind::INT4 | kind::INT8) => {
            let fits = match size {
                1 => (0..256).contains(&value),
                2 => i16::try_from(value).is_ok(),
                4 => i32::try_from(value).is_ok(),
                _ => true,
            };
            if !fits {
                return Err(does_not_fit(&value.to_string()));
            }
            out.push(size as u8);
            out.extend_from_slice(&value.to_le_bytes()[..size.min(8)]);
        }
        (Value::Int(value @ (0 | 1)), kind::BIT | kind::BIT_N) => out.extend_from_slice(&[1, value as u8]),
        (Value::Float(value), kind::FLOAT_N | kind::FLOAT | kind::REAL) => {
            out.push(size as u8);
            match size {
                4 => out.extend_from_slice(&(finite(value)? as f32).to_le_bytes()),
                _ => out.extend_from_slice(&finite(value)?.to_le_bytes()),
            }
        }
        (_, kind::DECIMAL | kind::NUMERIC) => {
            let unscaled = rescaled(value, column.scale)?;
            // As many digits as the type has bytes for; the sign has one of its own.
            if unscaled.unsigned_abs() >= 10_u128.pow(column.precision.into()) {
                return Err(does_not_fit(&unscaled.to_string()));
            }
            out.extend_from_slice(&[size as u8, u8::from(unscaled >= 0)]);
            out.extend_from_slice(&unscaled.unsigned_abs().to_le_bytes()[..size.saturating_sub(1).min(16)]);
        }
        (_, kind::MONEY_N | kind::MONEY | kind::SMALLMONEY) => {
            let unscaled = rescaled(value, 4)?;
            out.push(size as u8);
            match (size, i32::try_from(unscaled), i64::try_from(unscaled)) {
                (4, Ok(value), _) => out.extend_from_slice(&value.to_le_bytes()),
                (8, _, Ok(value)) => {
                    let [a, b, c, d, high @ ..] = value.to_le_bytes();
                    out.extend_from_slice(&high);
                    out.extend_from_slice(&[a, b, c, d]);
                }
                _ => return Err(does_not_fit(&unscaled.to_string())),
            }
        }
        (Value::Text(text), kind::CHAR | kind::VARCHAR | kind::NCHAR | kind::NVARCHAR) => {
            return put_text(out, text, column);
        }
        (Value::Timestamp(at), kind::DATETIME_N | kind::DATETIME | kind::SMALLDATETIME) => {
            return put_datetime(out, at, size);
        }
        (Value::Timestamp(at), kind::DATETIME2) => {
            let (day, micros) = parts(at)?;
            // In units of 10^-scale seconds, rounded down as times are truncated, never into the next day.
            let units = match column.scale {
                scale @ 0..=6 => micros / 10_u64.pow(u32::from(6 - scale)),
                _ => micros * 10,
            };
            let bytes = match column.scale {
                0..=2 => 3,
                3..=4 => 4,
                _ => 5,
            };
            out.push(bytes + 3);
            out.extend_from_slice(&units.to_le_bytes()[..bytes.into()]);
            out.extend_from_slice(&day.to_le_bytes()[..3]);
        }
        (Value::Timestamp(at), kind::DATE) => {
            out.push(3);
            out.extend_from_slice(&parts(at)?.0.to_le_bytes()[..3]);
        }
        (other, _) => {
            return Err(Error::new(
                ErrorClass::Statement,
                format!("{other:?} cannot be loaded into a column of the type {}", declared(column)?),
            ));
        }
    }
    Ok(())
}

/// Units of 10^-`scale`; digits beyond it are an error, not rounded.
fn rescaled(value: Value<'_>, scale: u8) -> Result<i128> {
    let (unscaled, have) = match value {
        Value::Int(value) => (value, 0),
        Value::Decimal(value) => (value.unscaled, value.scale),
        other => {
            return Err(Error::new(ErrorClass::Statement, format!("{other:?} is not a decimal")));
        }
    };
    let wide = i128::from(unscaled);
    if have <= scale {
        let unit = 10_i128.checked_pow(u32::from(scale - have));
        return unit
            .and_then(|unit| wide.checked_mul(unit))
            .ok_or_else(|| does_not_fit(&unscaled.to_string()));
    }
    match 10_i128.checked_pow(u32::from(have - scale)) {
        Some(unit) if wide % unit == 0 => Ok(wide / unit),
        _ => Err(does_not_fit(&format!("{unscaled}E-{have}"))),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str, column: &Column) -> Result<()> {
    let content = |out: &mut Vec<u8>| match column.encoding {
        Encoding::Utf16 => {
            put_utf16(out, text);
            Ok(())
        }
        encoding => collation::put_bytes(out, text, encoding),
    };
    if column.length == Length::Parts {
        return put_parts(out, content);
    }
    let start = out.len();
    out.extend_from_slice(&[0; 2]);
    content(out)?;
    let length = out.len() - start - 2;
    let size = usize::from(column.size);
    if length > size {
        return Err(does_not_fit(&format!("a text of {} characters", text.chars().count())));
    }
    // Not every server fills a fixed length that came short: Babelfish kept such rows, and its answers with them were damaged.
    let space: &[u8] = match column.kind {
        kind::CHAR => b" ",
        kind::NCHAR => b" \0",
        _ => &[],
    };
    out.extend(space.iter().cycle().take(size - length));
    let length = out.len() - start - 2;
    out[start..start + 2].copy_from_slice(&(length as u16).to_le_bytes());
    Ok(())
}

/// Days from 1900 and 300ths of a second, or days and minutes.
fn put_datetime(out: &mut Vec<u8>, at: crate::Timestamp, size: usize) -> Result<()> {
    const DAY_OF_1900: i64 = 693_595;
    let (day, micros) = parts(at)?;
    let (mut days, mut micros) = (i64::from(day) - DAY_OF_1900, micros as i64);
    // The nearest tick may be the next day's first.
    if micros >= DAY - 1_666 {
        (days, micros) = (days + 1, 0);
    }
    if size == 4 {
        let days = u16::try_from(days).map_err(|_| does_not_fit("the timestamp"))?;
        out.push(4);
        out.extend_from_slice(&days.to_le_bytes());
        out.extend_from_slice(&((micros / 60_000_000) as u16).to_le_bytes());
    } else {
        if days < -53_690 {
            return Err(does_not_fit("a timestamp before 1753"));
        }
        out.push(8);
        out.extend_from_slice(&(days as i32).to_le_bytes());
        out.extend_from_slice(&(((micros * 3 + 5_000) / 10_000) as u32).to_le_bytes());
    }
    Ok(())
}

#[cold]
fn does_not_fit(what: &str) -> Error {
    Error::new(ErrorClass::Statement, format!("{what} does not fit the column's type"))
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::super::inbox::{Inbox, Recorded};
    use super::*;
    use crate::{Decimal, Timestamp};

    fn column(kind: u8, length: Length, size: u16) -> Column {
        Column { size, ..Column::new(kind, length) }
    }

    /// What a value is when it comes back.
    fn back(value: Value<'_>, column: &Column) -> Result<Rows> {
        let mut content = Vec::new();
        put(&mut content, value, column)?;
        let mut bytes = Vec::new();
        packet::frame(&mut bytes, packet::kind::RESPONSE, &content, 4096, &mut 1, true);
        let mut inbox = Inbox::new(Recorded(&bytes));
        inbox.expect(packet::kind::RESPONSE);
        let mut rows = Rows::new();
        rows.reset(1, false);
        decode::field(&mut inbox, column, &mut rows, &mut Vec::new())?;
        assert!(!inbox.more()?, "{value:?}");
        Ok(rows)
    }

    #[test]
    fn values_are_written_as_they_are_read() {
        let decimal = Column { precision: 12, scale: 2, ..column(kind::DECIMAL, Length::Byte, 9) };
        let amount = Value::Decimal(Decimal::new(-1234, 2));
        assert_eq!(back(amount, &decimal).unwrap().decimal(0, 0, 2).unwrap(), -1234);
        assert_eq!(back(Value::Int(7), &decimal).unwrap().decimal(0, 0, 2).unwrap(), 700);
        assert!(back(Value::Decimal(Decimal::new(1, 3)), &decimal).is_err());
        assert!(back(Value::Int(10_000_000_000), &decimal).is_err());
        for size in [4, 8] {
            let money = column(kind::MONEY_N, Length::Byte, size);
            assert_eq!(back(amount, &money).unwrap().decimal(0, 0, 2).unwrap(), -1234);
        }
        for (size, value) in [(1, 255), (2, -5), (4, i64::from(i32::MIN)), (8, i64::MIN)] {
            let int = column(kind::INT_N, Length::Byte, size);
            assert_eq!(back(Value::Int(value), &int).unwrap().int(0, 0).unwrap(), value);
            assert!(back(Value::Null, &int).unwrap().is_null(0, 0).unwrap());
            assert!(size == 8 || back(Value::Int(1 << 40), &int).is_err());
        }
        let wide = Column { encoding: Encoding::Utf16, ..column(kind::NVARCHAR, Length::Short, 6) };
        assert_eq!(back(Value::Text("äöü"), &wide).unwrap().text(0, 0).unwrap(), "äöü");
        assert!(back(Value::Text("four"), &wide).is_err());
        let fixed = Column { kind: kind::NCHAR, ..wide };
        assert_eq!(back(Value::Text("ä"), &fixed).unwrap().text(0, 0).unwrap(), "ä  ");
        let fixed = Column { encoding: Encoding::Windows1252, ..column(kind::CHAR, Length::Short, 4) };
        assert_eq!(back(Value::Text("€"), &fixed).unwrap().text(0, 0).unwrap(), "€   ");
        assert_eq!(back(Value::Text("four"), &fixed).unwrap().text(0, 0).unwrap(), "four");
        assert!(back(Value::Text("fives"), &fixed).is_err());
        let max = Column { encoding: Encoding::Windows1252, ..column(kind::VARCHAR, Length::Parts, MAX) };
        let long = "ä€".repeat(5000);
        assert_eq!(back(Value::Text(&long), &max).unwrap().text(0, 0).unwrap(), long);
        assert_eq!(back(Value::Text(""), &max).unwrap().text(0, 0).unwrap(), "");
        assert!(back(Value::Int(1), &max).unwrap_err().message().contains("varchar(max)"));
    }

    #[test]
    fn times_are_written_to_the_nearest_that_the_type_has() {
        let at = Timestamp(1_709_210_096_789_123);
        for (column, expected) in [
            (Column { scale: 6, ..column(kind::DATETIME2, Length::Byte, 0) }, at.0),
            (Column { scale: 0, ..column(kind::DATETIME2, Length::Byte, 0) }, at.0 / 1_000_000 * 1_000_000),
            (column(kind::DATETIME_N, Length::Byte, 8), 1_709_210_096_790_000),
            (column(kind::DATETIME_N, Length::Byte, 4), at.0 / 60_000_000 * 60_000_000),
            (column(kind::DATE, Length::Byte, 0), at.0 / DAY * DAY),
        ] {
            assert_eq!(back(Value::Timestamp(at), &column).unwrap().timestamp(0, 0).unwrap().0, expected);
        }
        let datetime = column(kind::DATETIME_N, Length::Byte, 8);
        assert_eq!(
            back(Value::Timestamp(Timestamp(DAY - 1)), &datetime).unwrap().timestamp(0, 0).unwrap().0,
            DAY
        );
        assert!(back(Value::Timestamp(Timestamp(i64::MIN / 100)), &datetime).is_err());
    }
}
