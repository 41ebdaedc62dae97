//! pgbench's own workloads.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::competitor::Competitor;
use super::contest::{Contest, to_args};
use crate::bench::server::{Bench, psql};
use crate::bench::table::Target;

/// Scale factor of the tables: many more branches than clients, so that row locks do not limit.
pub(super) const SCALE: u32 = 50;

/// Removes accumulated and dead rows, as pgbench does by default before a run.
const RESET: &str = "truncate pgbench_history; vacuum pgbench_branches; vacuum pgbench_tellers; checkpoint";

/// A script of this repository's bench directory.
pub(super) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench").join(name)
}

/// The URL of the database with pgbench's tables, which are created on first use.
pub(crate) fn data(bench: &Bench) -> Result<String> {
    let url = bench.database("pgbench_tables")?;
    if psql(&url, "select to_regclass('pgbench_accounts') is null")? == "t" {
        let scale = SCALE.to_string();
        bench.kelvin(&["build", "pgbench", "-s", &scale, "--no-check", "--target", &url])?;
        // Flushed now, so that no checkpoint writes the remains of loading during a run.
        psql(&url, "vacuum analyze")?;
        psql(&url, "checkpoint")?;
    }
    Ok(url)
}

/// Kelvin, and pgbench with one and with two threads.
fn competitors(kelvin: &str, pgbench: &str) -> Vec<(&'static str, Competitor)> {
    let with = |threads: &str| Competitor::Pgbench {
        arguments: to_args(&format!("{pgbench} -j {threads}")),
        first_script: false,
    };
    vec![
        ("Kelvin", Competitor::Kelvin(to_args(&format!("pgbench -n {kelvin}")))),
        ("pgbench -j 1", with("1")),
        ("pgbench -j 2", with("2")),
    ]
}

fn contest(name: &'static str, work: String, flags: &str, seconds: u32) -> Contest {
    Contest {
        name,
        work,
        per: "transaction",
        competitors: competitors(flags, flags),
        data,
        reset: None,
        cpu_target: Target::AtMost(0.8),
        pace_target: Some(Target::AtLeast(1.0)),
        seconds,
        url: String::new(),
        rounds: Vec::new(),
    }
}

/// Reads by primary key.
pub(super) fn select_only(name: &'static str, clients: u32, seconds: u32) -> Contest {
    let plural = if clients == 1 { "" } else { "s" };
    let work = format!("select-only, prepared, {clients} client{plural}");
    let mut contest = contest(name, work, &format!("-S -M prepared -c {clients}"), seconds);
    contest.cpu_target = Target::AtMost(0.9);
    if clients == 1 {
        // pgbench uses at most one thread per client, so -j 2 would be a duplicate.
        contest.competitors.truncate(2);
    }
    contest
}

/// pgbench's default: five statements and a commit, each a round trip.
pub(super) fn tpcb_like(seconds: u32) -> Contest {
    let work = "tpcb-like, prepared, 4 clients".into();
    let mut contest = contest("tpcb-like", work, "-M prepared -c 4", seconds);
    contest.reset = Some(RESET);
    contest
}

/// The same in one round trip, both with the same script.
pub(super) fn tpcb_pipeline(seconds: u32) -> Contest {
    let mut contest =
        contest("tpcb-pipeline", "tpcb-like in a pipeline, 4 clients".into(), "-M prepared -c 4", seconds);
    let file = script("pgbench/tpcb_pipeline.sql").display().to_string();
    for (_, competitor) in &mut contest.competitors {
        let (Competitor::Kelvin(arguments) | Competitor::Pgbench { arguments, .. }) = competitor else {
            continue;
        };
        // Not split at spaces, because the path may contain some.
        arguments.extend(["-f".into(), file.clone(), "-D".into(), format!("scale={SCALE}")]);
    }
    contest.reset = Some(RESET);
    contest
}
