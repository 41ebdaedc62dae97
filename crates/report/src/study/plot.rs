//! Plots of effects and interactions as inline SVG: means with their intervals over the levels of a factor.
//! Panels side by side have the same scale, so that factors can be compared.

use std::fmt::Write;

use kelvin_analysis::{Analysis, Estimate, Marginal};

use crate::chart::{Frame, Scale, begin, colour, dot, escaped, legend, polyline};
use kelvin_measure::text::significant;

const HEIGHT: f64 = 250.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 46.0;
const LEFT: f64 = 84.0;
const GAP: f64 = 18.0;
const A_ROW: usize = 4;
/// Widths of a panel that fills the page, and of one of two side by side.
const WHOLE: f64 = 850.0;
const HALF: f64 = 360.0;

/// A line of a panel.
struct Line {
    name: String,
    points: Vec<(usize, Estimate)>,
}

/// One panel: a factor's levels along x.
struct Panel {
    title: String,
    levels: Vec<String>,
    lines: Vec<Line>,
}

/// Main effects, one panel per factor. Empty if there are no means.
pub(crate) fn main_effects(of: &Analysis) -> String {
    let panels = of.factors.iter().enumerate().map(|(factor, named)| {
        let points = of.primary.marginals.iter().filter_map(|m| match m.at[..] {
            [(f, level)] if f == factor => Some((level, m.mean)),
            _ => None,
        });
        Panel {
            title: named.name.clone(),
            levels: named.levels.iter().map(|level| level.name.clone()).collect(),
            lines: vec![Line { name: String::new(), points: points.collect() }],
        }
    });
    drawn(&panels.collect::<Vec<_>>(), WHOLE, &of.primary.name, "means by level of each factor")
}

/// Interactions, one panel per pair of factors. Lines that are not parallel show an interaction.
pub(crate) fn interactions(of: &Analysis) -> Vec<(String, String)> {
    let count = of.factors.len();
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    pairs
        .filter_map(|(a, b)| {
            let mean = |m: &Marginal, level: usize| match m.at[..] {
                [(x, i), (y, j)] if (x, y) == (a, b) && j == level => Some((i, m.mean)),
                _ => None,
            };
            let line = |(at, level): (usize, &kelvin_analysis::Level)| Line {
                name: format!("{}={}", of.factors[b].name, level.name),
                points: of.primary.marginals.iter().filter_map(|m| mean(m, at)).collect(),
            };
            let title = format!("{} × {}", of.factors[a].name, of.factors[b].name);
            let panel = Panel {
                title: of.factors[a].name.clone(),
                levels: of.factors[a].levels.iter().map(|level| level.name.clone()).collect(),
                lines: of.factors[b].levels.iter().enumerate().map(line).collect(),
            };
            let drawn = drawn(&[panel], HALF, &of.primary.name, &title);
            (!drawn.is_empty()).then_some((title, drawn))
        })
        .collect()
}

/// The curve of a sweep, with its levels equally spaced and the fitted model, if there is one.
pub(crate) fn sweep(of: &Analysis) -> String {
    let Some(sweep) = &of.sweep else { return String::new() };
    let points = sweep.points.iter().enumerate().map(|(at, (_, _, value))| (at, *value)).collect();
    let mut lines = vec![Line { name: "measured".into(), points }];
    if let Some(law) = &sweep.law {
        let [lambda, sigma, kappa] = law.parameters.map(|parameter| parameter.value);
        let by_law = |n: f64| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
        let fitted = sweep.points.iter().enumerate().filter_map(|(at, (number, ..))| {
            Some((at, Estimate { value: by_law((*number)?), low: None, high: None, p: None }))
        });
        lines.push(Line { name: "fitted (USL)".into(), points: fitted.collect() });
    }
    let panel = Panel {
        title: of.factors.first().map_or_else(String::new, |factor| factor.name.clone()),
        levels: sweep.points.iter().map(|(_, name, _)| name.clone()).collect(),
        lines,
    };
    drawn(&[panel], WHOLE, &of.primary.name, "the metric over the levels")
}

/// Each run divided by its cell's mean, in chronological order.
pub(crate) fn order(of: &Analysis) -> String {
    let Some(drift) = &of.drift else { return String::new() };
    let points = drift
        .runs
        .iter()
        .enumerate()
        .map(|(at, (_, value))| (at, Estimate { value: *value, low: None, high: None, p: None }));
    let panel = Panel {
        title: "position in the order of the runs".into(),
        levels: drift.runs.iter().map(|(place, _)| (place + 1).to_string()).collect(),
        lines: vec![Line { name: String::new(), points: points.collect() }],
    };
    drawn(&[panel], WHOLE, "run ÷ mean of its cell", "each run over the mean of its cell")
}

fn drawn(panels: &[Panel], alone_wide: f64, y: &str, title: &str) -> String {
    let all = || panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.points).map(|(_, e)| e);
    let values = all().flat_map(|e| [Some(e.value), e.low, e.high]).flatten();
    // Effects of a few per cent would be invisible on an axis from 0. It starts near the lowest value, and a
    // note says so.
    let Some(scale) = Scale::around(values, significant) else { return String::new() };
    let rows: Vec<&[Panel]> = panels.chunks(A_ROW).collect();
    let alone = panels.len() == 1;
    let width = if alone { LEFT + alone_wide + 26.0 } else { 960.0 };
    let mut out = begin(width, HEIGHT * rows.len() as f64, title);
    for (row, panels) in rows.iter().enumerate() {
        let _ = write!(out, "<g transform=\"translate(0 {})\">", HEIGHT * row as f64);
        let wide = if alone {
            alone_wide
        } else {
            (960.0 - LEFT - GAP * panels.len() as f64) / (panels.len().max(2)) as f64
        };
        for (at, panel) in panels.iter().enumerate() {
            let left = LEFT + at as f64 * (wide + GAP);
            let frame =
                Frame { width: left + wide, height: HEIGHT, left, right: 0.0, top: TOP, bottom: BOTTOM };
            out.push_str("<g class=\"axes\">");
            frame.y_axis(&mut out, &scale, at == 0);
            x_axis(&mut out, panel, &frame);
            if at == 0 {
                frame.y_title(&mut out, y);
            }
            out.push_str("</g>");
            for (index, line) in panel.lines.iter().enumerate() {
                draw(&mut out, panel, line, index, &frame, &scale);
            }
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    let named = panels.iter().flat_map(|panel| panel.lines.iter().enumerate());
    let named = named.filter(|(_, line)| !line.name.is_empty());
    legend(&mut out, named.map(|(index, line)| (index, false, line.name.as_str())));
    out
}

/// The levels of a panel, and the factor below them.
fn x_axis(out: &mut String, panel: &Panel, frame: &Frame) {
    let wide = frame.width - frame.left;
    // Labels of many levels would overlap: only every n-th is drawn.
    let longest = panel.levels.iter().map(|level| level.chars().count()).max().unwrap_or(1);
    let fits = ((wide / (longest as f64 * 7.0 + 8.0)).floor() as usize).max(1);
    let most = if longest as f64 * 7.0 > wide { (wide / 8.0) as usize } else { longest };
    frame.column_names(out, panel.levels.len(), fits, |level| {
        panel.levels[level].chars().take(most).collect()
    });
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-weight=\"600\">{}</text>",
        frame.x(0.5),
        HEIGHT - BOTTOM + 36.0,
        escaped(&panel.title)
    );
}

fn draw(out: &mut String, panel: &Panel, line: &Line, index: usize, frame: &Frame, scale: &Scale) {
    let _ = write!(out, "<g class=\"measured {}\">", colour(index));
    // Shifted, because the intervals of several lines would hide each other.
    let shift =
        if panel.lines.len() > 1 { (index as f64 - (panel.lines.len() - 1) as f64 / 2.0) * 5.0 } else { 0.0 };
    let points = || line.points.iter().filter(|(_, e)| e.value.is_finite());
    let x = |level: usize| frame.column(level as f64, panel.levels.len()) + shift;
    polyline(out, points().map(|(level, e)| (x(*level), frame.y(scale, e.value))));
    for (level, estimate) in points() {
        let x = x(*level);
        let mut text = format!("{}: {}", panel.levels[*level], significant(estimate.value));
        if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
            let (low_y, high_y) = (frame.y(scale, low), frame.y(scale, high));
            let _ = write!(
                out,
                "<path class=\"bar\" d=\"M{x:.1} {low_y:.1}V{high_y:.1}M{:.1} {low_y:.1}h8M{:.1} {high_y:.1}h8\"/>",
                x - 4.0,
                x - 4.0
            );
            text.push_str(&format!(" ({} to {})", significant(low), significant(high)));
        }
        if !line.name.is_empty() {
            text = format!("{}, {text}", line.name);
        }
        dot(out, "", (x, frame.y(scale, estimate.value)), 3.5, &text);
    }
    out.push_str("</g>");
}
