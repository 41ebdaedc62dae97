//! Databases for tenants of scenarios, and a tenant's part of a report.

use serde_json::Value;

use super::Place;

/// Creates databases in which each transaction of a tenant adds a row.
pub(crate) fn hit_databases(place: &Place, names: [&str; 2]) {
    for name in names {
        let file = rusqlite::Connection::open(place.path(name)).unwrap();
        file.execute_batch("pragma journal_mode = wal; create table hits (at integer)").unwrap();
    }
}

/// Number of rows in such a database.
pub(crate) fn hits(place: &Place, name: &str) -> u64 {
    let file = rusqlite::Connection::open(place.path(name)).unwrap();
    file.query_row("select count(*) from hits", [], |row| row.get::<_, i64>(0)).unwrap_or(0) as u64
}

/// A tenant's transactions: by measured second, and the total.
pub(crate) fn seconds(report: &Value, tenant: &str) -> (Vec<u64>, u64) {
    let sources = report["points"][0]["sources"].as_array().unwrap();
    let source = sources.iter().find(|source| source["tenant"] == tenant).unwrap();
    let good = |second: &Value| -> u64 {
        second["good"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
    };
    let all = source["seconds"].as_array().unwrap();
    let measured = all.iter().filter(|second| second["part"] == "measured").map(good).collect();
    (measured, all.iter().map(good).sum())
}
