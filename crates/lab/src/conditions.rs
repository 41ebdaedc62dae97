//! What differs between the cells of a study: applied before a run, reverted after it.

use serde::{Deserialize, Serialize};

use crate::bench::BenchError;
use kelvin_run::Spec;

/// A cell: one level of each factor, in the order of the factors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DesignCell(pub Vec<FactorSetting>);

/// A factor at one of its levels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FactorSetting {
    /// The factor's name.
    pub factor: String,
    /// The level's name.
    pub level: String,
}

impl DesignCell {
    /// Its name, such as "numa=local huge-pages=on": the treatment of its runs in their group.
    pub fn name(&self) -> String {
        let each = self.0.iter().map(|one| format!("{}={}", one.factor, one.level));
        each.collect::<Vec<_>>().join(" ")
    }
}

/// Brings the machine, the server and the specification into the state of a cell.
pub trait CellConditions {
    /// Applies a cell: changes `spec` where a factor is part of it, and the environment otherwise. What was changed
    /// before for another cell, and differs, is restored or changed again. When it fails, what was changed is restored.
    fn apply(&mut self, cell: &DesignCell, spec: &mut Spec) -> Result<(), BenchError>;

    /// Restores the state before the first [`CellConditions::apply`]. A second call does nothing.
    fn undo(&mut self) -> Result<(), BenchError>;
}
