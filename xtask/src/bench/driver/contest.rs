//! A row in which Kelvin and pgbench with two settings do the same work in a closed loop.

use anyhow::Result;

use super::Row;
use super::competitor::{Competitor, Measured};
use crate::bench::median;
use crate::bench::server::{Bench, psql};
use crate::bench::table::{Line, Target, us, whole};

/// Creates the row's data unless it exists, and returns the database's URL.
pub(super) type MakeData = fn(&Bench) -> Result<String>;

/// The competitors, Kelvin first.
pub(super) struct Contest {
    pub(super) name: &'static str,
    pub(super) work: String,
    /// The name of the transaction type for which costs are given.
    pub(super) per: &'static str,
    pub(super) competitors: Vec<(&'static str, Competitor)>,
    pub(super) data: MakeData,
    /// Statements that restore the tables to a common state before each run.
    pub(super) reset: Option<&'static str>,
    /// Target for the client's CPU per transaction.
    pub(super) cpu_target: Target,
    /// Target for the transactions per second.
    pub(super) pace_target: Option<Target>,
    pub(super) seconds: u32,
    pub(super) url: String,
    /// Measurements by round, then by competitor.
    pub(super) rounds: Vec<Vec<Measured>>,
}

impl Contest {
    /// One metric of all competitors.
    fn figures(&self, pick: impl Fn(&Measured) -> f64) -> Vec<Vec<f64>> {
        let of = |competitor: usize| self.rounds.iter().map(|round| pick(&round[competitor])).collect();
        (0..self.competitors.len()).map(of).collect()
    }

    /// Compares Kelvin with the best peer in this metric.
    fn line(
        &self,
        figure: &str,
        figures: &[Vec<f64>],
        highest: bool,
        write: fn(f64) -> String,
        target: Option<Target>,
    ) -> Option<Line> {
        let sign = if highest { -1.0 } else { 1.0 };
        let of = |competitor: &usize| sign * median(figures[*competitor].clone());
        let best = (1..figures.len()).min_by(|a, b| of(a).total_cmp(&of(b)))?;
        let peer = (self.competitors[best].0, figures[best].as_slice());
        Some(Line::compared(&self.work, figure, &figures[0], peer, write, target))
    }

    fn run(&self, bench: &Bench, competitor: usize, seconds: u32) -> Result<Measured> {
        if let Some(reset) = self.reset {
            for statement in reset.split(';') {
                psql(&self.url, statement)?;
            }
        }
        self.competitors[competitor].1.run(bench, &self.url, seconds)
    }
}

impl Row for Contest {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = (self.data)(bench)?;
        for competitor in 0..self.competitors.len() {
            self.run(bench, competitor, 1)?;
        }
        Ok(())
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        let count = self.competitors.len();
        let mut measured = vec![None; count];
        for turn in 0..count {
            // The order rotates, so that no competitor always follows the same one.
            let competitor = (turn + round) % count;
            let found = self.run(bench, competitor, self.seconds)?;
            println!(
                "round {round}: {}: {}: client {}, server {}, {}/s",
                self.work,
                self.competitors[competitor].0,
                us(found.client),
                us(found.server),
                whole(found.pace)
            );
            measured[competitor] = Some(found);
        }
        self.rounds.push(measured.into_iter().flatten().collect());
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.rounds.len()
    }

    fn lines(&self) -> Vec<Line> {
        let (client, server, pace) =
            (self.figures(|m| m.client), self.figures(|m| m.server), self.figures(|m| m.pace));
        let client_name = format!("client CPU per {}", self.per);
        let server_name = format!("server CPU per {}", self.per);
        let pace_name = format!("{}s per second", self.per);
        [
            self.line(&client_name, &client, false, us, Some(self.cpu_target)),
            self.line(&pace_name, &pace, true, whole, self.pace_target),
            self.line(&server_name, &server, false, us, None),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Splits a text into owned arguments.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
