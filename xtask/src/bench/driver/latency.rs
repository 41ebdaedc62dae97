//! Latencies compared with the truth: a function on the server sleeps, and records the duration by the server's
//! clock.

use anyhow::{Context, Result};

use super::Row;
use super::competitor::figure;
use super::pgbench_rows::script;
use crate::bench::median;
use crate::bench::server::{Bench, psql};
use crate::bench::table::{Line, range};

const USERS: &str = "8";

/// Nine of ten calls sleep 5 ms, the others 20 ms: the median is far from the step between them, and so is p99.
const MAKE: [&str; 2] = [
    "create unlogged table if not exists kelvin_naps (microseconds float8 not null)",
    "create or replace function kelvin_nap() returns void language plpgsql as $$
     declare began timestamptz;
     begin
       began := clock_timestamp();
       perform pg_sleep(case when random() < 0.9 then 0.005 else 0.02 end);
       insert into kelvin_naps values (extract(epoch from clock_timestamp() - began) * 1e6);
     end $$",
];

const PERCENTILES: [(&str, &str, f64); 2] = [("p50", "p50_us", 0.5), ("p99", "p99_us", 0.99)];

/// Latencies of Kelvin and the true ones, in microseconds, by percentile.
pub(super) struct Latency {
    seconds: u32,
    url: String,
    rounds: Vec<[(f64, f64); 2]>,
}

impl Latency {
    pub(super) fn new(seconds: u32) -> Self {
        Self { seconds, url: String::new(), rounds: Vec::new() }
    }

    fn run(&self, bench: &Bench, seconds: u32) -> Result<()> {
        let (file, duration) = (script("truth/nap.sql").display().to_string(), format!("{seconds}s"));
        let all = ["run", "script", &file, "-M", "prepared", "-c", USERS, "--quiet", "--ramp-up", "0s"];
        bench.kelvin(&[&all[..], &["--duration", &duration, "--target", &self.url]].concat()).map(|_| ())
    }
}

impl Row for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = bench.database("truth")?;
        for statement in MAKE {
            psql(&self.url, statement)?;
        }
        self.run(bench, 1)
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        psql(&self.url, "truncate kelvin_naps")?;
        self.run(bench, self.seconds)?;
        let report = bench.report()?;
        let mut found = [(0.0, 0.0); 2];
        for (found, (name, key, quantile)) in found.iter_mut().zip(PERCENTILES) {
            let query = format!(
                "select percentile_disc({quantile}) within group (order by microseconds) from kelvin_naps"
            );
            let truth = psql(&self.url, &query)?.parse().context("the server recorded no naps")?;
            *found = (figure(&report, &format!("/points/0/latency_all/{key}"))?, truth);
            println!("round {round}: latency {name}: {:.0} µs, true value {truth:.0} µs", found.0);
        }
        self.rounds.push(found);
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.rounds.len()
    }

    fn lines(&self) -> Vec<Line> {
        let line = |(index, (name, ..)): (usize, &(&str, &str, f64))| {
            let of = |pick: fn(&(f64, f64)) -> f64| -> Vec<f64> {
                self.rounds.iter().map(|round| pick(&round[index])).collect()
            };
            let (seen, truth) = (median(of(|m| m.0)), median(of(|m| m.1)));
            let off = of(|m| m.0 - m.1);
            let (low, high) = range(&off);
            let (off, bound) = (median(off), truth * 0.02 + 100.0);
            Line {
                work: format!("latency accuracy, {USERS} users, naps of 5 and 20 ms"),
                figure: (*name).into(),
                kelvin: format!("{:.3} ms", seen / 1e3),
                beside: format!("{:.3} ms (server clock)", truth / 1e3),
                ratio: format!("{off:+.0} µs (rounds {low:+.0} to {high:+.0})"),
                target: format!("within 2 % + 100 µs = {bound:.0} µs"),
                met: Some(off.abs() <= bound),
            }
        };
        PERCENTILES.iter().enumerate().map(line).collect()
    }
}
