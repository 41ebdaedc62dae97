//! How the server would run a statement of which a sample is known.
//!
//! Nothing is executed: `EXPLAIN`, prepared, so that a text of several statements is refused, in a transaction that is rolled back (in one
//! that may only read MySQL explains no changes). The tabular form names tables, indexes and methods and has none of the sample's values; the JSON and tree forms have them.

use std::fmt::Write;

use kelvin_database::{Cell, Error, Result, Rows, Session};
use kelvin_measure::observation::{QueryPlan, Scan};
use sha2::{Digest, Sha256};

use crate::server::statement_text::{is_query, masked};

/// The columns of both products, which describe them only when the statement is executed.
const MYSQL: [&str; 12] = [
    "id",
    "select_type",
    "table",
    "partitions",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "filtered",
    "Extra",
];
const MARIADB: [&str; 10] =
    ["id", "select_type", "table", "type", "possible_keys", "key", "key_len", "ref", "rows", "Extra"];
/// Those that are left out: what was not chosen.
const HIDDEN: [&str; 2] = ["possible_keys", "filtered"];
/// Those that make the plan what it is.
const SHAPE: [&str; 6] = ["id", "select_type", "table", "partitions", "type", "key"];

/// The plan; errors tell nothing of the sample.
pub(super) fn plan(session: &mut dyn Session, sample: &str) -> Result<QueryPlan> {
    if !is_query(sample) {
        return Err(Error::usage(
            "not a query: EXPLAIN plans SELECT, INSERT, REPLACE, UPDATE, DELETE and WITH only",
        ));
    }
    if holds_several(sample) {
        return Err(Error::usage("the sample of it may hold several statements"));
    }
    session.run("START TRANSACTION")?;
    let mut rows = Rows::new();
    let explained = session
        .prepare_text(&format!("EXPLAIN {sample}"), false, &mut Vec::new())
        .and_then(|statement| session.execute(statement, &[], &mut rows));
    let ended = session.run("ROLLBACK");
    if let Err(error) = explained {
        // The server's own message repeats a part of the statement.
        return Err(Error::usage(format!(
            "the server does not explain a sample of it (error {})",
            error.code()
        )));
    }
    ended?;
    match rows.columns() {
        12 => read(&rows, &MYSQL),
        10 => read(&rows, &MARIADB),
        _ => {
            Err(Error::usage("EXPLAIN has another form than the tabular one on this server (explain_format)"))
        }
    }
}

/// Whether a semicolon is anywhere but at the end and within a value; beyond what can be read for sure any counts.
fn holds_several(sample: &str) -> bool {
    let masked = masked(sample, usize::MAX);
    let ambiguous = masked.ends_with('…') && sample.contains(';');
    ambiguous || masked.trim_end().trim_end_matches(';').contains(';')
}

/// A field as it is printed; empty for NULL.
fn field(rows: &Rows, row: usize, column: usize) -> Result<String> {
    Ok(match rows.cell(row, column)? {
        Cell::Null => String::new(),
        Cell::Int(value) => value.to_string(),
        Cell::Text { .. } => rows.text(row, column)?.to_owned(),
        _ => rows.float(row, column)?.to_string(),
    })
}

fn read(rows: &Rows, names: &[&str]) -> Result<QueryPlan> {
    let shown = |wanted: fn(&str) -> bool| {
        let columns = names.iter().enumerate().filter(move |(_, name)| wanted(name));
        columns.map(|(column, name)| (column, *name)).collect::<Vec<_>>()
    };
    let columns = shown(|name| !HIDDEN.contains(&name));
    let mut lines = vec![columns.iter().map(|(_, name)| (*name).to_owned()).collect()];
    let (mut shape, mut scans) = (String::new(), Vec::new());
    for row in 0..rows.len() {
        for (column, _) in shown(|name| SHAPE.contains(&name)) {
            let _infallible = write!(shape, "{}|", field(rows, row, column)?);
        }
        shape.push('\n');
        let fields: Result<Vec<String>> =
            columns.iter().map(|(column, _)| field(rows, row, *column)).collect();
        lines.push(fields?);
        let of = |name: &str| {
            let column = names.iter().position(|found| *found == name);
            column.map_or_else(|| Ok(String::new()), |column| field(rows, row, column))
        };
        let (table, method, key) = (of("table")?, of("type")?, of("key")?);
        if !table.is_empty() && !method.is_empty() {
            scans.push(Scan {
                node: method,
                relation: table,
                index: Some(key).filter(|key| !key.is_empty()),
            });
        }
    }
    let digest = Sha256::digest(shape.as_bytes());
    let hash = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(QueryPlan { hash, text: aligned(&lines), scans })
}

/// Columns of equal width; those without a value are left out.
fn aligned(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let used = lines.iter().skip(1).any(|line| !line[column].is_empty());
            if used { lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0) } else { 0 }
        })
        .collect();
    for line in lines {
        let mut row = String::new();
        for (field, &width) in line.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            let _infallible = write!(row, "{field:<width$}  ");
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_table_without_empty_columns() {
        let line = |fields: [&str; 3]| fields.map(str::to_owned).to_vec();
        let lines =
            [line(["id", "partitions", "Extra"]), line(["1", "", "Using where"]), line(["12", "", ""])];
        assert_eq!(aligned(&lines), "id  Extra\n1   Using where\n12");
    }

    #[test]
    fn only_one_statement_is_explained() {
        for one in ["select 1", "select ';' ; ", "select 'a\\'b'"] {
            assert!(!holds_several(one), "{one}");
        }
        for several in ["select 1; drop table t", "select 'a\\' ; drop table t -- '"] {
            assert!(holds_several(several), "{several}");
        }
    }
}
