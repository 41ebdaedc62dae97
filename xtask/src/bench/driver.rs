//! The driver's own cost: client CPU per New-Order, beside pgbench calling the same functions.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::load::SETTINGS;
use super::median;
use super::process::timed;
use super::server::Bench;

const ROUNDS: usize = 5;
const SECONDS: u32 = 10;
const USERS: u32 = 4;
const WAREHOUSES: u32 = 10;

/// One competitor's figures, one a round.
#[derive(Debug, Default)]
struct Figures {
    /// Client CPU per New-Order, in microseconds.
    cpu: Vec<f64>,
    /// New-Orders a minute.
    nopm: Vec<f64>,
}

/// Runs everybody in turn and prints medians.
pub(crate) fn driver() -> Result<()> {
    let mut bench = Bench::new()?;
    bench.start_server(&SETTINGS)?;
    let url = bench.url.clone().context("no server")?;
    let warehouses = WAREHOUSES.to_string();
    bench.kelvin(&["build", "tproc-c", "--warehouses", &warehouses, "--target", &url])?;
    let names = ["kelvin functions", "pgbench, same functions", "kelvin pipelined", "kelvin statements"];
    let mut figures: Vec<Figures> = names.iter().map(|_| Figures::default()).collect();
    for round in 1..=ROUNDS {
        for (name, figures) in names.iter().zip(&mut figures) {
            let (cpu, orders) = match name.strip_prefix("kelvin ") {
                Some(calls) => kelvin(&bench, &url, calls)?,
                None => pgbench(&bench, &url)?,
            };
            figures.cpu.push(cpu / orders * 1e6);
            figures.nopm.push(orders * 60.0 / f64::from(SECONDS));
            println!("round {round}: {name}: {:.1} µs, {orders} New-Orders", cpu / orders * 1e6);
        }
    }
    let base = median(figures[1].cpu.clone());
    println!(
        "\n{USERS} users, {WAREHOUSES} warehouses, {SECONDS} s, medians of {ROUNDS} interleaved rounds:\n"
    );
    println!("| driver | client CPU per New-Order | ratio to pgbench | NOPM |\n|---|---|---|---|");
    for (name, figures) in names.iter().zip(figures) {
        let cpu = median(figures.cpu);
        println!("| {name} | {cpu:.1} µs | {:.2} | {:.0} |", cpu / base, median(figures.nopm));
    }
    Ok(())
}

/// CPU seconds of the process and New-Orders committed.
fn kelvin(bench: &Bench, url: &str, calls: &str) -> Result<(f64, f64)> {
    let (users, warehouses, duration) = (USERS.to_string(), WAREHOUSES.to_string(), format!("{SECONDS}s"));
    let load = ["--users", &users, "--warehouses", &warehouses, "--ramp-up", "0s", "--duration", &duration];
    let all =
        ["run", "tproc-c", "--quiet", "--all-warehouses", "--no-build", "--calls", calls, "--target", url];
    let cost = bench.kelvin(&[&all[..], &load[..]].concat())?;
    let report: Value = serde_json::from_str(&bench.kelvin(&["report", "last", "--json"])?.stdout)?;
    let orders = report["points"][0]["headline_count"].as_f64().context("no count in the report")?;
    Ok((cost.cpu, orders))
}

/// CPU seconds of the process and New-Orders committed, of pgbench with the same mix of the same functions.
fn pgbench(bench: &Bench, url: &str) -> Result<(f64, f64)> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/pgbench");
    let mut args: Vec<String> = ["-n", "-M", "prepared", "-j", "2"].map(str::to_owned).to_vec();
    args.extend(["-c".into(), USERS.to_string(), "-T".into(), SECONDS.to_string()]);
    args.extend(["-D".into(), format!("warehouses={WAREHOUSES}")]);
    for (script, weight) in
        [("new_order", 10), ("payment", 10), ("delivery", 1), ("stock_level", 1), ("order_status", 1)]
    {
        args.extend(["-f".into(), format!("{}@{weight}", scripts.join(format!("{script}.sql")).display())]);
    }
    args.push(url.to_owned());
    let program = bench.psql("select setting from pg_config() where name = 'BINDIR'")?;
    let cost = timed(&Path::new(&program).join("pgbench"), &args, &[])?;
    // " - 12345 transactions (43.5% of total, tps = …)", the first script's first.
    let line = cost.stdout.lines().find(|line| line.starts_with(" - ") && line.contains("transactions ("));
    let Some(orders) = line.and_then(|line| line.split(' ').nth(2)?.parse::<f64>().ok()) else {
        bail!("pgbench printed no count for its first script:\n{}", cost.stdout);
    };
    Ok((cost.cpu, orders))
}
