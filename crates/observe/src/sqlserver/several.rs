//! Metrics that a server has several of: of each NUMA node, and of each class of waits, latches and spinlocks.

use kelvin_measure::observation::Metric;

use super::counters::{GROUPS, Table};
use super::latches;
use crate::activity::LatchKind;
use crate::metric;

/// One of them.
#[derive(Debug, Clone)]
struct Series {
    metric: Metric,
    key: String,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The value itself.
    Gauge,
    /// Its growth from milliseconds to seconds a second.
    Time,
    /// The same, less what it is when the server has nothing to do.
    ServerTime,
    /// Its growth a second.
    Growth,
    /// Growth of a node's CPU time, as a share of its schedulers'.
    Busy(i64),
}

/// Those of a server.
#[derive(Debug, Default)]
pub(super) struct Several {
    series: Vec<Series>,
    /// Of each that is less what it is at rest: the least that was seen before the load.
    rest: Vec<Option<f64>>,
}

impl Several {
    /// By a first reading.
    pub(super) fn present_in(table: &Table) -> Self {
        let mut series = Vec::new();
        let mut add = |name: String, unit: &str, help: String, key: String, of: Of| {
            series.push(Series { metric: Metric { name, unit: unit.into(), help }, key, of });
        };
        let nodes = table
            .keys()
            .filter_map(|key| key.strip_prefix("node.")?.strip_suffix(".schedulers")?.parse().ok());
        for node in nodes.collect::<Vec<i64>>() {
            let (name, key) = (
                |what: &str| format!("{}{node}.{what}", metric::NUMA),
                |what: &str| format!("node.{node}.{what}"),
            );
            let help = |what: &str| format!("{what} on NUMA node {node}");
            if table.contains_key(&key("cpu_s")) {
                add(
                    name("busy"),
                    "ratio",
                    help("share of the CPUs in use by the server's schedulers"),
                    key("cpu_s"),
                    Of::Busy(node),
                );
            }
            add(name("runnable"), "1", help("tasks that wait for a CPU"), key("runnable"), Of::Gauge);
            add(name("connections"), "1", help("connections of the load"), key("connections"), Of::Gauge);
        }
        for (group, what) in GROUPS {
            let of_load = format!("time that the load's sessions waited for {what}");
            add(format!("{}{group}", metric::LOAD_WAITS), "s/s", of_load, format!("load.{group}"), Of::Time);
            let of_server = format!(
                "time that all tasks of the server waited for {what}, minus the waits of the idle server"
            );
            add(
                format!("{}{group}", metric::SERVER_WAITS),
                "s/s",
                of_server,
                format!("server.{group}"),
                Of::ServerTime,
            );
        }
        if latches::has(table, LatchKind::Latch) {
            for (class, what) in latches::LATCHES {
                let help =
                    format!("time that all tasks of the server waited for latches of {what} ({class})");
                let name = format!("{}{}", metric::LATCH_WAITS, class.to_lowercase());
                add(name, "s/s", help, latches::key(LatchKind::Latch, class, "ms"), Of::Time);
            }
        }
        if latches::has(table, LatchKind::Spinlock) {
            for (class, what) in latches::SPINLOCKS {
                for counted in ["spins", "backoffs"] {
                    let help = format!("{counted} on spinlocks of {what} ({class})");
                    let name = format!("{}{}.{counted}", metric::SPINLOCKS, class.to_lowercase());
                    add(name, "1/s", help, latches::key(LatchKind::Spinlock, class, counted), Of::Growth);
                }
            }
        }
        Self { rest: vec![None; series.len()], series }
    }

    pub(super) fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.series.iter().map(|one| one.metric.clone())
    }

    /// Values from two readings `seconds` apart; before the load what is seen is the server at rest.
    pub(super) fn values(&mut self, before: &Table, after: &Table, seconds: f64, loaded: bool) -> Vec<f32> {
        let grown = |key: &str| {
            // A group of waits that nobody was in is not in the table.
            let of = |table: &Table| table.get(key).copied().unwrap_or(0.0);
            let rate = (of(after) - of(before)) / seconds;
            (seconds > 0.0 && rate >= 0.0).then_some(rate)
        };
        let one = |(series, rest): (&Series, &mut Option<f64>)| match series.of {
            Of::Gauge => Some(after.get(&series.key).copied().unwrap_or(0.0)),
            Of::Time => grown(&series.key).map(|ms| ms / 1e3),
            Of::Growth => grown(&series.key),
            Of::ServerTime => {
                let now = grown(&series.key)? / 1e3;
                if !loaded {
                    *rest = Some(rest.map_or(now, |rest| rest.min(now)));
                }
                Some((now - rest.unwrap_or(0.0)).max(0.0))
            }
            Of::Busy(node) => {
                let schedulers =
                    after.get(&format!("node.{node}.schedulers")).filter(|number| **number > 0.0)?;
                Some(grown(&series.key)? / schedulers)
            }
        };
        let value = |pair| one(pair).map_or(f32::NAN, |value| value as f32);
        self.series.iter().zip(&mut self.rest).map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[(&str, f64)]) -> Table {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_server_at_rest_is_taken_off_and_a_node_is_busy_as_its_schedulers_are() {
        let at = |cpu: f64, waited: f64, load: f64| {
            table(&[
                ("node.0.schedulers", 8.0),
                ("node.0.cpu_s", cpu),
                ("node.0.runnable", 3.0),
                ("server.log", waited),
                ("load.log", load),
            ])
        };
        let mut metrics = Several::present_in(&at(0.0, 0.0, 0.0));
        let names: Vec<String> = metrics.metrics().map(|metric| metric.name).collect();
        let place = |name: &str| names.iter().position(|known| known == name).unwrap();
        let mut of =
            |before, after, loaded, name: &str| metrics.values(before, after, 1.0, loaded)[place(name)];
        let (first, before, after) = (at(0.0, 0.0, 0.0), at(0.0, 100.0, 0.0), at(6.0, 2600.0, 2400.0));
        assert_eq!(of(&first, &before, false, "sqlserver.server_waits.log"), 0.0);
        assert!((of(&before, &after, true, "sqlserver.server_waits.log") - 2.4).abs() < 1e-6);
        assert!((of(&before, &after, true, "sqlserver.load_waits.log") - 2.4).abs() < 1e-6);
        assert_eq!(of(&before, &after, true, "sqlserver.numa.0.busy"), 0.75);
        assert_eq!(of(&before, &after, true, "sqlserver.numa.0.connections"), 0.0);
        assert!(of(&after, &before, true, "sqlserver.load_waits.log").is_nan(), "sessions have ended");
    }
}
