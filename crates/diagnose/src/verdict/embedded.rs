//! The time model of SQLite, which runs within the client: its users wait for the file's one writer in Kelvin's queue,
//! whose length is known.

use kelvin_stats::{ess, student};

use super::Share;
use super::time::{Model, by_count};
use crate::load::{client_cores, client_delay, transactions_in_flight};
use crate::{Class, Evidence, PointEvidence};

/// Users that wait for their turn to write, on average.
const QUEUE: &str = kelvin_observe::metric::WRITER_QUEUE;

/// The model; `None` if the queue was not observed, or no transactions ended.
///
/// Of the transactions in flight by Little's law, the length of the queue is the number that wait for the writer; of
/// the others, this process's CPU time and its waiting for a CPU are known, and the rest is the process's reads, writes
/// and flushes.
pub(super) fn model(evidence: &Evidence, point: &PointEvidence) -> Option<Model> {
    let window = evidence.window(point.point)?;
    let all = transactions_in_flight(evidence, point).filter(|all| *all > 0.0)?;
    let queued = evidence.mean(point.point, QUEUE)?.min(all);
    let cpu = client_cores(evidence, point).unwrap_or(0.0) + client_delay(evidence, point).unwrap_or(0.0);
    let cpu = cpu.min(all - queued);
    let readings: Vec<f64> = evidence.values_within(QUEUE, window).iter().map(|seen| seen.value).collect();
    let half = half_width(&readings).map(|half| half / all);
    let parts = [(Class::Writer, queued), (Class::Cpu, cpu), (Class::Other, all - queued - cpu)];
    let mut shares: Vec<(Class, Share)> = parts
        .into_iter()
        .filter(|(_, sessions)| *sessions > 0.0)
        .map(|(class, sessions)| {
            let share = sessions / all;
            let half = half.unwrap_or_else(|| by_count(share, readings.len() as f64));
            let (low, high) = ((share - half).max(0.0), (share + half).min(1.0));
            (class, Share { class: class.label().into(), sessions, share, low, high })
        })
        .collect();
    shares.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
    Some(Model { sessions: all, shares })
}

/// Half the width of the 95 % interval of the mean of readings, widened by their autocorrelation; none for fewer than five.
fn half_width(readings: &[f64]) -> Option<f64> {
    let precision = (readings.len() >= 5).then(|| ess::precision(readings))??;
    Some(student::quantile(0.975, (precision.ess - 1.0).max(1.0))? * precision.error)
}
