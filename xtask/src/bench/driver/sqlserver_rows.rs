//! SQL Server: client CPU for TPROC-C on the server in `KELVIN_BENCH_SQLSERVER`. The benchmark does not start the server,
//! and therefore does not read its CPU time.

use anyhow::{Context, Result};

use super::tproc_c_cost::TprocC;
use crate::bench::server::Bench;

/// The variable with the URL of a database for the benchmark alone; the password is in `MSSQL_PASSWORD`.
const URL: &str = "KELVIN_BENCH_SQLSERVER";

/// Whether the variable is set.
pub(super) fn is_configured() -> bool {
    std::env::var_os(URL).is_some()
}

/// Ten warehouses in the database, created if it has none.
fn data(bench: &Bench) -> Result<String> {
    let url = std::env::var(URL).with_context(|| format!("{URL} names no server"))?;
    let mark = bench.path("sqlserver-tproc-c");
    if !mark.exists() {
        bench.kelvin(&["build", "tproc-c", "--warehouses", "10", "--no-check", "--target", &url])?;
        std::fs::write(mark, "")?;
    }
    Ok(url)
}

/// TPROC-C with one procedure call per transaction.
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

/// TPROC-C with one statement per round trip.
pub(super) fn statements(seconds: u32) -> TprocC {
    TprocC { name: "sqlserver-statements", calls: "statements", most: None, ..functions(seconds) }
}
