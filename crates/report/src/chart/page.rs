//! Drawing within a page, with the classes of its style sheet.

use std::fmt::Write;

use super::{Scale, escaped};

/// The colours `c0` to `c4` of the style sheet.
const COLOURS: usize = 5;

/// The size of a chart, and how far its axes are from its edges.
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
    /// Where a share of the x axis lies.
    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.width - self.left - self.right)
    }

    /// The middle of one of so many columns of the same width.
    pub(crate) fn column(&self, column: f64, columns: usize) -> f64 {
        self.x((column + 0.5) / columns.max(1) as f64)
    }

    /// Where a value lies; what has no place is at the foot.
    pub(crate) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.foot() - scale.share(value).unwrap_or(0.0) * (self.foot() - self.top)
    }

    /// The lower end of the y axis.
    pub(crate) fn foot(&self) -> f64 {
        self.height - self.bottom
    }

    /// The beginning of the picture, with a title for those who cannot see it.
    pub(crate) fn begin(&self, title: &str) -> String {
        begin(self.width, self.height, title)
    }

    /// The marks of the y axis, their words only where they are wanted.
    pub(crate) fn y_axis(&self, out: &mut String, scale: &Scale, has_words: bool) {
        for (tick, words) in &scale.marks {
            let y = self.y(scale, *tick);
            self.line(out, "", y);
            if has_words {
                text(out, (self.left - 8.0, y + 4.0), "end", words);
            }
        }
    }

    /// A line over the whole width.
    pub(crate) fn line(&self, out: &mut String, class: &str, y: f64) {
        let (from, to) = (self.left, self.width - self.right);
        let _ = write!(
            out,
            "<line{} x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\"/>",
            class_of(class)
        );
    }

    /// A line from top to foot.
    pub(crate) fn upright(&self, out: &mut String, x: f64) {
        let _ =
            write!(out, "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>", self.top, self.foot());
    }

    /// Words below a place of the x axis.
    pub(crate) fn below(&self, out: &mut String, x: f64, words: &str) {
        text(out, (x, self.foot() + 18.0), "middle", words);
    }

    /// Names of columns: every so many of them, so that there are at most so many.
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

    /// What the x axis shows.
    pub(crate) fn x_title(&self, out: &mut String, words: &str) {
        text(out, (self.x(0.5), self.height - 10.0), "middle", words);
    }

    /// What the y axis shows.
    pub(crate) fn y_title(&self, out: &mut String, words: &str) {
        let middle = f64::midpoint(self.top, self.foot());
        let _ = write!(
            out,
            "<text x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {middle:.1})\">{}</text>",
            escaped(words)
        );
    }
}

/// The beginning of a picture of a size.
pub(crate) fn begin(width: f64, height: f64, title: &str) -> String {
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">", escaped(title))
}

fn class_of(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

/// Words at a place.
pub(crate) fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words));
}

/// The class of one of several lines.
pub(crate) fn colour(index: usize) -> String {
    format!("c{}", index % COLOURS)
}

/// A mark that says something when it is pointed at.
pub(crate) fn dot(out: &mut String, class: &str, (x, y): (f64, f64), radius: f64, title: &str) {
    let _ = write!(
        out,
        "<circle{} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{}</title></circle>",
        class_of(class),
        escaped(title)
    );
}

/// A line through points in their order.
pub(crate) fn polyline(out: &mut String, points: impl Iterator<Item = (f64, f64)>) {
    out.push_str("<polyline points=\"");
    for (x, y) in points {
        let _ = write!(out, "{x:.1},{y:.1} ");
    }
    out.push_str("\"/>");
}

/// Colour, whether it is dashed, and name of each line, under the chart as text that wraps.
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
