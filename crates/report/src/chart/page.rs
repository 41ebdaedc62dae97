//! Drawing in a page, with the classes of its style sheet.

use std::fmt::Write;

use super::{Scale, escaped};

/// The colours `c0` to `c4` of the style sheet.
const COLOURS: usize = 5;

/// The size of a chart, and its margins.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    /// The x coordinate of a fraction of the x axis.
    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.width - self.left - self.right)
    }

    /// The x coordinate of the centre of one of `columns` equally wide columns.
    pub(crate) fn column(&self, column: f64, columns: usize) -> f64 {
        self.x((column + 0.5) / columns.max(1) as f64)
    }

    /// The y coordinate of a value; the bottom of the axis if the value has none.
    pub(crate) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.foot() - scale.share(value).unwrap_or(0.0) * (self.foot() - self.top)
    }

    /// The lower end of the y axis.
    pub(crate) fn foot(&self) -> f64 {
        self.height - self.bottom
    }

    /// The start of the SVG element, with a title for screen readers.
    pub(crate) fn begin(&self, title: &str) -> String {
        begin(self.width, self.height, title)
    }

    /// The grid lines of the y axis, with labels if `has_words` is set.
    pub(crate) fn y_axis(&self, out: &mut String, scale: &Scale, has_words: bool) {
        for (tick, words) in &scale.marks {
            let y = self.y(scale, *tick);
            self.line(out, "", y);
            if has_words {
                text(out, (self.left - 8.0, y + 4.0), "end", words);
            }
        }
    }

    /// A horizontal line over the whole plot.
    pub(crate) fn line(&self, out: &mut String, class: &str, y: f64) {
        let (from, to) = (self.left, self.width - self.right);
        let _ = write!(
            out,
            "<line{} x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\"/>",
            class_of(class)
        );
    }

    /// A vertical line over the whole plot.
    pub(crate) fn upright(&self, out: &mut String, x: f64) {
        let _ =
            write!(out, "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>", self.top, self.foot());
    }

    /// A label below the x axis.
    pub(crate) fn below(&self, out: &mut String, x: f64, words: &str) {
        text(out, (x, self.foot() + 18.0), "middle", words);
    }

    /// Names of columns, but at most `most`: every n-th one.
    pub(crate) fn column_names(
        &self,
        out: &mut String,
        columns: usize,
        most: usize,
        name: impl Fn(usize) -> String,
    ) {
        for column in (0..columns).step_by(columns.div_ceil(most).max(1)) {
            self.below(out, self.column(column as f64, columns), &name(column));
        }
    }

    /// The label of the x axis.
    pub(crate) fn x_title(&self, out: &mut String, words: &str) {
        text(out, (self.x(0.5), self.height - 10.0), "middle", words);
    }

    /// The label of the y axis.
    pub(crate) fn y_title(&self, out: &mut String, words: &str) {
        let middle = f64::midpoint(self.top, self.foot());
        let _ = write!(
            out,
            "<text x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {middle:.1})\">{}</text>",
            escaped(words)
        );
    }
}

/// The start of an SVG element of this size.
pub(crate) fn begin(width: f64, height: f64, title: &str) -> String {
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">", escaped(title))
}

fn class_of(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

/// Text at a position.
pub(crate) fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words));
}

/// The CSS class of a line, by its index.
pub(crate) fn colour(index: usize) -> String {
    format!("c{}", index % COLOURS)
}

/// A mark with a tooltip.
pub(crate) fn dot(out: &mut String, class: &str, (x, y): (f64, f64), radius: f64, title: &str) {
    let _ = write!(
        out,
        "<circle{} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{}</title></circle>",
        class_of(class),
        escaped(title)
    );
}

/// A line through points, in the given order.
pub(crate) fn polyline(out: &mut String, points: impl Iterator<Item = (f64, f64)>) {
    out.push_str("<polyline points=\"");
    for (x, y) in points {
        let _ = write!(out, "{x:.1},{y:.1} ");
    }
    out.push_str("\"/>");
}

/// The legend below the chart, as text that wraps: colour, whether it is dashed, and name of each line.
pub(crate) fn legend<'a>(out: &mut String, lines: impl Iterator<Item = (usize, bool, &'a str)>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    out.push_str("<p class=\"legend\">");
    for (index, dashed, name) in lines {
        let class = if dashed { " dashed" } else { "" };
        let _ = write!(out, "<span class=\"swatch{class} {}\"></span>{} ", colour(index), escaped(name));
    }
    out.push_str("</p>");
}
