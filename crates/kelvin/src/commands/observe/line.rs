//! One host sample as a line of at most 80 columns.

use kelvin_observe::metric;

use super::summary::Summary;

/// The heading of the lines: shares of all CPUs in percent, tasks waiting for a CPU, the busiest device, the
/// network.
pub(super) const HEADING: &str =
    "      s  cpu%  usr  sys  iow   st  wait  device        r/s     w/s  await  util%";

/// Formats the newest values.
pub(super) fn line(summary: &Summary) -> String {
    let share = |mode: &str| percent(summary.last(&metric::cpu(mode)));
    let busiest = summary
        .devices()
        .into_iter()
        .map(|device| (summary.last(&metric::disk(device, "util")).unwrap_or(0.0), device))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let disk = busiest.map_or_else(String::new, |(_, device)| {
        let of = |column: &str| summary.last(&metric::disk(device, column));
        let name: String = device.chars().take(9).collect();
        format!(
            "  {name:<9} {:>7} {:>7} {:>6} {:>6}",
            whole(of("r_s")),
            whole(of("w_s")),
            of("await").map_or("–".into(), |ms| format!("{ms:.2}")),
            whole(of("util"))
        )
    });
    format!(
        "{:>7.1} {:>5} {:>4} {:>4} {:>4} {:>4} {:>5}{disk}",
        summary.seconds(),
        share("busy"),
        share("user"),
        share("system"),
        share("iowait"),
        share("steal"),
        summary.last(metric::RUN_QUEUE_DELAY).map_or("–".into(), |tasks| format!("{tasks:.2}")),
    )
}

fn percent(share: Option<f64>) -> String {
    whole(share.map(|share| share * 100.0))
}

fn whole(value: Option<f64>) -> String {
    value.map_or("–".into(), |value| format!("{value:.0}"))
}
