//! `cargo xtask bench observe`: what watching costs the load, and what is found in runs that have nothing wrong.

use anyhow::{Context, Result};
use kelvin_stats::student::paired_ratio;
use serde_json::Value;

use super::driver::figure;
use super::load::SETTINGS;
use super::options::Options;
use super::server::Bench;
use super::{interrupt, median};

const NAMES: [&str; 2] = ["overhead", "healthy"];

/// Runs the rows that were asked for.
pub(crate) fn observe(options: &Options) -> Result<()> {
    let chosen = options.chosen(&NAMES)?;
    let mut bench = Bench::new()?;
    if chosen.contains(&"overhead") {
        // Limited by the CPU, where watching costs the most, and without a disk's own scatter.
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

/// NOPM with everything watched against NOPM with nothing watched, in pairs, each side first in turn.
fn overhead(bench: &Bench, options: &Options) -> Result<()> {
    let url = data(bench, "overhead", "4")?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut client = (Vec::new(), Vec::new());
    for pair in 1..=options.rounds {
        for turn in 0..2 {
            interrupt::check()?;
            let watched = (turn + pair) % 2 == 0;
            let flags: &[&str] = if watched { &[] } else { &["--no-observe"] };
            let (report, cpu) = run(bench, &url, "4", options.seconds, flags)?;
            let nopm = figure(&report, "/points/0/headline_per_second")? * 60.0;
            let (figures, cpus) =
                if watched { (&mut with, &mut client.1) } else { (&mut without, &mut client.0) };
            figures.push(nopm);
            cpus.push(cpu);
        }
        println!(
            "pair {pair}: {:.0} NOPM watched, {:.0} without",
            with.last().unwrap_or(&f64::NAN),
            without.last().unwrap_or(&f64::NAN)
        );
    }
    let found = paired_ratio(&without, &with, 0.95).context("too few pairs for an interval")?;
    println!(
        "\nNOPM watched over not watched, {} interleaved pairs of {} s: {:.4} (95 % interval {:.4} to {:.4}; target: \
         at least 0.99)\nclient CPU of a run: {:.2} s watched, {:.2} s without (medians)",
        options.rounds,
        options.seconds,
        found.ratio,
        found.low,
        found.high,
        median(client.1),
        median(client.0),
    );
    Ok(())
}

/// Runs with nothing wrong: no finding may be red.
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

/// A database with TPROC-C, its dead rows removed and its pages written.
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

/// The report of one run and the CPU seconds of its process.
fn run(bench: &Bench, url: &str, users: &str, seconds: u32, flags: &[&str]) -> Result<(Value, f64)> {
    let duration = format!("{seconds}s");
    let mut words =
        vec!["run", "tproc-c", "--target", url, "--users", users, "--ramp-up", "5s", "--duration"];
    words.extend([duration.as_str(), "--no-build", "--quiet"]);
    words.extend(flags);
    let cost = bench.kelvin(&words)?;
    Ok((bench.report()?, cost.cpu))
}
