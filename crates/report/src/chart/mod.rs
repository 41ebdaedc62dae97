//! What every chart has: scales with their marks, and what a chart within a page is drawn with. A page's charts have the
//! classes of its style sheet, so that they follow its colours, dark ones too; those of files, which stand alone, are
//! painted by `plot::draw`.

mod page;
mod scale;

pub(crate) use page::{Frame, begin, colour, dot, legend, polyline, text};
pub(crate) use scale::{Axis, Scale, number, ticks};

/// Text within an element or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
