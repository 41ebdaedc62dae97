//! The trend as inline SVG: the entries in order, the change points, and the levels between them.

use std::fmt::Write;

use super::History;
use super::text::bounds;
use crate::chart::{Frame, Scale, dot, escaped};
use kelvin_measure::text::significant;

const FRAME: Frame = Frame { width: 960.0, height: 360.0, left: 86.0, right: 20.0, top: 30.0, bottom: 50.0 };

/// Largest number of labels on the axis of the entries.
const LABELS: usize = 12;

/// The chart.
pub(super) fn svg(history: &History) -> String {
    let (low, high) = bounds(history);
    let count = history.entries.len();
    let x = |index: f64| FRAME.column(index, count);
    let scale = Scale::between(low, high, significant);
    let y = |value: f64| FRAME.y(&scale, value);
    let mut out = FRAME.begin(&format!("{} by entry; see the table below for the values", history.name));
    out.push_str("<g class=\"axes\">");
    FRAME.y_axis(&mut out, &scale, true);
    FRAME.column_names(&mut out, count, LABELS, |index| {
        history.entries[index].runs.first().copied().unwrap_or_default().to_string()
    });
    FRAME.x_title(&mut out, "run, in chronological order");
    FRAME.y_title(&mut out, &format!("{}, {}", history.name, history.unit));
    out.push_str("</g>");
    for (from, to, mean) in history.levels() {
        let at = y(mean);
        let (start, end) = (x(from as f64 - 0.5), x(to as f64 - 0.5));
        let _ = write!(
            out,
            "<line class=\"level\" x1=\"{start:.1}\" y1=\"{at:.1}\" x2=\"{end:.1}\" y2=\"{at:.1}\"><title>level: \
             {}</title></line>",
            significant(mean)
        );
    }
    changes(&mut out, history, &x);
    for (index, entry) in history.entries.iter().enumerate() {
        let at = x(index as f64);
        if entry.runs.len() > 1 {
            let _ = write!(
                out,
                "<line class=\"range\" x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>",
                y(entry.range.0),
                y(entry.range.1)
            );
        }
        let title = format!("{}: {} {}", entry.name(), significant(entry.value), history.unit);
        let _ = write!(out, "<a href=\"#entry-{index}\">");
        dot(&mut out, "entry", (at, y(entry.value)), 4.5, &title);
        out.push_str("</a>");
    }
    out.push_str("</svg>");
    out
}

fn changes(out: &mut String, history: &History, x: &impl Fn(f64) -> f64) {
    for (number, change) in history.changes.iter().enumerate() {
        let at = x(change.index as f64 - 0.5);
        let class = match change.better {
            Some(true) => "good",
            Some(false) => "bad",
            None => "plain",
        };
        // Adjacent labels would overlap at the same height.
        let height = if number % 2 == 0 { 12.0 } else { 26.0 };
        let (place, anchor) = if at > FRAME.width - 150.0 { (at - 4.0, "end") } else { (at + 4.0, "start") };
        let _ = write!(
            out,
            "<g class=\"change {class}\"><line x1=\"{at:.1}\" y1=\"2\" x2=\"{at:.1}\" y2=\"{:.1}\"/><text \
             x=\"{place:.1}\" y=\"{height}\" text-anchor=\"{anchor}\">{}</text></g>",
            FRAME.foot(),
            escaped(&change.describe())
        );
    }
}
