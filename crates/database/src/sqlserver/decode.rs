//! Values of the server as cells.
//!
//! A value whose form is broken is a protocol error; a value that a cell cannot hold is an error of the statement, and the
//! session goes on.

use super::collation::{self, Encoding};
use super::column::{Column, Length, kind};
use super::inbox::{Inbox, Source};
use super::wire::{self, Fields};
use crate::calendar::{DAY, days_from_civil};
use crate::decimal::{POWERS, fit};
use crate::{Cell, Error, ErrorClass, Result, Rows, Timestamp};

/// The bytes of the next value of the message; `None` for NULL.
#[inline]
pub(crate) fn bytes<S: Source>(inbox: &mut Inbox<S>, length: Length) -> Result<Option<&[u8]>> {
    match length {
        Length::Fixed(0) => Ok(None),
        Length::Fixed(count) => inbox.take(count.into()).map(Some),
        Length::Byte => match inbox.u8()? {
            0 => Ok(None),
            count => inbox.take(count.into()).map(Some),
        },
        Length::Short => match inbox.u16()? {
            super::column::MAX => Ok(None),
            count => inbox.take(count.into()).map(Some),
        },
        Length::Parts => inbox.parts(),
        Length::Pointer => match inbox.u8()? {
            0 => Ok(None),
            count => {
                // The pointer and a time stamp.
                inbox.take(usize::from(count) + 8)?;
                let count = inbox.u32()?;
                inbox.take(count as usize).map(Some)
            }
        },
        Length::Variant => match inbox.u32()? {
            0 => Ok(None),
            count => inbox.take(count as usize).map(Some),
        },
    }
}

/// Reads the next value of the message and appends it as a field.
#[inline]
pub(crate) fn field<S: Source>(
    inbox: &mut Inbox<S>,
    column: &Column,
    rows: &mut Rows,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    match bytes(inbox, column.length)? {
        None => {
            rows.push(Cell::Null);
            Ok(())
        }
        Some(bytes) => value(column, bytes, rows, scratch),
    }
}

#[inline]
fn value(column: &Column, bytes: &[u8], rows: &mut Rows, scratch: &mut Vec<u8>) -> Result<()> {
    let cell = match column.kind {
        kind::INT_N | kind::INT4 | kind::INT8 | kind::INT2 | kind::INT1 => Cell::Int(match *bytes {
            [a] => i64::from(a),
            [a, b] => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(wrong_size("an integer", bytes.len())),
        }),
        kind::DECIMAL | kind::NUMERIC | kind::DECIMAL_OLD | kind::NUMERIC_OLD => {
            decimal(bytes, column.scale)?
        }
        kind::VARCHAR | kind::CHAR | kind::NVARCHAR | kind::NCHAR | kind::TEXT | kind::NTEXT | kind::XML => {
            return text(bytes, column.encoding, rows, scratch);
        }
        kind::BIT | kind::BIT_N => match bytes {
            [bit] => Cell::Int((*bit != 0).into()),
            _ => return Err(wrong_size("a bit", bytes.len())),
        },
        kind::FLOAT | kind::REAL | kind::FLOAT_N => Cell::Float(match *bytes {
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(wrong_size("a float", bytes.len())),
        }),
        kind::MONEY | kind::SMALLMONEY | kind::MONEY_N => Cell::Decimal {
            unscaled: match *bytes {
                [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
                // The upper half comes first.
                [a, b, c, d, e, f, g, h] => i64::from_le_bytes([e, f, g, h, a, b, c, d]),
                _ => return Err(wrong_size("money", bytes.len())),
            },
            scale: 4,
        },
        kind::DATETIME | kind::SMALLDATETIME | kind::DATETIME_N => Cell::Timestamp(datetime(bytes)?),
        kind::DATE => Cell::Timestamp(Timestamp(date(Fields(bytes))? * DAY)),
        kind::DATETIME2 => {
            let (clock, day) =
                bytes.split_last_chunk::<3>().ok_or_else(|| wrong_size("a datetime2", bytes.len()))?;
            Cell::Timestamp(Timestamp(date(Fields(day))? * DAY + micros(clock, column.scale)?))
        }
        kind::DATETIMEOFFSET => {
            // The offset is how it was written; the point in time is in UTC.
            let rest =
                bytes.len().checked_sub(5).ok_or_else(|| wrong_size("a datetimeoffset", bytes.len()))?;
            let (clock, day) = bytes[..rest + 3].split_at(rest);
            Cell::Timestamp(Timestamp(date(Fields(day))? * DAY + micros(clock, column.scale)?))
        }
        kind::TIME => return time(bytes, column.scale, rows),
        kind::GUID => return guid(bytes, rows),
        kind::VARIANT => return variant(bytes, rows, scratch),
        _ => return rows.push_text(bytes),
    };
    rows.push(cell);
    Ok(())
}

#[inline]
fn text(bytes: &[u8], encoding: Encoding, rows: &mut Rows, scratch: &mut Vec<u8>) -> Result<()> {
    scratch.clear();
    match encoding {
        Encoding::Utf16 => wire::put_utf8(scratch, bytes),
        Encoding::Utf8 | Encoding::Binary => return rows.push_text(bytes),
        Encoding::Windows1252 | Encoding::Ascii if bytes.is_ascii() => return rows.push_text(bytes),
        Encoding::Windows1252 | Encoding::Ascii => collation::put_utf8(scratch, bytes, encoding)?,
    }
    rows.push_text(scratch)
}

/// A sign (1 for positive), and the digits as an integer of up to 16 bytes.
#[inline]
fn decimal(bytes: &[u8], scale: u8) -> Result<Cell> {
    let (&sign, digits) = bytes.split_first().ok_or_else(|| wrong_size("a decimal", 0))?;
    if digits.len() > 16 || scale > 38 {
        return Err(wrong_size("a decimal", bytes.len()));
    }
    let mut wide = [0; 16];
    wide[..digits.len()].copy_from_slice(digits);
    let magnitude = u128::from_le_bytes(wide);
    // The usual case, money.
    if let (Ok(small), true) = (i64::try_from(magnitude), usize::from(scale) < POWERS.len()) {
        return Ok(Cell::Decimal { unscaled: if sign == 0 { -small } else { small }, scale });
    }
    let fitted = i128::try_from(magnitude)
        .map_err(|_| crate::decimal::too_long())
        .and_then(|magnitude| fit(magnitude, 0, scale.into(), sign == 0));
    match fitted {
        Ok((unscaled, scale)) => Ok(Cell::Decimal { unscaled, scale }),
        Err(e) => {
            let error = Error::new(ErrorClass::Statement, e.message());
            Err(if let Some(help) = e.help() { error.with_help(help) } else { error })
        }
    }
}

/// Days from 1900-01-01 and 300ths of a second, or days and minutes.
fn datetime(bytes: &[u8]) -> Result<Timestamp> {
    const DAYS_TO_1900: i64 = -25_567;
    let (days, in_day) = match *bytes {
        [a, b, c, d, e, f, g, h] => {
            let ticks = i64::from(u32::from_le_bytes([e, f, g, h]));
            (i64::from(i32::from_le_bytes([a, b, c, d])), (ticks * 10_000 + 1) / 3)
        }
        [a, b, c, d] => {
            (u16::from_le_bytes([a, b]).into(), i64::from(u16::from_le_bytes([c, d])) * 60_000_000)
        }
        _ => return Err(wrong_size("a datetime", bytes.len())),
    };
    if in_day >= DAY || !(-53_690..=2_958_463).contains(&days) {
        return Err(Error::protocol("the server sent an invalid datetime"));
    }
    Ok(Timestamp((DAYS_TO_1900 + days) * DAY + in_day))
}

/// Days from 1970-01-01, of days from 0001-01-01 in three bytes.
fn date(mut fields: Fields<'_>) -> Result<i64> {
    let [a, b, c] = fields.array()?;
    let days = u32::from_le_bytes([a, b, c, 0]);
    if !fields.0.is_empty() || days > 3_652_058 {
        return Err(Error::protocol("the server sent an invalid date"));
    }
    Ok(i64::from(days) + days_from_civil(1, 1, 1))
}

/// A time of day in units of 10^-`scale` seconds, in microseconds.
fn micros(bytes: &[u8], scale: u8) -> Result<i64> {
    Ok(units(bytes, scale)? / 10)
}

/// The same in units of 100 nanoseconds.
fn units(bytes: &[u8], scale: u8) -> Result<i64> {
    let mut wide = [0; 8];
    if !(3..=5).contains(&bytes.len()) || scale > 7 {
        return Err(wrong_size("a time", bytes.len()));
    }
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
        .checked_mul(10_i64.pow(u32::from(7 - scale)))
        .filter(|&units| units < DAY * 10)
        .ok_or_else(|| Error::protocol("the server sent an invalid time"))
}

fn time(bytes: &[u8], scale: u8, rows: &mut Rows) -> Result<()> {
    let units = units(bytes, scale)?;
    let (seconds, fraction) = (units / 10_000_000, units % 10_000_000);
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if scale > 0 {
        text.push('.');
        text.push_str(&format!("{fraction:07}")[..scale.into()]);
    }
    rows.push_text(text.as_bytes())
}

/// As the server writes it: the first three groups are little-endian.
fn guid(bytes: &[u8], rows: &mut Rows) -> Result<()> {
    let &[a, b, c, d, e, f, g, h, ref rest @ ..] = bytes else {
        return Err(wrong_size("a GUID", bytes.len()));
    };
    let [i, j, last @ ..] = rest else { return Err(wrong_size("a GUID", bytes.len())) };
    let Ok([k, l, m, n, o, p]) = <[u8; 6]>::try_from(last) else {
        return Err(wrong_size("a GUID", bytes.len()));
    };
    let (first, second, third) =
        (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
    let text = format!(
        "{first:08X}-{second:04X}-{third:04X}-{i:02X}{j:02X}-{k:02X}{l:02X}{m:02X}{n:02X}{o:02X}{p:02X}"
    );
    rows.push_text(text.as_bytes())
}

/// A value that says its type itself: type, how many bytes describe it, these, and the value.
fn variant(bytes: &[u8], rows: &mut Rows, scratch: &mut Vec<u8>) -> Result<()> {
    let mut fields = Fields(bytes);
    let kind = fields.u8()?;
    let described = usize::from(fields.u8()?);
    let mut properties = Fields(fields.take(described)?);
    let mut column = Column::new(kind, Length::Fixed(0));
    match kind {
        kind::TIME | kind::DATETIME2 | kind::DATETIMEOFFSET => column.scale = properties.u8()?,
        kind::DECIMAL | kind::NUMERIC => [column.precision, column.scale] = properties.array()?,
        kind::VARCHAR | kind::CHAR => column.encoding = Encoding::from_collation(properties.array()?),
        kind::NVARCHAR | kind::NCHAR => column.encoding = Encoding::Utf16,
        kind::VARIANT => return Err(Error::protocol("the server sent a sql_variant within a sql_variant")),
        _ => {}
    }
    value(&column, fields.0, rows, scratch)
}

#[cold]
fn wrong_size(what: &str, size: usize) -> Error {
    Error::protocol(format!("the server sent {what} of {size} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(column: Column, bytes: &[u8]) -> Result<Rows> {
        let mut rows = Rows::new();
        rows.reset(1, false);
        value(&column, bytes, &mut rows, &mut Vec::new())?;
        Ok(rows)
    }

    fn column(kind: u8, scale: u8) -> Column {
        Column { scale, ..Column::new(kind, Length::Byte) }
    }

    #[test]
    fn numbers_of_every_width() {
        for (bytes, expected) in
            [(&[255][..], 255), (&[255; 2], -1), (&[1, 0, 0, 0x80], i64::from(i32::MIN) + 1), (&[255; 8], -1)]
        {
            assert_eq!(one(column(kind::INT_N, 0), bytes).unwrap().int(0, 0).unwrap(), expected);
        }
        assert!(one(column(kind::INT_N, 0), &[1, 2, 3]).is_err());
        let decimal = |bytes: &[u8], scale| {
            one(column(kind::NUMERIC, scale), bytes).map(|rows| rows.cell(0, 0).unwrap())
        };
        assert_eq!(decimal(&[0, 0xd2, 4, 0, 0], 2).unwrap(), Cell::Decimal { unscaled: -1234, scale: 2 });
        let wide = [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(decimal(&wide, 2).unwrap_err().class(), ErrorClass::Statement);
        assert_eq!(decimal(&[1; 18], 2).unwrap_err().class(), ErrorClass::Protocol);
        assert_eq!(decimal(&[], 2).unwrap_err().class(), ErrorClass::Protocol);
        let money = one(column(kind::MONEY_N, 0), &[0xff, 0xff, 0xff, 0xff, 0xf0, 0xd8, 0xff, 0xff]).unwrap();
        assert_eq!(money.decimal(0, 0, 4).unwrap(), -10_000);
        assert_eq!(one(column(kind::FLOAT_N, 0), &1.5_f32.to_le_bytes()).unwrap().float(0, 0).unwrap(), 1.5);
    }

    #[test]
    fn times_of_every_type_are_the_same_point() {
        let at = Timestamp(1_709_210_096_790_000);
        let stamp = |column, bytes: &[u8]| one(column, bytes).unwrap().timestamp(0, 0).unwrap();
        // 2024-02-29 is day 45349 from 1900 and 738944 from year 1; 12:34:56.79 is tick 13588 937 of 1/300 s.
        let ticks = ((12 * 60 + 34) * 60 + 56) * 300 + 237_u32;
        let datetime = [&45_349_i32.to_le_bytes()[..], &ticks.to_le_bytes()].concat();
        assert_eq!(stamp(column(kind::DATETIME, 0), &datetime), at);
        let clock = 452_967_900_000_u64.to_le_bytes();
        let day = 738_944_u32.to_le_bytes();
        let datetime2 = [&clock[..5], &day[..3]].concat();
        assert_eq!(stamp(column(kind::DATETIME2, 7), &datetime2), at);
        let offset = [&datetime2[..], &330_i16.to_le_bytes()].concat();
        assert_eq!(stamp(column(kind::DATETIMEOFFSET, 7), &offset), at);
        assert_eq!(stamp(column(kind::DATE, 0), &day[..3]).0, at.0 - at.0 % DAY);
        let small = [&45_349_u16.to_le_bytes()[..], &754_u16.to_le_bytes()].concat();
        assert_eq!(stamp(column(kind::SMALLDATETIME, 0), &small).0, at.0 / 60_000_000 * 60_000_000);
        let time = one(column(kind::TIME, 2), &4_529_679_u32.to_le_bytes()[..3]).unwrap();
        assert_eq!(time.text(0, 0).unwrap(), "12:34:56.79");
        for (kind, bad) in
            [(kind::DATE, &[255; 3][..]), (kind::DATETIME, &[255; 8]), (kind::DATETIME2, &[255; 8])]
        {
            assert_eq!(one(column(kind, 7), bad).unwrap_err().class(), ErrorClass::Protocol);
        }
    }

    #[test]
    fn what_else_the_views_of_the_server_have() {
        let guid: Vec<u8> = (0..16).collect();
        let text = one(column(kind::GUID, 0), &guid).unwrap();
        assert_eq!(text.text(0, 0).unwrap(), "03020100-0504-0706-0809-0A0B0C0D0E0F");
        let variant = |bytes: &[u8]| one(Column::new(kind::VARIANT, Length::Variant), bytes);
        assert_eq!(variant(&[kind::INT4, 0, 5, 0, 0, 0]).unwrap().int(0, 0).unwrap(), 5);
        let name = [kind::NVARCHAR, 7, 9, 4, 0xd0, 0, 0x34, 40, 0, b'x', 0];
        assert_eq!(variant(&name).unwrap().text(0, 0).unwrap(), "x");
        let number = [kind::NUMERIC, 2, 5, 2, 1, 0xd2, 4, 0, 0];
        assert_eq!(variant(&number).unwrap().decimal(0, 0, 2).unwrap(), 1234);
        assert!(variant(&[kind::VARIANT, 0]).is_err() && variant(&[kind::INT4, 9]).is_err());
    }
}
