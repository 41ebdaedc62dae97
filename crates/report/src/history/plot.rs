//! The trend as inline SVG: entries in their order, the levels between the change points, and the change points.

use std::fmt::Write;

use super::History;
use super::text::bounds;
use crate::figure::significant;
use crate::html::escaped;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;

/// Labels on the axis of the entries, at most.
const LABELS: usize = 12;

/// The chart.
pub(super) fn svg(history: &History) -> String {
    let (low, high) = bounds(history);
    let count = history.entries.len();
    let step = (WIDTH - LEFT - RIGHT) / count.max(1) as f64;
    let x = |index: f64| LEFT + (index + 0.5) * step;
    let y = |value: f64| HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let title = format!("{} by entry; see the table below for the values", history.name);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\"><g class=\"axes\">",
        escaped(&title)
    );
    for tick in ticks(low, high) {
        let at = y(tick);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            significant(tick)
        );
    }
    let every = count.div_ceil(LABELS).max(1);
    for (index, entry) in history.entries.iter().enumerate().filter(|(index, _)| index % every == 0) {
        let first = entry.runs.first().copied().unwrap_or_default();
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{first}</text>",
            x(index as f64),
            HEIGHT - BOTTOM + 18.0
        );
    }
    let beside = f64::midpoint(TOP, HEIGHT - BOTTOM);
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">run, in chronological order</text><text \
         x=\"14\" y=\"{beside:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {beside:.1})\">{}, \
         {}</text></g>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 10.0,
        escaped(&history.name),
        escaped(&history.unit)
    );
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
        let _ = write!(
            out,
            "<a href=\"#entry-{index}\"><circle class=\"entry\" cx=\"{at:.1}\" cy=\"{:.1}\" r=\"4.5\"><title>{}</title>\
             </circle></a>",
            y(entry.value),
            escaped(&title)
        );
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
        // Adjacent labels would overlap.
        let height = if number % 2 == 0 { 12.0 } else { 26.0 };
        let (place, anchor) = if at > WIDTH - 150.0 { (at - 4.0, "end") } else { (at + 4.0, "start") };
        let _ = write!(
            out,
            "<g class=\"change {class}\"><line x1=\"{at:.1}\" y1=\"2\" x2=\"{at:.1}\" y2=\"{:.1}\"/><text \
             x=\"{place:.1}\" y=\"{height}\" text-anchor=\"{anchor}\">{}</text></g>",
            HEIGHT - BOTTOM,
            escaped(&change.describe())
        );
    }
}

/// Four to eight round numbers within the range.
pub(crate) fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    let first = (low / step).ceil();
    (0..20).map(|i| (first + f64::from(i)) * step).take_while(|tick| *tick <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(95.0, 131.0), [100.0, 110.0, 120.0, 130.0]);
        for (low, high) in [(0.0, 1.0), (0.00011, 0.00012), (1e6, 1.01e6), (-5.0, 3.0)] {
            let found = ticks(low, high);
            assert!((3..=8).contains(&found.len()), "{low} {high}: {found:?}");
            assert!(found.iter().all(|t| *t >= low && *t <= high), "{found:?}");
        }
        assert!(ticks(1.0, 1.0).is_empty() && ticks(f64::NAN, 1.0).is_empty());
    }
}
