//! A run in the lines that pgbench ends with, for scripts that parse them. A line whose value was not measured is left out.

use std::fmt::Write as _;

use crate::{LatencyRow, PointReport, RunReport};

/// One block of lines for each point of the run, and after them the state of the run. Latencies are service times in milliseconds; with a rate they are response
/// times, as pgbench's are.
pub fn render(report: &RunReport) -> String {
    let mut blocks: Vec<String> = report.points.iter().map(|point| block(report, point)).collect();
    // What the figures are good for, in the words of every other output; no line of pgbench's begins so.
    blocks.push(format!(
        "kelvin state: {}\n",
        kelvin_measure::text::cut(&report.judgement.describe(), usize::MAX)
    ));
    blocks.join("\n")
}

fn block(report: &RunReport, p: &PointReport) -> String {
    let mut out = String::new();
    let kinds: Vec<&str> = report.kinds.iter().map(|kind| kind.name.as_str()).collect();
    let _ = writeln!(out, "transaction type: {}", kelvin_measure::text::cut(&kinds.join(", "), usize::MAX));
    let _ = writeln!(out, "number of clients: {}", p.users);
    let _ = writeln!(out, "duration: {:.0} s", p.window_s);
    let all = p.client_latency();
    let (done, failed) = (p.latency_all.count(), p.latency_all.failed);
    let _ = writeln!(out, "number of transactions actually processed: {done}");
    let tried = done + failed;
    let share = if tried > 0 { 100.0 * failed as f64 / tried as f64 } else { 0.0 };
    let _ = writeln!(out, "number of failed transactions: {failed} ({share:.3}%)");
    if p.latency_all.retries > 0 {
        let _ = writeln!(out, "total number of retries: {}", p.latency_all.retries);
    }
    latency(&mut out, all);
    if let Some(seconds) = p.connect_s {
        let _ = writeln!(out, "initial connection time = {:.3} ms", seconds * 1e3);
    }
    if let Some(tps) = p.throughput.transactions_per_second {
        let _ = writeln!(out, "tps = {tps:.6} (without initial connection time)");
    }
    out
}

fn latency(out: &mut String, row: &LatencyRow) {
    if let Some(mean) = row.mean_us.filter(|mean| !mean.at_least) {
        let _ = writeln!(out, "latency average = {:.3} ms", mean.value / 1e3);
    }
    if let Some(deviation) = row.stddev_us {
        let _ = writeln!(out, "latency stddev = {:.3} ms", deviation / 1e3);
    }
}
