//! TPROC-C compared with pgbench calling the same functions, and with published results of two peers.

use anyhow::Result;

use super::Row;
use super::competitor::{Competitor, Measured};
use super::contest::{Contest, to_args};
use super::pgbench_rows::script;
use crate::bench::median;
use crate::bench::server::{Bench, psql};
use crate::bench::table::{Line, Target, range, us, whole};

const WAREHOUSES: u32 = 10;
pub(super) const USERS: u32 = 4;

/// NOPM and client CPU per New-Order in microseconds of go-tpc and BenchBase, as given in the issue: 10 warehouses,
/// client and PostgreSQL on the same 2 cores. They were not measured by this program.
const PEERS: [(&str, f64, f64); 2] = [("go-tpc", 36_000.0, 1071.0), ("BenchBase", 44_000.0, 810.0)];

pub(crate) fn data(bench: &Bench) -> Result<String> {
    let url = bench.database("tproc_c_tables")?;
    if psql(&url, "select to_regclass('order_line') is null")? == "t" {
        let warehouses = WAREHOUSES.to_string();
        bench.kelvin(&["build", "tproc-c", "--warehouses", &warehouses, "--no-check", "--target", &url])?;
        psql(&url, "vacuum analyze")?;
        psql(&url, "checkpoint")?;
    }
    Ok(url)
}

pub(super) fn kelvin(calls: &str) -> Competitor {
    Competitor::Kelvin(arguments(calls))
}

/// Kelvin's arguments for the standard mix.
pub(super) fn arguments(calls: &str) -> Vec<String> {
    to_args(&format!("tproc-c --all-warehouses --calls {calls} --users {USERS} --warehouses {WAREHOUSES}"))
}

/// pgbench with the same functions in the same mix.
fn pgbench(threads: u32) -> Competitor {
    let mut arguments = to_args(&format!("-M prepared -c {USERS} -j {threads} -D warehouses={WAREHOUSES}"));
    for (name, weight) in
        [("new_order", 10), ("payment", 10), ("delivery", 1), ("stock_level", 1), ("order_status", 1)]
    {
        let file = script(&format!("pgbench/{name}.sql"));
        arguments.extend(["-f".into(), format!("{}@{weight}", file.display())]);
    }
    Competitor::Pgbench { arguments, first_script: true }
}

/// One stored function per transaction.
pub(super) fn functions(seconds: u32) -> Contest {
    Contest {
        name: "functions",
        work: format!("TPROC-C functions, {USERS} users"),
        per: "New-Order",
        competitors: vec![
            ("Kelvin", kelvin("functions")),
            ("pgbench -j 1", pgbench(1)),
            ("pgbench -j 2", pgbench(2)),
        ],
        data,
        reset: None,
        cpu_target: Target::AtMost(0.8),
        pace_target: None,
        seconds,
        url: String::new(),
        rounds: Vec::new(),
    }
}

/// Client SQL with the fewest round trips that its data dependencies allow.
pub(super) struct Pipelined {
    seconds: u32,
    url: String,
    rounds: Vec<Measured>,
}

impl Pipelined {
    pub(super) fn new(seconds: u32) -> Self {
        Self { seconds, url: String::new(), rounds: Vec::new() }
    }
}

impl Row for Pipelined {
    fn name(&self) -> &'static str {
        "pipelined"
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = data(bench)?;
        kelvin("pipelined").run(bench, &self.url, 1).map(|_| ())
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        let found = kelvin("pipelined").run(bench, &self.url, self.seconds)?;
        println!(
            "round {round}: TPROC-C pipelined: client {}, server {}, {} NOPM",
            us(found.client),
            us(found.server),
            whole(found.pace * 60.0)
        );
        self.rounds.push(found);
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.rounds.len()
    }

    fn lines(&self) -> Vec<Line> {
        let work = format!("TPROC-C pipelined, {USERS} users, {WAREHOUSES} warehouses");
        let of = |pick: fn(&Measured) -> f64| self.rounds.iter().map(pick).collect::<Vec<_>>();
        let (nopm, client, server) = (of(|m| m.pace * 60.0), of(|m| m.client), of(|m| m.server));
        let beside = |write: fn(f64) -> String, pick: fn(&(&str, f64, f64)) -> f64| {
            PEERS.map(|peer| format!("{} ({}, elsewhere)", write(pick(&peer)), peer.0)).join(", ")
        };
        let fastest = PEERS.iter().map(|peer| peer.1).fold(0.0, f64::max);
        let (low, high) = range(&nopm);
        let ratio = median(nopm.clone()) / fastest;
        let line = |figure: &str, kelvin: String, beside: String| Line {
            work: work.clone(),
            figure: figure.into(),
            kelvin,
            beside,
            ..Line::default()
        };
        vec![
            Line {
                ratio: format!("{ratio:.2} (rounds {:.2} to {:.2})", low / fastest, high / fastest),
                target: "≥ 2".into(),
                met: Some(ratio >= 2.0),
                ..line("NOPM", whole(median(nopm)), beside(whole, |peer| peer.1))
            },
            line("client CPU per New-Order", us(median(client)), beside(us, |peer| peer.2)),
            line("server CPU per New-Order", us(median(server)), String::new()),
        ]
    }
}
