//! Line charts as inline SVG, for a handful of points whose order matters: a line may turn back on itself, which
//! a chart of time series cannot draw.

use std::fmt::Write;

use crate::figure::{coefficient, whole};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 52.0;

/// x, y, and what the mark says when pointed at.
pub(super) type Mark = (f64, f64, String);

/// A line through points in their order.
pub(super) struct Line {
    /// What it is called in the legend.
    pub(super) name: String,
    /// Which of the page's colours, 0 to 4.
    pub(super) colour: usize,
    /// Whether it is a fitted curve: dashed, without marks.
    pub(super) fitted: bool,
    /// The points in their order.
    pub(super) points: Vec<Mark>,
}

/// What stands around the lines.
pub(super) struct Frame<'a> {
    /// What the chart shows, for those who cannot see it.
    pub(super) title: &'a str,
    /// Under the x axis.
    pub(super) x: &'a str,
    /// Beside the y axis.
    pub(super) y: &'a str,
    /// Whether the y axis is logarithmic.
    pub(super) log: bool,
}

/// The chart; empty when no line has a point.
pub(super) fn svg(frame: &Frame<'_>, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|l| &l.points);
    let usable = |v: f64| v.is_finite() && (v > 0.0 || !frame.log);
    let Some(top) = points().map(|p| p.1).filter(|v| usable(*v)).reduce(f64::max) else {
        return String::new();
    };
    let lowest = points().map(|p| p.1).filter(|v| usable(*v)).fold(top, f64::min);
    // Where nothing committed, every figure is 0: an axis needs a length all the same.
    let length = |most: f64| if most > 0.0 && most.is_finite() { most } else { 1.0 };
    let top = length(top);
    let right = length(points().map(|p| p.0).filter(|v| v.is_finite()).fold(0.0, f64::max));
    let x_ticks = ticks(right);
    let right = right.max(x_ticks.last().copied().unwrap_or(right)) * 1.02;
    let y_ticks = if frame.log { decades(lowest, top) } else { ticks(top) };
    let high = y_ticks.last().copied().unwrap_or(top).max(top);
    let low = if frame.log { y_ticks.first().copied().unwrap_or(lowest).min(lowest) } else { 0.0 };
    let at_x = |x: f64| LEFT + x / right * (WIDTH - LEFT - RIGHT);
    let at_y = |y: f64| {
        let share = if frame.log { (y / low).ln() / (high / low).ln() } else { y / high };
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    };
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\"><g class=\"axes\">",
        escaped(frame.title)
    );
    for tick in &y_ticks {
        let y = at_y(*tick);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0,
            number(*tick)
        );
    }
    for tick in &x_ticks {
        let x = at_x(*tick);
        let bottom = HEIGHT - BOTTOM;
        let _ = write!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            number(*tick)
        );
    }
    let (middle, beside) = ((LEFT + WIDTH - RIGHT) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0);
    let _ = write!(
        out,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text x=\"14\" y=\"{beside:.1}\" \
         text-anchor=\"middle\" transform=\"rotate(-90 14 {beside:.1})\">{}</text></g>",
        HEIGHT - 10.0,
        escaped(frame.x),
        escaped(frame.y)
    );
    for line in lines {
        draw(&mut out, line, &usable, &at_x, &at_y);
    }
    out.push_str("</svg>");
    legend(&mut out, lines);
    out
}

fn draw(
    out: &mut String,
    line: &Line,
    usable: &impl Fn(f64) -> bool,
    at_x: &impl Fn(f64) -> f64,
    at_y: &impl Fn(f64) -> f64,
) {
    let class = if line.fitted { "fitted" } else { "measured" };
    let _ = write!(out, "<g class=\"{class} c{}\"><polyline points=\"", line.colour % 5);
    let points = || line.points.iter().filter(|p| p.0.is_finite() && usable(p.1));
    for (x, y, _) in points() {
        let _ = write!(out, "{:.1},{:.1} ", at_x(*x), at_y(*y));
    }
    out.push_str("\"/>");
    if !line.fitted {
        for (x, y, text) in points() {
            let _ = write!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"><title>{}</title></circle>",
                at_x(*x),
                at_y(*y),
                escaped(text)
            );
        }
    }
    out.push_str("</g>");
}

/// Under the chart, as text that wraps; one line needs none.
fn legend(out: &mut String, lines: &[Line]) {
    if lines.len() < 2 {
        return;
    }
    out.push_str("<p class=\"legend\">");
    for line in lines {
        let class = if line.fitted { " dashed" } else { "" };
        let _ =
            write!(out, "<span class=\"swatch{class} c{}\"></span>{} ", line.colour % 5, escaped(&line.name));
    }
    out.push_str("</p>");
}

/// About six round numbers from 0 to at least `most`.
pub(crate) fn ticks(most: f64) -> Vec<f64> {
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    (0..=10).map(|i| f64::from(i) * step).take_while(|v| v - step < most * 0.999).collect()
}

/// 1, 2 and 5 times powers of ten around a range; only the powers when there are many.
pub(crate) fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) =
        (low.log10().floor() as i32, high.log10().ceil().max(low.log10().floor() + 1.0) as i32);
    let steps: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (first..=last).flat_map(|e| steps.iter().map(move |s| s * 10_f64.powi(e)));
    let all: Vec<f64> = all.collect();
    // One mark beyond each end is enough.
    let from = all.iter().rposition(|v| *v <= low * 1.001).unwrap_or(0);
    let to = all.iter().position(|v| *v >= high * 0.999 && *v > all[from]).unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value.fract() == 0.0 && value.abs() < 1e12 {
        return whole(value as u64);
    }
    let text = if value < 0.01 { coefficient(value) } else { format!("{value:.3}") };
    if text.contains('e') { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Text within an element or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        assert_eq!(ticks(8.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(10_400.0), [0.0, 2500.0, 5000.0, 7500.0, 10_000.0, 12_500.0]);
        assert_eq!(decades(0.3, 4.0), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(decades(0.3, 4000.0), [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        for value in [1e-6, 0.37, 1.0, 99.0, 1e9] {
            assert!(ticks(value).last().unwrap() >= &(value * 0.998), "{value}");
            let around = decades(value, value);
            assert!(around.len() >= 2 && around[0] <= value * 1.001, "{value}: {around:?}");
        }
    }

    #[test]
    fn a_line_that_turns_back_keeps_its_order_and_text_stays_text() {
        let points = vec![(1.0, 1.0, "<a>".into()), (3.0, 2.0, String::new()), (2.0, 9.0, String::new())];
        let line = Line { name: "x".into(), colour: 0, fitted: false, points };
        let out = svg(&Frame { title: "\"t\"", x: "x", y: "y", log: false }, &[line]);
        let drawn = out.split("polyline points=\"").nth(1).unwrap().split('"').next().unwrap();
        let x: Vec<f64> =
            drawn.split_whitespace().map(|p| p.split(',').next().unwrap().parse().unwrap()).collect();
        assert!(x[0] < x[2] && x[2] < x[1], "{drawn}");
        assert!(out.contains("&lt;a&gt;") && out.contains("&quot;t&quot;"));
        assert_eq!(svg(&Frame { title: "", x: "", y: "", log: true }, &[]), "");
    }

    #[test]
    fn a_chart_of_nothing_but_zeros_has_its_axes() {
        let line = |x, y| Line {
            name: "x".into(),
            colour: 0,
            fitted: false,
            points: vec![(0.0, 0.0, String::new()), (x, y, String::new())],
        };
        for (x, y, log) in [(8.0, 0.0, false), (0.0, 0.0, false), (0.0, 5.0, true), (f64::NAN, 0.0, false)] {
            let out = svg(&Frame { title: "t", x: "x", y: "y", log }, &[line(x, y)]);
            assert!(out.contains("class=\"axes\"") && !out.contains("NaN") && !out.contains("inf"), "{out}");
        }
        assert_eq!(svg(&Frame { title: "t", x: "x", y: "y", log: true }, &[line(8.0, 0.0)]), "");
    }
}
