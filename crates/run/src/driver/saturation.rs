//! Checks whether the load generator itself was the bottleneck. Results that describe the generator instead
//! of the database are void.

use std::time::Duration;

use kelvin_measure::invariant::{Invariant, LOAD_GENERATOR};
use kelvin_measure::{Histogram, Nanos};

/// An event loop that was on a CPU for more than this share of the window was not punctual: users waited for
/// it although their answers had arrived.
const BUSIEST_LOOP: f64 = 0.9;

/// If a generator uses more than this share of the host's CPUs, the results are not comparable.
const MOST_OF_HOST: f64 = 0.9;

/// The allowed lateness of starts at the 99th percentile, for short transactions.
const LATE: Duration = Duration::from_millis(10);

/// The allowed lateness as a share of the 99th percentile of the service times, for long transactions.
/// Response times include the lateness, so they cannot be the yardstick.
const LATE_SHARE: f64 = 0.1;

/// What is known of the generator over the measured window.
#[derive(Debug)]
pub(super) struct GeneratorLoad<'a> {
    /// Length of the window.
    pub(super) elapsed: Duration,
    /// CPUs of its host that the generator may use.
    pub(super) cpus: f64,
    /// CPU time of the process, and whether the database is part of the process.
    pub(super) cpu: Duration,
    pub(super) embedded: bool,
    /// CPU time of each event loop; `None` where the kernel does not count it.
    pub(super) loops: Option<&'a Vec<Duration>>,
    /// In an open loop: the lateness of starts for which a user was waiting, and the service times.
    pub(super) lag: Option<(&'a Histogram, &'a Histogram)>,
}

impl GeneratorLoad<'_> {
    /// The invariant, with its evidence.
    pub(super) fn judge(&self) -> Invariant {
        let cpus = self.cpus;
        let elapsed = self.elapsed.as_secs_f64();
        let cores = self.cpu.as_secs_f64() / elapsed;
        let mut found = vec![format!("{cores:.2} of {cpus} CPUs{}", self.with_database())];
        let mut holds = self.embedded || cores < MOST_OF_HOST * cpus;
        if self.loops.is_none() {
            found.push("the CPU time of its event loops is not known".into());
        }
        if let Some(busiest) = self.loops.and_then(|loops| loops.iter().max()) {
            let share = busiest.as_secs_f64() / elapsed;
            found.push(format!("its busiest event loop was {:.0} % busy in the window", share * 100.0));
            holds &= share < BUSIEST_LOOP;
        }
        if let Some((lag, service)) = self.lag
            && let Some((percent, late)) = highest(lag)
        {
            let share = service.percentile(percent).map_or(0.0, |service| LATE_SHARE * service as f64);
            found.push(format!("{percent} % of the starts were at most {:.2} ms late", late as f64 / 1e6));
            holds &= late as f64 <= share.max(LATE.as_nanos() as f64);
        }
        let verdict = if holds { "" } else { ": the results measure the load generator, not the database" };
        Invariant::new(LOAD_GENERATOR, holds, format!("{}{verdict}", found.join(", ")))
    }

    fn with_database(&self) -> &'static str {
        if self.embedded { " (including the database)" } else { "" }
    }
}

/// The 99th percentile; with fewer starts, the highest percentile that their number supports.
fn highest(lag: &Histogram) -> Option<(f64, Nanos)> {
    [99.0, 95.0, 90.0, 50.0].into_iter().find_map(|percent| Some((percent, lag.percentile(percent)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(cpu: f64, loops: &[f64], late: u64, service: u64) -> Invariant {
        let (mut lag, mut services) = (Histogram::new(), Histogram::new());
        for _ in 0..2000 {
            lag.record(late);
            services.record(service);
        }
        let loops: Vec<Duration> = loops.iter().map(|&cpu| Duration::from_secs_f64(cpu)).collect();
        let cpus = 2.0;
        GeneratorLoad {
            elapsed: Duration::from_secs(10),
            cpus,
            cpu: Duration::from_secs_f64(cpu * cpus * 10.0),
            embedded: false,
            loops: Some(&loops),
            lag: Some((&lag, &services)),
        }
        .judge()
    }

    #[test]
    fn each_way_of_being_the_bottleneck_is_found() {
        assert!(judged(0.5, &[8.0, 8.5], 100_000, 5_000_000).holds);
        assert!(!judged(0.95, &[], 0, 5_000_000).holds, "all CPUs");
        assert!(!judged(0.5, &[3.0, 9.5], 0, 5_000_000).holds, "one loop");
        assert!(!judged(0.1, &[], 11_000_000, 5_000_000).holds, "late by more than the transactions take");
        assert!(judged(0.1, &[], 11_000_000, 500_000_000).holds, "late by a fiftieth of them");
        assert!(judged(0.95, &[], 0, 1).evidence.contains("not the database"));
    }
}
