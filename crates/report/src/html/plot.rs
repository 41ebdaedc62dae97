//! Line charts as inline SVG, for a few points in a given order. A line may turn back on itself, which a
//! chart of time series cannot draw.

use crate::chart::{self, Axis, colour, dot, legend, polyline};

pub(super) const FRAME: chart::Frame =
    chart::Frame { width: 960.0, height: 330.0, left: 78.0, right: 24.0, top: 16.0, bottom: 52.0 };

/// x, y, and the text of the mark's tooltip.
pub(super) type Mark = (f64, f64, String);

/// A line through points, in the given order.
pub(super) struct Line {
    /// Its name in the legend.
    pub(super) name: String,
    /// Number of the page's colour, 0 to 4.
    pub(super) colour: usize,
    /// Whether it is a fitted curve: dashed, without marks.
    pub(super) fitted: bool,
    /// The points, in order.
    pub(super) points: Vec<Mark>,
}

/// Title, labels and scale of a chart.
pub(super) struct Frame<'a> {
    /// Description of the chart for screen readers.
    pub(super) title: &'a str,
    /// Label of the x axis.
    pub(super) x: &'a str,
    /// Label of the y axis.
    pub(super) y: &'a str,
    /// Whether the y axis is logarithmic.
    pub(super) log: bool,
}

/// The chart; empty if no line has a point.
pub(super) fn svg(frame: &Frame<'_>, lines: &[Line]) -> String {
    let usable = |v: f64| v.is_finite() && (v > 0.0 || !frame.log);
    let values = |pick: fn(&Mark) -> f64| lines.iter().flat_map(|line| &line.points).map(pick);
    if !values(|mark| mark.1).any(usable) {
        return String::new();
    }
    let x = Axis::linear(frame.x).over(values(|mark| mark.0));
    let y = if frame.log { Axis::log(frame.y) } else { Axis::linear(frame.y) };
    let y = y.over(values(|mark| mark.1));
    // Room on the right, so that the last mark is not cut off.
    let at_x = |value: f64| FRAME.x(x.share(value).unwrap_or(0.0) / 1.02);
    let mut out = FRAME.begin(frame.title);
    out.push_str("<g class=\"axes\">");
    FRAME.y_axis(&mut out, &y, true);
    for (tick, words) in &x.marks {
        FRAME.upright(&mut out, at_x(*tick));
        FRAME.below(&mut out, at_x(*tick), words);
    }
    FRAME.x_title(&mut out, frame.x);
    FRAME.y_title(&mut out, frame.y);
    out.push_str("</g>");
    for line in lines {
        let points = || line.points.iter().filter(|mark| mark.0.is_finite() && usable(mark.1));
        let place = |mark: &Mark| (at_x(mark.0), FRAME.y(&y, mark.1));
        let class = if line.fitted { "fitted" } else { "measured" };
        out.push_str(&format!("<g class=\"{class} {}\">", colour(line.colour)));
        polyline(&mut out, points().map(place));
        for mark in points().filter(|_| !line.fitted) {
            dot(&mut out, "", place(mark), 4.0, &mark.2);
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    // A single line needs no legend.
    let named = lines.iter().filter(|_| lines.len() > 1);
    legend(&mut out, named.map(|line| (line.colour, line.fitted, line.name.as_str())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
