//! `cargo xtask bench driver`: compares Kelvin with pgbench and sysbench, and its results with the truth, row by
//! row.

mod competitor;
mod contest;
mod initialisation;
mod latency;
mod mariadb_rows;
mod open_loop;
mod pgbench_rows;
mod sqlserver_rows;
mod stall;
mod tproc_c_cost;
mod tproc_c_rows;

use anyhow::{Result, bail};

pub(super) use competitor::{Competitor, figure};
pub(super) use contest::to_args;
pub(super) use mariadb_rows::data as mariadb_data;
pub(super) use pgbench_rows::data as pgbench_data;
pub(super) use tproc_c_rows::data as tproc_c_data;

use super::interrupt;
use super::load::SETTINGS;
use super::options::Options;
use super::server::Bench;
use super::table::{self, Line};

/// A row of the table: one kind of work, done by all competitors in turn in each round.
trait Row {
    /// The row's name on the command line.
    fn name(&self) -> &'static str;

    /// Creates the data and warms up, without measuring.
    fn prepare(&mut self, bench: &Bench) -> Result<()>;

    /// Measures every competitor once.
    fn round(&mut self, bench: &Bench, round: usize) -> Result<()>;

    /// Number of measured rounds.
    fn rounds(&self) -> usize;

    /// The lines of the table, after at least one round.
    fn lines(&self) -> Vec<Line>;
}

/// The names of all rows, in the order of execution.
const NAMES: [&str; 16] = [
    "select-only-1",
    "select-only-4",
    "select-only-64",
    "tpcb-like",
    "tpcb-pipeline",
    "functions",
    "pipelined",
    "mariadb-functions",
    "mariadb-statements",
    "mariadb-point-select",
    "sqlserver-functions",
    "sqlserver-statements",
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
        "mariadb-functions" => Box::new(mariadb_rows::functions(seconds)),
        "mariadb-statements" => Box::new(mariadb_rows::statements(seconds)),
        "mariadb-point-select" => Box::new(mariadb_rows::point_select(seconds)),
        "sqlserver-functions" => Box::new(sqlserver_rows::functions(seconds)),
        "sqlserver-statements" => Box::new(sqlserver_rows::statements(seconds)),
        "initialisation" => Box::new(initialisation::Initialisation::default()),
        "open-loop" => Box::new(open_loop::OpenLoop::new(seconds)),
        "latency" => Box::new(latency::Latency::new(seconds)),
        "stall" => Box::new(stall::Stall::default()),
        other => bail!("there is no row {other:?}"),
    })
}

/// Runs the rows round by round and prints medians, also after an interrupt. A row that fails is left out from
/// then on; the others continue.
pub(crate) fn driver(options: &Options) -> Result<()> {
    let mut chosen = options.chosen(&NAMES)?;
    if options.all_rows() && !sqlserver_rows::is_configured() {
        println!("without the rows of SQL Server: KELVIN_BENCH_SQLSERVER names no server");
        chosen.retain(|name| !name.starts_with("sqlserver"));
    }
    let mut rows: Vec<Box<dyn Row>> =
        chosen.iter().map(|name| row(name, options.seconds)).collect::<Result<_>>()?;
    let mut bench = Bench::new()?;
    if chosen.iter().any(|name| !name.starts_with("mariadb") && !name.starts_with("sqlserver")) {
        bench.start_server(&SETTINGS)?;
    }
    if chosen.iter().any(|name| name.starts_with("mariadb")) {
        bench.start_mariadb()?;
    }
    let mut failed = Vec::new();
    let interrupted = measure(&bench, &mut rows, options.rounds, &mut failed);
    let most = rows.iter().map(|row| row.rounds()).max().unwrap_or(0);
    if most > 0 {
        println!(
            "\nMedians of {most} interleaved rounds of {} s; CPU is user and system time of the whole process.\n",
            options.seconds
        );
        let measured = rows.iter().filter(|row| row.rounds() > 0);
        table::print(&measured.flat_map(|row| row.lines()).collect::<Vec<_>>());
        println!(
            "\nThe test `poisson_gaps_are_exponential_and_unrelated` in crates/lab/src/arrivals checks the \
             gaps of Poisson arrivals with a Kolmogorov–Smirnov test."
        );
    }
    interrupted?;
    if !failed.is_empty() {
        bail!("not all rows could be measured\n{}", failed.join("\n"));
    }
    Ok(())
}

/// Fails only when interrupted; errors of a row are added to `failed`.
fn measure(bench: &Bench, rows: &mut [Box<dyn Row>], rounds: usize, failed: &mut Vec<String>) -> Result<()> {
    let mut sound = vec![true; rows.len()];
    for round in 0..=rounds {
        for (row, sound) in rows.iter_mut().zip(&mut sound).filter(|(_, sound)| **sound) {
            let outcome = if round == 0 {
                println!("preparing {}", row.name());
                row.prepare(bench)
            } else {
                row.round(bench, round)
            };
            interrupt::check()?;
            if let Err(error) = outcome {
                let when = if round == 0 { "its preparation".to_owned() } else { format!("round {round}") };
                let message = format!("{}, {when}: {error:#}", row.name());
                eprintln!("error: {message}");
                failed.push(message);
                *sound = false;
            }
        }
    }
    Ok(())
}
