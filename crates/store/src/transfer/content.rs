//! What a store holds, row by row: copied from one to another, and as a digest.

use std::fmt::Write;
use std::path::Path;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::run::RunId;

/// A table with the order of its rows, in which each has a separate place.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The column that names the run, or the group.
    pub(super) key: &'static str,
    order: &'static str,
}

const fn table(name: &'static str, key: &'static str, order: &'static str) -> Table {
    Table { name, key, order }
}

pub(super) const RUN: Table = table("run", "id", "id");
pub(super) const GROUP: Table = table("run_group", "id", "id");
pub(super) const MEMBER: Table = table("member", "run", "run");

/// What was measured.
pub(super) const MEASURED: [Table; 5] = [
    table("event", "run", "run, seq"),
    table("second", "run", "run, point, second, part, kind, source_id"),
    table("total", "run", "run, point, scope, kind"),
    table("reading", "run", "run, seq"),
    table("waits", "run", "run, seq"),
];

/// What is said of a run beside it.
pub(super) const BESIDE: [Table; 2] = [table("history", "run", "run"), table("judgement", "run", "run")];

const ORIGIN: Table = table("origin", "run", "run");
const BASELINE: Table = table("baseline", "id", "id");

/// Columns of a run that do not belong to what was measured: they may differ where the run is the same.
const NOT_MEASURED: [&str; 5] = ["id", "run", "label", "writer", "committed_ms"];

/// The SHA-256 of everything in a store but the table `export`, as hexadecimal digits.
pub(super) fn digest(conn: &Connection, path: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    let tables = MEASURED.iter().chain(&BESIDE).chain([&RUN, &GROUP, &MEMBER, &ORIGIN, &BASELINE]);
    for table in tables {
        feed(conn, path, &mut hash, table, None, &[])?;
    }
    Ok(hex(hash))
}

/// The same of one run as it was measured, whatever its number and label.
pub(super) fn digest_of_run(conn: &Connection, path: &Path, run: RunId) -> Result<String> {
    let mut hash = Sha256::new();
    for table in [&RUN].into_iter().chain(&MEASURED) {
        feed(conn, path, &mut hash, table, Some(run), &NOT_MEASURED)?;
    }
    Ok(hex(hash))
}

fn hex(hash: Sha256) -> String {
    let mut text = String::new();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn feed(
    conn: &Connection,
    path: &Path,
    hash: &mut Sha256,
    table: &Table,
    run: Option<RunId>,
    without: &[&str],
) -> Result<()> {
    let to = |e| Error::sqlite(path, e);
    let Table { name, key, order } = table;
    let condition = run.map_or(String::new(), |_| format!("WHERE {key} = ?"));
    let sql = format!("SELECT * FROM {name} {condition} ORDER BY {order}");
    let mut statement = conn.prepare(&sql).map_err(to)?;
    let kept: Vec<usize> = (0..statement.column_count())
        .filter(|at| !without.iter().any(|name| statement.column_name(*at).is_ok_and(|of| of == *name)))
        .collect();
    let mut text = |mark: u8, bytes: &[u8]| {
        hash.update([mark]);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    text(b'T', name.as_bytes());
    let mut rows = statement.query(params_from_iter(run.map(|run| run.0))).map_err(to)?;
    while let Some(row) = rows.next().map_err(to)? {
        text(b'R', &[]);
        for at in &kept {
            match row.get_ref(*at).map_err(to)? {
                ValueRef::Null => text(b'n', &[]),
                ValueRef::Integer(value) => text(b'i', &value.to_le_bytes()),
                ValueRef::Real(value) => text(b'f', &value.to_bits().to_le_bytes()),
                ValueRef::Text(value) => text(b't', value),
                ValueRef::Blob(value) => text(b'b', value),
            }
        }
    }
    Ok(())
}

/// Copies the rows of a table that belong to one run or group; `change` gets each value with the name of its column.
/// Returns the number of the last row; none where there was none.
pub(super) fn copy(
    from: (&Connection, &Path),
    to: (&Connection, &Path),
    table: &Table,
    key: i64,
    mut change: impl FnMut(&str, Value) -> Result<Value>,
) -> Result<Option<i64>> {
    let ((from, from_path), (to, to_path)) = (from, to);
    let (read, written) = (|e| Error::sqlite(from_path, e), |e| Error::sqlite(to_path, e));
    let Table { name, key: of, order } = table;
    let mut statement =
        from.prepare(&format!("SELECT * FROM {name} WHERE {of} = ? ORDER BY {order}")).map_err(read)?;
    let columns: Vec<String> = statement.column_names().iter().map(ToString::to_string).collect();
    let places = vec!["?"; columns.len()].join(", ");
    // Both stores have the same tables: that is examined when they are opened.
    let mut insert = to.prepare(&format!("INSERT INTO {name} VALUES ({places})")).map_err(written)?;
    let mut rows = statement.query([key]).map_err(read)?;
    let mut last = None;
    while let Some(row) = rows.next().map_err(read)? {
        let values =
            columns.iter().enumerate().map(|(at, column)| change(column, row.get(at).map_err(read)?));
        let values = values.collect::<Result<Vec<Value>>>()?;
        insert.execute(params_from_iter(values)).map_err(written)?;
        last = Some(to.last_insert_rowid());
    }
    Ok(last)
}

/// Copies what is known of a run's origin, as it stands.
pub(super) fn copy_origin(from: (&Connection, &Path), to: (&Connection, &Path), run: RunId) -> Result<()> {
    copy(from, to, &ORIGIN, run.0, |_, value| Ok(value)).map(drop)
}
