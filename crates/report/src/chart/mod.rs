//! Parts that all charts share: scales with tick marks, and drawing in a page. Charts in a page use the
//! classes of its style sheet and therefore its colours, also in dark mode. Charts in files are drawn by
//! `plot::draw`.

mod page;
mod scale;

pub(crate) use page::{Frame, begin, colour, dot, legend, polyline, text};
pub(crate) use scale::{Axis, Scale, number, ticks};

/// Escapes text for an element or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
