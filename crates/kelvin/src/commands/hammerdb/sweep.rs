//! Runs of a script that differ only in the number of users form a sweep.

use std::path::Path;

use anyhow::{Context, Result};
use kelvin_measure::event::ScalabilityPoint;
use kelvin_measure::text::series;
use kelvin_report::{RunReport, text};
use kelvin_store::Store;

use super::runner::label;
use crate::measure::as_typed;

/// Seed of the intervals: the same runs give the same report.
const SEED: u64 = 1;

/// The runs of a script, grouped by equal arguments.
#[derive(Default)]
pub(super) struct Sweeps(Vec<Sweep>);

/// Runs with the same arguments, in their order.
pub(super) struct Sweep {
    /// The arguments, without the number of users and the label.
    arguments: Vec<String>,
    /// The number of users and the job of each run.
    runs: Vec<(String, String)>,
}

impl Sweeps {
    /// Adds a run.
    pub(super) fn add(&mut self, arguments: &[String], job: &str) {
        let (mut others, mut users) = (Vec::new(), String::new());
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--users" => users = words.next().cloned().unwrap_or_default(),
                "--label" => drop(words.next()),
                _ => others.push(word.clone()),
            }
        }
        let run = (users, job.to_owned());
        match self.0.iter_mut().find(|sweep| sweep.arguments == others) {
            Some(sweep) => sweep.runs.push(run),
            None => self.0.push(Sweep { arguments: others, runs: vec![run] }),
        }
    }

    /// The groups with several numbers of users.
    pub(super) fn with_several_users(&self) -> impl Iterator<Item = &Sweep> {
        self.0.iter().filter(|sweep| sweep.users().len() > 1)
    }
}

impl Sweep {
    /// The different numbers of users, in their order.
    fn users(&self) -> Vec<&str> {
        let mut users: Vec<&str> = Vec::new();
        for (number, _) in &self.runs {
            if !users.contains(&number.as_str()) {
                users.push(number);
            }
        }
        users
    }

    /// The command that makes these runs as one sweep.
    pub(super) fn command(&self) -> String {
        // Models are fitted to transactions only.
        let flag =
            if self.arguments.iter().any(|word| word == "tproc-h") { "--users " } else { "--sweep users=" };
        format!("{} {flag}{}", as_typed(self.arguments.iter().cloned()), self.users().join(","))
    }

    /// The points of all runs, with the model fitted to those that count.
    pub(super) fn report(&self, store: &Path) -> Result<String> {
        let store = Store::open_read_only(store)?;
        let load = |(_, job): &(String, String)| {
            let run = store.find(&label(job)).with_context(|| format!("there is no job {job}"))?;
            Ok(RunReport::load(&store, run)?)
        };
        let runs: Vec<RunReport> = self.runs.iter().map(load).collect::<Result<_>>()?;
        let counted = runs.iter().filter(|run| run.valid).flat_map(|run| &run.points);
        let measured = counted.filter_map(|point| {
            let throughput = point.throughput.transactions_per_second?;
            Some(ScalabilityPoint { users: point.users, throughput })
        });
        let law = kelvin_run::fit_law(measured.collect(), SEED);
        let left_out: Vec<String> =
            runs.iter().filter(|run| !run.valid).map(|run| run.run.to_string()).collect();
        let mut shown = text::sweep(runs, law, text::Options::default());
        if !left_out.is_empty() {
            shown.push_str(&format!(
                "not included in the fit, because they do not count: {}\n",
                series(&left_out)
            ));
        }
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_in_their_users_alone_are_a_sweep() {
        let mut sweeps = Sweeps::default();
        for (job, line) in [
            ("A", "run tproc-c --users 1 --duration 60s --label a"),
            ("B", "run tproc-c --users 4 --duration 60s --label b"),
            ("C", "run tproc-c --users 8 --duration 30s --label c"),
            ("D", "run tproc-c --users 4 --duration 60s --label d"),
            ("E", "run tproc-h --users 1 --label e"),
            ("F", "run tproc-h --users 2 --label f"),
        ] {
            let arguments: Vec<String> = line.split(' ').map(Into::into).collect();
            sweeps.add(&arguments, job);
        }
        let found: Vec<String> = sweeps.with_several_users().map(Sweep::command).collect();
        assert_eq!(
            found,
            ["kelvin run tproc-c --duration 60s --sweep users=1,4", "kelvin run tproc-h --users 1,2"]
        );
    }
}
