//! The charts of all points of a run.

use std::ops::Range;

use super::plot::{Frame, Line, Mark, svg};
use crate::{PointReport, RunReport};
use kelvin_measure::text::{bounded, ms, plural, rate, whole};

/// Throughput over users, or, with rates, achieved over requested throughput.
pub(super) fn throughput(report: &RunReport) -> String {
    let name = if report.open_loop { "achieved transactions per second" } else { &report.headline };
    let place = |p: &PointReport| p.asked_per_second().unwrap_or_else(|| f64::from(p.users));
    let value = |p: &PointReport| {
        if report.open_loop { p.throughput.transactions_per_second } else { p.headline(report.headline_per) }
    };
    let mut lines = lines(report, name, &|p| {
        let value = value(p)?;
        Some((place(p), value, format!("{}: {} {name}", p.name(), rate(Some(value)))))
    });
    if report.open_loop {
        let most = report.points.iter().map(place).fold(0.0, f64::max);
        let points = vec![(0.0, 0.0, String::new()), (most, most, String::new())];
        lines.push(Line { name: "as requested".into(), colour: 4, fitted: true, points });
    }
    let x = if report.open_loop { "requested transactions per second" } else { "virtual users" };
    svg(&Frame { title: "throughput; see the table below for the values", x, y: name, log: false }, &lines)
}

/// p99 of the response time over the achieved rate.
pub(super) fn response(report: &RunReport) -> String {
    if !report.open_loop {
        return String::new();
    }
    let lines = lines(report, "response p99", &|p| {
        let (x, p99) = (p.throughput.transactions_per_second?, p.client_latency().p99_us?);
        let text = format!("{}: {}/s achieved, p99 {} ms", p.name(), rate(Some(x)), bounded(Some(p99), ms));
        Some((x, p99.value / 1e3, text))
    });
    let frame = Frame {
        title: "p99 of the response time over the achieved rate; see the table below for the values",
        x: "achieved transactions per second",
        y: "response p99, ms (log scale)",
        log: true,
    };
    svg(&frame, &lines)
}

/// The Universal Scalability Law and the values to which it was fitted.
pub(super) fn scalability(report: &RunReport) -> String {
    let Some(fit) = &report.scalability else { return String::new() };
    let most = fit.points.iter().map(|p| f64::from(p.users)).fold(1.0, f64::max);
    let end = fit.peak_users.unwrap_or(most).clamp(most, 2.0 * most);
    let curve = (0..=100).map(|i| 1.0 + (end - 1.0) * f64::from(i) / 100.0);
    let mut measured: Vec<_> = fit
        .points
        .iter()
        .map(|p| {
            (
                f64::from(p.users),
                p.throughput,
                format!("{}: {}/s", virtual_users(p.users), rate(Some(p.throughput))),
            )
        })
        .collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lines = [
        Line { name: "measured".into(), colour: 0, fitted: false, points: measured },
        Line {
            name: "fitted".into(),
            colour: 1,
            fitted: true,
            points: curve.map(|n| (n, fit.fitted(n), String::new())).collect(),
        },
    ];
    let frame = Frame {
        title: "measured and fitted throughput over virtual users",
        x: "virtual users",
        y: "transactions per second",
        log: false,
    };
    svg(&frame, &lines)
}

fn virtual_users(count: u32) -> String {
    format!("{} {}", whole(count.into()), plural(count, "virtual user", "virtual users"))
}

/// One line through the points in ascending order. For a ramp that goes up and down again, two lines in the
/// order of execution: if they differ, the system depends on its history.
fn lines(report: &RunReport, name: &str, place: &dyn Fn(&PointReport) -> Option<Mark>) -> Vec<Line> {
    let asked = |p: &PointReport| p.asked_per_second().unwrap_or_else(|| f64::from(p.users));
    let steps: Vec<f64> = report.points.iter().map(asked).collect();
    if let Some(legs) = legs(&steps) {
        let line = |(colour, (name, leg)): (usize, (&str, &Range<usize>))| Line {
            name: name.into(),
            colour,
            fitted: false,
            points: report.points[leg.clone()].iter().filter_map(place).collect(),
        };
        return ["increasing", "decreasing"].into_iter().zip(&legs).enumerate().map(line).collect();
    }
    let mut points: Vec<&PointReport> = report.points.iter().collect();
    points.sort_by(|a, b| asked(a).total_cmp(&asked(b)));
    let points = points.into_iter().filter_map(place).collect();
    vec![Line { name: name.into(), colour: 0, fitted: false, points }]
}

/// The increasing and the decreasing half of a mirrored ramp. Its highest step may occur once or twice.
fn legs(steps: &[f64]) -> Option<[Range<usize>; 2]> {
    let top = steps.windows(2).position(|w| w[1] <= w[0])?;
    let down = if steps[top + 1] == steps[top] { top + 1 } else { top };
    let falls = steps[down..].windows(2).all(|w| w[1] < w[0]);
    (top >= 1 && steps.len() - down >= 2 && falls).then(|| [0..top + 1, down..steps.len()])
}

#[cfg(test)]
mod tests {
    use super::legs;

    #[test]
    fn only_a_ramp_that_turns_once_has_two_legs() {
        assert_eq!(legs(&[1.0, 2.0, 3.0, 2.0, 1.0]), Some([0..3, 2..5]));
        assert_eq!(legs(&[1.0, 2.0, 3.0, 3.0, 2.0, 1.0]), Some([0..3, 3..6]));
        for other in
            [&[1.0, 2.0, 3.0][..], &[3.0, 2.0, 1.0], &[1.0, 3.0, 2.0, 4.0], &[1.0, 2.0, 2.0], &[1.0], &[]]
        {
            assert_eq!(legs(other), None, "{other:?}");
        }
    }
}
