//! The time model: the average activity of the transactions in flight, and its confidence.

use std::collections::BTreeMap;

use kelvin_measure::event::KindCounts;
use kelvin_observe::metric;
use kelvin_stats::{ess, student};

use super::Share;
use super::independent_counters::BUSY;
use crate::load::{client_cores, client_delay, process_cores, server_is_here, transactions_in_flight};
use crate::{Class, Evidence, PointEvidence, is_client};

/// The activity of the transactions in flight.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// Transactions under way, on average.
    pub(crate) sessions: f64,
    /// The classes with their shares, the largest first.
    pub(crate) shares: Vec<(Class, Share)>,
}

impl Model {
    /// Sessions and share of a class; 0 when it was not seen.
    pub(crate) fn share(&self, class: Class) -> Option<&Share> {
        self.shares.iter().find(|(of, _)| *of == class).map(|(_, share)| share)
    }
}

/// The model of a point; `None` if no sessions were sampled.
///
/// Average active sessions by class come from the samples of the database. The difference to the transactions in flight
/// by Little's law (Σ of their times / window) is time outside the database: the load generator's CPU time and its
/// waiting for a CPU, the wake-up of the server's processes, and the rest, which is the network's.
pub(crate) fn model(evidence: &Evidence, point: &PointEvidence) -> Option<Model> {
    let active = evidence.active(point.point, is_client);
    if active.looks == 0 {
        return None;
    }
    let mut sums: BTreeMap<Class, f64> = BTreeMap::new();
    for (group, sessions) in &active.groups {
        if let Some(class) = Class::from_wait_group(group) {
            *sums.entry(class).or_default() += sessions;
        }
    }
    let seen: f64 = sums.values().sum();
    let outside = (transactions_in_flight(evidence, point).unwrap_or(seen) - seen).max(0.0);
    let here = server_is_here(evidence);
    let on_cpu = sums.get(&Class::Cpu).copied().unwrap_or(0.0);
    // With thousands of users a client's CPU time is not all within transactions: never more than there is.
    let client = client_cores(evidence, point).unwrap_or(0.0) + client_delay(evidence, point).unwrap_or(0.0);
    let client = client.min(outside);
    let waking = if here { waking(evidence, point.point, on_cpu) } else { 0.0 }.min(outside - client);
    let rest = outside - client - waking;
    // Where client and server share a host with saturated CPUs, the remainder was waiting for them as well, as far as
    // such waiting was measured: a user whose answer has arrived waits for its event loop, and the loop for a CPU,
    // which is counted once for all its users.
    let full = evidence.mean(point.point, metric::CPU_BUSY).is_some_and(|busy| busy >= BUSY);
    let queued = client_delay(evidence, point).unwrap_or(0.0)
        + evidence.mean(point.point, metric::SERVER_RUN_DELAY).unwrap_or(0.0);
    let more = if here && full { rest.min(queued) } else { 0.0 };
    // Every transaction includes the network time: the network accounts for no more time than fits into a typical
    // transaction. A pause of client or server affects a few long transactions and no others.
    let network = (rest - more).min(typical(evidence, point).unwrap_or(f64::INFINITY));
    let (waking, held_up) = (waking + more, rest - more - network);
    let mut constant: BTreeMap<Class, f64> = BTreeMap::new();
    // On the same host client and server share the CPUs, which are one resource.
    *constant.entry(if here { Class::Cpu } else { Class::Client }).or_default() += client;
    *constant.entry(Class::Cpu).or_default() += waking;
    *constant.entry(Class::Network).or_default() += network;
    *constant.entry(Class::Other).or_default() += held_up;
    for (class, sessions) in &constant {
        *sums.entry(*class).or_default() += sessions;
    }
    let sessions: f64 = sums.values().sum();
    if sessions <= 0.0 {
        return None;
    }
    let stretches = stretches(evidence, point.point);
    let mut shares: Vec<(Class, Share)> = sums
        .into_iter()
        .filter(|(_, sessions)| *sessions > 0.0)
        .map(|(class, of)| {
            let share = of / sessions;
            let half = half_width(&stretches, class, share, outside, &constant)
                .unwrap_or_else(|| by_count(share, f64::from(active.looks)));
            let (low, high) = ((share - half).max(0.0), (share + half).min(1.0));
            (class, Share { class: class.label().into(), sessions: of, share, low, high })
        })
        .collect();
    shares.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
    Some(Model { sessions, shares })
}

/// Transactions that would be in flight if all of a type took its median; `None` if a type has too few for a median.
fn typical(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let seconds = evidence.window(point.point)?.seconds();
    let of_type = |kind: &KindCounts| Some(kind.good() as f64 * kind.latency.percentile(50.0)? as f64);
    let sum: f64 = point.by_type().filter(|kind| kind.good() > 0).map(of_type).sum::<Option<f64>>()?;
    (seconds > 0.0).then_some(sum / 1e9 / seconds)
}

/// Time that the server's processes waited for a CPU before the database saw them active: their total wait, minus the
/// part that is in the sessions sampled without a wait.
fn waking(evidence: &Evidence, point: u32, on_cpu: f64) -> f64 {
    let Some(delay) = evidence.mean(point, metric::SERVER_RUN_DELAY) else { return 0.0 };
    let Some(cores) = process_cores(evidence, point, "server") else { return 0.0 };
    let within = (on_cpu - cores).max(0.0);
    (delay - within).max(0.0)
}

/// Sessions by class, stretch by stretch of the window.
fn stretches(evidence: &Evidence, point: u32) -> Vec<BTreeMap<Class, f64>> {
    let Some(window) = evidence.window(point) else { return Vec::new() };
    let within = evidence.sessions_over_time().filter(|(at, _)| *at > window.from && *at <= window.to);
    within
        .map(|(_, groups)| {
            let mut sums = BTreeMap::new();
            for (group, sessions) in groups {
                if let (true, Some(class)) = (is_client(group), Class::from_wait_group(group)) {
                    *sums.entry(class).or_default() += sessions;
                }
            }
            sums
        })
        .collect()
}

/// Half the width of the 95 % interval of a share: the error of a ratio of two means (Cochran, Sampling Techniques,
/// 1977, chapter 6), widened by the autocorrelation of the stretches' residuals. `None` for fewer than five stretches.
fn half_width(
    stretches: &[BTreeMap<Class, f64>],
    class: Class,
    share: f64,
    outside: f64,
    constant: &BTreeMap<Class, f64>,
) -> Option<f64> {
    if stretches.len() < 5 {
        return None;
    }
    let of = |sums: &BTreeMap<Class, f64>, class| sums.get(&class).copied().unwrap_or(0.0);
    let all: Vec<f64> = stretches.iter().map(|sums| sums.values().sum::<f64>() + outside).collect();
    let residuals: Vec<f64> = stretches
        .iter()
        .zip(&all)
        .map(|(sums, all)| of(sums, class) + of(constant, class) - share * all)
        .collect();
    let mean = student::describe(&all)?.mean;
    let precision = ess::precision(&residuals)?;
    let quantile = student::quantile(0.975, (precision.ess - 1.0).max(1.0))?;
    (mean > 0.0).then(|| quantile * precision.error / mean)
}

/// The same from the number of samples alone, as if each were one independent session.
pub(super) fn by_count(share: f64, samples: f64) -> f64 {
    1.96 * (share * (1.0 - share) / samples).sqrt()
}
