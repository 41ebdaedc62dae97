//! Proof of advice: the change of a remedy as a factor, applied for one side of an A/B comparison and
//! reverted for the other.
//!
//! This module only combines others: [`Bench`](crate::Bench) makes the runs, [`ab`](crate::ab) compares, and
//! [`factor`](crate::factor) applies the changes and restores them from a journal.

mod bench;
mod proof;

use kelvin_diagnose::{Change, HostSetting, Remedy};

pub use crate::ab::AdviceOrigin;
use crate::conditions::{DesignCell, FactorSetting};
use crate::factor::kernel;
use crate::factor::level::kernel_path;
use crate::factor::{CommandPair, Factor, FactorError, FactorKind, Level, LevelValue};
pub use bench::ConditionedBench;
pub use proof::{Proof, ProofVerdict};

/// The level without the change.
const BEFORE: &str = "before";
/// The level with the change.
const CHANGED: &str = "changed";

/// A change as a factor with two levels.
///
/// # Errors
/// When the change cannot be a factor, such as a setting that must not be changed.
pub fn factor(name: &str, change: &Change) -> Result<Factor, FactorError> {
    let levels = |before: LevelValue, changed: LevelValue| {
        vec![Level::named(BEFORE, before), Level::named(CHANGED, changed)]
    };
    let text = |value: &String| LevelValue::Text(value.clone());
    match change {
        Change::Setting { name: setting, before, value } => {
            Factor::new(name, levels(text(before), text(value)), FactorKind::Setting(setting.clone()))
        }
        Change::Host { what, before, value } => {
            let kind = match what {
                HostSetting::HugePages => FactorKind::HugePages,
                HostSetting::Kernel(file) => FactorKind::Kernel(file.clone()),
            };
            Factor::new(name, levels(text(before), text(value)), kind)
        }
        Change::Manual { how } => {
            Err(FactorError::Unusable(format!("kelvin cannot make and undo this change; {how}")))
        }
        Change::Statements { apply, undo, control } => {
            let text = |statements: &[String]| Some(statements.join(";\n"));
            // Without an undo, only a reset reverts it.
            let undo = if undo.is_empty() { Some("SELECT 1".into()) } else { text(undo) };
            let pair = CommandPair { apply: text(apply), undo };
            let none = LevelValue::Command(match control.as_slice() {
                [] => CommandPair::default(),
                // New statistics and vacuumed pages on the control side do no harm.
                control => CommandPair { apply: text(control), undo: Some("SELECT 1".into()) },
            });
            Factor::new(name, levels(none, LevelValue::Command(pair)), FactorKind::Sql)
        }
    }
}

/// The present value of a setting of this host, for the side without the change; none for huge pages, which
/// that side does not have.
///
/// # Errors
/// When a file of the kernel cannot be read, such as the frequency governor of a virtual machine.
pub fn present_host_value(what: &HostSetting) -> Result<Option<String>, FactorError> {
    let HostSetting::Kernel(key) = what else { return Ok(None) };
    let read = || {
        let files = kernel::files(&kernel_path(key)?)?;
        let values = files.iter().map(|file| Ok(kelvin_host::chosen(&kernel::read(file)?).trim().to_owned()));
        let mut values = values.collect::<Result<Vec<_>, String>>()?;
        values.dedup();
        match values.len() {
            1 => Ok(values.pop()),
            _ => Err(format!("the files {key} differ: {}", values.join(", "))),
        }
    };
    read().map_err(FactorError::Unusable)
}

/// The changes of a comparison: those that both sides have, and the one that only side B has.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    factors: Vec<Factor>,
}

impl Comparison {
    /// The comparison of the next remedy, with the remedies that were accepted before.
    ///
    /// # Errors
    /// See [`factor`].
    pub fn of(accepted: &[Remedy], next: &Remedy) -> Result<Self, FactorError> {
        let all = accepted.iter().chain([next]).enumerate();
        let made = all.map(|(index, remedy)| factor(&format!("change {}", index + 1), &remedy.change));
        Ok(Self { factors: made.collect::<Result<_, _>>()? })
    }

    /// The factors; the last one is compared.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// The conditions of the sides A and B.
    pub fn cells(&self) -> [DesignCell; 2] {
        [BEFORE, CHANGED].map(|of_last| {
            let last = self.factors.len().saturating_sub(1);
            let setting = |(index, factor): (usize, &Factor)| FactorSetting {
                factor: factor.name().into(),
                level: if index == last { of_last } else { CHANGED }.into(),
            };
            DesignCell(self.factors.iter().enumerate().map(setting).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use kelvin_diagnose::{Effect, Rules};

    use super::*;

    fn remedy(change: Change) -> Remedy {
        Remedy {
            finding: "waits",
            title: "a change".into(),
            change,
            reason: String::new(),
            effect: Effect::unknown("nothing is measured here"),
            rules: Rules::Allowed,
        }
    }

    #[test]
    fn both_sides_have_what_was_accepted_and_only_b_the_next_one() {
        let setting = Change::Setting { name: "jit".into(), before: "on".into(), value: "off".into() };
        let index = Change::Statements {
            apply: vec!["CREATE INDEX IF NOT EXISTS i ON t (a)".into(), "ANALYZE t".into()],
            undo: vec!["DROP INDEX IF EXISTS i".into()],
            control: vec!["ANALYZE t".into()],
        };
        let comparison = Comparison::of(&[remedy(setting)], &remedy(index)).unwrap();
        let names = comparison.cells().map(|cell| cell.name());
        assert_eq!(names, ["change 1=changed change 2=before", "change 1=changed change 2=changed"]);
        let LevelValue::Command(pair) = &comparison.factors()[1].level(CHANGED).unwrap().value else {
            panic!()
        };
        assert_eq!(pair.apply.as_deref(), Some("CREATE INDEX IF NOT EXISTS i ON t (a);\nANALYZE t"));
        let of_control = CommandPair { apply: Some("ANALYZE t".into()), undo: Some("SELECT 1".into()) };
        assert_eq!(comparison.factors()[1].level(BEFORE).unwrap().value, LevelValue::Command(of_control));
        // The same as in the file of a study.
        let written = toml::to_string(&comparison.factors()[1]).unwrap();
        assert!(written.contains("sql = true"), "{written}");
        assert_eq!(toml::from_str::<Factor>(&written).unwrap(), comparison.factors()[1]);
    }

    #[test]
    fn a_setting_that_runs_programs_is_refused() {
        let change = Change::Setting { name: "a b".into(), before: "x".into(), value: "y".into() };
        assert!(Comparison::of(&[], &remedy(change)).is_err());
    }
}
