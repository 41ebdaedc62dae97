//! The cost of virtual users on threads and on event loops, measured with a server that only answers
//! PostgreSQL's protocol, so that the remaining cost is that of the generator. `cargo xtask bench users` runs
//! it.
//!
//! `users server SOCKET` starts the server. `users drive SOCKET threads|loops USERS SECONDS [RATE]` generates
//! load and prints one line of JSON.

#![allow(clippy::print_stdout, reason = "a program for a person")]

mod server;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_measure::event::{KindCounts, SeriesRole};
use kelvin_measure::{Clock, Event, Sink, SinkError};
use kelvin_run::driver::Point;
use kelvin_run::spec::{Load, Span, Threading};
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use kelvin_workload::{Stop, Workload};

struct Nobody;

impl Sink for Nobody {
    fn event_from(&mut self, _source: kelvin_measure::SourceId, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["server", socket] => Ok(server::serve(Path::new(socket))?),
        ["drive", socket, ground, users, seconds] => drive(socket, ground, users, seconds, None),
        ["drive", socket, ground, users, seconds, rate] => drive(socket, ground, users, seconds, Some(rate)),
        _ => Err("users server SOCKET | users drive SOCKET threads|loops USERS SECONDS [RATE]".into()),
    }
}

fn drive(
    socket: &str,
    ground: &str,
    users: &str,
    seconds: &str,
    rate: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    // The server's socket has the name of a PostgreSQL socket with port 5432.
    let directory = Path::new(socket).parent().ok_or("the socket has no directory")?;
    let engine: Arc<dyn Engine> = Arc::new(PostgresEngine::new(Config::unix(directory, 5432, "u", "d")));
    let script = ScriptChoice {
        name: "one row".into(),
        weight: 1,
        text: Some("select 1 where 1 = :client_id".into()),
    };
    let options = Options { scripts: vec![script], query_mode: QueryMode::Prepared, ..Options::default() };
    let mut workload = Pgbench::new(options)?;
    workload.inspect(&*engine)?;
    let workload: Arc<dyn Workload> = Arc::new(workload);
    let load = Load {
        ramp_up: Span::seconds(1),
        duration: Span::seconds(seconds.parse()?),
        users_on: if ground == "threads" { Threading::Threads } else { Threading::Loops },
        ..Load::default()
    };
    let rate = rate.map(str::parse).transpose()?;
    let (clock, stop) = (Clock::real(), Stop::new());
    let point = Point {
        index: 0,
        users: users.parse()?,
        most_users: users.parse()?,
        rate,
        load: &load,
        accept_noise: false,
        observed: false,
        clock: &clock,
        stop: &stop,
        control: None,
        fleet: None,
    };
    let result = point.run(&engine, &workload, &mut Nobody)?;
    let good: u64 = result.totals.transactions(&result.totals.measured).map(KindCounts::good).sum();
    let lag =
        result.totals.measured.iter().zip(&result.totals.roles).find(|(_, role)| **role == SeriesRole::Lag);
    let lag = lag.and_then(|(kind, _)| kind.latency.percentile(99.0));
    let broken: Vec<_> = result
        .invariants
        .iter()
        .filter(|i| !i.holds)
        .map(|i| format!("{}: {}", i.name, i.evidence))
        .collect();
    println!(
        "{}",
        serde_json::json!({
            "ground": ground,
            "users": point.users,
            "tps": result.throughput(),
            "client_cpu_us": result.window.client_cpu as f64 / 1e3 / good.max(1) as f64,
            "peak_memory_mb": peak_memory()? / 1024.0,
            "lag_p99_us": lag.map(|lag| lag as f64 / 1e3),
            "errors": result.errors,
            "broken": broken,
        })
    );
    Ok(())
}

/// The peak memory of this process, in KiB.
fn peak_memory() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
