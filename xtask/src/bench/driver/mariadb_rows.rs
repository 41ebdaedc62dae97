//! MariaDB: client CPU for TPROC-C against fixed targets, and sysbench compared with the same select.

use anyhow::{Context, Result, bail};

use super::competitor::{Competitor, number};
use super::contest::{Contest, to_args};
use super::pgbench_rows::script;
use super::tproc_c_cost::TprocC;
use super::tproc_c_rows::USERS;
use crate::bench::interrupt;
use crate::bench::process::timed;
use crate::bench::server::Bench;
use crate::bench::table::Target;

/// Rows of sysbench's table; the script draws from the same number.
const ROWS: u32 = 100_000;

/// Ten warehouses on the benchmark's MariaDB, created on first use.
pub(crate) fn data(bench: &Bench) -> Result<String> {
    let (url, mark) = (bench.mariadb()?.to_owned(), bench.path("mariadb-tproc-c"));
    if !mark.exists() {
        bench.kelvin(&["build", "tproc-c", "--warehouses", "10", "--no-check", "--target", &url])?;
        std::fs::write(mark, "")?;
    }
    Ok(url)
}

/// TPROC-C with one stored routine per transaction.
pub(super) fn functions(seconds: u32) -> TprocC {
    TprocC {
        name: "mariadb-functions",
        product: "MariaDB",
        calls: "functions",
        most: Some(50.0),
        server_seen: true,
        data,
        seconds,
        url: String::new(),
        rounds: Vec::new(),
    }
}

/// TPROC-C with one statement per round trip.
pub(super) fn statements(seconds: u32) -> TprocC {
    TprocC { name: "mariadb-statements", calls: "statements", most: Some(130.0), ..functions(seconds) }
}

/// Selects by primary key.
pub(super) fn point_select(seconds: u32) -> Contest {
    let mut arguments = vec!["script".into(), script("sysbench/point_select.sql").display().to_string()];
    arguments.extend(to_args(&format!("-M prepared -c {USERS}")));
    Contest {
        name: "mariadb-point-select",
        work: format!("MariaDB, select by primary key, {USERS} threads"),
        per: "select",
        competitors: vec![("Kelvin", Competitor::Kelvin(arguments)), ("sysbench", Competitor::Sysbench)],
        data: |bench| {
            sysbench(bench, "prepare", 1)?;
            Ok(bench.mariadb()?.to_owned())
        },
        reset: None,
        cpu_target: Target::AtMost(0.9),
        pace_target: None,
        seconds,
        url: String::new(),
        rounds: Vec::new(),
    }
}

/// CPU seconds of sysbench, transactions, transactions per second.
pub(super) fn sysbench_run(bench: &Bench, seconds: u32) -> Result<(f64, f64, f64)> {
    let (cpu, text) = sysbench(bench, "run", seconds)?;
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let count = number(&text, "transactions:")?;
    Ok((cpu, count, count / f64::from(seconds)))
}

fn sysbench(bench: &Bench, command: &str, seconds: u32) -> Result<(f64, String)> {
    interrupt::check()?;
    let url = bench.mariadb()?;
    let (_, socket) = url.split_once("socket=").context("the server's URL names no socket")?;
    let mut arguments = to_args(&format!(
        "oltp_point_select --tables=1 --table-size={ROWS} --rand-type=uniform --threads={USERS} --time={seconds} \
         --mysql-user=kelvin --mysql-db=kelvin"
    ));
    arguments.extend([format!("--mysql-socket={socket}"), command.to_owned()]);
    let program = std::path::Path::new("/usr/bin/sysbench");
    if !program.exists() {
        bail!("sysbench is not installed: apt-get install sysbench");
    }
    let cost = timed(program, &arguments, &[])?;
    Ok((cost.cpu, cost.stdout))
}
