//! `cargo xtask bench observe`: the cost of observation for the load, and findings in runs without faults.

use anyhow::{Context, Result};
use kelvin_stats::student::paired_ratio;
use serde_json::Value;

use super::driver::figure;
use super::load::SETTINGS;
use super::options::Options;
use super::server::Bench;
use super::{interrupt, median};

const NAMES: [&str; 2] = ["overhead", "healthy"];

/// Runs the selected rows.
pub(crate) fn observe(options: &Options) -> Result<()> {
    let chosen = options.chosen(&NAMES)?;
    let mut bench = Bench::new()?;
    if chosen.contains(&"overhead") {
        // CPU-bound, where observation costs the most, and without the scatter of a disk.
        bench.start_server(&SETTINGS)?;
        overhead(&bench, options)?;
        bench.psql("alter system reset all")?;
    }
    if chosen.contains(&"healthy") {
        bench.start_server(&[])?;
        healthy(&bench, options)?;
    }
    Ok(())
}

/// One side's results of a run.
#[derive(Default)]
struct Side {
    nopm: Vec<f64>,
    /// CPU seconds of client and server per New-Order, including watchers and their sessions.
    cpu: Vec<f64>,
}

/// Pairs of runs with all observation and with none; each side is first in turn.
fn overhead(bench: &Bench, options: &Options) -> Result<()> {
    data(bench, "pristine", "4")?;
    let url = bench.database("overhead")?;
    let mut sides = [Side::default(), Side::default()];
    for pair in 1..=options.rounds {
        for turn in 0..2 {
            interrupt::check()?;
            // Every run starts with the same tables, which grow in a run: a slower run would leave fewer rows to
            // the next.
            for statement in
                ["drop database overhead", "create database overhead template pristine", "checkpoint"]
            {
                bench.psql(statement)?;
            }
            let watched = (turn + pair) % 2;
            let flags: &[&str] = if watched == 1 { &[] } else { &["--no-observe"] };
            let before = bench.server_cpu()?;
            let (report, client) = run(bench, &url, "4", options.seconds, flags)?;
            let server = bench.server_cpu()? - before;
            let pace = figure(&report, "/points/0/headline_per_second")?;
            sides[watched].nopm.push(pace * 60.0);
            // The ramp-up's work is in the CPU time of both sides, but not in their counts.
            sides[watched].cpu.push((client + server) / (pace * f64::from(options.seconds)));
        }
        let last = |figures: &[f64]| figures.last().copied().unwrap_or(f64::NAN);
        let [without, with] = &sides;
        println!(
            "pair {pair}: {:.0} NOPM observed, {:.0} not observed; CPU per New-Order {:.1} us and {:.1} us",
            last(&with.nopm),
            last(&without.nopm),
            last(&with.cpu) * 1e6,
            last(&without.cpu) * 1e6,
        );
    }
    let [without, with] = &sides;
    println!(
        "\nRatio of observed to unobserved runs, {} interleaved pairs of {} s:",
        options.rounds, options.seconds
    );
    for (name, without, with, target) in [
        ("NOPM", &without.nopm, &with.nopm, "at least 0.99"),
        ("client and server CPU per New-Order", &without.cpu, &with.cpu, "at most 1.01"),
    ] {
        let found = paired_ratio(without, with, 0.95).context("too few pairs for a confidence interval")?;
        println!(
            "{name}: {:.4} (95 % interval {:.4} to {:.4}; target: {target}); medians {:.4e} and {:.4e}",
            found.ratio,
            found.low,
            found.high,
            median(with.clone()),
            median(without.clone()),
        );
    }
    Ok(())
}

/// Makes runs without faults, in which no finding may be red.
fn healthy(bench: &Bench, options: &Options) -> Result<()> {
    let url = data(bench, "healthy", "2")?;
    let mut clean = 0;
    for round in 1..=options.rounds {
        interrupt::check()?;
        let (report, _) = run(bench, &url, "2", options.seconds, &[])?;
        let findings = report.pointer("/findings").and_then(Value::as_array).cloned().unwrap_or_default();
        let of = |severity: &str| {
            let of = findings.iter().filter(|finding| finding["severity"] == severity);
            of.filter_map(|finding| finding["id"].as_str()).collect::<Vec<_>>().join(", ")
        };
        clean += usize::from(of("red").is_empty());
        println!("run {round}: red: {}; amber: {}", of("red"), of("amber"));
    }
    println!("\n{clean} of {} healthy runs have no red finding", options.rounds);
    Ok(())
}

/// A database with TPROC-C, vacuumed and checkpointed.
fn data(bench: &Bench, name: &str, warehouses: &str) -> Result<String> {
    let url = bench.database(name)?;
    bench.kelvin(&[
        "build",
        "tproc-c",
        "--warehouses",
        warehouses,
        "--no-check",
        "--quiet",
        "--target",
        &url,
    ])?;
    for statement in ["vacuum analyze", "checkpoint"] {
        super::server::psql(&url, statement)?;
    }
    Ok(url)
}

/// The report of a run, and the CPU seconds of its process.
fn run(bench: &Bench, url: &str, users: &str, seconds: u32, flags: &[&str]) -> Result<(Value, f64)> {
    let duration = format!("{seconds}s");
    let mut words =
        vec!["run", "tproc-c", "--target", url, "--users", users, "--ramp-up", "5s", "--duration"];
    words.extend([duration.as_str(), "--no-build", "--quiet"]);
    words.extend(flags);
    let cost = bench.kelvin(&words)?;
    Ok((bench.report()?, cost.cpu))
}
