//! Observations of a point, second by second: for the charts and for the table of all metrics.

use kelvin_diagnose::{Evidence, metric};

use super::grid::{Chart, Grid};
use super::host::{Disk, disks};

/// Wait classes that are drawn separately; the others are combined.
const CLASSES: usize = 7;

/// The chart of the sessions by class.
pub(crate) const WAIT_CLASSES: &str = "Active sessions by wait class";

/// The charts of a point, for the seconds of `grid`. Charts without any value are omitted.
pub(crate) fn timeline(evidence: &Evidence, grid: &Grid) -> Vec<Chart> {
    let mut charts = Vec::new();
    charts.extend(processors(evidence, grid));
    charts.extend(sessions(evidence, grid));
    charts.extend(devices(evidence, grid));
    charts.extend(super::streams::streams(evidence, grid));
    charts.extend(log(evidence, grid));
    charts
}

fn any(values: &[Option<f64>]) -> bool {
    values.iter().any(Option::is_some)
}

fn scaled(values: Vec<Option<f64>>, factor: f64) -> Vec<Option<f64>> {
    values.into_iter().map(|v| v.map(|v| v * factor)).collect()
}

fn sum(a: Vec<Option<f64>>, b: Vec<Option<f64>>) -> Vec<Option<f64>> {
    a.into_iter().zip(b).map(|(a, b)| a.map(|a| a + b.unwrap_or(0.0))).collect()
}

/// CPU time: by consumer on the host on which Kelvin runs, by mode on hosts whose metrics were scraped.
fn processors(evidence: &Evidence, grid: &Grid) -> Vec<Chart> {
    let by_mode = |name: &str| {
        let prefix = name.strip_suffix("user")?;
        let share = |what: &str| scaled(grid.means(evidence, &format!("{prefix}{what}")), 100.0);
        let columns = vec![
            ("user".to_owned(), 0, sum(share("user"), share("nice"))),
            ("system".to_owned(), 1, share("system")),
            ("iowait".to_owned(), 5, share("iowait")),
            ("interrupts".to_owned(), 4, sum(share("irq"), share("softirq"))),
            ("steal".to_owned(), 7, share("steal")),
        ];
        let of = super::host::address(name).map_or_else(String::new, |host| format!(" of {host}"));
        any(&columns[0].2).then(|| Chart {
            title: format!("CPU time{of}"),
            unit: "% of all CPUs",
            stacked: true,
            top: Some(100.0),
            columns,
        })
    };
    let here = by_owner(evidence, grid);
    let names = evidence.names("", metric::CPU_USER);
    let others = names.filter(|name| here.is_none() || super::host::address(name).is_some());
    let others: Vec<Chart> = others.filter_map(by_mode).collect();
    here.into_iter().chain(others).collect()
}

/// CPUs used by the client, the database and all other processes, and idle CPUs; `None` if the client's own
/// use is unknown.
fn by_owner(evidence: &Evidence, grid: &Grid) -> Option<Chart> {
    let threads = kelvin_diagnose::cpus(evidence)?;
    let process = |name: &str| {
        let time = |time: &str| grid.means(evidence, &metric::process(name, format_args!("cpu.{time}")));
        sum(time("user"), time("system"))
    };
    let (client, database) = (process("client"), process("server"));
    if !any(&client) {
        return None;
    }
    let kernel = |what: &str| scaled(grid.means(evidence, &metric::cpu(what)), threads);
    let others = kelvin_diagnose::cpu_of_others(evidence, grid.span());
    let others = others.map_or_else(Vec::new, |seen| grid.means_of(seen));
    let first = if kelvin_diagnose::is_embedded(evidence) { "client with the database" } else { "client" };
    let mut columns = vec![
        (first.to_owned(), 0, client),
        ("database".to_owned(), 2, database),
        ("others".to_owned(), 5, others.into_iter().map(|value| value.map(|value| value.max(0.0))).collect()),
        ("interrupts".to_owned(), 4, sum(kernel("irq"), kernel("softirq"))),
        ("steal".to_owned(), 7, kernel("steal")),
        ("idle".to_owned(), 8, sum(kernel("idle"), kernel("iowait"))),
    ];
    columns.retain(|(_, _, values)| any(values));
    Some(Chart {
        title: "CPU time by client, database, others and idle".into(),
        unit: "CPUs",
        stacked: true,
        top: Some(threads),
        columns,
    })
}

/// The colour of a class, the same in every chart: fixed for those that every engine has, and by the name's letters for others.
fn colour(class: &str) -> usize {
    match class {
        "CPU" => 2,
        "IO" => 0,
        "Lock" => 5,
        "Client" | "network" => 4,
        other => [1, 3, 6, 7][other.bytes().map(usize::from).sum::<usize>() % 4],
    }
}

fn sessions(evidence: &Evidence, grid: &Grid) -> Option<Chart> {
    let total = |values: &[Option<f64>]| values.iter().flatten().sum::<f64>();
    let mut classes: Vec<(String, Vec<Option<f64>>)> = grid.classes(evidence).into_iter().collect();
    classes.retain(|(_, values)| total(values) > 0.0);
    classes.sort_by(|a, b| total(&b.1).total_cmp(&total(&a.1)));
    let rest = classes.split_off(classes.len().min(CLASSES));
    let mut columns: Vec<(String, usize, Vec<Option<f64>>)> = Vec::new();
    for (class, values) in classes {
        // Of two classes with the same colour, the smaller one gets another.
        let is_free = |colour: &usize| columns.iter().all(|(_, taken, _)| taken != colour);
        let colour = [colour(&class), 6, 7, 3, 1].into_iter().find(is_free).unwrap_or(8);
        columns.push((class, colour, values));
    }
    if let Some(others) = rest.into_iter().map(|(_, values)| values).reduce(sum) {
        columns.push(("others".into(), 8, others));
    }
    (!columns.is_empty()).then(|| Chart {
        title: WAIT_CLASSES.into(),
        unit: "sessions",
        stacked: true,
        top: None,
        columns,
    })
}

fn devices(evidence: &Evidence, grid: &Grid) -> Vec<Chart> {
    let all = disks(evidence);
    // If the database is on another host, any device may hold it.
    let known = all.iter().any(|disk| !disk.holds.is_empty());
    let mut charts = Vec::new();
    for Disk { prefix, host, device, holds } in all {
        if known && holds.is_empty() {
            continue;
        }
        let column = |name: &str| grid.means(evidence, &format!("{prefix}{name}"));
        let (reads, writes) = (scaled(column("rkb_s"), 1.0 / 1e3), scaled(column("wkb_s"), 1.0 / 1e3));
        let moved: f64 = reads.iter().chain(&writes).flatten().sum();
        if holds.is_empty() && moved == 0.0 {
            continue;
        }
        let name = match (host, holds.is_empty()) {
            (Some(host), _) => format!("Device {device} of {host}"),
            (None, true) => format!("Device {device}"),
            (None, false) => format!("Device {device}: {}", holds.join(" and ")),
        };
        charts.push(Chart {
            title: format!("{name}, throughput"),
            unit: "MB/s",
            stacked: false,
            top: None,
            columns: vec![("written".into(), 1, writes), ("read".into(), 0, reads)],
        });
        // Without requests there is no request time. A zero would look like a fast request.
        let time = |value: &str, rate: &str| -> Vec<Option<f64>> {
            let asked = column(rate).into_iter().map(|rate| rate.is_some_and(|rate| rate > 0.0));
            column(value).into_iter().zip(asked).map(|(value, asked)| value.filter(|_| asked)).collect()
        };
        let (write, read, flush) = (time("w_await", "w_s"), time("r_await", "r_s"), time("f_await", "f_s"));
        charts.push(Chart {
            title: format!("{name}, latency"),
            unit: "ms",
            stacked: false,
            top: None,
            columns: vec![("write".into(), 1, write), ("read".into(), 0, read), ("flush".into(), 6, flush)],
        });
    }
    for chart in &mut charts {
        chart.columns.retain(|(_, _, values)| any(values));
    }
    charts.retain(|chart| !chart.columns.is_empty());
    charts
}

fn log(evidence: &Evidence, grid: &Grid) -> Option<Chart> {
    let rate = |name: &str| scaled(grid.means(evidence, name), 1.0 / 1e6);
    let names = metric::LOG_BYTES.iter().copied().chain([metric::EMBEDDED_LOG_BYTES]);
    let written = names.map(rate).find(|values| any(values))?;
    Some(Chart {
        title: "WAL written".into(),
        unit: "MB/s",
        stacked: false,
        top: None,
        columns: vec![("WAL".into(), 0, written)],
    })
}

#[cfg(test)]
mod tests {
    use kelvin_diagnose::Context;
    use kelvin_measure::Event;
    use kelvin_measure::event::Phase;
    use kelvin_measure::observation::{Metric, Observation, Observer, Reading};

    use kelvin_measure::SECOND;

    use super::*;

    #[test]
    fn idle_cpus_are_a_column_above_those_in_use() {
        let values = [
            ("host.cpu.0.busy", 0.5),
            ("host.cpu.1.busy", 0.5),
            ("host.cpu.total.idle", 0.375),
            ("host.cpu.total.iowait", 0.125),
            ("host.process.client.cpu.user", 0.25),
            ("host.process.client.cpu.system", 0.25),
        ];
        let metric =
            |(name, _): &(&str, f32)| Metric { name: (*name).into(), unit: "1".into(), help: String::new() };
        let metrics = values.iter().map(metric).collect();
        let mut evidence = Evidence::new(Context::default());
        evidence.event(&Event::Observed(Observation::Observer(Observer { metrics, ..Observer::default() })));
        for second in 0..=4 {
            if second == 1 {
                let (point, users) = (0, 1);
                let at = SECOND;
                evidence.event(&Event::Phase { point, phase: Phase::Measure, at, users, planned: None });
            }
            let values = values.iter().map(|(_, value)| *value).collect();
            let reading = Reading { at: second * SECOND, first: 0, values };
            evidence.event(&Event::Observed(Observation::Reading(reading)));
        }
        let phase = Event::Phase { point: 0, phase: Phase::Stop, at: 4 * SECOND, users: 1, planned: None };
        evidence.event(&phase);
        let chart = by_owner(&evidence, &Grid::new(&evidence, 0, 0, 3).unwrap()).unwrap();
        let columns: Vec<_> = chart.columns.iter().map(|(name, _, values)| (&name[..], values[1])).collect();
        assert_eq!(columns, [("client", Some(0.5)), ("idle", Some(1.0))]);
        assert_eq!((chart.top, chart.stacked), (Some(2.0), true));
    }
}
