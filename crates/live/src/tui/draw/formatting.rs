//! Formatting of values and sentences in the panels.

use kelvin_measure::text::{self, three_figures, whole};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Wraps text at a width, without its backticks.
pub(super) fn wrap(words: &str, width: usize) -> Vec<String> {
    text::wrap("", &text::plain(words), width)
}

/// A latency, or a dash.
pub(super) fn latency(nanos: Option<u64>) -> String {
    nanos.map_or("–".into(), |nanos| text::latency(nanos as f64))
}

/// A value with a precision that suits its size, or a dash.
pub(super) fn figure(value: f64) -> String {
    match value {
        value if value.is_nan() => "–".into(),
        value if value >= 99.95 => whole(value.round() as u64),
        value => three_figures(value),
    }
}

/// Writes one line, truncated to the area; nothing if the row is below it.
pub(super) fn line(buffer: &mut Buffer, area: Rect, row: u16, text: &str, style: Style) {
    if row < area.height {
        buffer.set_stringn(area.x, area.y + row, text, usize::from(area.width), style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_the_digits_that_matter() {
        assert_eq!(
            [0.0, 9.99, 9.999, 12.34, 99.96, 12_345.6].map(figure).join(" "),
            "0.00 9.99 10.0 12.3 100 12,346"
        );
        assert_eq!(figure(f64::NAN), "–");
    }
}
