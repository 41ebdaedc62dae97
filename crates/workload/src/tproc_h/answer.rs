//! An answer in the normalised form that all engines share, and its digest.

use kelvin_database::{Cell, Error, Result, Rows};
use sha2::{Digest, Sha256};

use super::data::date_of;
use super::digest::hex;
use super::query::{AnswerColumn, columns};

/// An answer: one list of texts per row, in the order returned by the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer(pub(crate) Vec<Vec<String>>);

impl Answer {
    /// Converts the result of a query. With `only_integers` decimals are integers in units of their last
    /// decimal place.
    ///
    /// # Errors
    /// A field does not have its column's type, or the number of columns is wrong.
    pub(crate) fn from_rows(query: u8, rows: &Rows, only_integers: bool) -> Result<Self> {
        let kinds = columns(query);
        if rows.columns() != kinds.len() && !rows.is_empty() {
            return Err(Error::protocol(format!("{} columns instead of {}", rows.columns(), kinds.len())));
        }
        let field = |row, (at, kind): (usize, &AnswerColumn)| normalise(rows, row, at, *kind, only_integers);
        let row = |row| kinds.iter().enumerate().map(|column| field(row, column)).collect();
        (0..rows.len()).map(row).collect::<Result<_>>().map(Self)
    }

    /// The digest of the rows in any order, since rows of equal rank may be returned in any order. It is the
    /// beginning, in hexadecimal, of the SHA-256 of the sorted rows; fields are separated by `|` and each row
    /// ends with a line feed.
    pub(crate) fn digest(&self) -> String {
        let mut lines: Vec<String> = self.0.iter().map(|row| row.join("|")).collect();
        lines.sort_unstable();
        let mut hash = Sha256::new();
        for line in &lines {
            hash.update(line.as_bytes());
            hash.update(b"\n");
        }
        hex(&hash.finalize())
    }
}

fn normalise(rows: &Rows, row: usize, at: usize, kind: AnswerColumn, only_integers: bool) -> Result<String> {
    if rows.is_null(row, at)? {
        return Ok("NULL".into());
    }
    let Some(places) = kind.places() else {
        return match (kind, rows.cell(row, at)?) {
            (AnswerColumn::Int, _) => rows.int(row, at).map(|number| number.to_string()),
            (AnswerColumn::Date, Cell::Timestamp(day)) => {
                date_of(day).ok_or_else(|| Error::protocol("a date is outside the years of the data"))
            }
            _ => rows.text(row, at).map(|text| text.trim_end().to_owned()),
        };
    };
    if let Cell::Float(number) = rows.cell(row, at)? {
        return Ok(format!("{number:.*}", usize::from(places)));
    }
    let have = match kind {
        AnswerColumn::Sum(scale) if only_integers => scale,
        _ => places,
    };
    Ok(with_point(rounded(rows.decimal(row, at, have)?, have - places), places))
}

/// Drops this many trailing digits, rounding half away from zero.
fn rounded(unscaled: i64, digits: u8) -> i64 {
    let unit = 10_i64.pow(digits.into());
    let (whole, rest) = (unscaled / unit, unscaled % unit);
    if rest.abs() * 2 >= unit && unit > 1 { whole + rest.signum() } else { whole }
}

fn with_point(unscaled: i64, places: u8) -> String {
    let unit = 10_u64.pow(places.into());
    let (sign, value) = (if unscaled < 0 { "-" } else { "" }, unscaled.unsigned_abs());
    format!("{sign}{}.{:0width$}", value / unit, value % unit, width = usize::from(places))
}

#[cfg(test)]
mod tests {
    use kelvin_database::Timestamp;

    use super::*;

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        for (unscaled, digits, expected) in
            [(12_345, 2, 123), (12_350, 2, 124), (-12_350, 2, -124), (-12_349, 2, -123), (7, 0, 7)]
        {
            assert_eq!(rounded(unscaled, digits), expected, "{unscaled}");
        }
        assert_eq!(with_point(-5, 2), "-0.05");
        assert_eq!(with_point(12_340, 2), "123.40");
    }

    /// Query 3's columns: an integer, a sum with four places, a date, an integer.
    fn answer(integers: bool, sums: [i64; 2], dates: [Option<Timestamp>; 2]) -> Answer {
        let mut rows = Rows::new();
        rows.reset(4, integers);
        for (number, (sum, date)) in (1_i64..).zip(sums.into_iter().zip(dates)) {
            rows.push(Cell::Int(number));
            if integers {
                rows.push(Cell::Int(sum));
            } else {
                rows.push(Cell::Decimal { unscaled: sum, scale: 2 });
            }
            match date {
                Some(date) => rows.push(Cell::Timestamp(date)),
                None => rows.push_text(b"1992-01-02").unwrap(),
            }
            rows.push(Cell::Int(0));
        }
        Answer::from_rows(3, &rows, integers).unwrap()
    }

    #[test]
    fn the_same_answer_has_the_same_digest_on_engines_with_and_without_decimals_and_dates() {
        let day = Some(Timestamp(8036 * 86_400_000_000));
        let decimals = answer(false, [1235, -200], [day, day]);
        let integers = answer(true, [123_450, -20_000], [None, None]);
        assert_eq!(decimals.0[0], ["1", "12.35", "1992-01-02", "0"]);
        assert_eq!(decimals, integers);
        assert_eq!(decimals.digest(), integers.digest());
        assert_ne!(decimals.digest(), answer(false, [1236, -200], [day, day]).digest());
        let mut turned = decimals.clone();
        turned.0.reverse();
        assert_eq!(turned.digest(), decimals.digest());
        assert_eq!(decimals.digest().len(), 16);
    }
}
