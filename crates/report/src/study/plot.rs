//! Plots of effects and interactions as inline SVG: means with their intervals over the levels of a factor, panels side by
//! side on one scale, so that the eye compares factors rightly.

use std::fmt::Write;

use kelvin_analysis::{Analysis, Estimate, Marginal};

use crate::figure::significant;
use crate::html::escaped;

const HEIGHT: f64 = 250.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 46.0;
const LEFT: f64 = 84.0;
const GAP: f64 = 18.0;
const A_ROW: usize = 4;
/// A panel that stands alone over the page's width, and one of two beside each other.
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

/// Main effects: a panel a factor. Empty where there are no means.
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

/// Interactions: a panel for each pair of factors. Lines that are not parallel are one.
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

/// The curve of a sweep, its levels at equal distances, with the law's curve where there is one.
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

/// Each run over its cell's mean, in the order of time.
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
    let values = || all().flat_map(|e| [Some(e.value), e.low, e.high]).flatten().filter(|v| v.is_finite());
    let (Some(low), Some(high)) = (values().reduce(f64::min), values().reduce(f64::max)) else {
        return String::new();
    };
    // Effects of a few per cent would be invisible on an axis from 0: it begins near the lowest value, and says so.
    let margin = if high > low { (high - low) * 0.08 } else { high.abs().max(1.0) * 0.01 };
    let ticks = ticks(low - margin, high + margin);
    let (bottom, top) = ((low - margin).min(ticks[0]), (high + margin).max(ticks[ticks.len() - 1]));
    let at_y = |v: f64| HEIGHT - BOTTOM - (v - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM);
    let rows: Vec<&[Panel]> = panels.chunks(A_ROW).collect();
    let alone = panels.len() == 1;
    let width = if alone { LEFT + alone_wide + 26.0 } else { 960.0 };
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"{}\">",
        HEIGHT * rows.len() as f64,
        escaped(title)
    );
    for (row, panels) in rows.iter().enumerate() {
        let _ = write!(out, "<g transform=\"translate(0 {})\">", HEIGHT * row as f64);
        let wide = if alone {
            alone_wide
        } else {
            (960.0 - LEFT - GAP * panels.len() as f64) / (panels.len().max(2)) as f64
        };
        for (at, panel) in panels.iter().enumerate() {
            let x0 = LEFT + at as f64 * (wide + GAP);
            axes(&mut out, panel, (x0, wide), &ticks, &at_y, at == 0);
            for (colour, line) in panel.lines.iter().enumerate() {
                draw(&mut out, panel, line, colour, (x0, wide), &at_y);
            }
        }
        let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
        let _ = write!(
            out,
            "<g class=\"axes\"><text x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 14 \
             {middle:.1})\">{}</text></g></g>",
            escaped(y)
        );
    }
    out.push_str("</svg>");
    let named: Vec<(usize, &Line)> =
        panels.iter().flat_map(|p| p.lines.iter().enumerate()).filter(|(_, l)| !l.name.is_empty()).collect();
    if !named.is_empty() {
        out.push_str("<p class=\"legend\">");
        for (colour, line) in named {
            let _ = write!(out, "<span class=\"swatch c{}\"></span>{} ", colour % 5, escaped(&line.name));
        }
        out.push_str("</p>");
    }
    out
}

/// The middle of a level within a panel.
fn at_x(panel: &Panel, level: usize, (x0, wide): (f64, f64)) -> f64 {
    x0 + wide * (level as f64 + 0.5) / panel.levels.len() as f64
}

fn axes(
    out: &mut String,
    panel: &Panel,
    frame: (f64, f64),
    ticks: &[f64],
    at_y: &impl Fn(f64) -> f64,
    labels: bool,
) {
    let (x0, wide) = frame;
    out.push_str("<g class=\"axes\">");
    for tick in ticks {
        let y = at_y(*tick);
        let _ = write!(out, "<line x1=\"{x0:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>", x0 + wide);
        if labels {
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                x0 - 8.0,
                y + 4.0,
                significant(*tick)
            );
        }
    }
    // Labels of many levels would lie over each other: every so many of them is enough.
    let longest = panel.levels.iter().map(|level| level.chars().count()).max().unwrap_or(1);
    let fits = ((wide / (longest as f64 * 7.0 + 8.0)).floor() as usize).max(1);
    let every = panel.levels.len().div_ceil(fits);
    for (level, name) in panel.levels.iter().enumerate().filter(|(level, _)| level % every == 0) {
        let x = at_x(panel, level, frame);
        let shown: String = if longest as f64 * 7.0 > wide {
            name.chars().take((wide / 8.0) as usize).collect()
        } else {
            name.clone()
        };
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 17.0,
            escaped(&shown)
        );
    }
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-weight=\"600\">{}</text></g>",
        x0 + wide / 2.0,
        HEIGHT - BOTTOM + 36.0,
        escaped(&panel.title)
    );
}

fn draw(
    out: &mut String,
    panel: &Panel,
    line: &Line,
    colour: usize,
    frame: (f64, f64),
    at_y: &impl Fn(f64) -> f64,
) {
    let _ = write!(out, "<g class=\"measured c{}\"><polyline points=\"", colour % 5);
    // Lines beside each other would hide one another's intervals.
    let shift = if panel.lines.len() > 1 {
        (colour as f64 - (panel.lines.len() - 1) as f64 / 2.0) * 5.0
    } else {
        0.0
    };
    let points = || line.points.iter().filter(|(_, e)| e.value.is_finite());
    let x = |level: usize| at_x(panel, level, frame) + shift;
    for (level, estimate) in points() {
        let _ = write!(out, "{:.1},{:.1} ", x(*level), at_y(estimate.value));
    }
    out.push_str("\"/>");
    for (level, estimate) in points() {
        let (x, y) = (x(*level), at_y(estimate.value));
        let mut text = format!("{}: {}", panel.levels[*level], significant(estimate.value));
        if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
            let (low_y, high_y) = (at_y(low), at_y(high));
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
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{}</title></circle>",
            escaped(&text)
        );
    }
    out.push_str("</g>");
}

/// About five round numbers within a range.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    let found: Vec<f64> = (first..=last.min(first + 20)).map(|i| i as f64 * step).collect();
    if found.is_empty() { vec![low, high] } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(712_000.0, 805_000.0), [720_000.0, 740_000.0, 760_000.0, 780_000.0, 800_000.0]);
        assert_eq!(ticks(0.985, 1.013), [0.99, 1.0, 1.01]);
        for (low, high) in [(0.0, 1e-9), (-5.0, 5.0), (1e9, 1e9 + 1.0)] {
            let found = ticks(low, high);
            assert!(found.iter().all(|v| (low..=high).contains(v)) && found.len() < 12, "{found:?}");
        }
    }
}
