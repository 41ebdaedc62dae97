//! `cargo xtask bench NAME`: the results that the project publishes. Benchmarks are not tests.

mod driver;
mod fio_json;
mod fio_totals;
mod interrupt;
mod io;
mod judged;
mod lab;
mod load;
mod mariadb;
mod observe;
mod options;
mod process;
mod reset;
mod server;
mod server_cpu;
mod table;
mod tproc_h;
mod users;

use anyhow::{Result, bail};

use options::Options;

const HELP: &str = "\
The benchmarks that the project publishes, each measured on one machine in one interleaved run.

Usage: cargo xtask bench NAME [ROW…] [--rounds N] [--seconds N]

Benchmarks:
  cache   miss ratios of a recording of 100 million requests from samples of 1 %: time and peak memory
  driver  Kelvin compared with pgbench and sysbench, on PostgreSQL and MariaDB, and its results with the true values
  fio-json  100 jobs of crates/fio/tests/jobs in fio and in Kelvin: compares keys, types, units,
          determined values and plausible times in their JSON; FILE… for only some of the jobs
  fio-totals  whether random jobs do as many I/Os and bytes as in the installed fio: --cases N (500) for each
          of --seeds N (4), beginning with --seed N (1)
  io      CPU time per I/O, compared with Debian's fio, and whether both get the same results on a device
  lab     error rates of A/B comparisons: false-alarms and power on recorded noise; simulated error rates of change
          points (history), a sweep's USL fit (usl) and a run's own interval (within); real-false-alarms,
          real-power, -cpu and -tenth on this machine; `record` prints another series of noise
  load    loading 10 warehouses, and --warehouses N, into PostgreSQL, SQLite and MariaDB at its defaults; 100 need 22 GB
  observe the overhead of observation, and how many findings a healthy run has
  reset   resetting 10 warehouses on PostgreSQL with each method
  tproc-h building TPROC-H's data (--scale N, 1) compared with COPY from files in memory, and the client's memory;
          --rounds N (3)
  trace-live  CPU time per request of the streams that a run with --trace shows while it lasts, beside matching alone
  users   virtual users on threads compared with event loops

Options:
  ROW…         only these rows of `driver`, `io`, `lab`, `load`, `observe`, `reset` or `users`
  --rounds N   how often each row is run; medians are printed [default: 5; 3 for load, 10 for observe, 20 for lab]
  --seconds N  length of a run [default: 5 for driver and reset, 3 for io and users, 1 for lab, 15 for observe]
";

/// Runs the benchmark that the arguments name.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["cache"] => judged::judged("sampler", "100 million requests at 1 % take more than 60 s or 500 MB"),
        ["driver", rest @ ..] => driver::driver(&Options::parse(rest, 5, 5)?),
        ["fio-totals", rest @ ..] => fio_totals::fio_totals(rest),
        ["io", rest @ ..] => io::io(&Options::parse(rest, 5, 3)?),
        ["fio-json", rest @ ..] => fio_json::fio_json(rest),
        ["observe", rest @ ..] => observe::observe(&Options::parse(rest, 10, 15)?),
        ["reset", rest @ ..] => reset::reset(&Options::parse(rest, 5, 5)?),
        ["users", rest @ ..] => users::users(&Options::parse(rest, 5, 3)?),
        ["lab", rest @ ..] => lab::lab(&Options::parse(rest, 20, 1)?),
        ["load", rest @ ..] => load::load(rest),
        ["trace-live"] => {
            judged::judged("live_cost", "the live streams of a recording take 3 µs a request or more")
        }
        ["tproc-h", rest @ ..] => tproc_h::tproc_h(rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!(
            "there is no benchmark {:?}; `cargo xtask bench help` lists the benchmarks",
            other.join(" ")
        ),
    }
}

/// The median; NaN if there are no values.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}
