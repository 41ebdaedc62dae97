//! The value of an expression, its conversions, and its text.

use std::fmt::Write as _;
use std::io::Write as _;

use super::Fault;

/// What an expression can evaluate to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// True or false.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A binary floating-point number.
    Double(f64),
}

impl Value {
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Whether it is true as a condition: any number except zero is; NULL is not.
    pub(crate) fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => value,
            Self::Integer(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    pub(crate) fn boolean(self) -> Result<bool, Fault> {
        match self {
            Self::Boolean(value) => Ok(value),
            other => Err(Fault::Coercion { from: other.type_name(), to: "boolean" }),
        }
    }

    /// Converts to an integer; doubles are rounded half to even.
    pub(crate) fn integer(self) -> Result<i64, Fault> {
        match self {
            Self::Integer(value) => Ok(value),
            Self::Double(value) => {
                let rounded = value.round_ties_even();
                // 2^63 is the smallest double that does not fit.
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                    Ok(rounded as i64)
                } else {
                    Err(Fault::DoubleToInt(value))
                }
            }
            other => Err(Fault::Coercion { from: other.type_name(), to: "int" }),
        }
    }

    pub(crate) fn double(self) -> Result<f64, Fault> {
        match self {
            Self::Integer(value) => Ok(value as f64),
            Self::Double(value) => Ok(value),
            other => Err(Fault::Coercion { from: other.type_name(), to: "double" }),
        }
    }

    /// Appends the text of a variable with this value, as used in statements.
    #[inline]
    pub fn write(self, into: &mut String) {
        match self {
            Self::Null => into.push_str("NULL"),
            Self::Boolean(true) => into.push_str("true"),
            Self::Boolean(false) => into.push_str("false"),
            Self::Integer(value) => write_integer(value, into),
            Self::Double(value) => write_double(value, into),
        }
    }

    /// Parses a variable's text; `None` if it is not a value.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let is_prefix = |of: &str| of.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
        if text.is_empty() {
            return None;
        }
        if text.eq_ignore_ascii_case("null") {
            return Some(Self::Null);
        }
        if is_prefix("true") || is_prefix("yes") || text.eq_ignore_ascii_case("on") {
            return Some(Self::Boolean(true));
        }
        if is_prefix("false")
            || is_prefix("no")
            || text.eq_ignore_ascii_case("off")
            || text.eq_ignore_ascii_case("of")
        {
            return Some(Self::Boolean(false));
        }
        let bare = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let digits = bare.strip_prefix(['-', '+']).unwrap_or(bare);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return bare.parse().ok().map(Self::Integer);
        }
        text.trim_start().parse().ok().map(Self::Double)
    }
}

#[inline]
fn write_integer(value: i64, into: &mut String) {
    // Writing to a String does not fail.
    let _ = write!(into, "{value}");
}

/// C's `%.15g`, with PostgreSQL's spelling of infinities and NaN.
fn write_double(value: f64, into: &mut String) {
    if value.is_nan() {
        return into.push_str("NaN");
    }
    if value.is_infinite() {
        return into.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    // The longest is "-d.dddddddddddddde-308": 23 bytes.
    let mut buffer = [0_u8; 32];
    let mut rest = &mut buffer[..];
    let written = write!(rest, "{value:.14e}").is_ok();
    debug_assert!(written);
    let left = rest.len();
    let text = std::str::from_utf8(&buffer[..32 - left]).unwrap_or_default();
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let Some((mantissa, exponent)) = text.split_once('e') else { return };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits = [b'0'; 15];
    for (digit, byte) in digits.iter_mut().zip(mantissa.bytes().filter(|&byte| byte != b'.')) {
        *digit = byte;
    }
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let digits = std::str::from_utf8(&digits).unwrap_or_default();
    if negative {
        into.push('-');
    }
    if (-4..15).contains(&exponent) {
        if exponent < 0 {
            into.push_str("0.");
            into.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
            into.push_str(&digits[..significant]);
        } else {
            let whole = exponent as usize + 1;
            into.push_str(&digits[..whole]);
            if significant > whole {
                into.push('.');
                into.push_str(&digits[whole..significant]);
            }
        }
    } else {
        into.push_str(&digits[..1]);
        if significant > 1 {
            into.push('.');
            into.push_str(&digits[1..significant]);
        }
        into.push_str(if exponent < 0 { "e-" } else { "e+" });
        if exponent.abs() < 10 {
            into.push('0');
        }
        write_integer(i64::from(exponent.abs()), into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value) -> String {
        let mut out = String::new();
        value.write(&mut out);
        out
    }

    #[test]
    fn values_have_the_text_that_printf_gives_them() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0 / 3.0, "0.666666666666667"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (123_456_789_012_345_678.0, "1.23456789012346e+17"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1.5e-300, "1.5e-300"),
            (999_999_999_999_999.9, "1e+15"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text(Value::Double(value)), expected);
        }
        assert_eq!(text(Value::Integer(i64::MIN)), "-9223372036854775808");
        assert_eq!(text(Value::Integer(0)), "0");
        assert_eq!(text(Value::Null), "NULL");
    }

    #[test]
    fn texts_mean_values() {
        for (text, value) in [
            ("1", Value::Integer(1)),
            (" -7 ", Value::Integer(-7)),
            ("1.5", Value::Double(1.5)),
            ("1e3", Value::Double(1000.0)),
            ("NULL", Value::Null),
            ("y", Value::Boolean(true)),
            ("TRUE", Value::Boolean(true)),
            ("of", Value::Boolean(false)),
            ("n", Value::Boolean(false)),
        ] {
            assert_eq!(Value::from_text(text).unwrap(), value, "{text}");
        }
        for text in ["", "o", "x", "1x", "9223372036854775808", "é"] {
            assert!(Value::from_text(text).is_none(), "{text}");
        }
    }
}
