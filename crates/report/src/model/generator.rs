//! Metrics of the load generator: its resource use and its lateness.

use kelvin_measure::Histogram;
use kelvin_measure::event::Window;
use serde::Serialize;

use super::host::{HostReport, SkewReport};
use super::latency::us;

/// Resource use of the client process, and its threads' waits for a CPU, over the measured window. If the
/// engine runs inside the process, such as SQLite, the CPU time includes the database's.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GeneratorReport {
    /// CPU time per second of the window: the number of busy cores.
    pub cpu_cores: Option<f64>,
    /// The same, in per cent of the host's hardware threads.
    pub cpu_host_percent: Option<f64>,
    /// CPU time per good transaction.
    pub cpu_us_per_transaction: Option<f64>,
    /// Milliseconds per second of the window in which its threads, in total, were ready to run but had no
    /// CPU.
    pub run_delay_ms_per_s: Option<f64>,
    /// The same, per good transaction.
    pub run_delay_us_per_transaction: Option<f64>,
    /// The delay of transactions while a user was idle; `None` in a closed loop.
    pub lag: Option<Lag>,
    /// The hosts of a fleet, whose totals the other values are; empty if this process generated the load. For
    /// a scenario, the hosts of its tenants' agents, which are not included in any total.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReport>,
    /// How far apart several hosts started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<SkewReport>,
    /// How far apart they closed their windows, if these had a planned end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<SkewReport>,
    /// Whether the values are totals of the hosts.
    #[serde(skip)]
    pub(crate) of_hosts: bool,
}

/// The generator's lateness in an open loop.
#[derive(Debug, Clone, Serialize)]
pub struct Lag {
    /// Transactions for which an idle user was available.
    pub samples: u64,
    /// Median.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Maximum.
    pub max_us: Option<f64>,
}

impl GeneratorReport {
    /// `good` transactions ended in the window, on a host with `threads` hardware threads; 0 if they have no
    /// common sum.
    pub(super) fn of(
        window: Option<&Window>,
        good: u64,
        threads: Option<f64>,
        lag: Option<&Histogram>,
    ) -> Self {
        let lag = lag.map(|histogram| {
            let summary = histogram.summary();
            Lag {
                samples: histogram.count(),
                p50_us: us(&summary, 0),
                p99_us: us(&summary, 2),
                max_us: summary.max.map(|ns| ns as f64 / 1e3),
            }
        });
        let Some(window) = window else { return Self { lag, ..Self::default() } };
        let each = |ns: u64| (good > 0).then(|| ns as f64 / 1e3 / good as f64);
        let share = |ns: u64| (window.elapsed > 0).then(|| ns as f64 / window.elapsed as f64);
        // 0 means that the kernel did not report a value.
        let cpu = Some(window.client_cpu).filter(|ns| *ns > 0);
        let cores = cpu.and_then(share);
        Self {
            cpu_cores: cores,
            cpu_host_percent: cores.zip(threads).map(|(cores, threads)| 100.0 * cores / threads),
            cpu_us_per_transaction: cpu.and_then(each),
            run_delay_ms_per_s: window.client_run_delay.and_then(share).map(|share| share * 1e3),
            run_delay_us_per_transaction: window.client_run_delay.and_then(each),
            lag,
            ..Self::default()
        }
    }

    /// Adds the hosts of a fleet. Hosts of a scenario's tenants are not added to the values of this process.
    pub(super) fn with_hosts(
        self,
        (hosts, [start, end]): (Vec<HostReport>, [Option<SkewReport>; 2]),
        is_scenario: bool,
    ) -> Self {
        if hosts.is_empty() || is_scenario {
            return Self { hosts, ..self };
        }
        let cpus = HostReport::all_cpus(&hosts);
        let share = self.cpu_cores.filter(|_| cpus > 0.0).map(|cores| 100.0 * cores / cpus);
        Self { hosts, start, end, cpu_host_percent: share, of_hosts: true, ..self }
    }
}

/// Hardware threads of the client's host.
pub(super) fn host_threads(environment: &serde_json::Value) -> Option<f64> {
    environment.pointer("/client_host/cpu/threads")?.as_f64().filter(|threads| *threads > 0.0)
}
