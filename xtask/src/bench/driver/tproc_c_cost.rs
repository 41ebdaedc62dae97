//! TPROC-C with one way of calling: client CPU per New-Order against a fixed target, on any engine.

use anyhow::Result;

use super::Row;
use super::competitor::{Competitor, Measured};
use super::tproc_c_rows::{USERS, arguments, kelvin};
use crate::bench::median;
use crate::bench::server::Bench;
use crate::bench::table::{Line, range, us, whole};

/// Only New-Orders, so that the cost of one is measured directly and not inferred from a mix.
const NEW_ORDERS: &str = "1/0/0/0/0";

/// TPROC-C with one way of calling, in the standard mix and with New-Orders alone. The target is in microseconds of
/// client CPU per New-Order.
pub(super) struct TprocC {
    /// The row's name on the command line.
    pub(super) name: &'static str,
    pub(super) product: &'static str,
    pub(super) calls: &'static str,
    /// The target, if there is one.
    pub(super) most: Option<f64>,
    /// Whether the benchmark has started the server, whose CPU time is then read.
    pub(super) server_seen: bool,
    /// Creates the tables and returns their URL.
    pub(super) data: fn(&Bench) -> Result<String>,
    pub(super) seconds: u32,
    pub(super) url: String,
    /// Measurements by round: the mix, and New-Orders alone.
    pub(super) rounds: Vec<[Measured; 2]>,
}

impl TprocC {
    fn competitors(&self) -> [Competitor; 2] {
        let mut alone = arguments(self.calls);
        alone.extend(["--mix".into(), NEW_ORDERS.into()]);
        [kelvin(self.calls), Competitor::Kelvin(alone)]
    }

    fn line(&self, figure: &str, values: Vec<f64>, write: fn(f64) -> String) -> Line {
        let (low, high) = range(&values);
        Line {
            work: format!("{}, TPROC-C {}, {USERS} users", self.product, self.calls),
            figure: figure.into(),
            kelvin: write(median(values)),
            ratio: format!("(rounds {} to {})", write(low), write(high)),
            ..Line::default()
        }
    }

    fn judged(&self, figure: &str, values: Vec<f64>) -> Line {
        let Some(most) = self.most else { return self.line(figure, values, us) };
        let met = median(values.clone()) <= most;
        Line { target: format!("≤ {}", us(most)), met: Some(met), ..self.line(figure, values, us) }
    }
}

impl Row for TprocC {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = (self.data)(bench)?;
        self.competitors().iter().try_for_each(|one| one.run(bench, &self.url, 1).map(drop))
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        let [mix, alone] = self.competitors();
        let found = [mix.run(bench, &self.url, self.seconds)?, alone.run(bench, &self.url, self.seconds)?];
        for (work, found) in ["mix", "New-Orders alone"].into_iter().zip(&found) {
            println!(
                "round {round}: {}, TPROC-C {}, {work}: client {} per New-Order, {} per transaction of the \
                 window, server {}, {} NOPM",
                self.product,
                self.calls,
                us(found.client),
                found.in_window.map_or_else(|| "?".into(), us),
                if self.server_seen { us(found.server) } else { "not seen".into() },
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
        let mut lines = vec![
            self.judged(
                "client CPU per New-Order: whole process, mix, divided by its New-Orders",
                of(0, |m| m.client),
            ),
            self.line("client CPU per transaction: window, mix", of(0, in_window), us),
            self.line("NOPM: mix", of(0, |m| m.pace * 60.0), whole),
            self.line("client CPU per New-Order: whole process, New-Orders alone", of(1, |m| m.client), us),
            self.judged("client CPU per New-Order: window, New-Orders alone", of(1, in_window)),
            self.line("New-Orders per minute: New-Orders alone", of(1, |m| m.pace * 60.0), whole),
        ];
        if self.server_seen {
            lines.extend([
                self.line("server CPU per New-Order: mix", of(0, |m| m.server), us),
                self.line("server CPU per New-Order: New-Orders alone", of(1, |m| m.server), us),
            ]);
        }
        lines
    }
}
