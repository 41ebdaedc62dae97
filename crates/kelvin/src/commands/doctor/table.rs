//! The doctor's report as text.

use kelvin_measure::text::three_figures;
use std::fmt::Write as _;

use kelvin_observe::baseline::{BaselineFact, BaselineMetric, Line, OTHERS};

use super::DoctorReport;
use crate::out::wrapped;

/// Sections of the table, with the prefixes of the metrics in them.
const PARTS: [(&str, &[&str]); 4] = [
    ("Processor and kernel", &["host", "processor", "clock", "timer"]),
    ("Memory", &["memory"]),
    ("Network and disk", &["loopback", "sync", "disk"]),
    ("Database", &["database"]),
];

/// Columns before the verdict: two blanks, the label, the value, the comparison.
const LABEL: usize = 33;
const VALUE: usize = 12;
const RATIO: usize = 8;

/// Renders the table.
pub(super) fn render(report: &DoctorReport, width: usize) -> String {
    let mut text = String::new();
    let taken = report.taken.strftime("%Y-%m-%d %H:%M UTC");
    let seconds = report.baseline.took_ms as f64 / 1000.0;
    let _ =
        writeln!(text, "Doctor report {} of {}, {taken}, took {seconds:.1} s", report.number, report.host);
    match &report.against {
        Some(against) => {
            let taken = against.taken.strftime("%Y-%m-%d %H:%M UTC");
            let _ = writeln!(
                text,
                "\"was\" is doctor report {}, {taken}; × is the ratio now / was",
                against.number
            );
            if let Some(why) = &against.comparison.why_not {
                wrapped(&mut text, &format!("Values are not compared: {why}"), 0, 2, width);
            }
            if let Some((before, now)) = against.others.zip(report.baseline.figure(OTHERS))
                && before.max(now) > 0.2
            {
                let words = format!(
                    "Other processes used {before:.1} cores then and {now:.1} now, which may explain \
                     differences"
                );
                wrapped(&mut text, &words, 0, 2, width);
            }
        }
        None => {
            text.push_str("No earlier doctor report of this host in this store: nothing to compare with\n");
        }
    }
    for (title, names) in PARTS {
        part(&mut text, report, title, names, width);
    }
    if !report.baseline.absent.is_empty() {
        text.push_str("\nNot measured\n");
        for absent in &report.baseline.absent {
            wrapped(&mut text, &format!("{}: {}", absent.what, absent.why), 2, 4, width);
        }
    }
    remarks(&mut text, report, width);
    text
}

fn part(text: &mut String, report: &DoctorReport, title: &str, names: &[&str], width: usize) {
    let of = |name: &str| names.contains(&name.split('.').next().unwrap_or(name));
    let facts: Vec<&BaselineFact> = report.baseline.facts.iter().filter(|fact| of(&fact.name)).collect();
    let figures: Vec<&BaselineMetric> =
        report.baseline.figures.iter().filter(|figure| of(&figure.name)).collect();
    if facts.is_empty() && figures.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    for fact in facts {
        let changed = report
            .against
            .as_ref()
            .and_then(|against| against.comparison.changed.iter().find(|changed| changed.name == fact.name));
        let was = changed.map_or(String::new(), |changed| {
            format!(" (CHANGED, was {})", changed.before.as_deref().unwrap_or("not known"))
        });
        wrapped(text, &format!("{:<LABEL$}{}{was}", fact.label, fact.value), 2, 2 + LABEL, width);
    }
    for figure in figures {
        let line = report.against.as_ref().and_then(|against| against.comparison.line(&figure.name));
        let value = format!("{} {}", number(figure.value), figure.unit);
        let ratio = line.map_or(String::new(), |line| format!("× {:.2}", line.ratio));
        let verdict = verdict(report, figure, line);
        let row = format!("{:<LABEL$}{value:>VALUE$}{ratio:>RATIO$}  {verdict}", figure.label);
        let _ = writeln!(text, "  {}", row.trim_end());
    }
}

/// One to three words; the full sentence is below the table.
fn verdict(report: &DoctorReport, figure: &BaselineMetric, line: Option<&Line>) -> String {
    let remark = report.remarks.iter().find(|remark| remark.about == figure.name);
    let change = line.map(|line| match (line.beyond, line.better) {
        (true, true) => "BETTER than before",
        (true, false) => "WORSE than before",
        (false, _) => "similar",
    });
    match (remark, change) {
        (Some(_), Some(change)) if change != "similar" => format!("{change}, see below"),
        (Some(_), _) => "see below".into(),
        (None, Some(change)) => change.into(),
        (None, None) => String::new(),
    }
}

fn remarks(text: &mut String, report: &DoctorReport, width: usize) {
    let gone = report.against.iter().flat_map(|against| &against.comparison.changed);
    for changed in gone.filter(|changed| changed.now.is_none()) {
        let was = changed.before.as_deref().unwrap_or("");
        wrapped(text, &format!("{} was {was} and is no longer known", changed.label), 2, 4, width);
    }
    let label = |about: &str| {
        let baseline = &report.baseline;
        let fact = baseline.facts.iter().find(|fact| fact.name == about).map(|fact| &fact.label);
        fact.or_else(|| baseline.figures.iter().find(|f| f.name == about).map(|f| &f.label))
            .map_or_else(|| about.to_owned(), Clone::clone)
    };
    for (grave, title) in
        [(true, "Problems that would make a run misleading"), (false, "Worth knowing before a run")]
    {
        let mut found = report.remarks.iter().filter(|remark| remark.grave == grave).peekable();
        if found.peek().is_some() {
            let _ = writeln!(text, "\n{title}");
        }
        for remark in found {
            wrapped(text, &format!("{}: {}", label(&remark.about), remark.text), 2, 4, width);
        }
    }
    if report.remarks.is_empty() {
        text.push_str("\nNo problems found\n");
    }
}

/// A value with three significant digits; a large one as a whole number.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 { format!("{value:.3}") } else { three_figures(value) }
}

#[cfg(test)]
mod tests {
    use kelvin_observe::baseline::{Baseline, compare, judge};
    use serde_json::json;

    use super::super::Against;
    use super::*;

    fn baseline(speed: f64, latency: f64, governor: &str) -> Baseline {
        let figure = |name: &str, label: &str, value: f64, unit: &str, kind: &str| {
            json!({"name": name, "label": label,
            "value": value, "unit": unit, "kind": kind, "samples": 31})
        };
        let fact =
            |name: &str, label: &str, value: &str| json!({"name": name, "label": label, "value": value});
        let mitigations =
            "spec_rstack_overflow: Vulnerable: Safe RET, no microcode; spec_store_bypass: Vulnerable";
        serde_json::from_value(json!({
            "method": 1, "build": "release", "took_ms": 6120,
            "facts": [
                fact("host.kernel", "kernel", "6.1.0-18-amd64"),
                fact("processor.threads", "CPUs", "2 threads, 2 cores, 1 socket, 1 NUMA node, virtual machine"),
                fact("processor.governor", "frequency governor", governor),
                fact("processor.mitigations", "mitigations", mitigations),
                fact("memory.total", "memory", "23.5 GiB"),
                fact("sync.file-system", "file system of fdatasync", "ext4 on / (/dev/vda)"),
                fact("database.fsync", "fsync", "off"),
                fact("database.shared_buffers", "shared_buffers", "128MB"),
            ],
            "figures": [
                figure("clock.read", "reading the clock", 24.3, "ns", "cost"),
                figure("processor.single-thread", "one thread, integers and hashing", speed, "M/s", "speed"),
                figure("host.steal", "stolen by the hypervisor", 3.25, "%", "disturbance"),
                figure("host.others", "used by other processes", 0.31, "cores", "disturbance"),
                figure("memory.latency", "memory latency, random, dependent", 112.0, "ns", "cost"),
                figure("sync.p50", "fdatasync of 8 kB p50", latency, "µs", "latency"),
                figure("sync.p99", "fdatasync of 8 kB p99", 4.0 * latency, "µs", "tail"),
                figure("database.round-trip.p50", "round trip of select 1 p50", 28.4, "µs", "latency"),
            ],
            "absent": [{"what": "disk", "why": "/no/such: No such file or directory (os error 2)"}],
        }))
        .unwrap()
    }

    fn report(against: bool) -> DoctorReport {
        let baseline = self::baseline(812.5, 180.0, "powersave");
        let before = self::baseline(900.0, 178.0, "performance");
        let against = against.then(|| Against {
            number: 6,
            taken: "2026-11-20T09:30:00Z".parse().unwrap(),
            others: before.figure("host.others"),
            comparison: compare(&baseline, &before),
        });
        DoctorReport {
            number: 7,
            host: "db1".into(),
            taken: "2026-11-21T17:20:00Z".parse().unwrap(),
            remarks: judge(&baseline),
            baseline,
            against,
        }
    }

    #[test]
    fn the_report_is_read_in_80_columns() {
        let shown = render(&report(true), 80);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        insta::assert_snapshot!("doctor_80", shown);
    }

    #[test]
    fn the_first_one_has_nothing_to_be_compared_with() {
        let shown = render(&report(false), 100);
        assert!(shown.contains("nothing to compare with") && !shown.contains('×'), "{shown}");
        let value = serde_json::to_value(report(true)).unwrap();
        assert_eq!((&value["number"], &value["against"]["number"]), (&json!(7), &json!(6)));
        assert_eq!(value["against"]["lines"][1]["beyond"], json!(true));
    }

    #[test]
    fn figures_have_three_digits() {
        let shown: Vec<_> = [1234.5, 123.4, 12.34, 1.234, 0.1234, 0.0].map(number).into();
        assert_eq!(shown, ["1234", "123", "12.3", "1.23", "0.123", "0.00"]);
    }
}
