//! `cargo xtask bench NAME`: the figures that the project publishes. Never a test.

mod driver;
mod interrupt;
mod io;
mod lab;
mod load;
mod observe;
mod options;
mod process;
mod reset;
mod server;
mod server_cpu;
mod table;
mod users;

use anyhow::{Result, bail};

use options::Options;

const HELP: &str = "\
The figures that the project publishes, each made on one machine in one interleaved run.

Usage: cargo xtask bench NAME [ROW…] [--rounds N] [--seconds N]

Benchmarks:
  driver  Kelvin beside pgbench, and its figures beside the truth
  io      what an I/O costs, beside Debian's fio, and whether both say the same of a device
  lab     how often A/B comparisons are wrong: false-alarms and power on recorded noise, real-false-alarms,
          real-power and real-power-cpu on this machine; `record` prints one more series of noise
  load    loading 10 warehouses into PostgreSQL and into SQLite
  observe what watching costs, and how many findings a healthy run has
  reset   resetting 10 warehouses on PostgreSQL in each way
  users   virtual users on threads beside event loops

Options:
  ROW…         only these rows of `driver`, `io`, `observe`, `reset` or `users`
  --rounds N   how often each is run; medians are printed [default: 5; 10 for observe]
  --seconds N  length of a run [default: 5 for driver, 3 for io and users, 15 for observe]
  ROW…         only these rows of `driver`, `lab`, `observe` or `users`
  --rounds N   how often each is run; medians are printed [default: 5; 10 for observe, 20 for lab]
  --seconds N  length of a run [default: 5 for driver, 1 for lab, 3 for users, 15 for observe]
";

/// Runs the benchmark that the words name.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["driver", rest @ ..] => driver::driver(&Options::parse(rest, 5, 5)?),
        ["io", rest @ ..] => io::io(&Options::parse(rest, 5, 3)?),
        ["observe", rest @ ..] => observe::observe(&Options::parse(rest, 10, 15)?),
        ["reset", rest @ ..] => reset::reset(&Options::parse(rest, 5, 5)?),
        ["users", rest @ ..] => users::users(&Options::parse(rest, 5, 3)?),
        ["lab", rest @ ..] => lab::lab(&Options::parse(rest, 20, 1)?),
        ["load"] => load::load(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!("there is no benchmark {:?}; `cargo xtask bench help` lists them", other.join(" ")),
    }
}

/// The median of some figures; not a number of none.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}
