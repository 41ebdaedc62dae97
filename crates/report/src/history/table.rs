//! A history as a table: one row per entry.

use super::History;
use crate::compare::join_runs;
use crate::table::{Table, number};

/// The entries in chronological order, with the change of the level that starts at them.
pub fn table(history: &History) -> Table {
    let mut table = Table::new(
        "runs,started,label,measure,unit,value,at_least,lowest,highest,change_ratio,change_p,tenant",
    );
    for (index, entry) in history.entries.iter().enumerate() {
        let change = history.changes.iter().find(|change| change.index == index);
        table.rows.push(vec![
            join_runs(&entry.runs),
            entry.started.to_string(),
            entry.label.clone().unwrap_or_default(),
            history.measure.clone(),
            history.unit.clone(),
            entry.value.to_string(),
            entry.at_least.to_string(),
            entry.range.0.to_string(),
            entry.range.1.to_string(),
            number(change.map(super::LevelChange::ratio)),
            number(change.map(|change| change.p)),
            history.tenant.clone().unwrap_or_default(),
        ]);
    }
    table
}
