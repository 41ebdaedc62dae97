//! Resets of 10 warehouses on PostgreSQL with each method, until they are ready to run.
//!
//! A run before each reset changes the data, so that there is something to undo and to write back.

use std::time::Instant;

use anyhow::{Context, Result};

use super::load::SETTINGS;
use super::options::Options;
use super::server::Bench;
use super::table::range;
use super::{interrupt, median};

/// Kelvin's reset methods, and PostgreSQL's other strategy for copying a database.
const WAYS: [&str; 5] = ["template", "template-wal", "files", "dump", "reload"];

/// Maximum seconds for a reset. HammerDB rebuilds the data, which took its users 107 s.
const TARGET: f64 = 5.0;

/// Resets the data and prints a table.
pub(crate) fn reset(options: &Options) -> Result<()> {
    let ways = options.chosen(&WAYS)?;
    let mut bench = Bench::new()?;
    // Configured like a managed server, with as much WAL as the runs need. It is durable, because the benchmark
    // measures the cost of a copy on this disk.
    let durable: Vec<_> = SETTINGS.iter().filter(|(name, _)| *name != "fsync").copied().collect();
    bench.start_server(&durable)?;
    let url = bench.url.clone().context("no server")?;
    let seconds = options.seconds.to_string();
    println!("| method | seconds (median of {}) | range | copy | target ≤ {TARGET} s |", options.rounds);
    println!("|---|---|---|---|---|");
    for way in ways {
        let (mut took, mut copied) = (Vec::new(), Vec::new());
        if way != "template-wal" {
            // Otherwise, copies of the data files would include the snapshots of earlier rows.
            drop_all(&bench, &url)?;
        }
        for round in 0..=options.rounds {
            interrupt::check()?;
            let reset = if way == "template-wal" { "none" } else { way };
            if way == "template-wal" {
                // Copies the snapshot of the previous row, with the same steps as Kelvin's reset.
                took.push(through_the_log(&bench)?);
                copied.push(f64::NAN);
            }
            let window = format!("{seconds}s");
            bench.kelvin(&[
                "run",
                "tproc-c",
                "--warehouses",
                "10",
                "--target",
                &url,
                "--reset",
                reset,
                "--idle-wait",
                "0s",
                "--ramp-up",
                "0s",
                "--duration",
                &window,
            ])?;
            // The first run creates the snapshot.
            if way != "template-wal" && round > 0 {
                let (all, copy) = reset_seconds(&bench.report()?).context("the run reports no reset")?;
                took.push(all);
                copied.push(copy);
            }
        }
        if way == "template-wal" {
            // The first reset is left out: no run had changed the database.
            took.remove(0);
            copied.remove(0);
        }
        let (low, high) = range(&took);
        let figure = median(took);
        let met = if figure <= TARGET { "met" } else { "missed" };
        let copy = median(copied);
        let copy = if copy.is_nan() { String::new() } else { format!("{copy:.1}") };
        println!("| {way} | {figure:.2} | {low:.2} to {high:.2} | {copy} | {met} |");
    }
    Ok(())
}

/// Seconds of a reset until the data is ready to run, and of the copy alone, from the run's notes.
fn reset_seconds(report: &serde_json::Value) -> Option<(f64, f64)> {
    let notes: Vec<&str> = report["notes"].as_array()?.iter().filter_map(serde_json::Value::as_str).collect();
    let seconds = |text: &str| -> Option<f64> { text.split(" s").next()?.rsplit(' ').next()?.parse().ok() };
    let copy =
        notes.iter().find(|note| note.starts_with("reset by "))?.split(" in ").nth(1).and_then(seconds)?;
    let steps = notes.iter().find(|note| note.starts_with("before the run: "));
    let steps = steps.map_or(0.0, |note| note.split(", ").filter_map(seconds).sum());
    Some((copy + steps, copy))
}

/// Copies the database through the WAL, drops the old one, and makes a checkpoint, without which a gigabyte of dirty
/// pages would be written in the measured window.
fn through_the_log(bench: &Bench) -> Result<f64> {
    let url = bench.url.as_deref().context("no server")?;
    let beside = url.replacen("/kelvin?", "/postgres?", 1);
    let run = |statement: &str| super::server::psql(&beside, statement);
    let snapshot = run("select datname from pg_database where datname like 'kelvin\\_snapshot\\_%' limit 1")?;
    let since = Instant::now();
    run(&format!("create database incoming template {snapshot} strategy wal_log"))?;
    run("alter database kelvin rename to outgoing")?;
    run("alter database incoming rename to kelvin")?;
    run("drop database outgoing")?;
    run("checkpoint")?;
    Ok(since.elapsed().as_secs_f64())
}

/// Removes every snapshot.
fn drop_all(bench: &Bench, url: &str) -> Result<()> {
    let listed = bench.kelvin(&["snapshot", "list", "--target", url])?.stdout;
    for name in listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()) {
        bench.kelvin(&["snapshot", "drop", name, "--yes", "--target", url])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn seconds_are_read_out_of_the_notes() {
        let report = json!({ "notes": [
            "reset by dump (as requested): 84 MB by pg_restore with 2 jobs in 1.7 s from the snapshot x of \
            tproc-c, 1 warehouse",
            "before the run: vacuum and analyze 1.1 s, checkpoint 0.7 s",
        ] });
        let (all, copy) = reset_seconds(&report).unwrap();
        assert!((all - 3.5).abs() < 1e-9 && (copy - 1.7).abs() < 1e-9);
        let reload = json!({ "notes": ["reset by reload (as requested): rebuilt in 3.4 s"] });
        assert_eq!(reset_seconds(&reload), Some((3.4, 3.4)));
        assert_eq!(reset_seconds(&json!({ "notes": [] })), None);
    }
}
