//! `cargo xtask bench driver`: Kelvin beside pgbench, and its figures beside the truth, row by row.

mod competitor;
mod contest;
mod initialisation;
mod latency;
mod open_loop;
mod pgbench_rows;
mod stall;
mod tproc_c_rows;

use anyhow::{Context, Result, bail};

pub(super) use competitor::Competitor;
pub(super) use contest::words;
pub(super) use pgbench_rows::data as pgbench_data;
pub(super) use tproc_c_rows::data as tproc_c_data;

use super::load::SETTINGS;
use super::options::Options;
use super::server::Bench;
use super::table::{self, Line};

/// One row of work: all competitors in turn, once a round.
trait Row {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Makes the data and warms up; not measured.
    fn prepare(&mut self, bench: &Bench) -> Result<()>;

    /// Measures everybody once.
    fn round(&mut self, bench: &Bench, round: usize) -> Result<()>;

    /// The table's lines, of the rounds that are complete.
    fn lines(&self) -> Vec<Line>;
}

/// Every row, in the order in which they are run.
const NAMES: [&str; 11] = [
    "select-only-1",
    "select-only-4",
    "select-only-64",
    "tpcb-like",
    "tpcb-pipeline",
    "functions",
    "pipelined",
    "initialisation",
    "open-loop",
    "latency",
    "stall",
];

fn row(name: &str, seconds: u32) -> Result<Box<dyn Row>> {
    Ok(match name {
        "select-only-1" => Box::new(pgbench_rows::select_only("select-only-1", 1, seconds)),
        "select-only-4" => Box::new(pgbench_rows::select_only("select-only-4", 4, seconds)),
        "select-only-64" => Box::new(pgbench_rows::select_only("select-only-64", 64, seconds)),
        "tpcb-like" => Box::new(pgbench_rows::tpcb_like(seconds)),
        "tpcb-pipeline" => Box::new(pgbench_rows::tpcb_pipeline(seconds)),
        "functions" => Box::new(tproc_c_rows::functions(seconds)),
        "pipelined" => Box::new(tproc_c_rows::Pipelined::new(seconds)),
        "initialisation" => Box::new(initialisation::Initialisation::default()),
        "open-loop" => Box::new(open_loop::OpenLoop::new(seconds)),
        "latency" => Box::new(latency::Latency::new(seconds)),
        "stall" => Box::new(stall::Stall::default()),
        other => bail!("there is no row {other:?}"),
    })
}

/// Runs the rows round by round and prints medians; also those of an interrupted run.
pub(crate) fn driver(options: &Options) -> Result<()> {
    let chosen = options.chosen(&NAMES)?;
    let mut rows: Vec<Box<dyn Row>> =
        chosen.iter().map(|name| row(name, options.seconds)).collect::<Result<_>>()?;
    let mut bench = Bench::new()?;
    bench.start_server(&SETTINGS)?;
    let measured = measure(&bench, &mut rows, options.rounds);
    let complete = *measured.as_ref().unwrap_or_else(|(complete, _)| complete);
    if complete > 0 {
        println!(
            "\nMedians of {complete} interleaved rounds of {} s; CPU is user and system time of the whole \
             process.\n",
            options.seconds
        );
        table::print(&rows.iter().flat_map(|row| row.lines()).collect::<Vec<_>>());
        println!(
            "\nThat the gaps of Poisson arrivals pass a Kolmogorov–Smirnov test is \
             `poisson_gaps_are_exponential_and_unrelated` in crates/lab/src/arrivals."
        );
    }
    measured.map(|_| ()).map_err(|(_, error)| error)
}

/// The number of complete rounds, also beside an error.
fn measure(bench: &Bench, rows: &mut [Box<dyn Row>], rounds: usize) -> Result<usize, (usize, anyhow::Error)> {
    for row in &mut *rows {
        println!("preparing {}", row.name());
        row.prepare(bench)
            .with_context(|| format!("{} cannot be prepared", row.name()))
            .map_err(|e| (0, e))?;
    }
    for round in 1..=rounds {
        for row in &mut *rows {
            row.round(bench, round)
                .with_context(|| format!("round {round} of {} failed", row.name()))
                .map_err(|error| (round - 1, error))?;
        }
    }
    Ok(rounds)
}
