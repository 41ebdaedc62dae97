//! The commands of a cell.

use super::{Applier, Levels, not_taken};
use crate::factor::{FactorError, LevelValue, shell};
use crate::undo::ReversibleChange;

impl Applier {
    /// Undoes the commands that the cell does not have.
    pub(super) fn end_commands(&mut self, levels: &Levels<'_>) -> Result<(), FactorError> {
        for (factor, level) in levels {
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

    /// Runs the commands of the cell that are not on yet.
    pub(super) fn begin_commands(&mut self, levels: &Levels<'_>) -> Result<(), FactorError> {
        for (factor, level) in levels {
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
}
