//! The 22 queries: their text, the columns of their answers, and their order in each stream.

mod order;
mod parameters;
mod published;
mod text;

pub(crate) use order::{order_of_stream, streams_of_scale};
pub(crate) use parameters::Parameters;
pub(crate) use published::differences;
pub(crate) use text::sql;

/// Number of queries.
pub(crate) const QUERIES: u8 = 22;

/// The kind of an answer's column, which determines how it is compared with the published one (TPC-H clause
/// 2.1.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerColumn {
    /// Text; must be equal except for trailing spaces.
    Text,
    /// An integer; must be equal.
    Int,
    /// A date; must be equal.
    Date,
    /// A decimal column's value; must be equal.
    Money,
    /// A sum of decimals, within 100 of the published one. Engines without decimals return an integer with
    /// this many decimal places.
    Sum(u8),
    /// An average with two decimal places, within 1 % of the published one.
    Average,
    /// A ratio with four decimal places, within 1 % of the published one, which has two.
    Ratio,
}

impl AnswerColumn {
    /// Decimal places of its normalised form; `None` if it is not a decimal number.
    pub(crate) fn places(self) -> Option<u8> {
        match self {
            Self::Text | Self::Int | Self::Date => None,
            Self::Money | Self::Sum(_) | Self::Average => Some(2),
            Self::Ratio => Some(4),
        }
    }

    /// Whether it must equal the published value.
    pub(crate) fn is_exact(self) -> bool {
        !matches!(self, Self::Sum(_) | Self::Average | Self::Ratio)
    }
}

use AnswerColumn::{Average, Date, Int, Money, Ratio, Sum, Text};

/// The columns of the answer to query 1 to 22.
pub(crate) fn columns(query: u8) -> &'static [AnswerColumn] {
    match query {
        1 => &[Text, Text, Sum(2), Sum(2), Sum(4), Sum(6), Average, Average, Average, Int],
        2 => &[Money, Text, Text, Int, Text, Text, Text, Text],
        3 => &[Int, Sum(4), Date, Int],
        4 | 21 => &[Text, Int],
        5 => &[Text, Sum(4)],
        6 | 19 => &[Sum(4)],
        7 => &[Text, Text, Int, Sum(4)],
        8 => &[Int, Ratio],
        9 => &[Text, Int, Sum(4)],
        10 => &[Int, Text, Sum(4), Money, Text, Text, Text, Text],
        11 => &[Int, Sum(2)],
        12 => &[Text, Int, Int],
        13 => &[Int, Int],
        14 => &[Ratio],
        15 => &[Int, Text, Text, Text, Sum(4)],
        16 => &[Text, Text, Int, Int],
        17 => &[Average],
        18 => &[Text, Int, Int, Date, Money, Sum(2)],
        20 => &[Text, Text],
        _ => &[Text, Int, Sum(2)],
    }
}
