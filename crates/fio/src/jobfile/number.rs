//! Numbers as job files write them: with units, and as expressions in parentheses.

use kelvin_measure::Nanos;

/// The unit of a number without one, for an option that is a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
}

impl Unit {
    const fn micros(self) -> i128 {
        match self {
            Self::Seconds => 1_000_000,
            Self::Milliseconds => 1_000,
            Self::Microseconds => 1,
        }
    }

    /// For help.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
        }
    }
}

/// The suffixes that are allowed after a number.
#[derive(Debug, Clone, Copy)]
enum Suffixes {
    /// Bytes and plain counts: `k`, `m`, `kib` …; true when `k` is 1000.
    Data { thousand: bool },
    /// Times, in microseconds; the unit is that of a number alone.
    Time(Unit),
}

impl Suffixes {
    fn factor(self, suffix: &str) -> Result<i128, String> {
        match self {
            Self::Data { thousand } => data_factor(suffix, thousand),
            Self::Time(unit) => time_factor(suffix, unit),
        }
    }
}

/// fio's interpretation, which is unusual: with `kb_base=1024`, `k` and `ki` are 1024 and `kib` is 1000; with
/// `kb_base=1000` the reverse, except that `ki` still equals `k` (fio 3.33 does so; its manual differs).
fn data_factor(suffix: &str, thousand: bool) -> Result<i128, String> {
    let (usual, other) = if thousand { (1000, 1024) } else { (1024, 1000) };
    let lower = suffix.to_ascii_lowercase();
    if lower.is_empty() || lower == "b" {
        return Ok(1);
    }
    if lower == "z" {
        return Err("zone counts need zonemode=zbd, which is not supported: give bytes".into());
    }
    let unknown = || format!("{suffix:?} is not a unit: use k, m, g, t or p, optionally followed by b or ib");
    let mut letters = lower.chars();
    let power = letters.next().and_then(|first| "kmgtp".find(first)).ok_or_else(unknown)? as u32 + 1;
    let base: i128 = match letters.as_str() {
        "" | "b" | "i" => usual,
        "ib" => other,
        _ => return Err(unknown()),
    };
    Ok(base.pow(power))
}

fn time_factor(suffix: &str, alone: Unit) -> Result<i128, String> {
    Ok(match suffix.to_ascii_lowercase().as_str() {
        "" => alone.micros(),
        "d" => 86_400_000_000,
        "h" => 3_600_000_000,
        "m" => 60_000_000,
        "s" | "sec" => 1_000_000,
        "ms" | "msec" => 1_000,
        "us" | "usec" => 1,
        _ => return Err(format!("{suffix:?} is not a unit of time: use d, h, m, s, ms or us")),
    })
}

/// A whole number of bytes or of anything else. An expression in parentheses may have a unit behind it.
pub(crate) fn whole(text: &str, thousand: bool) -> Result<i128, String> {
    number(text, Suffixes::Data { thousand })
}

/// The longest time in microseconds, 50 years: sums of several fit into nanoseconds of 64 bits.
const LONGEST: i128 = 50 * 31_557_600_000_000;

/// A time in nanoseconds.
pub(crate) fn nanos(text: &str, alone: Unit) -> Result<Nanos, String> {
    let micros = number(text, Suffixes::Time(alone))?;
    if micros < 0 {
        return Err("a time cannot be negative".into());
    }
    if micros > LONGEST {
        return Err(format!("{text} is longer than {} years", LONGEST / 31_557_600_000_000));
    }
    Ok(micros as u64 * 1000)
}

fn too_large(text: &str) -> String {
    format!("{text} is too large")
}

fn number(text: &str, suffixes: Suffixes) -> Result<i128, String> {
    let text = text.trim();
    if !text.starts_with('(') {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (value, rest) = literal(digits, suffixes)?;
        if !rest.is_empty() {
            return Err(behind(digits, rest));
        }
        return Ok(if negative { -value } else { value });
    }
    // fio takes times in expressions as microseconds, whatever the option's unit.
    let inside = match suffixes {
        Suffixes::Time(_) => Suffixes::Time(Unit::Microseconds),
        data @ Suffixes::Data { .. } => data,
    };
    let mut expression = Expression { rest: text, suffixes: inside, nesting: 0 };
    let value = expression.atom()?;
    let rest = expression.rest.trim();
    if rest.is_empty() {
        return Ok(value);
    }
    if rest.chars().all(|letter| letter.is_ascii_alphabetic()) {
        return value.checked_mul(suffixes.factor(rest)?).ok_or_else(|| too_large(text));
    }
    Err(format!("{rest:?} after the parentheses is not valid: put the whole expression in parentheses"))
}

fn behind(digits: &str, rest: &str) -> String {
    if rest.starts_with('.') {
        return format!("{digits} has a fraction, which fio would ignore: write it in a smaller unit");
    }
    if rest.starts_with(|next: char| next.is_ascii_digit()) {
        return format!("{digits} has more than one unit, which fio does not support: use a single unit");
    }
    format!("{rest:?} after the number is not valid")
}

/// A number and the unit directly after it, and the rest.
fn literal(text: &str, suffixes: Suffixes) -> Result<(i128, &str), String> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (value, rest) = if let Some(digits) = hexadecimal {
        let end = digits.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(digits.len());
        (i128::from_str_radix(&digits[..end], 16), &digits[end..])
    } else {
        let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
        if end == 0 {
            return Err(if text.is_empty() {
                "a number is missing".into()
            } else {
                format!("{text:?} is not a number")
            });
        }
        (text[..end].parse(), &text[end..])
    };
    let value = value.map_err(|_| format!("{text:?} is not a usable number"))?;
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (suffix, rest) = rest.split_at(end);
    let factor = suffixes.factor(suffix)?;
    Ok((value.checked_mul(factor).ok_or_else(|| too_large(text))?, rest))
}

/// The maximum nesting of parentheses, so that no text exhausts the stack.
const NESTING: u32 = 64;

/// An expression being read: `+ - * / % ^` over whole numbers, with the usual precedence.
struct Expression<'a> {
    rest: &'a str,
    suffixes: Suffixes,
    nesting: u32,
}

impl Expression<'_> {
    fn next(&mut self, wanted: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let first = rest.chars().next().filter(|first| wanted.contains(first))?;
        self.rest = &rest[first.len_utf8()..];
        Some(first)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.nesting += 1;
        if self.nesting > NESTING {
            return Err("the expression is nested too deeply".into());
        }
        let value = read(self);
        self.nesting -= 1;
        value
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.next(&['+', '-']) {
            let more = self.product()?;
            value = if sign == '+' { value.checked_add(more) } else { value.checked_sub(more) }
                .ok_or_else(overflow)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.signed()?;
        while let Some(sign) = self.next(&['*', '/', '%']) {
            let more = self.signed()?;
            if sign != '*' && more == 0 {
                return Err("the expression divides by zero".into());
            }
            value = match sign {
                '*' => value.checked_mul(more),
                '/' => value.checked_div(more),
                _ => value.checked_rem(more),
            }
            .ok_or_else(overflow)?;
        }
        Ok(value)
    }

    fn signed(&mut self) -> Result<i128, String> {
        match self.next(&['-', '+']) {
            Some('-') => self.deeper(Self::signed)?.checked_neg().ok_or_else(overflow),
            Some(_) => self.deeper(Self::signed),
            None => self.power(),
        }
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.atom()?;
        if self.next(&['^']).is_none() {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?;
        let exponent =
            u32::try_from(exponent).map_err(|_| format!("{exponent} is not allowed as an exponent here"))?;
        base.checked_pow(exponent).ok_or_else(overflow)
    }

    fn atom(&mut self) -> Result<i128, String> {
        if self.next(&['(']).is_some() {
            let value = self.deeper(Self::sum)?;
            if self.next(&[')']).is_none() {
                return Err("a closing parenthesis is missing in the expression".into());
            }
            return Ok(value);
        }
        let (value, rest) = literal(self.rest.trim_start(), self.suffixes)?;
        self.rest = rest;
        Ok(value)
    }
}

fn overflow() -> String {
    "the expression's value is too large".into()
}

/// The value of an expression without units, with or without parentheses; `None` where the text is not an expression.
pub(crate) fn plain(text: &str) -> Option<i128> {
    let mut expression = Expression { rest: text, suffixes: Suffixes::Data { thousand: false }, nesting: 0 };
    let has_units = text.chars().any(|letter| letter.is_ascii_alphabetic());
    let value = expression.sum().ok()?;
    (expression.rest.trim().is_empty() && !has_units).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_fios() {
        // Each taken from `fio --debug=parse`.
        for (text, thousand, bytes) in [
            ("4k", false, 4096),
            ("4ki", false, 4096),
            ("4KB", false, 4096),
            ("4KiB", false, 4000),
            ("2mi", false, 2_097_152),
            ("2mib", false, 2_000_000),
            ("10b", false, 10),
            ("0x1000", false, 4096),
            ("1t", false, 1_099_511_627_776),
            ("4k", true, 4000),
            ("4ki", true, 4000),
            ("4kib", true, 4096),
        ] {
            assert_eq!(whole(text, thousand), Ok(bytes), "{text}");
        }
        for (text, unit, micros) in [
            ("1h", Unit::Seconds, 3_600_000_000),
            ("500", Unit::Seconds, 500_000_000),
            ("500ms", Unit::Seconds, 500_000),
            ("1D", Unit::Seconds, 86_400_000_000),
            ("2M", Unit::Seconds, 120_000_000),
            ("5", Unit::Microseconds, 5),
            ("1m", Unit::Microseconds, 60_000_000),
            ("7", Unit::Milliseconds, 7_000),
        ] {
            assert_eq!(nanos(text, unit), Ok(micros * 1000), "{text}");
        }
    }

    #[test]
    fn expressions_are_calculated() {
        for (text, value) in [
            ("(1024*8)", 8192),
            ("(1+2*3)", 7),
            ("((1+2)*3)", 9),
            ("(2^10)", 1024),
            ("(2^3^2)", 512),
            ("(-2^2)", -4),
            ("(7/2)", 3),
            ("(7%4)", 3),
            ("(4k+4)", 4100),
            ("( 1 + 1 )k", 2048),
            ("(8*1024)k", 8 * 1024 * 1024),
        ] {
            assert_eq!(whole(text, false), Ok(value), "{text}");
        }
        assert_eq!(nanos("(2*30s)", Unit::Seconds), Ok(60_000_000_000));
        assert_eq!(nanos("(2000)", Unit::Seconds), Ok(2_000_000));
        assert_eq!(plain("4096*4"), Some(16384));
        assert_eq!(plain("/tmp/2"), None);
        assert_eq!(plain("4k"), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "k",
            "4q",
            "1.5k",
            "1m30s",
            "(1",
            "(1/0)",
            "(1%0)",
            "(1)2",
            "0x",
            "4z",
            "4 k",
            "(9^99999)",
            "--1",
            "(2^-1)",
            "()",
            "4kk",
            "99999999999999999999999999999999999999999",
        ] {
            assert!(whole(text, false).is_err(), "{text}: {:?}", whole(text, false));
        }
        let deep = "(".repeat(100_000);
        assert!(whole(&deep, false).is_err());
        let minus = format!("({}1)", "-".repeat(100_000));
        assert!(whole(&minus, false).is_err());
        assert!(nanos("-5", Unit::Seconds).is_err());
        assert!(nanos("5x", Unit::Seconds).is_err());
        assert!(nanos("99999d", Unit::Seconds).unwrap_err().contains("50 years"));
    }
}
