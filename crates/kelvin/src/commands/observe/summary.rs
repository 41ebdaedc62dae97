//! Aggregates the observations.

use kelvin_measure::text::three_figures;
use kelvin_observe::metric;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kelvin_measure::observation::{
    DatabaseDirectory, Metric, Observation, Observer, Reading, UnavailableMetrics,
};
use kelvin_measure::{Nanos, declare};
use kelvin_observe::activity::SessionSamples;

use crate::out::wrapped;

/// Device metrics that are means over requests or ratios of totals, each with its weight. Over a longer time they are
/// weighted, as iostat does.
const WEIGHED: [(&str, &str); 6] = [
    ("r_await", "r_s"),
    ("rareq_sz", "r_s"),
    ("w_await", "w_s"),
    ("wareq_sz", "w_s"),
    ("f_await", "f_s"),
    ("d_await", "d_s"),
];

/// Aggregate of a metric over the whole observation.
#[derive(Debug, Clone, Default)]
struct Total {
    name: String,
    unit: String,
    last: f64,
    count: u64,
    sum: f64,
    most: f64,
    /// Sum of value times weight, and sum of the weights.
    weighed: Option<(f64, f64)>,
    /// Index of the metric that is the weight.
    weight: Option<usize>,
}

impl Total {
    fn mean(&self) -> Option<f64> {
        match self.weighed {
            Some((sum, weights)) => (weights > 0.0).then(|| sum / weights),
            None => (self.count > 0).then(|| self.sum / self.count as f64),
        }
    }
}

/// Aggregates of all metrics.
#[derive(Debug, Default)]
pub(super) struct Summary {
    metrics: Vec<Total>,
    by_name: BTreeMap<String, usize>,
    /// Index of the host's first metric.
    host: Option<u32>,
    first: Option<Nanos>,
    last: Nanos,
    sessions: SessionSamples,
    occurrences: BTreeMap<u32, String>,
    absent: Vec<UnavailableMetrics>,
    places: Vec<DatabaseDirectory>,
}

impl Summary {
    /// Adds an observation. Returns whether it is a host sample with rates.
    pub(super) fn take(&mut self, observation: &Observation) -> bool {
        match observation {
            Observation::Observer(observer) => self.declare(observer),
            Observation::Reading(reading) => return self.reading(reading),
            Observation::WaitGroups { .. } | Observation::Waits(_) => self.sessions.take(observation),
            Observation::Occurrence(one) => {
                let at = |nanos: Nanos| format!("{:.1} s", nanos as f64 / 1e9);
                let to = one.to.map_or("still running".into(), |to| format!("to {}", at(to)));
                let text = format!("{} ({}) from {} {to}", one.kind, one.subject, at(one.from));
                self.occurrences.insert(one.id, text);
            }
            Observation::Lost(absent) => self.absent.push(absent.clone()),
            Observation::Statements { .. }
            | Observation::PreparedStatements { .. }
            | Observation::StatementTexts { .. }
            | Observation::Blocking { .. }
            | Observation::OtherProcesses { .. }
            | Observation::Relations { .. }
            | Observation::Settings { .. } => {}
        }
        false
    }

    fn declare(&mut self, observer: &Observer) {
        if observer.source == "host" && self.host.is_none() {
            self.host = Some(observer.first);
        }
        let total = |Metric { name, unit, .. }: &Metric| Total {
            name: name.clone(),
            unit: unit.clone(),
            last: f64::NAN,
            ..Total::default()
        };
        let totals: Vec<Total> = observer.metrics.iter().map(total).collect();
        declare(&mut self.metrics, observer.first, &totals);
        let first = observer.first as usize;
        let end = (first + totals.len()).min(self.metrics.len());
        for index in first..end {
            self.by_name.insert(self.metrics[index].name.clone(), index);
        }
        for index in first..end {
            let name = &self.metrics[index].name;
            let weight = WEIGHED.iter().find_map(|(column, by)| {
                let device = name.strip_suffix(column)?.strip_suffix('.')?;
                self.by_name.get(&format!("{device}.{by}")).copied()
            });
            self.metrics[index].weighed = weight.map(|_| (0.0, 0.0));
            self.metrics[index].weight = weight;
        }
        self.absent.extend(observer.absent.iter().cloned());
        self.places.extend(observer.places.iter().cloned());
    }

    fn reading(&mut self, reading: &Reading) -> bool {
        let first = reading.first as usize;
        let values =
            |index: usize| reading.values.get(index.checked_sub(first)?).map(|value| f64::from(*value));
        for index in first..self.metrics.len().min(first + reading.values.len()) {
            let Some(value) = values(index) else { continue };
            let weight = self.metrics[index].weight.and_then(values);
            let metric = &mut self.metrics[index];
            metric.last = value;
            if !value.is_finite() {
                continue;
            }
            metric.most = if metric.count == 0 { value } else { metric.most.max(value) };
            metric.count += 1;
            metric.sum += value;
            if let (Some((sum, weights)), Some(weight)) =
                (&mut metric.weighed, weight.filter(|w| w.is_finite()))
            {
                *sum += value * weight;
                *weights += weight;
            }
        }
        if Some(reading.first) != self.host {
            return false;
        }
        let primed = self.first.is_some();
        self.first.get_or_insert(reading.at);
        self.last = reading.at;
        primed
    }

    /// Seconds from the first host sample to the last.
    pub(super) fn seconds(&self) -> f64 {
        (self.last - self.first.unwrap_or(self.last)) as f64 / 1e9
    }

    /// The newest value of a metric, if known.
    pub(super) fn last(&self, name: &str) -> Option<f64> {
        self.metrics.get(*self.by_name.get(name)?).map(|metric| metric.last).filter(|value| value.is_finite())
    }

    fn find(&self, name: &str) -> Option<&Total> {
        self.metrics.get(*self.by_name.get(name)?)
    }

    fn mean(&self, name: &str) -> Option<f64> {
        self.find(name)?.mean()
    }

    fn most(&self, name: &str) -> Option<f64> {
        self.find(name).filter(|metric| metric.count > 0).map(|metric| metric.most)
    }

    /// The distinct parts of the metrics' names between `prefix` and the next dot.
    fn parts(&self, prefix: &str) -> BTreeSet<&str> {
        let names = self
            .by_name
            .keys()
            .filter_map(|name| name.strip_prefix(prefix)?.strip_prefix('.')?.split_once('.'));
        names.map(|(part, _)| part).collect()
    }

    /// The block devices.
    pub(super) fn devices(&self) -> BTreeSet<&str> {
        self.parts(metric::DISK)
    }

    /// The summary as text of 80 columns.
    pub(super) fn render(&self) -> String {
        let mut text = format!("\nOver {:.1} s\n", self.seconds());
        self.processors(&mut text);
        self.disks(&mut text);
        self.networks(&mut text);
        self.others(&mut text);
        self.sessions(&mut text);
        if !self.occurrences.is_empty() {
            text.push_str("\nEvents\n");
            self.occurrences.values().for_each(|one| text.push_str(&format!("  {one}\n")));
        }
        if !self.absent.is_empty() {
            text.push_str("\nNot observed\n");
            for absent in &self.absent {
                wrapped(&mut text, &format!("{}: {}", absent.what, absent.why), 2, 4, 80);
            }
        }
        text
    }

    fn processors(&self, text: &mut String) {
        text.push_str("\nCPU and memory                     mean       max\n");
        let mut row = |label: &str, name: &str, factor: f64, unit: &str| {
            if let (Some(mean), Some(most)) = (self.mean(name), self.most(name)) {
                let (mean, most) = (mean * factor, most * factor);
                let row = format!("  {label:<28} {mean:>8.1}  {most:>8.1} {unit}");
                let _ = writeln!(text, "{}", row.trim_end());
            }
        };
        for (label, mode) in [
            ("busy, of all CPUs", "busy"),
            ("user", "user"),
            ("nice", "nice"),
            ("system", "system"),
            ("iowait", "iowait"),
            ("interrupts", "irq"),
            ("soft interrupts", "softirq"),
            ("steal", "steal"),
        ] {
            row(label, &metric::cpu(mode), 100.0, "%");
        }
        row("tasks waiting for a CPU", metric::RUN_QUEUE_DELAY, 1.0, "");
        row("context switches", metric::CONTEXT_SWITCHES, 1.0, "1/s");
        for (resource, kind) in [("cpu", "some"), ("memory", "some"), ("io", "some"), ("io", "full")] {
            let name = metric::pressure(resource, kind);
            row(&format!("pressure, {resource} {kind}"), &name, 100.0, "%");
        }
        row("memory available", metric::MEMORY_AVAILABLE, 1.0 / (1 << 20) as f64, "MiB");
        for process in self.parts(metric::PROCESSES) {
            let of = |column: &str| metric::process(process, column);
            row(&format!("{process}: CPUs in user code"), &of("cpu.user"), 1.0, "");
            row(&format!("{process}: CPUs in the kernel"), &of("cpu.system"), 1.0, "");
            row(&format!("{process}: threads waiting"), &of("run_delay"), 1.0, "");
        }
    }

    fn disks(&self, text: &mut String) {
        if self.devices().is_empty() {
            return;
        }
        text.push_str("\nDevice        r/s    rkB/s r_await rareq-sz      w/s    wkB/s w_await wareq-sz\n");
        for device in self.devices() {
            let of = |column: &str| figure(self.mean(&metric::disk(device, column)));
            let name: String = device.chars().take(9).collect();
            let _ = writeln!(
                text,
                "{name:<9}{:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>7} {:>8}",
                of("r_s"),
                of("rkb_s"),
                of("r_await"),
                of("rareq_sz"),
                of("w_s"),
                of("wkb_s"),
                of("w_await"),
                of("wareq_sz")
            );
        }
        text.push_str("\nDevice        f/s  f_await   aqu-sz    %util   holds\n");
        for device in self.devices() {
            let of = |column: &str| figure(self.mean(&metric::disk(device, column)));
            let name: String = device.chars().take(9).collect();
            let holds = self.places.iter().filter(|place| place.device.as_deref() == Some(device));
            let holds: Vec<&str> = holds.map(|place| place.role.as_str()).collect();
            let row = format!(
                "{name:<9}{:>8} {:>8} {:>8} {:>8}   {}",
                of("f_s"),
                of("f_await"),
                of("aqu_sz"),
                of("util"),
                holds.join(", ")
            );
            let _ = writeln!(text, "{}", row.trim_end());
        }
    }

    fn networks(&self, text: &mut String) {
        let names: Vec<&str> =
            self.parts(metric::NETWORK).into_iter().filter(|name| *name != "soft").collect();
        if !names.is_empty() {
            text.push_str("\nNetwork     rxkB/s  packets/s    txkB/s  packets/s   errors/s   drops/s\n");
        }
        for name in names {
            let of = |column: &str| self.mean(&metric::network(name, column));
            let _ = writeln!(
                text,
                "{:<9} {:>8} {:>10} {:>9} {:>10} {:>10} {:>9}",
                name.chars().take(9).collect::<String>(),
                figure(of("rx_bytes").map(|bytes| bytes / 1000.0)),
                figure(of("rx_packets")),
                figure(of("tx_bytes").map(|bytes| bytes / 1000.0)),
                figure(of("tx_packets")),
                figure(of("rx_errors").zip(of("tx_errors")).map(|(received, sent)| received + sent)),
                figure(of("rx_drops").zip(of("tx_drops")).map(|(received, sent)| received + sent))
            );
        }
        for (label, name) in [("TCP segments sent", "segments_out"), ("TCP segments resent", "retransmits")] {
            if let Some(mean) = self.mean(&metric::tcp(name)) {
                let _ = writeln!(text, "{label:<28} {:>8} 1/s", figure(Some(mean)));
            }
        }
    }

    /// The metrics that are not of the host and were not zero throughout, in the order of arrival.
    fn others(&self, text: &mut String) {
        let others = self.metrics.iter().filter(|metric| !metric.name.starts_with("host."));
        let mut moved =
            others.filter(|metric| metric.count > 0 && (metric.most != 0.0 || metric.sum != 0.0)).peekable();
        if moved.peek().is_some() {
            text.push_str("\nDatabase and others                               mean        max\n");
        }
        for metric in moved {
            let (mean, most) = (figure(metric.mean()), figure(Some(metric.most)));
            let _ = writeln!(text, "  {:<42} {mean:>9}  {most:>9} {}", metric.name, metric.unit);
        }
    }

    fn sessions(&self, text: &mut String) {
        let counts = self.sessions.counts();
        if counts.looks == 0 {
            return;
        }
        let _ = writeln!(text, "\nSessions, on average, over {} samples", counts.looks);
        let mut states: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (group, sessions) in self.sessions.states(counts) {
            *states.entry((&group.class, &group.event)).or_default() += sessions;
        }
        let mut states: Vec<_> = states.into_iter().collect();
        states.sort_by_key(|(_, sessions)| std::cmp::Reverse(*sessions));
        for ((class, event), sessions) in states.into_iter().take(12) {
            let _ = writeln!(
                text,
                "  {:<42} {:>9.2}",
                format!("{class} {event}"),
                sessions as f64 / counts.looks as f64
            );
        }
    }
}

/// A value in at most eight columns; a dash if unknown.
fn figure(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => three_figures(value),
        _ => "–".into(),
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{Occurrence, WaitGroup, WaitSamples};

    use super::super::line;
    use super::*;

    fn metric(name: &str, unit: &str) -> Metric {
        Metric { name: name.into(), unit: unit.into(), help: String::new() }
    }

    fn seen() -> Summary {
        let mut summary = Summary::default();
        let names =
            ["cpu.total.busy", "cpu.total.user", "cpu.total.system", "cpu.total.iowait", "cpu.total.steal"];
        let disk = [
            "r_s", "rkb_s", "r_await", "w_s", "wkb_s", "w_await", "wareq_sz", "f_s", "f_await", "aqu_sz",
            "util", "await",
        ];
        let mut metrics: Vec<Metric> =
            names.iter().map(|name| metric(&format!("host.{name}"), "ratio")).collect();
        metrics.push(metric("host.run_queue.total.delay", "s/s"));
        metrics.extend(disk.iter().map(|name| metric(&format!("host.disk.vda.{name}"), "")));
        metrics.push(metric("host.network.eth0.rx_bytes", "B/s"));
        let place = |role: &str| DatabaseDirectory {
            role: role.into(),
            path: "/data".into(),
            device: Some("vda".into()),
            mount: "/".into(),
            filesystem: "ext4".into(),
            queue: None,
        };
        let absent = "host.cpu.total.throttled: not an Intel CPU".split_once(": ").unwrap();
        summary.take(&Observation::Observer(Observer {
            source: "host".into(),
            first: 0,
            metrics,
            absent: vec![UnavailableMetrics { what: absent.0.into(), why: absent.1.repeat(5) }],
            places: vec![place("data"), place("wal")],
        }));
        summary.take(&Observation::Observer(Observer {
            source: "postgres".into(),
            first: 19,
            metrics: vec![metric("postgres.wal.bytes", "B/s"), metric("postgres.deadlocks", "1/s")],
            ..Observer::default()
        }));
        let none = Reading { at: 5_000_000_000, first: 0, values: vec![f32::NAN; 19] };
        assert!(!summary.take(&Observation::Reading(none)), "the first look has no rates");
        let values = |share: f32, writes: f32, time: f32| {
            let mut values = vec![share, share / 2.0, share / 4.0, 0.01, 0.0, 0.125];
            values.extend([0.0, 0.0, 0.0, writes, writes * 8.0, time, 8.0, writes, 0.25, 0.5, 40.0, time]);
            values.push(1500.0);
            values
        };
        for (at, share, writes, time) in [(6, 0.25, 300.0, 1.0), (7, 0.75, 100.0, 5.0)] {
            let reading = Reading { at: at * 1_000_000_000, first: 0, values: values(share, writes, time) };
            assert!(summary.take(&Observation::Reading(reading)));
            let reading = Reading { at: at * 1_000_000_000, first: 19, values: vec![2e6, 0.0] };
            assert!(!summary.take(&Observation::Reading(reading)));
        }
        let group = |class: &str, event: &str| WaitGroup {
            class: class.into(),
            event: event.into(),
            ..WaitGroup::default()
        };
        summary.take(&Observation::WaitGroups {
            first: 0,
            groups: vec![group("CPU", ""), group("LWLock", "WALWrite")],
        });
        summary.take(&Observation::Waits(WaitSamples {
            looks: 20,
            seen: vec![(0, 10), (1, 45)],
            ..WaitSamples::default()
        }));
        summary.take(&Observation::Occurrence(Occurrence {
            id: 1,
            kind: "checkpoint".into(),
            subject: "requested".into(),
            from: 6_000_000_000,
            to: None,
            figures: BTreeMap::new(),
        }));
        summary
    }

    #[test]
    fn a_mean_over_requests_is_weighed_by_them() {
        let summary = seen();
        assert_eq!(summary.mean("host.disk.vda.w_await"), Some(2.0));
        assert_eq!(
            (summary.mean("host.disk.vda.w_s"), summary.most("host.disk.vda.w_s")),
            (Some(200.0), Some(300.0))
        );
        assert_eq!(summary.mean("host.disk.vda.r_await"), None, "no reads, no time");
        assert_eq!(summary.last("host.cpu.total.busy"), Some(0.75));
    }

    #[test]
    fn the_summary_is_read_in_80_columns() {
        let summary = seen();
        let shown = format!("{}\n{}\n{}", line::HEADING, line::line(&summary), summary.render());
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        insta::assert_snapshot!("observe_80", shown);
    }
}
