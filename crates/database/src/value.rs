//! Values on their way to the database.

/// An exact decimal number: `unscaled / 10^scale`. Money is never a float here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// The digits as one integer: 1234 for 12.34 at scale 2.
    pub unscaled: i64,
    /// Digits after the point, 0 to 18.
    pub scale: u8,
}

impl Decimal {
    /// A decimal of `unscaled` units of 10^-`scale`.
    pub const fn new(unscaled: i64, scale: u8) -> Self {
        Self { unscaled, scale }
    }
}

/// A point in time: microseconds since 1970-01-01 00:00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The wall clock's time now.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(since.map_or(0, |d| d.as_micros() as i64))
    }
}

/// One parameter of a statement.
///
/// The engine converts it to the type the statement expects (PostgreSQL states it in the parameter
/// description) and refuses what does not fit, rather than cutting it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// Any integer type.
    Int(i64),
    /// A binary floating-point number.
    Float(f64),
    /// An exact decimal. SQLite, which has no such type, stores the unscaled integer: the column's scale
    /// is part of the schema.
    Decimal(Decimal),
    /// Text in UTF-8.
    Text(&'a str),
    /// A point in time. SQLite stores the microseconds as an integer.
    Timestamp(Timestamp),
    /// An array of integers, for engines with [`crate::Capabilities::arrays`].
    IntArray(&'a [i64]),
    /// An array of decimals, for engines with [`crate::Capabilities::arrays`].
    DecimalArray(&'a [Decimal]),
    /// An array of texts, for engines with [`crate::Capabilities::arrays`].
    TextArray(&'a [&'a str]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl From<Decimal> for Value<'_> {
    fn from(value: Decimal) -> Self {
        Self::Decimal(value)
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(value: Timestamp) -> Self {
        Self::Timestamp(value)
    }
}
