//! The outcomes of `cargo xtask faults`, one JSON line each in a file, and statistics on how many were right.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use kelvin_stats::proportion::interval;
use serde_json::{Value, json};

/// Minimum effect of a strong fault, as a multiple of the runs' precision.
const STRONG: f64 = 3.0;

/// The outcome of a run with or without a fault.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) seed: u64,
    pub(crate) name: String,
    pub(crate) draw: u64,
    /// Whether the fault is so weak that its finding should not be red.
    pub(crate) is_weak: bool,
    /// The parameters, as text.
    pub(crate) parameters: String,
    /// The findings that had to be red.
    pub(crate) expected: Vec<String>,
    /// The finding that had to be amber, for a fault whose finding is never red.
    pub(crate) expected_amber: Option<String>,
    pub(crate) red: Vec<String>,
    pub(crate) amber: Vec<String>,
    /// Number of runs, and of those in which other processes used the machine.
    pub(crate) attempts: u64,
    pub(crate) disturbed: u64,
    pub(crate) seconds: f64,
    /// Transactions per second, and half of their 95 % interval as a share.
    pub(crate) per_second: Option<f64>,
    pub(crate) precision: Option<f64>,
    /// The same for the load without the fault.
    pub(crate) control_per_second: Option<f64>,
    pub(crate) control_precision: Option<f64>,
    /// The effect that the finding states.
    pub(crate) effect: Option<String>,
    /// The version of the code.
    pub(crate) commit: String,
}

impl Outcome {
    /// An outcome whose run is still to be made.
    pub(crate) fn planned(seed: u64, name: &str, draw: u64, parameters: String) -> Self {
        Self { seed, name: name.into(), draw, parameters, ..Self::default() }
    }

    pub(crate) fn label(&self) -> String {
        let weak = if self.is_weak { "weak " } else { "" };
        format!("{weak}{} {} ({})", self.name, self.draw, self.parameters)
    }

    /// Whether the fault's finding is red (or amber, if it is never red) and no other is red. For a weak fault: whether its
    /// finding is not red, or the fault turned out strong.
    pub(crate) fn is_right(&self) -> bool {
        if self.is_weak {
            // A fault with which the load was faster is not strong.
            let is_strong = self.strength().is_some_and(|(share, times)| share < 0.0 && times >= STRONG);
            return !self.is_wrong() && (self.red.is_empty() || is_strong);
        }
        self.red == self.expected && self.expected_amber.as_ref().is_none_or(|id| self.amber.contains(id))
    }

    /// Whether a finding is red that was not planted.
    pub(crate) fn is_wrong(&self) -> bool {
        self.red.iter().any(|id| !self.expected.contains(id))
    }

    /// The effect of the fault as a share of the load without it, and as a multiple of the worse precision of both runs.
    pub(crate) fn strength(&self) -> Option<(f64, f64)> {
        let share = self.per_second? / self.control_per_second.filter(|per_second| *per_second > 0.0)? - 1.0;
        Some((share, share.abs() / self.precision?.max(self.control_precision?)))
    }

    pub(crate) fn line(&self) -> String {
        let mut line = format!(
            "{}: {}; red: {}; amber: {}; {:.0} s",
            self.label(),
            if self.is_right() { "right" } else { "WRONG" },
            self.red.join(", "),
            self.amber.join(", "),
            self.seconds
        );
        if let (Some(per_second), Some(precision)) = (self.per_second, self.precision) {
            let _ = write!(line, "; {per_second:.1}/s ± {:.1} %", precision * 100.0);
        }
        if let Some(effect) = &self.effect {
            let _ = write!(line, "; stated: {effect}");
        }
        if let Some((share, times)) = self.strength() {
            let weak = if times < STRONG { ", weak" } else { "" };
            let _ = write!(line, "; {:+.1} % against none, {times:.1} × the precision{weak}", share * 100.0);
        }
        line
    }

    fn to_json(&self) -> Value {
        json!({
            "seed": self.seed, "name": self.name, "draw": self.draw, "weak": self.is_weak, "parameters": self.parameters,
            "expected": self.expected, "expected_amber": self.expected_amber, "red": self.red, "amber": self.amber,
            "attempts": self.attempts, "disturbed": self.disturbed, "seconds": self.seconds,
            "per_second": self.per_second, "precision": self.precision,
            "control_per_second": self.control_per_second, "control_precision": self.control_precision,
            "effect": self.effect, "commit": self.commit,
        })
    }

    fn from_json(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| value[name].as_u64().unwrap_or(0);
        let list = |name: &str| {
            let items = value[name].as_array().map_or(&[][..], Vec::as_slice);
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        Self {
            seed: number("seed"),
            name: text("name"),
            draw: number("draw"),
            is_weak: value["weak"].as_bool().unwrap_or(false),
            parameters: text("parameters"),
            expected: list("expected"),
            expected_amber: value["expected_amber"].as_str().map(str::to_owned),
            red: list("red"),
            amber: list("amber"),
            attempts: number("attempts"),
            disturbed: number("disturbed"),
            seconds: value["seconds"].as_f64().unwrap_or(0.0),
            per_second: value["per_second"].as_f64(),
            precision: value["precision"].as_f64(),
            control_per_second: value["control_per_second"].as_f64(),
            control_precision: value["control_precision"].as_f64(),
            effect: value["effect"].as_str().map(str::to_owned),
            commit: text("commit"),
        }
    }
}

/// Counts of outcomes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) right: u64,
    /// Runs with a red finding that was not planted.
    pub(crate) wrong: u64,
    attempts: u64,
    disturbed: u64,
    /// Runs compared with the load without the fault, and those with an effect of at least three times the precision.
    compared: u64,
    strong: u64,
}

impl Tally {
    fn count<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Self {
        let mut tally = Self::default();
        for one in outcomes {
            tally.runs += 1;
            tally.right += u64::from(one.is_right());
            tally.wrong += u64::from(one.is_wrong());
            tally.attempts += one.attempts;
            tally.disturbed += one.disturbed;
            let strength = one.strength();
            tally.compared += u64::from(strength.is_some());
            tally.strong += u64::from(strength.is_some_and(|(_, times)| times >= STRONG));
        }
        tally
    }

    fn row(&self, name: &str) -> String {
        let percent = |(low, high): (f64, f64)| format!("{:.1} % to {:.1} %", low * 100.0, high * 100.0);
        let mut row = format!(
            "{name:<20} {:>3} of {:<3} right ({}), {} with a wrong red finding ({})",
            self.right,
            self.runs,
            percent(interval(self.right, self.runs, 0.95)),
            self.wrong,
            percent(interval(self.wrong, self.runs, 0.95)),
        );
        if self.compared > 0 {
            let _ = write!(row, "; {} of {} stronger than 3 × the precision", self.strong, self.compared);
        }
        let _ = writeln!(row, "; {} of {} attempts on a busy machine", self.disturbed, self.attempts);
        row
    }
}

/// All outcomes, including those of earlier slices.
pub(crate) struct Results {
    file: Option<PathBuf>,
    commit: String,
    outcomes: Vec<Outcome>,
}

impl Results {
    /// Reads the outcomes of a file; without one, only those of this process are counted.
    pub(crate) fn open(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let outcomes = text
            .lines()
            .map(|line| {
                Outcome::from_json(&serde_json::from_str(line).expect("a line of the results is no JSON"))
            })
            .collect();
        let git = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
        let commit =
            git.map_or_else(|_| String::new(), |git| String::from_utf8_lossy(&git.stdout).trim().into());
        Self { file, commit, outcomes }
    }

    pub(crate) fn has(&self, planned: &Outcome) -> bool {
        let key = |one: &Outcome| (one.seed, one.draw, one.is_weak);
        self.outcomes.iter().any(|one| key(one) == key(planned) && one.name == planned.name)
    }

    pub(crate) fn add(&mut self, outcome: Outcome) {
        let outcome = Outcome { commit: self.commit.clone(), ..outcome };
        if let Some(file) = &self.file {
            let mut open = OpenOptions::new().create(true).append(true).open(file).unwrap();
            writeln!(open, "{}", outcome.to_json()).unwrap();
        }
        self.outcomes.push(outcome);
    }

    /// The outcomes of one name, without weak faults.
    pub(crate) fn tally(&self, name: &str) -> Tally {
        Tally::count(self.outcomes.iter().filter(|one| one.name == name && !one.is_weak))
    }

    /// The outcomes with a fault that is not weak.
    pub(crate) fn faults(&self) -> Tally {
        let has_fault = |one: &&Outcome| !one.expected.is_empty() || one.expected_amber.is_some();
        Tally::count(self.outcomes.iter().filter(has_fault).filter(|one| !one.is_weak))
    }

    /// The outcomes with a weak fault.
    pub(crate) fn weak(&self) -> Tally {
        Tally::count(self.outcomes.iter().filter(|one| one.is_weak))
    }

    /// A table with a row for each fault and a total, every outcome that was not right, and whether all are of one version of
    /// the code.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::from("\n95 % intervals (Clopper and Pearson)\n");
        let strong = self.outcomes.iter().filter(|one| !one.is_weak);
        let mut names: Vec<&str> = strong.map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            text += &self.tally(name).row(name);
        }
        for (name, tally) in [("all faults", self.faults()), ("weak faults", self.weak())] {
            if tally.runs > 0 {
                text += &tally.row(name);
            }
        }
        for one in self.outcomes.iter().filter(|one| !one.is_right()) {
            let _ = writeln!(text, "  {}", one.line());
        }
        let mut commits: Vec<&str> = self.outcomes.iter().map(|one| one.commit.as_str()).collect();
        commits.sort_unstable();
        commits.dedup();
        if commits.len() > 1 {
            let _ = writeln!(text, "These are runs of several commits: {}", commits.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_file_is_not_run_again_and_counts() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("faults.jsonl");
        let mut results = Results::open(Some(file.clone()));
        let planned = Outcome::planned(7, "spill", 1, "9000 rows".into());
        assert!(!results.has(&planned));
        let right = Outcome {
            expected: vec!["temporary-files".into()],
            red: vec!["temporary-files".into()],
            amber: vec!["unseen".into()],
            attempts: 2,
            disturbed: 1,
            seconds: 31.5,
            per_second: Some(80.0),
            precision: Some(0.02),
            control_per_second: Some(100.0),
            control_precision: Some(0.05),
            effect: Some("up to 22 % of the throughput".into()),
            ..planned.clone()
        };
        results.add(right.clone());
        results.add(Outcome {
            red: vec!["steal".into(), "temporary-files".into()],
            draw: 2,
            control_per_second: Some(90.0),
            ..right.clone()
        });
        results.add(Outcome { attempts: 1, ..Outcome::planned(7, "healthy", 0, "pgbench".into()) });
        let again = Results::open(Some(file));
        assert!(again.has(&planned) && !again.has(&Outcome { seed: 8, ..planned.clone() }));
        assert_eq!(Outcome { commit: String::new(), ..again.outcomes[0].clone() }, right);
        let faults = again.faults();
        assert_eq!(
            (faults.runs, faults.right, faults.wrong, faults.compared, faults.strong),
            (2, 1, 1, 2, 1)
        );
        assert_eq!((again.tally("healthy").runs, again.tally("healthy").right), (1, 1));
        let strength = again.outcomes[0].strength().unwrap();
        assert!((strength.0 + 0.2).abs() < 1e-9 && (strength.1 - 4.0).abs() < 1e-9, "{strength:?}");
        let amber = Outcome { red: Vec::new(), expected: Vec::new(), ..right.clone() };
        let of = |id: &str| Outcome { expected_amber: Some(id.into()), ..amber.clone() };
        assert!(of("unseen").is_right() && !of("lock-queue").is_right());
        let weak = |red: &[&str]| Outcome {
            is_weak: true,
            red: red.iter().map(|id| (*id).into()).collect(),
            ..right.clone()
        };
        assert!(
            weak(&[]).is_right() && weak(&["temporary-files"]).is_right(),
            "its effect is four times the precision"
        );
        let faster = Outcome { control_per_second: Some(60.0), ..weak(&["temporary-files"]) };
        assert!(!faster.is_right(), "the load was faster with it");
        let less = |red: &[&str]| Outcome { control_per_second: Some(90.0), ..weak(red) };
        assert!(
            less(&[]).is_right() && !less(&["temporary-files"]).is_right() && !less(&["steal"]).is_right()
        );
        assert!(again.summary().contains("WRONG; red: steal, temporary-files"), "{}", again.summary());
    }
}
