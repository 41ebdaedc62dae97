//! The charts of a group as inline SVG: the ratio of each block, and the figure of each run.

use std::fmt::Write;

use super::{GroupPage, GroupPageRun};
use crate::figure::significant;
use crate::history::ticks;
use crate::html::escaped;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 48.0;

/// Names under the chart, at most.
const NAMES: usize = 16;

/// Colours that distinguish treatments.
const COLOURS: usize = 4;

/// A chart with a column for each block or run.
struct Chart {
    low: f64,
    high: f64,
    columns: usize,
}

impl Chart {
    /// Around these values, with some room; none where there are none.
    fn around(values: impl Iterator<Item = f64>, columns: usize) -> Option<Self> {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let room = (high - low) * 0.08 + high.abs() * 1e-3;
        (low <= high).then_some(Self { low: low - room, high: high + room, columns })
    }

    fn x(&self, column: usize) -> f64 {
        LEFT + (column as f64 + 0.5) * (WIDTH - LEFT - RIGHT) / self.columns.max(1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// The axes: round values, the columns' names, and what they are.
    fn begin(
        &self,
        title: &str,
        name: &dyn Fn(usize) -> String,
        below: &str,
        shown: &dyn Fn(f64) -> String,
    ) -> String {
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\"><g class=\"axes\">",
            escaped(title)
        );
        for tick in ticks(self.low, self.high) {
            let at = self.y(tick);
            let _ = write!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0,
                shown(tick)
            );
        }
        let every = self.columns.div_ceil(NAMES).max(1);
        for column in (0..self.columns).step_by(every) {
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                self.x(column),
                HEIGHT - BOTTOM + 18.0,
                escaped(&name(column))
            );
        }
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{below}</text></g>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 10.0
        );
        out
    }

    fn point(&self, out: &mut String, column: usize, value: f64, class: &str, title: &str) {
        let _ = write!(
            out,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"><title>{}</title></circle>",
            self.x(column),
            self.y(value),
            escaped(title)
        );
    }
}

/// Names of colours, from the left.
fn key(out: &mut String, names: &[String]) {
    let mut at = LEFT;
    for (index, name) in names.iter().enumerate() {
        let _ = write!(
            out,
            "<g class=\"c{}\"><circle cx=\"{:.1}\" cy=\"13\" r=\"5\"/><text class=\"key\" x=\"{:.1}\" y=\"17\">{}</text></g>",
            index % COLOURS,
            at + 6.0,
            at + 16.0,
            escaped(name)
        );
        at += 40.0 + 7.5 * name.chars().count() as f64;
    }
}

/// The treatments in their order; a side's second run is of the same.
pub(super) fn treatments(group: &GroupPage) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in &group.runs {
        if !run.treatment.is_empty() && !names.iter().any(|name| name == side(run)) {
            names.push(side(run).to_owned());
        }
    }
    names.sort_unstable();
    names
}

fn side(run: &GroupPageRun) -> &str {
    run.treatment.trim_end_matches('\'')
}

/// The ratio of each block with the interval over all; none where no block is complete.
pub(super) fn ratios(group: &GroupPage) -> Option<String> {
    let first = group.ratios.first()?;
    let of_blocks = group.ratios.iter().flat_map(|one| one.blocks.iter().filter_map(|(_, ratio)| *ratio));
    // The ends of an interval may lie far beside what was measured: the chart goes as far as half of the values' range.
    let values: Vec<f64> = of_blocks.chain([1.0]).collect();
    let (low, high) =
        values.iter().fold((1.0_f64, 1.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let room = (high - low) * 0.5;
    let ends =
        group.ratios.iter().flat_map(|one| [one.low, one.high]).map(|end| end.clamp(low - room, high + room));
    let chart = Chart::around(values.iter().copied().chain(ends), first.blocks.len())?;
    if values.len() < 2 {
        return None;
    }
    let name =
        |column: usize| first.blocks.get(column).map_or_else(String::new, |(block, _)| block.to_string());
    let title = "the ratio of each block, and the interval over all; see the summary below for the values";
    let mut out = chart.begin(title, &name, "block", &|tick| format!("{tick:.3}"));
    let names: Vec<String> = group
        .ratios
        .iter()
        .map(|one| {
            format!("{}/A by block; dashed: over all blocks, with the {} interval", one.side, one.confidence)
        })
        .collect();
    for (index, one) in group.ratios.iter().enumerate() {
        let (top, bottom) = (chart.y(one.high), chart.y(one.low));
        let line = |class: &str, at: f64| {
            format!(
                "<line class=\"{class}\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>",
                WIDTH - RIGHT
            )
        };
        let _ = write!(
            out,
            "<g class=\"c{}\"><rect class=\"band\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>{}{}",
            index % COLOURS,
            WIDTH - RIGHT - LEFT,
            bottom - top,
            if index == 0 { line("one", chart.y(1.0)) } else { String::new() },
            line("middle", chart.y(one.ratio))
        );
        for (column, (block, ratio)) in one.blocks.iter().enumerate() {
            if let Some(ratio) = ratio {
                chart.point(
                    &mut out,
                    column,
                    *ratio,
                    "",
                    &format!("block {block}: {}/A {ratio:.4}", one.side),
                );
            }
        }
        out.push_str("</g>");
    }
    key(&mut out, &names);
    out.push_str("</svg>");
    Some(out)
}

/// The figure of each run in their order; those that do not count are hollow. None where no run has the figure.
pub(super) fn values(group: &GroupPage) -> Option<String> {
    let chart = Chart::around(group.runs.iter().filter_map(|run| run.value), group.runs.len())?;
    let name = |column: usize| group.runs.get(column).map_or_else(String::new, |run| run.run.to_string());
    let title = "the result of each run; see the table below for the values";
    let hollow = if group.runs.iter().any(|run| run.void.is_some()) { "; hollow: not counted" } else { "" };
    let below = format!("run, in chronological order{hollow}");
    let mut out = chart.begin(title, &name, &below, &significant);
    let names = treatments(group);
    let unit = group.figure.as_ref().map_or("", |(_, unit)| unit.as_str());
    for (column, run) in group.runs.iter().enumerate() {
        let Some(value) = run.value else { continue };
        let colour = names.iter().position(|name| name == side(run)).unwrap_or(0) % COLOURS;
        let class = if run.void.is_some() { "void".to_owned() } else { format!("c{colour}") };
        let title = format!("run {} {}: {} {unit}", run.run, run.treatment, significant(value));
        chart.point(&mut out, column, value, &class, &title);
    }
    // More of them would not fit; their names are in the table.
    if names.len() <= COLOURS {
        key(&mut out, &names);
    }
    out.push_str("</svg>");
    Some(out)
}
