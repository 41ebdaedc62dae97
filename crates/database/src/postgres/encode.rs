//! Values as binary parameters of the types that the server expects.

use super::decode::EPOCH;
use super::numeric;
use super::oid::{self, BinaryFormat, Element};
use crate::calendar::DAY;
use crate::decimal::POWERS;
use crate::{ColumnType, Decimal, Error, ErrorClass, Result, Value};

/// Appends `value` as length and bytes of a field of `kind`; errors name the value, the caller the parameter.
#[inline]
pub(crate) fn value(out: &mut Vec<u8>, kind: BinaryFormat, value: Value<'_>) -> Result<()> {
    match (kind, value) {
        (_, Value::Null) => out.extend_from_slice(&[255; 4]),
        (BinaryFormat::Int4, Value::Int(v)) => int4(out, v)?,
        (BinaryFormat::Int8, Value::Int(v)) => int8(out, v),
        (BinaryFormat::Int2, Value::Int(v)) => int2(out, v)?,
        (BinaryFormat::Text, Value::Text(v)) => text(out, v)?,
        (BinaryFormat::Numeric, Value::Decimal(v)) => numeric::put(out, v)?,
        (BinaryFormat::Numeric, Value::Int(v)) => numeric::put(out, Decimal::new(v, 0))?,
        (BinaryFormat::Timestamp, Value::Timestamp(v)) => timestamp(out, v.0)?,
        (BinaryFormat::Date, Value::Timestamp(v)) => date(out, v.0)?,
        (BinaryFormat::Array(element, oid), v) => array(out, element, oid, v)?,
        (BinaryFormat::Int2 | BinaryFormat::Int4 | BinaryFormat::Int8, Value::Decimal(v)) => {
            let unit = POWERS.get(usize::from(v.scale)).map_or(0, |&p| p as i64);
            if unit == 0 || v.unscaled % unit != 0 {
                return Err(refuse("a decimal with a fraction does not fit in an integer"));
            }
            return self::value(out, kind, Value::Int(v.unscaled / unit));
        }
        (BinaryFormat::Oid, Value::Int(v)) => {
            let v = u32::try_from(v).map_err(|_| out_of_range(v, "oid"))?;
            put(out, v.to_be_bytes());
        }
        (BinaryFormat::Bool, Value::Int(v @ 0..=1)) => put(out, [v as u8]),
        (BinaryFormat::Float8, v) => put(out, float(v, kind)?.to_be_bytes()),
        (BinaryFormat::Float4, v) => put(out, (float(v, kind)? as f32).to_be_bytes()),
        (kind, value) => return Err(mismatch(kind, value)),
    }
    Ok(())
}

/// Appends `value` as a field of a column being loaded.
#[inline]
pub(crate) fn column(out: &mut Vec<u8>, column: ColumnType, value: Value<'_>) -> Result<()> {
    match (column, value) {
        (ColumnType::Int4, Value::Int(v)) => int4(out, v),
        (ColumnType::Text, Value::Text(v)) => text(out, v),
        (ColumnType::Decimal(scale), Value::Decimal(v)) => {
            if v.scale > scale {
                exact(v, scale)?;
            }
            numeric::put(out, v)
        }
        (_, value) => self::value(out, kind(column), value),
    }
}

fn kind(column: ColumnType) -> BinaryFormat {
    match column {
        ColumnType::Int2 => BinaryFormat::Int2,
        ColumnType::Int4 => BinaryFormat::Int4,
        ColumnType::Int8 => BinaryFormat::Int8,
        ColumnType::Decimal(_) => BinaryFormat::Numeric,
        ColumnType::Text => BinaryFormat::Text,
        ColumnType::Timestamp => BinaryFormat::Timestamp,
        ColumnType::Date => BinaryFormat::Date,
    }
}

/// Length and bytes of a value of fixed size, in one copy.
#[inline]
fn put<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) {
    let mut field = [0_u8; 12];
    field[..4].copy_from_slice(&(N as u32).to_be_bytes());
    field[4..4 + N].copy_from_slice(&bytes);
    out.extend_from_slice(&field[..4 + N]);
}

#[inline]
fn int2(out: &mut Vec<u8>, value: i64) -> Result<()> {
    put(out, i16::try_from(value).map_err(|_| out_of_range(value, "smallint"))?.to_be_bytes());
    Ok(())
}

#[inline]
fn int4(out: &mut Vec<u8>, value: i64) -> Result<()> {
    put(out, i32::try_from(value).map_err(|_| out_of_range(value, "integer"))?.to_be_bytes());
    Ok(())
}

#[inline]
fn int8(out: &mut Vec<u8>, value: i64) {
    put(out, value.to_be_bytes());
}

#[inline]
fn text(out: &mut Vec<u8>, value: &str) -> Result<()> {
    let length = i32::try_from(value.len()).map_err(|_| refuse("a text value exceeds 2 GiB"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value.as_bytes());
    Ok(())
}

#[inline]
fn timestamp(out: &mut Vec<u8>, micros: i64) -> Result<()> {
    put(out, micros.checked_sub(EPOCH).ok_or_else(|| out_of_range(micros, "timestamp"))?.to_be_bytes());
    Ok(())
}

/// A day, as the number of days since 2000-01-01.
fn date(out: &mut Vec<u8>, micros: i64) -> Result<()> {
    let since = micros.checked_sub(EPOCH).ok_or_else(|| out_of_range(micros, "date"))?;
    if since % DAY != 0 {
        return Err(refuse("a time of day does not fit in a date"));
    }
    put(out, i32::try_from(since / DAY).map_err(|_| out_of_range(micros, "date"))?.to_be_bytes());
    Ok(())
}

fn float(value: Value<'_>, kind: BinaryFormat) -> Result<f64> {
    match value {
        Value::Float(v) => Ok(v),
        Value::Int(v) => Ok(v as f64),
        Value::Decimal(v) => Ok(v.unscaled as f64 / 10_f64.powi(i32::from(v.scale))),
        other => Err(mismatch(kind, other)),
    }
}

fn array(out: &mut Vec<u8>, element: Element, element_oid: u32, value: Value<'_>) -> Result<()> {
    let start = out.len();
    match (element, value) {
        (Element::Int2, Value::IntArray(v)) => elements(out, element_oid, v, |out, &v| int2(out, v)),
        (Element::Int4, Value::IntArray(v)) => elements(out, element_oid, v, |out, &v| int4(out, v)),
        (Element::Int8, Value::IntArray(v)) => elements(out, element_oid, v, |out, &v| {
            int8(out, v);
            Ok(())
        }),
        (Element::Numeric, Value::DecimalArray(v)) => {
            elements(out, element_oid, v, |out, &v| numeric::put(out, v))
        }
        (Element::Numeric, Value::IntArray(v)) => {
            elements(out, element_oid, v, |out, &v| numeric::put(out, Decimal::new(v, 0)))
        }
        (Element::Text, Value::TextArray(v)) => elements(out, element_oid, v, |out, &v| text(out, v)),
        (_, other) => return Err(mismatch(BinaryFormat::Array(element, element_oid), other)),
    }?;
    let length = i32::try_from(out.len() - start - 4).map_err(|_| refuse("an array exceeds 2 GiB"))?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Space for the length, then dimensions, a flag for NULLs, the element type, size and lower bound, the elements.
fn elements<T>(
    out: &mut Vec<u8>,
    element_oid: u32,
    values: &[T],
    each: impl Fn(&mut Vec<u8>, &T) -> Result<()>,
) -> Result<()> {
    let count = i32::try_from(values.len()).map_err(|_| refuse("an array has more than 2^31 elements"))?;
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&i32::from(count > 0).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&element_oid.to_be_bytes());
    if count > 0 {
        out.extend_from_slice(&count.to_be_bytes());
        out.extend_from_slice(&1_i32.to_be_bytes());
    }
    values.iter().try_for_each(|value| each(out, value))
}

/// The server would round further digits away without a word.
fn exact(value: Decimal, scale: u8) -> Result<()> {
    match POWERS.get(usize::from(value.scale - scale)) {
        Some(&unit) if value.unscaled % unit as i64 == 0 => Ok(()),
        _ => Err(refuse(format!("a decimal has more than {scale} digits after the point"))),
    }
}

#[cold]
fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorClass::Statement, message)
}

#[cold]
fn out_of_range(value: i64, type_name: &str) -> Error {
    refuse(format!("{value} is out of range for {type_name}"))
}

#[cold]
fn mismatch(kind: BinaryFormat, value: Value<'_>) -> Error {
    let given = match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(v) => format!("the integer {v}"),
        Value::Float(v) => format!("the float {v}"),
        Value::Decimal(_) => "a decimal".to_owned(),
        Value::Text(_) => "a text value".to_owned(),
        Value::Timestamp(_) => "a timestamp".to_owned(),
        Value::IntArray(_) => "an array of integers".to_owned(),
        Value::DecimalArray(_) => "an array of decimals".to_owned(),
        Value::TextArray(_) => "an array of text values".to_owned(),
    };
    let wanted = match kind {
        BinaryFormat::Array(_, element) => format!("an array of {}", oid::name(element)),
        BinaryFormat::Unsupported(unknown) => oid::name(unknown),
        kind => format!("{kind:?}").to_lowercase(),
    };
    refuse(format!("{given} was given, but the statement needs {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn bytes(kind: BinaryFormat, v: Value<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        value(&mut out, kind, v).unwrap();
        out
    }

    #[test]
    fn scalars() {
        assert_eq!(bytes(BinaryFormat::Int2, Value::Int(-2)), [0, 0, 0, 2, 255, 254]);
        assert_eq!(bytes(BinaryFormat::Int4, Value::Null), [255; 4]);
        assert_eq!(bytes(BinaryFormat::Int4, Value::Decimal(Decimal::new(700, 2))), [0, 0, 0, 4, 0, 0, 0, 7]);
        assert_eq!(
            bytes(BinaryFormat::Timestamp, Value::Timestamp(Timestamp(EPOCH + 1))),
            [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]
        );
        assert_eq!(bytes(BinaryFormat::Bool, Value::Int(1)), [0, 0, 0, 1, 1]);
    }

    #[test]
    fn arrays() {
        let one = [0, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0];
        let kind = BinaryFormat::Array(Element::Text, oid::TEXT);
        assert_eq!(bytes(kind, Value::TextArray(&[""])), one);
        assert_eq!(bytes(kind, Value::TextArray(&[]))[..8], [0, 0, 0, 12, 0, 0, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (kind, v) in [
            (BinaryFormat::Int2, Value::Int(32_768)),
            (BinaryFormat::Int4, Value::Int(-2_147_483_649)),
            (BinaryFormat::Int4, Value::Decimal(Decimal::new(1, 1))),
            (BinaryFormat::Int4, Value::Text("1")),
            (BinaryFormat::Text, Value::Int(1)),
            (BinaryFormat::Bool, Value::Int(2)),
            (BinaryFormat::Oid, Value::Int(-1)),
            (BinaryFormat::Timestamp, Value::Timestamp(Timestamp(i64::MIN))),
            (BinaryFormat::Array(Element::Int2, oid::INT2), Value::IntArray(&[40_000])),
            (BinaryFormat::Array(Element::Int4, oid::INT4), Value::Int(1)),
            (BinaryFormat::Unsupported(17), Value::Text("x")),
        ] {
            let error = value(&mut Vec::new(), kind, v).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Statement, "{kind:?} {v:?}");
        }
    }
}
