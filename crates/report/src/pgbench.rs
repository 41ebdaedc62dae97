//! A run in the format of pgbench's final report, for scripts that parse it. Lines without a measured value
//! are omitted.

use std::fmt::Write as _;

use crate::{LatencyRow, PointReport, RunReport};

/// One block of lines per point of the run, then the state of the run. Latencies are in milliseconds: service
/// times, or response times if the run has a rate, as in pgbench.
pub fn render(report: &RunReport) -> String {
    let mut blocks: Vec<String> = report.points.iter().map(|point| block(report, point)).collect();
    // The state of the run, worded as in every other output. No line of pgbench starts with "kelvin".
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
