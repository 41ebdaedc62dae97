//! Charts as self-contained SVG. Colours and fonts are attributes, so a file looks the same in a browser, an
//! editor and a page.

use kelvin_measure::text::{cut, wrap};
use std::fmt::Write as _;

use crate::chart::{Axis, Scale, escaped};

/// Width of every chart.
pub(super) const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 28.0;
const PANEL: f64 = 290.0;
const SMALL: f64 = 116.0;
const A_ROW: usize = 4;
/// Characters per line below a title.
const A_LINE: usize = 141;
/// Gap between small panels.
const BETWEEN: f64 = 14.0;
pub(super) const INK: &str = "#1c1f23";
pub(super) const SOFT: &str = "#565d66";
const RULE: &str = "#dcdfe3";

/// Colours of lines that can be distinguished on white, also with red-green colour blindness.
pub(super) const COLOURS: [&str; 8] =
    ["#0b5fa5", "#c2570c", "#2b7a3d", "#8b3fa8", "#9a6b00", "#a8324a", "#007a87", "#7a5c3e"];

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stroke {
    /// Measured values, behind the derived ones.
    Pale,
    /// The main line.
    Full,
    /// A fitted line or a mean.
    Dashed,
}

/// A line, or a band if it has edges.
pub(super) struct Line {
    /// Its label in the legend; none if it needs none.
    pub(super) name: Option<String>,
    pub(super) colour: &'static str,
    pub(super) stroke: Stroke,
    pub(super) points: Vec<(f64, f64)>,
    /// Lower and upper edge of a band at each point, drawn pale.
    pub(super) band: Vec<(f64, f64, f64)>,
}

impl Line {
    pub(super) fn new(
        name: impl Into<String>,
        colour: &'static str,
        stroke: Stroke,
        points: Vec<(f64, f64)>,
    ) -> Self {
        Self { name: Some(name.into()), colour, stroke, points, band: Vec::new() }
    }
}

/// A line chart: one panel, or several with the same scales.
pub(super) struct Lines {
    pub(super) title: String,
    pub(super) about: Vec<String>,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Name and lines of each panel.
    pub(super) panels: Vec<(String, Vec<Line>)>,
}

struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Lines {
    /// The chart as SVG.
    pub(super) fn svg(&self) -> String {
        let all = || self.panels.iter().flat_map(|panel| &panel.1);
        let x = self.x.over(all().flat_map(|line| line.points.iter().map(|p| p.0)));
        let banded = |line: &Line| line.band.iter().map(|band| band.2).collect::<Vec<_>>();
        let y = self.y.over(all().flat_map(|line| line.points.iter().map(|p| p.1).chain(banded(line))));
        let mut body = String::new();
        let top = header_height(&self.about);
        let mut bottom = top;
        if let [(_, lines)] = &self.panels[..] {
            let area = Area { left: LEFT, top, width: WIDTH - LEFT - RIGHT, height: PANEL };
            panel(&mut body, &area, (&x, &y), lines, true);
            bottom += PANEL + 20.0;
        } else {
            let wide = (WIDTH - LEFT - RIGHT) / A_ROW as f64;
            let rows = self.panels.len().div_ceil(A_ROW);
            for (at, (name, lines)) in self.panels.iter().enumerate() {
                let (row, column) = (at / A_ROW, at % A_ROW);
                let above = top + row as f64 * (SMALL + 40.0) + 18.0;
                let left = LEFT + column as f64 * wide;
                let area = Area { left, top: above, width: wide - BETWEEN, height: SMALL };
                panel(&mut body, &area, (&x, &y), lines, column == 0);
                text(&mut body, (left, above - 6.0), "start", 12.0, INK, &cut(name, 32));
            }
            bottom += rows as f64 * (SMALL + 40.0);
        }
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        text(&mut body, (middle, bottom + 16.0), "middle", 12.0, SOFT, &self.x.label);
        upright(&mut body, (16.0, f64::midpoint(top, bottom)), &self.y.label);
        bottom += 26.0;
        let first = self.panels.iter().take(usize::from(self.panels.len() == 1)).flat_map(|panel| &panel.1);
        let entries: Vec<(&str, Stroke, String)> = first
            .chain(
                self.panels
                    .iter()
                    .skip(1)
                    .take(1)
                    .flat_map(|panel| panel.1.iter().filter(|l| l.stroke == Stroke::Dashed)),
            )
            .filter_map(|line| Some((line.colour, line.stroke, line.name.clone()?)))
            .collect();
        let bottom = legend(&mut body, bottom, &entries);
        picture(&self.title, &self.about, bottom, &body)
    }
}

/// Top of the plot, below the title and the lines of explanation.
pub(super) fn header_height(about: &[String]) -> f64 {
    44.0 + wrapped(about).len() as f64 * 16.0
}

fn wrapped(about: &[String]) -> Vec<String> {
    about.iter().flat_map(|words| wrap("", words, A_LINE)).collect()
}

/// The SVG document around a body that ends at `bottom`.
pub(super) fn picture(title: &str, about: &[String], bottom: f64, body: &str) -> String {
    let height = bottom.ceil() + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{0}\" font-family=\"'DejaVu Sans', system-ui, sans-serif\"><title>{0}</title>\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escaped(title)
    );
    let _ = writeln!(
        out,
        "<text x=\"20\" y=\"26\" font-size=\"16\" font-weight=\"600\" fill=\"{INK}\">{}</text>",
        escaped(&cut(title, 105))
    );
    for (at, line) in wrapped(about).iter().enumerate() {
        text(&mut out, (20.0, 44.0 + at as f64 * 16.0), "start", 12.0, SOFT, line);
    }
    out.push_str(body);
    out.push_str("</svg>\n");
    out
}

/// Text at a position.
pub(super) fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, size: f64, colour: &str, words: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
        escaped(words)
    );
}

/// Vertical text beside an axis.
pub(super) fn upright(out: &mut String, (x, y): (f64, f64), words: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"12\" text-anchor=\"middle\" fill=\"{SOFT}\" \
         transform=\"rotate(-90 {x:.1} {y:.1})\">{}</text>",
        escaped(words)
    );
}

/// A thin line of an axis.
pub(super) fn rule(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{RULE}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// Tick marks that do not overlap, if each needs `room` of `length`.
fn shown(scale: &Scale, length: f64, room: f64) -> impl Iterator<Item = &(f64, String)> {
    let most = (length / room).floor().max(2.0) as usize;
    let every = scale.marks.len().div_ceil(most).max(1);
    scale.marks.iter().step_by(every)
}

/// Half of a label's width in the font of an axis, slightly overestimated.
fn half(words: &str) -> f64 {
    words.chars().count() as f64 * 3.5 + 3.0
}

/// Tick marks below an area, with their positions. Labels that would overlap another one or extend beyond
/// `until` are omitted.
fn below<'a>(x: &'a Scale, area: &Area, until: f64) -> Vec<(f64, &'a str)> {
    let widest = x.marks.iter().map(|mark| half(&mark.1) * 2.0).fold(1.0, f64::max);
    let mut taken = f64::NEG_INFINITY;
    let mut found = Vec::new();
    for (tick, words) in shown(x, area.width, widest) {
        let Some(place) = x.share(*tick).map(|share| area.left + share * area.width) else { continue };
        let is_free = place - half(words) >= taken && place + half(words) <= until;
        if is_free {
            taken = place + half(words);
        }
        found.push((place, if is_free { words.as_str() } else { "" }));
    }
    found
}

fn panel(out: &mut String, area: &Area, (x, y): (&Scale, &Scale), lines: &[Line], has_words: bool) {
    let at_x = |value: f64| x.share(value).map(|share| area.left + share * area.width);
    let at_y = |value: f64| y.share(value).map(|share| area.top + (1.0 - share) * area.height);
    let (right, bottom) = (area.left + area.width, area.top + area.height);
    // A small panel ends at the label "0" of the next panel; a large one, and the last in a row, at the edge
    // of the chart.
    let until = if right + RIGHT + BETWEEN + 1.0 < WIDTH { right + BETWEEN - half("0") } else { WIDTH };
    for (tick, words) in shown(y, area.height, 20.0) {
        let Some(place) = at_y(*tick) else { continue };
        rule(out, (area.left, place), (right, place));
        if has_words {
            text(out, (area.left - 8.0, place + 4.0), "end", 11.0, SOFT, words);
        }
    }
    for (place, words) in below(x, area, until) {
        rule(out, (place, area.top), (place, bottom));
        if !words.is_empty() {
            text(out, (place, bottom + 15.0), "middle", 11.0, SOFT, words);
        }
    }
    for line in lines {
        let place = |point: &(f64, f64)| Some((at_x(point.0)?, at_y(point.1)?));
        if !line.band.is_empty() {
            let upper = line.band.iter().filter_map(|(x, _, high)| place(&(*x, *high)));
            let lower = line.band.iter().rev().filter_map(|(x, low, _)| place(&(*x, *low)));
            let _ = write!(out, "<polygon fill=\"{}\" fill-opacity=\"0.16\" points=\"", line.colour);
            for (x, y) in upper.chain(lower) {
                let _ = write!(out, "{x:.1},{y:.1} ");
            }
            out.push_str("\"/>\n");
        }
        let style = match line.stroke {
            Stroke::Pale => "stroke-width=\"1\" stroke-opacity=\"0.45\"",
            Stroke::Full => "stroke-width=\"2\"",
            Stroke::Dashed => "stroke-width=\"1.5\" stroke-dasharray=\"7 5\"",
        };
        let mut points: Vec<(f64, f64)> = line.points.iter().filter_map(place).collect();
        // Thousands of bins are less than a pixel apart: they are indistinguishable and would only enlarge
        // the file.
        points.dedup_by(|next, last| (next.0 - last.0).abs() < 0.4 && (next.1 - last.1).abs() < 0.4);
        if let [(x, y)] = points[..] {
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{}\"/>", line.colour);
            continue;
        }
        let _ = write!(
            out,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-linejoin=\"round\" {style} points=\"",
            line.colour
        );
        for (x, y) in points {
            let _ = write!(out, "{x:.1},{y:.1} ");
        }
        out.push_str("\"/>\n");
    }
}

/// The legend below a chart, in as many rows as it needs; returns its lower end.
pub(super) fn legend(out: &mut String, top: f64, entries: &[(&str, Stroke, String)]) -> f64 {
    let (mut x, mut y) = (LEFT, top + 14.0);
    for (colour, stroke, name) in entries {
        let name = cut(name, 110);
        let wide = name.chars().count() as f64 * 6.8 + 46.0;
        if x + wide > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + 18.0);
        }
        let style = match stroke {
            Stroke::Pale => "stroke-width=\"1.5\" stroke-opacity=\"0.55\"",
            Stroke::Full => "stroke-width=\"3\"",
            Stroke::Dashed => "stroke-width=\"2\" stroke-dasharray=\"6 4\"",
        };
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{0:.1}\" x2=\"{1:.1}\" y2=\"{0:.1}\" stroke=\"{colour}\" {style}/>",
            y - 4.0,
            x + 22.0
        );
        text(out, (x + 28.0, y), "start", 12.0, INK, &name);
        x += wide;
    }
    if entries.is_empty() { top } else { y + 6.0 }
}
