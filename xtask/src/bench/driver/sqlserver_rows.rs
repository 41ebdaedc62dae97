//! SQL Server: the client's CPU for TPROC-C on the server that `KELVIN_BENCH_SQLSERVER` names. The benchmark cannot start
//! one, so its CPU time is not read.

use anyhow::{Context, Result};

use super::tproc_c_cost::TprocC;
use crate::bench::server::Bench;

/// The URL of a database that is the benchmark's own; the password is in `MSSQL_PASSWORD`.
const URL: &str = "KELVIN_BENCH_SQLSERVER";

/// Whether a server is named.
pub(super) fn named() -> bool {
    std::env::var_os(URL).is_some()
}

/// Ten warehouses in the database, made when it has none.
fn data(bench: &Bench) -> Result<String> {
    let url = std::env::var(URL).with_context(|| format!("{URL} names no server"))?;
    let mark = bench.path("sqlserver-tproc-c");
    if !mark.exists() {
        bench.kelvin(&["build", "tproc-c", "--warehouses", "10", "--no-check", "--target", &url])?;
        std::fs::write(mark, "")?;
    }
    Ok(url)
}

/// One call of a procedure a transaction.
pub(super) fn functions(seconds: u32) -> TprocC {
    TprocC {
        name: "sqlserver-functions",
        product: "SQL Server's protocol",
        calls: "functions",
        most: Some(60.0),
        server_seen: false,
        data,
        seconds,
        url: String::new(),
        rounds: Vec::new(),
    }
}

/// One statement a round trip.
pub(super) fn statements(seconds: u32) -> TprocC {
    TprocC { name: "sqlserver-statements", calls: "statements", most: None, ..functions(seconds) }
}
