//! Compares an answer with the published answer of the validation run at scale factor 1, from the crate
//! `tpchgen`.

use tpchgen::q_and_a::answers_sf1;

use super::{AnswerColumn, columns};

/// The query whose keys are truncated in the crate's copy of its answer (version 4.0.0): "1297" means 129760.
const CUT_QUERY: u8 = 11;
const CUT_DIGITS: usize = 2;

/// Greatest difference of a sum of money from the published one (TPC-H clause 2.1.3.5).
const SUM_TOLERANCE: f64 = 100.0;

/// Greatest relative difference of an average or a ratio from the published one.
const SHARE_TOLERANCE: f64 = 0.01;

/// Compares normalised rows with the published answer of a query; the error names the first difference.
///
/// Rows of equal rank may be in any order: both answers are sorted by the columns that must be equal.
pub(crate) fn differences(query: u8, rows: &[Vec<String>]) -> Result<(), String> {
    let kinds = columns(query);
    let text = answers_sf1::answer(query.into()).ok_or("no answer of this query is published")?;
    let mut published: Vec<Vec<String>> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        // The first line is the heading.
        .skip(1)
        .map(|line| fields(line, kinds))
        .collect();
    if published.len() != rows.len() {
        return Err(format!("{} rows, {} published", rows.len(), published.len()));
    }
    let mut rows = rows.to_vec();
    if query == CUT_QUERY {
        for key in rows.iter_mut().filter_map(|row| row.first_mut()) {
            key.truncate(key.len().saturating_sub(CUT_DIGITS));
        }
    }
    let key = |row: &Vec<String>| {
        let (exact, others): (Vec<_>, Vec<_>) = row.iter().zip(kinds).partition(|(_, kind)| kind.is_exact());
        let hundredths =
            |field: &String| field.parse().map_or(0, |number: f64| (number * 100.0).round() as i64);
        let others = others.into_iter().map(|(field, _)| hundredths(field)).collect::<Vec<_>>();
        (exact.into_iter().map(|(field, _)| field.clone()).collect::<Vec<_>>(), others)
    };
    rows.sort_by_cached_key(key);
    published.sort_by_cached_key(key);
    for (row, wanted) in rows.iter().zip(&published) {
        for (at, kind) in kinds.iter().enumerate() {
            let (found, wanted) = (field(row, at), field(wanted, at));
            if !agree(*kind, found, wanted) {
                return Err(format!("column {}: {found:?}, published {wanted:?}", at + 1));
            }
        }
    }
    Ok(())
}

fn field(row: &[String], at: usize) -> &str {
    row.get(at).map_or("", String::as_str)
}

/// The fields of a published line, normalised like rows.
fn fields(line: &str, kinds: &[AnswerColumn]) -> Vec<String> {
    let fields = line.split('|').zip(kinds);
    fields
        .map(|(field, kind)| match kind {
            AnswerColumn::Text => field.trim_end().to_owned(),
            _ => field.trim().to_owned(),
        })
        .collect()
}

fn agree(kind: AnswerColumn, found: &str, published: &str) -> bool {
    if kind.is_exact() {
        // Leading spaces of a text may be padding in the published answer.
        return found == published || found.trim() == published.trim();
    }
    let (Ok(found), Ok(published)) = (found.parse::<f64>(), published.parse::<f64>()) else { return false };
    let tolerance = match kind {
        AnswerColumn::Sum(_) => SUM_TOLERANCE,
        // The published ratios have two decimal places.
        AnswerColumn::Ratio => {
            return ((found * 100.0).round() / 100.0 - published).abs() <= SHARE_TOLERANCE * published.abs();
        }
        _ => SHARE_TOLERANCE * published.abs(),
    };
    (found - published).abs() <= tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tolerances_are_the_specifications() {
        let sum = AnswerColumn::Sum(4);
        assert!(agree(sum, "200.00", "100.00") && !agree(sum, "200.01", "100.00"));
        assert!(
            agree(AnswerColumn::Average, "25.77", "25.52") && !agree(AnswerColumn::Average, "25.78", "25.52")
        );
        assert!(
            agree(AnswerColumn::Ratio, "0.0344", "0.03") && !agree(AnswerColumn::Ratio, "0.0361", "0.03")
        );
        assert!(!agree(AnswerColumn::Int, "3", "4") && agree(AnswerColumn::Text, "a b", "a b"));
        assert!(!agree(sum, "NULL", "100.00"));
    }

    #[test]
    fn a_published_answer_equals_itself_in_any_order_and_not_with_a_row_or_a_digit_changed() {
        for query in 1..=22 {
            let kinds = columns(query);
            let text = answers_sf1::answer(query.into()).unwrap();
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let mut rows: Vec<Vec<String>> = lines.skip(1).map(|line| fields(line, kinds)).collect();
            if query == CUT_QUERY {
                for row in &mut rows {
                    row[0].push_str("60");
                }
            }
            rows.reverse();
            assert_eq!(differences(query, &rows), Ok(()), "query {query}");
            let last = rows.pop().unwrap();
            assert!(differences(query, &rows).is_err(), "query {query}");
            let mut changed = last;
            changed[0] = format!("9{}", changed[0]);
            rows.push(changed);
            assert!(differences(query, &rows).is_err(), "query {query}");
        }
    }
}
