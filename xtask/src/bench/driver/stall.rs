//! A stall of two seconds in an open loop, which the response times must show in full.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Row;
use super::competitor::figure;
use super::pgbench_rows::script;
use crate::bench::median;
use crate::bench::server::{Bench, psql};
use crate::bench::table::{Line, range};

const USERS: &str = "4";
/// High enough that the transactions in service at the stall, one per user, are fewer than one in a thousand, and
/// that p99.9 has enough samples beyond it.
const RATE: &str = "2000";
const WINDOW: f64 = 10.0;
/// Locks the table that every transaction reads, and prints for how long.
const STALL: &str = "do $$
  declare began timestamptz;
  begin
    lock table kelvin_stalled in access exclusive mode;
    began := clock_timestamp();
    perform pg_sleep(2);
    insert into kelvin_stalls values (extract(epoch from clock_timestamp() - began));
  end $$";

/// The results of one round, in seconds.
#[derive(Debug, Clone, Copy)]
struct Seen {
    stall: f64,
    response: f64,
    service: f64,
    slowest: f64,
}

#[derive(Debug, Default)]
pub(super) struct Stall {
    url: String,
    rounds: Vec<Seen>,
}

impl Row for Stall {
    fn name(&self) -> &'static str {
        "stall"
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = bench.database("truth")?;
        psql(&self.url, "create table if not exists kelvin_stalled (nothing int)")?;
        psql(&self.url, "create table if not exists kelvin_stalls (seconds float8 not null)").map(|_| ())
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        psql(&self.url, "truncate kelvin_stalls")?;
        let file = script("truth/stalled.sql").display().to_string();
        let duration = format!("{WINDOW}s");
        let all = ["run", "script", &file, "-M", "prepared", "--quiet", "-c", USERS, "--ramp-up", "1s"];
        let open = ["--duration", &duration, "--rate", RATE, "--arrivals", "uniform", "--target", &self.url];
        // In the middle of the window, so that all delayed transactions finish before its end.
        let stalled = std::thread::scope(|scope| {
            let stall = scope.spawn(|| {
                std::thread::sleep(Duration::from_secs(5));
                psql(&self.url, STALL)
            });
            let run = bench.kelvin(&[&all[..], &open[..]].concat());
            let stall = stall.join().map_err(|_| anyhow::anyhow!("the stall's thread panicked"))?;
            run.and(stall)
        });
        stalled?;
        let report = bench.report()?;
        let of = |name: &str| Ok::<_, anyhow::Error>(figure(&report, &format!("/points/0/{name}"))? / 1e6);
        let seen = Seen {
            stall: psql(&self.url, "select seconds from kelvin_stalls")?
                .parse()
                .context("no stall occurred")?,
            response: of("response_all/p999_us")?,
            service: of("latency_all/p999_us")?,
            slowest: of("latency_all/max_us")?,
        };
        println!(
            "round {round}: stall of {:.3} s: p99.9 of response times {:.3} s, of service times {:.4} s",
            seen.stall, seen.response, seen.service
        );
        self.rounds.push(seen);
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// In a window of W seconds, one in a thousand of evenly spaced arrivals comes within the first W/1000 of the
    /// stall and waits for the rest of it: p99.9 of the response times is the stall less W/1000.
    fn lines(&self) -> Vec<Line> {
        let of = |pick: fn(&Seen) -> f64| -> Vec<f64> { self.rounds.iter().map(pick).collect() };
        let truth = median(of(|seen| seen.stall)) - WINDOW / 1e3;
        let off = of(|seen| seen.response - (seen.stall - WINDOW / 1e3));
        let (low, high) = range(&off);
        let (off, bound) = (median(off), truth * 0.02 + 100e-6);
        let ms = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
        let work = format!("stall of 2 s, open loop of {RATE}/s, {USERS} users, {WINDOW} s");
        vec![
            Line {
                work: work.clone(),
                figure: "response time, p99.9".into(),
                kelvin: ms(median(of(|seen| seen.response))),
                beside: format!("{} (server clock)", ms(truth)),
                ratio: format!("{:+.1} ms (rounds {:+.1} to {:+.1})", off * 1e3, low * 1e3, high * 1e3),
                target: format!("within 2 % + 100 µs = {}", ms(bound)),
                met: Some(off.abs() <= bound),
            },
            Line {
                work,
                figure: "service time, p99.9, which alone would hide the stall".into(),
                kelvin: format!(
                    "{} (slowest {})",
                    ms(median(of(|seen| seen.service))),
                    ms(median(of(|s| s.slowest)))
                ),
                ..Line::default()
            },
        ]
    }
}
