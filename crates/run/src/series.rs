//! The series of counts and latencies of a run.

use kelvin_measure::event::{Series, SeriesRole};
use kelvin_workload::TransactionKind;

/// The series of a workload's transaction types and timed statements, in their order. An open loop also has
/// the response times of each transaction type, and the generator's lateness.
pub fn series(kinds: &[TransactionKind], open_loop: bool) -> Vec<Series> {
    let mut series: Vec<Series> = kinds
        .iter()
        .map(|kind| Series {
            name: kind.name.to_string(),
            headline: kind.headline,
            role: kind.statement_of.map_or(SeriesRole::Transaction, |of| SeriesRole::Statement { of }),
        })
        .collect();
    if open_loop {
        for (of, kind) in kinds.iter().enumerate().filter(|(_, kind)| kind.statement_of.is_none()) {
            let role = SeriesRole::Response { of: of as u16 };
            series.push(Series { name: format!("{}, response", kind.name), headline: false, role });
        }
        series.push(Series { name: "schedule lag".into(), headline: false, role: SeriesRole::Lag });
    }
    series
}
