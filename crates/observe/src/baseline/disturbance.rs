//! What others did while the host was measured.

use std::fs;
use std::time::{Duration, Instant};

use kelvin_host::Ticks;

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
        Self { ticks: ticks(), own: cpu_time(), delay, since: Instant::now() }
    }

    pub(super) fn finish(self, baseline: &mut Baseline) {
        let seconds = self.since.elapsed().as_secs_f64();
        let own = cpu_time().saturating_sub(self.own).as_secs_f64();
        match (self.ticks, ticks()) {
            (Some(before), Some(now)) if now.all > before.all => {
                let all = (now.all - before.all) as f64;
                let steal = 100.0 * now.stolen.saturating_sub(before.stolen) as f64 / all;
                baseline.put("host.steal", "CPU steal", steal, "%", BaselineMetricKind::Disturbance, 1);
                // The ticks of all CPUs in this time are as many seconds as there are CPUs, whatever a tick is.
                let cpus = fs::read_to_string("/proc/stat").map_or(1, |text| cpus(&text));
                let busy = now.busy().saturating_sub(before.busy()) as f64 / all * cpus as f64;
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
            _ => baseline.miss("steal and other processes", "/proc/stat cannot be read"),
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

fn ticks() -> Option<Ticks> {
    Ticks::parse(&fs::read_to_string("/proc/stat").ok()?)
}

fn cpus(text: &str) -> usize {
    let cpu =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|l| l.starts_with(|c: char| c.is_ascii_digit()));
    text.lines().filter(cpu).count().max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpus_are_counted() {
        let text = "cpu  100 5 20 800 50 3 2 20 7 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n";
        assert_eq!(cpus(text), 2);
    }

    #[test]
    fn a_busy_second_of_our_own_is_no_disturbance() {
        let mut baseline = Baseline::new();
        let watch = DisturbanceMeter::start();
        std::thread::sleep(Duration::from_millis(200));
        watch.finish(&mut baseline);
        let all = baseline.figures.iter().map(|figure| figure.value);
        assert!(all.clone().count() >= 2 && all.clone().all(|v| v.is_finite() && v >= 0.0), "{baseline:?}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(cpu )?([0-9]{1,20} ?){0,12}\\PC{0,5}", any in "\\PC{0,40}") {
            let _ = (cpus(&text), cpus(&any));
        }
    }
}
