//! A gate as a table: one row per measure and load.

use super::Gate;
use crate::table::{Table, number};

/// The rows of the gate.
pub fn table(gate: &Gate) -> Table {
    let mut table =
        Table::new("base,candidate,measure,unit,load,ratio,low,high,confidence,allowed,outcome,words");
    for row in &gate.rows {
        let (ratio, low, high) =
            row.ratio.map_or((None, None, None), |(r, l, h)| (Some(r), Some(l), Some(h)));
        table.rows.push(vec![
            gate.base.clone(),
            gate.candidate.clone(),
            row.measure.clone(),
            row.unit.clone(),
            row.load.clone(),
            number(ratio),
            number(low),
            number(high),
            row.confidence.to_string(),
            row.most.to_string(),
            row.outcome.word().into(),
            row.words.clone(),
        ]);
    }
    table
}
