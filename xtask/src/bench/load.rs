//! Loading 10 warehouses: time on the clock and CPU of the client, into PostgreSQL and into SQLite.

use anyhow::{Context, Result};

use super::median;
use super::server::Bench;

/// How often each is loaded.
const ROUNDS: usize = 3;

/// The settings for repeatable runs limited by the CPU, as the peers had them, with the memory that this machine
/// has: a server that is measured in the ways of FIELD.md's section 2.
pub(crate) const SETTINGS: [(&str, &str); 8] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("shared_buffers", "3GB"),
    ("max_wal_size", "20GB"),
    ("checkpoint_timeout", "60min"),
    ("autovacuum", "off"),
    ("bgwriter_lru_maxpages", "0"),
    ("maintenance_work_mem", "1GB"),
];

/// Loads and prints.
pub(crate) fn load() -> Result<()> {
    let mut bench = Bench::new()?;
    bench.start_server(&SETTINGS)?;
    let url = bench.url.clone().context("no server")?;
    let sqlite = format!("sqlite:{}", bench.path("tpcc.db").display());
    let mut costs = vec![(Vec::new(), Vec::new()); 2];
    for round in 1..=ROUNDS {
        for (target, (walls, cpus)) in [&url, &sqlite].into_iter().zip(&mut costs) {
            let cost = bench.kelvin(&[
                "build",
                "tproc-c",
                "--warehouses",
                "10",
                "--no-check",
                "--target",
                target,
            ])?;
            bench.kelvin(&["drop", "tproc-c", "--warehouses", "10", "--yes", "--target", target])?;
            println!("round {round}: {target}: {:.2} s, client CPU {:.2} s", cost.wall, cost.cpu);
            walls.push(cost.wall);
            cpus.push(cost.cpu);
        }
        for file in ["tpcc.db", "tpcc.db-wal", "tpcc.db-shm"] {
            let _ = std::fs::remove_file(bench.path(file));
        }
    }
    println!("\n| 10 warehouses into | seconds (median of {ROUNDS}) | client CPU seconds |\n|---|---|---|");
    for (name, (walls, cpus)) in ["PostgreSQL", "SQLite (CPU includes the database)"].into_iter().zip(costs) {
        println!("| {name} | {:.2} | {:.2} |", median(walls), median(cpus));
    }
    Ok(())
}
