//! MariaDB: the client's CPU for TPROC-C against fixed targets, and sysbench beside the same select.

use anyhow::{Context, Result, bail};

use super::Row;
use super::competitor::{Competitor, Measured, number};
use super::contest::{Contest, words};
use super::pgbench_rows::script;
use super::tproc_c_rows::{USERS, arguments, kelvin};
use crate::bench::interrupt;
use crate::bench::median;
use crate::bench::process::timed;
use crate::bench::server::Bench;
use crate::bench::table::Target;
use crate::bench::table::{Line, range, us, whole};

/// Rows of sysbench's table; the script draws from as many.
const ROWS: u32 = 100_000;

/// Ten warehouses on the benchmark's MariaDB, made when they are first asked for.
pub(crate) fn data(bench: &Bench) -> Result<String> {
    let (url, mark) = (bench.mariadb()?.to_owned(), bench.path("mariadb-tproc-c"));
    if !mark.exists() {
        bench.kelvin(&["build", "tproc-c", "--warehouses", "10", "--no-check", "--target", &url])?;
        std::fs::write(mark, "")?;
    }
    Ok(url)
}

/// New-Orders and no other transaction: what one costs is read directly, not inferred from a mix.
const NEW_ORDERS: &str = "1/0/0/0/0";

/// TPROC-C by one way of calling, in the standard mix and with New-Orders alone, with a target in microseconds of client
/// CPU per New-Order.
pub(super) struct TprocC {
    name: &'static str,
    calls: &'static str,
    most: f64,
    seconds: u32,
    url: String,
    /// By round: the mix, New-Orders alone.
    rounds: Vec<[Measured; 2]>,
}

impl TprocC {
    pub(super) fn functions(seconds: u32) -> Self {
        Self {
            name: "mariadb-functions",
            calls: "functions",
            most: 50.0,
            seconds,
            url: String::new(),
            rounds: Vec::new(),
        }
    }

    pub(super) fn statements(seconds: u32) -> Self {
        Self { name: "mariadb-statements", calls: "statements", most: 130.0, ..Self::functions(seconds) }
    }

    fn competitors(&self) -> [Competitor; 2] {
        let mut alone = arguments(self.calls);
        alone.extend(["--mix".into(), NEW_ORDERS.into()]);
        [kelvin(self.calls), Competitor::Kelvin(alone)]
    }

    fn line(&self, figure: &str, values: Vec<f64>, write: fn(f64) -> String) -> Line {
        let (low, high) = range(&values);
        Line {
            work: format!("MariaDB, TPROC-C {}, {USERS} users", self.calls),
            figure: figure.into(),
            kelvin: write(median(values)),
            ratio: format!("(rounds {} to {})", write(low), write(high)),
            ..Line::default()
        }
    }

    fn judged(&self, figure: &str, values: Vec<f64>) -> Line {
        let met = median(values.clone()) <= self.most;
        Line { target: format!("≤ {}", us(self.most)), met: Some(met), ..self.line(figure, values, us) }
    }
}

impl Row for TprocC {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = data(bench)?;
        self.competitors().iter().try_for_each(|one| one.run(bench, &self.url, 1).map(drop))
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        let [mix, alone] = self.competitors();
        let found = [mix.run(bench, &self.url, self.seconds)?, alone.run(bench, &self.url, self.seconds)?];
        for (work, found) in ["mix", "New-Orders alone"].into_iter().zip(&found) {
            println!(
                "round {round}: MariaDB, TPROC-C {}, {work}: client {} per New-Order, {} per transaction of the \
                 window, server {}, {} NOPM",
                self.calls,
                us(found.client),
                found.in_window.map_or_else(|| "?".into(), us),
                us(found.server),
                whole(found.pace * 60.0)
            );
        }
        self.rounds.push(found);
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.rounds.len()
    }

    fn lines(&self) -> Vec<Line> {
        let of = |work: usize, pick: fn(&Measured) -> f64| -> Vec<f64> {
            self.rounds.iter().map(|round| pick(&round[work])).collect()
        };
        let in_window = |found: &Measured| found.in_window.unwrap_or(f64::NAN);
        vec![
            self.judged(
                "client CPU per New-Order: whole process, mix, divided by its New-Orders",
                of(0, |m| m.client),
            ),
            self.line("client CPU per transaction: window, mix", of(0, in_window), us),
            self.line("server CPU per New-Order: mix", of(0, |m| m.server), us),
            self.line("NOPM: mix", of(0, |m| m.pace * 60.0), whole),
            self.line("client CPU per New-Order: whole process, New-Orders alone", of(1, |m| m.client), us),
            self.judged("client CPU per New-Order: window, New-Orders alone", of(1, in_window)),
            self.line("server CPU per New-Order: New-Orders alone", of(1, |m| m.server), us),
            self.line("New-Orders per minute: New-Orders alone", of(1, |m| m.pace * 60.0), whole),
        ]
    }
}

/// Selects by primary key.
pub(super) fn point_select(seconds: u32) -> Contest {
    let mut arguments = vec!["script".into(), script("sysbench/point_select.sql").display().to_string()];
    arguments.extend(words(&format!("-M prepared -c {USERS}")));
    Contest {
        name: "mariadb-point-select",
        work: format!("MariaDB, select by primary key, {USERS} threads"),
        per: "select",
        competitors: vec![("Kelvin", Competitor::Kelvin(arguments)), ("sysbench", Competitor::Sysbench)],
        data: |bench| {
            sysbench(bench, "prepare", 1)?;
            Ok(bench.mariadb()?.to_owned())
        },
        reset: None,
        cpu_target: Target::AtMost(0.9),
        pace_target: None,
        seconds,
        url: String::new(),
        rounds: Vec::new(),
    }
}

/// CPU seconds of sysbench, transactions, transactions a second.
pub(super) fn sysbench_run(bench: &Bench, seconds: u32) -> Result<(f64, f64, f64)> {
    let (cpu, text) = sysbench(bench, "run", seconds)?;
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let count = number(&text, "transactions:")?;
    Ok((cpu, count, count / f64::from(seconds)))
}

fn sysbench(bench: &Bench, command: &str, seconds: u32) -> Result<(f64, String)> {
    interrupt::check()?;
    let url = bench.mariadb()?;
    let (_, socket) = url.split_once("socket=").context("the server's URL names no socket")?;
    let mut arguments = words(&format!(
        "oltp_point_select --tables=1 --table-size={ROWS} --rand-type=uniform --threads={USERS} --time={seconds} \
         --mysql-user=kelvin --mysql-db=kelvin"
    ));
    arguments.extend([format!("--mysql-socket={socket}"), command.to_owned()]);
    let program = std::path::Path::new("/usr/bin/sysbench");
    if !program.exists() {
        bail!("sysbench is not installed: apt-get install sysbench");
    }
    let cost = timed(program, &arguments, &[])?;
    Ok((cost.cpu, cost.stdout))
}
