//! What is in the file and how it is set.

use std::collections::BTreeMap;

use kelvin_database::{Result, Session};
use kelvin_measure::observation::Relation;

/// The largest file whose tables are measured. To add them up is to read them all, which for a larger one would take
/// its time from the load, and bring it into the page cache before a load that is to read it from the device.
pub(super) const MOST_READ: u64 = 512 << 20;

/// Sizes by b-tree, the largest first. Overflow pages are in them.
const SIZES: &str = "\
    SELECT d.name, coalesce(s.type, 'table'), s.tbl_name, d.bytes, d.free \
    FROM (SELECT name, sum(pgsize) AS bytes, sum(unused) AS free FROM dbstat WHERE aggregate = TRUE GROUP BY name) d \
    LEFT JOIN sqlite_schema s ON s.name = d.name \
    ORDER BY d.bytes DESC, d.name";

/// Tables and indexes, the largest first. Rows and scans are not counted by SQLite.
pub(super) fn relations(session: &mut dyn Session) -> Result<Vec<Relation>> {
    let analyzed = analyzed(session)?;
    let rows = session.query(SIZES)?;
    let mut relations = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        let (name, kind) = (rows.text(row, 0)?.to_owned(), rows.text(row, 1)?.to_owned());
        let table = if kind == "index" { Some(rows.text(row, 2)?.to_owned()) } else { None };
        let (bytes, free) = (rows.int(row, 3)? as u64, rows.int(row, 4)? as f64);
        relations.push(Relation {
            analyzed: Some(analyzed.contains(table.as_ref().unwrap_or(&name))),
            bloat: (bytes > 0).then(|| free / bytes as f64),
            name,
            kind,
            table,
            bytes,
            ..Relation::default()
        });
    }
    Ok(relations)
}

/// The tables of which ANALYZE has left statistics.
fn analyzed(session: &mut dyn Session) -> Result<Vec<String>> {
    let known = session.query("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'")?;
    if known.int(0, 0)? == 0 {
        return Ok(Vec::new());
    }
    let rows = session.query("SELECT DISTINCT tbl FROM sqlite_stat1")?;
    (0..rows.len()).map(|row| Ok(rows.text(row, 0)?.to_owned())).collect()
}

/// The settings of this engine's connections: sizes in bytes, `wal_autocheckpoint` in pages.
pub(super) fn settings(session: &mut dyn Session) -> Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    let page = session.query("PRAGMA page_size")?.int(0, 0)?;
    for name in [
        "auto_vacuum",
        "busy_timeout",
        "cache_size",
        "foreign_keys",
        "journal_mode",
        "journal_size_limit",
        "locking_mode",
        "mmap_size",
        "page_size",
        "synchronous",
        "temp_store",
        "wal_autocheckpoint",
    ] {
        let rows = session.query(&format!("PRAGMA {name}"))?;
        if rows.is_empty() {
            continue;
        }
        let value = match rows.int(0, 0) {
            Ok(number) => in_words(name, number, page),
            Err(_) => rows.text(0, 0)?.to_owned(),
        };
        values.insert(name.to_owned(), value);
    }
    let version = session.query("SELECT sqlite_version()")?;
    values.insert("sqlite_version".to_owned(), version.text(0, 0)?.to_owned());
    Ok(values)
}

/// A number as SQLite's documentation names it; sizes in bytes.
fn in_words(name: &str, number: i64, page: i64) -> String {
    let known = |words: &[&str]| {
        usize::try_from(number)
            .ok()
            .and_then(|n| words.get(n))
            .map_or(number.to_string(), |w| (*w).to_owned())
    };
    match name {
        "synchronous" => known(&["off", "normal", "full", "extra"]),
        "auto_vacuum" => known(&["off", "full", "incremental"]),
        "temp_store" => known(&["default", "file", "memory"]),
        "foreign_keys" => known(&["off", "on"]),
        // Below zero it is KiB, above it is pages.
        "cache_size" if number < 0 => number.saturating_neg().saturating_mul(1024).to_string(),
        "cache_size" => number.saturating_mul(page).to_string(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_in_bytes_and_words() {
        assert_eq!(in_words("cache_size", -65_536, 4096), "67108864");
        assert_eq!(in_words("cache_size", 2000, 4096), "8192000");
        assert_eq!(
            (in_words("synchronous", 1, 0), in_words("synchronous", 7, 0)),
            ("normal".into(), "7".into())
        );
        assert_eq!(in_words("wal_autocheckpoint", 4000, 4096), "4000");
    }
}
