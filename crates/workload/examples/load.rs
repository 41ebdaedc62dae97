//! Builds TPROC-C data and prints the cost: `load (sqlite FILE | postgres URL) WAREHOUSES [check] [drop]`.
//!
//! This is how the load times in the documentation were measured:
//! `cargo run --release -p kelvin-workload --example load -- sqlite /tmp/x.db 10 check`.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use kelvin_database::{Engine, postgres, sqlite};
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{BuildProgress, Stop};

/// Prints each stage when it ends, with the time since it began.
struct Stages(Mutex<Option<(String, Instant)>>);

impl BuildProgress for Stages {
    fn update(&self, what: &str, done: u64, total: u64, rows: u64) {
        let mut current = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let began = match current.as_ref() {
            Some((name, began)) if name == what => *began,
            _ => Instant::now(),
        };
        *current = Some((what.to_string(), began));
        if done == total {
            println!("{what}: {total} in {:.2} s, {rows} rows", began.elapsed().as_secs_f64());
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, target, warehouses, rest @ ..] = arguments.as_slice() else {
        return Err("usage: load (sqlite FILE | postgres URL) WAREHOUSES [check] [drop]".into());
    };
    let engine: Box<dyn Engine> = match kind.as_str() {
        "sqlite" => Box::new(sqlite::SqliteEngine::open(PathBuf::from(target))?),
        "postgres" => Box::new(postgres::PostgresEngine::new(postgres::Config::parse(target)?)),
        other => return Err(format!("no engine {other}").into()),
    };
    let workload = TprocC::new(Options { warehouses: Some(warehouses.parse()?), ..Options::default() })?;
    let started = Instant::now();
    workload.build(engine.as_ref(), &Stages(Mutex::default()), &Stop::new())?;
    println!("built in {:.2} s", started.elapsed().as_secs_f64());
    if rest.iter().any(|word| word == "check") {
        let mut began = Instant::now();
        workload.check(engine.as_ref(), &Stages(Mutex::default()), &Stop::new(), &mut |line| {
            let verdict = if line.holds { "holds" } else { "VIOLATED" };
            println!(
                "{:2} {verdict} in {:.2} s: {}",
                line.number,
                began.elapsed().as_secs_f64(),
                line.detail
            );
            began = Instant::now();
        })?;
    }
    if rest.iter().any(|word| word == "drop") {
        workload.drop_data(engine.as_ref())?;
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}
