//! The commands and SQL statements of a cell.

use super::{Applier, Levels, not_taken};
use crate::factor::{FactorError, FactorKind, LevelValue, server, shell, statements};
use crate::undo::ReversibleChange;
use kelvin_run::Spec;
use kelvin_run::spec::ResetMethod;

impl Applier {
    /// Undoes the commands that are not part of the cell.
    pub(super) fn end_commands(&mut self, levels: &Levels<'_>) -> Result<(), FactorError> {
        for (factor, level) in levels.iter().filter(|(factor, _)| factor.how == FactorKind::Command) {
            let Some((old, number)) = self.running.get(&factor.name).cloned() else { continue };
            if old == level.name {
                continue;
            }
            if let Some(LevelValue::Command(pair)) = factor.level(&old).map(|level| &level.value)
                && let Some(undo) = &pair.undo
            {
                self.at_home(|_| shell::run(undo))
                    .map_err(|why| not_taken(factor, level, format!("undoing {old:?}: {why}")))?;
            }
            if let Some(journal) = &mut self.journal {
                journal.undone(number)?;
            }
            self.running.remove(&factor.name);
        }
        Ok(())
    }

    /// Runs the commands of the cell that are not in effect yet.
    pub(super) fn begin_commands(&mut self, levels: &Levels<'_>) -> Result<(), FactorError> {
        for (factor, level) in levels.iter().filter(|(factor, _)| factor.how == FactorKind::Command) {
            let LevelValue::Command(pair) = &level.value else { continue };
            let (Some(apply), Some(undo)) = (&pair.apply, &pair.undo) else { continue };
            if self.running.contains_key(&factor.name) {
                continue;
            }
            let number = self
                .record(ReversibleChange::Command { undo: undo.clone() })
                .map_err(|why| not_taken(factor, level, why))?;
            self.running.insert(factor.name.clone(), (level.name.clone(), number));
            self.at_home(|_| shell::run(apply)).map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    /// Adds the cell's statements to the specification; the run executes them after its reset. They are repeated
    /// before each run, because the previous run may have failed. Statements that are not part of the cell are undone
    /// here, unless the reset restores the data.
    pub(super) fn statements(&mut self, levels: &Levels<'_>, spec: &mut Spec) -> Result<(), FactorError> {
        let of_sql: Levels<'_> =
            levels.iter().filter(|(factor, _)| factor.how == FactorKind::Sql).copied().collect();
        if of_sql.is_empty() {
            return Ok(());
        }
        let target = spec.target.clone();
        let reached = self.at_home(|this| server::reach(&this.access, &target, &mut *this.report));
        let server = reached.map_err(FactorError::Unusable)?.target;
        for (factor, level) in of_sql {
            let LevelValue::Command(pair) = &level.value else { continue };
            let before = self.running.get(&factor.name).cloned();
            if let Some((old, number)) = before.as_ref().filter(|(old, _)| *old != level.name)
                && spec.reset.how == ResetMethod::None
            {
                if let Some(LevelValue::Command(pair)) = factor.level(old).map(|level| &level.value)
                    && let Some(undo) = &pair.undo
                {
                    statements::run(&self.access, &server, undo)
                        .map_err(|why| not_taken(factor, level, format!("undoing {old:?}: {why}")))?;
                }
                if let Some(journal) = &mut self.journal {
                    journal.undone(*number)?;
                }
                self.running.remove(&factor.name);
            }
            let (Some(apply), Some(undo)) = (&pair.apply, &pair.undo) else { continue };
            if before.is_none_or(|(old, _)| old != level.name) {
                let change = ReversibleChange::Statements { target: server.clone(), undo: undo.clone() };
                let number = self.record(change).map_err(|why| not_taken(factor, level, why))?;
                self.running.insert(factor.name.clone(), (level.name.clone(), number));
            }
            spec.reset.statements.extend(statements::split(apply));
        }
        Ok(())
    }
}
