//! What others did while the host was measured.

use std::time::{Duration, Instant};

use kelvin_host::{SystemTree, Ticks, online_cpus};

use super::{Baseline, BaselineMetricKind};
use crate::{cpu_time, thread_times};

/// The CPUs that other processes used meanwhile.
pub const OTHERS: &str = "host.others";

/// Watches from its making on.
pub(super) struct DisturbanceMeter {
    ticks: Option<Ticks>,
    own: Duration,
    delay: Option<Duration>,
    since: Instant,
}

impl DisturbanceMeter {
    pub(super) fn start() -> Self {
        let delay = thread_times().map(|times| times.delay);
        Self { ticks: Ticks::read(&SystemTree::default()), own: cpu_time(), delay, since: Instant::now() }
    }

    pub(super) fn finish(self, baseline: &mut Baseline) {
        let seconds = self.since.elapsed().as_secs_f64();
        let own = cpu_time().saturating_sub(self.own).as_secs_f64();
        let tree = SystemTree::default();
        let shares = self.ticks.zip(Ticks::read(&tree)).and_then(|(before, now)| now.shares_since(before));
        match shares {
            Some(shares) => {
                let steal = 100.0 * shares.stolen;
                baseline.put("host.steal", "CPU steal", steal, "%", BaselineMetricKind::Disturbance, 1);
                // The ticks of all CPUs in this time are as many seconds as there are CPUs, whatever a tick is.
                let busy = (shares.taken - shares.stolen) * online_cpus(&tree).unwrap_or(1) as f64;
                let others = (busy - own / seconds).max(0.0);
                baseline.put(
                    OTHERS,
                    "used by other processes",
                    others,
                    "cores",
                    BaselineMetricKind::Disturbance,
                    1,
                );
            }
            None => baseline.miss("steal and other processes", "/proc/stat cannot be read"),
        }
        match (self.delay, thread_times()) {
            (Some(before), Some(now)) => {
                let waited = now.delay.saturating_sub(before).as_secs_f64() / seconds * 100.0;
                baseline.put(
                    "host.run-delay",
                    "waited for a CPU",
                    waited,
                    "%",
                    BaselineMetricKind::Disturbance,
                    1,
                );
            }
            _ => baseline.miss("waiting for a CPU", "this kernel has no /proc/self/schedstat"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_second_of_our_own_is_no_disturbance() {
        let mut baseline = Baseline::new();
        let watch = DisturbanceMeter::start();
        std::thread::sleep(Duration::from_millis(200));
        watch.finish(&mut baseline);
        let all = baseline.figures.iter().map(|figure| figure.value);
        assert!(all.clone().count() >= 2 && all.clone().all(|v| v.is_finite() && v >= 0.0), "{baseline:?}");
    }
}
