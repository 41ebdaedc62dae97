//! What hosts could do before a load: kept beside the runs, by host.

use rusqlite::{OptionalExtension, Row, params};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::store::Store;
use kelvin_measure::redact_json;

/// A baseline as it was kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredBaseline {
    /// Its number, never given twice.
    pub id: i64,
    /// When it was taken.
    pub taken: jiff::Timestamp,
    /// The host's name.
    pub host: String,
    /// What was measured, as its writer wrote it.
    pub body: Value,
}

impl Store {
    /// Keeps a baseline and returns its number. What looks like a password in a URL is removed.
    pub fn add_baseline(&self, taken: jiff::Timestamp, host: &str, body: &Value) -> Result<i64> {
        let mut body = body.clone();
        redact_json(&mut body);
        self.connection()
            .execute(
                "INSERT INTO baseline (taken_ms, host, body) VALUES (?, ?, ?)",
                params![taken.as_millisecond(), host, body.to_string()],
            )
            .map_err(|e| Error::sqlite(self.path(), e))?;
        Ok(self.connection().last_insert_rowid())
    }

    /// The newest baseline of a host; none when there is none.
    pub fn last_baseline(&self, host: &str) -> Result<Option<StoredBaseline>> {
        self.one_baseline("SELECT * FROM baseline WHERE host = ? ORDER BY id DESC LIMIT 1", host)
    }

    /// The baseline of a number; none when there is none.
    pub fn baseline(&self, id: i64) -> Result<Option<StoredBaseline>> {
        self.one_baseline("SELECT * FROM baseline WHERE id = ?", id)
    }

    fn one_baseline(&self, sql: &str, key: impl rusqlite::ToSql) -> Result<Option<StoredBaseline>> {
        let found = self
            .connection()
            .query_row(sql, [key], |row| Ok(self.read_baseline(row)))
            .optional()
            .map_err(|e| Error::sqlite(self.path(), e))?;
        found.transpose()
    }

    fn read_baseline(&self, row: &Row<'_>) -> Result<StoredBaseline> {
        let to = |e| Error::sqlite(self.path(), e);
        let damaged = |what: &str| Error::damaged(self.path(), what);
        let body: String = row.get("body").map_err(to)?;
        let taken = row.get("taken_ms").map_err(to)?;
        Ok(StoredBaseline {
            id: row.get("id").map_err(to)?,
            taken: jiff::Timestamp::from_millisecond(taken)
                .map_err(|_| damaged("a baseline has an invalid time"))?,
            host: row.get("host").map_err(to)?,
            body: serde_json::from_str(&body)
                .map_err(|e| damaged(&format!("a baseline is not valid JSON: {e}")))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_own_last_baseline() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.last_baseline("a").unwrap(), None);
        let add =
            |host: &str, body: Value| store.add_baseline(jiff::Timestamp::UNIX_EPOCH, host, &body).unwrap();
        let first = add("a", serde_json::json!({"x": 1.5}));
        add("a", serde_json::json!({"x": "postgres://joe:secret@h/d"}));
        let other = add("b", serde_json::json!(null));
        let store = Store::open_read_only(&path).unwrap();
        let last = store.last_baseline("a").unwrap().unwrap();
        assert_eq!(last.body, serde_json::json!({"x": "postgres://joe@h/d"}));
        assert_eq!(store.baseline(first).unwrap().unwrap().body, serde_json::json!({"x": 1.5}));
        assert_eq!(store.last_baseline("b").unwrap().map(|found| found.id), Some(other));
        assert_eq!(store.baseline(99).unwrap(), None);
    }
}
