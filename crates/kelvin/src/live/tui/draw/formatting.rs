//! Figures and sentences as the panels write them.

use std::time::Duration;

use kelvin_report::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::super::status::{grouped, milliseconds};

/// A sentence without marks in lines of a width.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap::wrap(&wrap::plain(text), width)
}

/// A latency, or a dash.
pub(super) fn latency(nanos: Option<u64>) -> String {
    nanos.map_or("–".into(), |nanos| milliseconds(nanos as f64))
}

/// A figure with a precision that fits its size, or a dash.
pub(super) fn figure(value: f64) -> String {
    match value {
        value if value.is_nan() => "–".into(),
        value if value >= 99.95 => grouped(value.round() as u64),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A count in few characters: "950", "12.3k", "4.5M".
pub(super) fn short(value: f64) -> String {
    match value {
        value if value >= 999_950.0 => format!("{:.1}M", value / 1e6),
        value if value >= 9_999.5 => format!("{:.1}k", value / 1e3),
        value if value >= 10.0 || value == value.trunc() => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

/// A share of one in whole per cents: a decimal would push the panels' last words out at 80 columns.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.is_nan() { "–".into() } else { format!("{percent:.0} %") }
}

/// "42 s", "3 min 5 s", "2 h 10 min".
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Writes one line, cut to the area; nothing below its end.
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
        assert_eq!([0.0, 0.5, 950.0, 12_345.0, 4_500_000.0].map(short).join(" "), "0 0.5 950 12.3k 4.5M");
        assert_eq!(
            [41, 185, 7800].map(|s| time(Duration::from_secs(s))).join(", "),
            "41 s, 3 min 5 s, 2 h 10 min"
        );
    }
}
