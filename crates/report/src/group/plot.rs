//! The charts of a group as inline SVG: the ratio of each block, and the value of each run.

use std::fmt::Write;

use kelvin_measure::text::significant;

use super::{GroupPage, GroupPageRun};
use crate::chart::{Frame, Scale, colour, dot, legend};

const FRAME: Frame = Frame { width: 960.0, height: 300.0, left: 86.0, right: 24.0, top: 30.0, bottom: 48.0 };

/// Largest number of names under the chart.
const NAMES: usize = 16;

/// The axes of a chart with one column per block or run: round values, the columns' names, and the label.
fn axes(title: &str, scale: &Scale, columns: usize, name: impl Fn(usize) -> String, below: &str) -> String {
    let mut out = FRAME.begin(title);
    out.push_str("<g class=\"axes\">");
    FRAME.y_axis(&mut out, scale, true);
    FRAME.column_names(&mut out, columns, NAMES, name);
    FRAME.x_title(&mut out, below);
    out.push_str("</g>");
    out
}

/// The treatments, sorted. A trailing `'` is ignored, so that A and A' are one side.
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

/// The ratio of each block, and the interval over all blocks; none if no block is complete.
pub(super) fn ratios(group: &GroupPage) -> Option<String> {
    let first = group.ratios.first()?;
    let of_blocks = group.ratios.iter().flat_map(|one| one.blocks.iter().filter_map(|(_, ratio)| *ratio));
    // The ends of an interval may be far from the measured values: the chart extends to half of the values' range.
    let values: Vec<f64> = of_blocks.chain([1.0]).collect();
    let (low, high) =
        values.iter().fold((1.0_f64, 1.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let room = (high - low) * 0.5;
    let ends =
        group.ratios.iter().flat_map(|one| [one.low, one.high]).map(|end| end.clamp(low - room, high + room));
    let scale = Scale::around(values.iter().copied().chain(ends), |tick| format!("{tick:.3}"))?;
    if values.len() < 2 {
        return None;
    }
    let columns = first.blocks.len();
    let name =
        |column: usize| first.blocks.get(column).map_or_else(String::new, |(block, _)| block.to_string());
    let title = "the ratio of each block, and the interval over all; see the summary below for the values";
    let mut out = axes(title, &scale, columns, name, "block");
    for (index, one) in group.ratios.iter().enumerate() {
        let (top, bottom) = (FRAME.y(&scale, one.high), FRAME.y(&scale, one.low));
        let (left, right) = (FRAME.x(0.0), FRAME.x(1.0));
        let _ = write!(
            out,
            "<g class=\"{}\"><rect class=\"band\" x=\"{left}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            colour(index),
            right - left,
            bottom - top,
        );
        if index == 0 {
            FRAME.line(&mut out, "one", FRAME.y(&scale, 1.0));
        }
        FRAME.line(&mut out, "middle", FRAME.y(&scale, one.ratio));
        for (column, (block, ratio)) in one.blocks.iter().enumerate() {
            let Some(ratio) = ratio else { continue };
            let place = (FRAME.column(column as f64, columns), FRAME.y(&scale, *ratio));
            dot(&mut out, "", place, 5.0, &format!("block {block}: {}/A {ratio:.4}", one.side));
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    let names: Vec<String> = group
        .ratios
        .iter()
        .map(|one| {
            format!("{}/A by block; dashed: over all blocks, with the {} interval", one.side, one.confidence)
        })
        .collect();
    legend(&mut out, names.iter().enumerate().map(|(index, name)| (index, false, name.as_str())));
    Some(out)
}

/// The value of each run, in order; runs that do not count are hollow. `None` if no run has a value.
pub(super) fn values(group: &GroupPage) -> Option<String> {
    let columns = group.runs.len();
    let scale = Scale::around(group.runs.iter().filter_map(|run| run.value), significant)?;
    let name = |column: usize| group.runs.get(column).map_or_else(String::new, |run| run.run.to_string());
    let title = "the result of each run; see the table below for the values";
    let hollow = if group.runs.iter().any(|run| run.void.is_some()) { "; hollow: not counted" } else { "" };
    let below = format!("run, in chronological order{hollow}");
    let mut out = axes(title, &scale, columns, name, &below);
    let names = treatments(group);
    let unit = group.figure.as_ref().map_or("", |(_, unit)| unit.as_str());
    for (column, run) in group.runs.iter().enumerate() {
        let Some(value) = run.value else { continue };
        let of = names.iter().position(|name| name == side(run)).unwrap_or(0);
        let class = if run.void.is_some() { "void".to_owned() } else { colour(of) };
        let title = format!("run {} {}: {} {unit}", run.run, run.treatment, significant(value));
        let place = (FRAME.column(column as f64, columns), FRAME.y(&scale, value));
        dot(&mut out, &class, place, 5.0, &title);
    }
    out.push_str("</svg>");
    legend(&mut out, names.iter().enumerate().map(|(index, name)| (index, false, name.as_str())));
    Some(out)
}
