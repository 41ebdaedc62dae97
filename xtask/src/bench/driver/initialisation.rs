//! Creation of pgbench's tables, compared with pgbench's two methods.

use anyhow::Result;

use super::Row;
use super::contest::to_args;
use super::pgbench_rows::SCALE;
use crate::bench::median;
use crate::bench::server::{Bench, psql};
use crate::bench::table::{Line, Target};

const NAMES: [&str; 3] = ["Kelvin", "pgbench -i -I dtgvp", "pgbench -i -I dtGvp"];

/// Elapsed seconds and CPU seconds of client and server, by round, then by competitor.
#[derive(Debug, Default)]
pub(super) struct Initialisation {
    url: String,
    rounds: Vec<[[f64; 3]; 3]>,
}

impl Initialisation {
    fn run(&self, bench: &Bench, competitor: usize) -> Result<[f64; 3]> {
        for table in ["accounts", "branches", "tellers", "history"] {
            psql(&self.url, &format!("drop table if exists pgbench_{table}"))?;
        }
        psql(&self.url, "checkpoint")?;
        let before = bench.server_cpu()?;
        let cost = match NAMES[competitor].strip_prefix("pgbench ") {
            None => {
                let scale = SCALE.to_string();
                bench.kelvin(&[
                    "build",
                    "pgbench",
                    "-s",
                    &scale,
                    "--no-check",
                    "--quiet",
                    "--target",
                    &self.url,
                ])?
            }
            Some(flags) => {
                let mut arguments = to_args(&format!("{flags} --quiet -s {SCALE}"));
                arguments.push(self.url.clone());
                bench.pgbench(&arguments)?
            }
        };
        Ok([cost.wall, cost.cpu, bench.server_cpu()? - before])
    }
}

impl Row for Initialisation {
    fn name(&self) -> &'static str {
        "initialisation"
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = bench.database("initialised")?;
        // A warm-up, because the first run finds the file system in a different state.
        self.run(bench, 1).map(|_| ())
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        let mut found = [[0.0; 3]; 3];
        for turn in 0..NAMES.len() {
            let competitor = (turn + round) % NAMES.len();
            let [wall, client, server] = self.run(bench, competitor)?;
            println!(
                "round {round}: scale {SCALE}: {}: {wall:.2} s, client CPU {client:.2} s, server CPU {server:.2} s",
                NAMES[competitor]
            );
            found[competitor] = [wall, client, server];
        }
        self.rounds.push(found);
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.rounds.len()
    }

    fn lines(&self) -> Vec<Line> {
        let of = |competitor: usize, figure: usize| -> Vec<f64> {
            self.rounds.iter().map(|round| round[competitor][figure]).collect()
        };
        let faster = if median(of(1, 0)) <= median(of(2, 0)) { 1 } else { 2 };
        let pace =
            |competitor: usize| -> Vec<f64> { of(competitor, 0).iter().map(|wall| 1.0 / wall).collect() };
        let work = format!("initialisation, scale {SCALE}");
        let seconds = |figure: f64| format!("{figure:.2} s");
        let line = |figure: &str, index: usize| {
            Line::compared(&work, figure, &of(0, index), (NAMES[faster], &of(faster, index)), seconds, None)
        };
        let speed = Line::compared(
            &work,
            "speed",
            &pace(0),
            (NAMES[faster], &pace(faster)),
            |pace| seconds(1.0 / pace),
            Some(Target::AtLeast(1.2)),
        );
        vec![speed, line("client CPU", 1), line("server CPU", 2)]
    }
}
