//! Charts of characters with one column per second. Each can be read without colour.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Blocks of 0 to 8 eighths of a cell.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The area of a chart without the labels of its axis.
pub(super) fn plot(area: Rect, labels: u16) -> Rect {
    Rect { x: area.x + labels.min(area.width), width: area.width.saturating_sub(labels), ..area }
}

/// Writes the labels of the top and the bottom, right-aligned to the left of the plot.
pub(super) fn axis(buffer: &mut Buffer, area: Rect, labels: u16, top: &str, bottom: &str, style: Style) {
    let width = usize::from(labels.saturating_sub(1));
    for (y, text) in [(area.y, top), (area.bottom().saturating_sub(1), bottom)] {
        if y < area.bottom() && area.width > labels {
            buffer.set_stringn(area.x, y, format!("{text:>width$}"), width, style);
        }
    }
}

/// The smallest "round" number that is not below `value`.
pub(super) fn round_up(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .map(|step| step * power)
        .into_iter()
        .find(|step| *step >= value * 0.999_999)
        .unwrap_or(value)
}

/// A bar in one column; `share` is its fraction of the plot's height.
pub(super) fn bar(buffer: &mut Buffer, plot: Rect, x: u16, share: f64, style: Style) {
    if x >= plot.width || !share.is_finite() {
        return;
    }
    let full = f64::from(plot.height) * 8.0;
    // A value above 0 is always visible.
    let mut eighths =
        (share.clamp(0.0, 1.0) * full).round().max(if share > 0.0 { 1.0 } else { 0.0 }) as usize;
    for y in (plot.y..plot.bottom()).rev() {
        let part = eighths.min(8);
        if part > 0 {
            buffer[(plot.x + x, y)].set_char(EIGHTHS[part]).set_style(style);
        }
        eighths -= part;
    }
}

/// Number of cells for each part of a bar of `cells`. Shares are rounded down, and the remaining cells go to
/// the largest remainders, so that a larger part never has fewer cells than a smaller one.
fn cells<const N: usize>(parts: &[f64; N], cells: u16) -> [u16; N] {
    let sum: f64 = parts.iter().map(|part| part.max(0.0)).sum();
    if sum <= 0.0 || !sum.is_finite() {
        return [0; N];
    }
    let ideal = parts.map(|part| part.max(0.0) / sum * f64::from(cells));
    let mut given = ideal.map(|ideal| ideal as u16);
    let mut left = cells.saturating_sub(given.iter().sum());
    let mut order: Vec<usize> = (0..N).collect();
    order.sort_by(|&a, &b| (ideal[b].fract()).total_cmp(&ideal[a].fract()));
    for part in order {
        if left > 0 && parts[part] > 0.0 {
            given[part] += 1;
            left -= 1;
        }
    }
    given
}

/// A column of a stacked chart. Its height is the total of the parts relative to `top`.
pub(super) fn stack<const N: usize>(
    buffer: &mut Buffer,
    plot: Rect,
    x: u16,
    parts: &[f64; N],
    top: f64,
    cell: impl Fn(usize) -> (char, Style),
) {
    let sum: f64 = parts.iter().map(|part| part.max(0.0)).sum();
    if x >= plot.width || top <= 0.0 || sum <= 0.0 {
        return;
    }
    // A value above 0 is always visible.
    let height = ((sum / top * f64::from(plot.height)).round() as u16).max(1).min(plot.height);
    let mut step = 0;
    for (index, count) in cells(parts, height).into_iter().enumerate() {
        let (letter, style) = cell(index);
        for _ in 0..count {
            buffer[(plot.x + x, plot.bottom() - 1 - step)].set_char(letter).set_style(style);
            step += 1;
        }
    }
}

/// A stacked horizontal bar; the parts are fractions of 1.
pub(super) fn row<const N: usize>(
    buffer: &mut Buffer,
    area: Rect,
    parts: &[f64; N],
    cell: impl Fn(usize) -> (char, Style),
) {
    if area.height == 0 {
        return;
    }
    let sum: f64 = parts.iter().map(|part| part.max(0.0)).sum();
    let width = ((sum * f64::from(area.width)).round() as u16).min(area.width);
    let mut step = 0;
    for (index, count) in cells(parts, width).into_iter().enumerate() {
        let (letter, style) = cell(index);
        for _ in 0..count {
            buffer[(area.x + step, area.y)].set_char(letter).set_style(style);
            step += 1;
        }
    }
    for step in step..area.width {
        buffer[(area.x + step, area.y)].set_char('·');
    }
}

/// The row of a value on a logarithmic scale from `low` to `high`, counted from the top. Values outside are
/// at the edge.
pub(super) fn level(value: f64, low: f64, high: f64, height: u16) -> u16 {
    if height == 0 || value <= 0.0 || high <= low {
        return height.saturating_sub(1);
    }
    let share = ((value / low).ln() / (high / low).ln()).clamp(0.0, 1.0);
    ((1.0 - share) * f64::from(height - 1)).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(
            [0.0, 0.4, 1.0, 1.1, 3.5, 81.0, 2000.0].map(round_up),
            [1.0, 0.4, 1.0, 1.5, 4.0, 100.0, 2000.0]
        );
    }

    #[test]
    fn a_strip_fills_what_its_parts_come_to_and_never_more() {
        let area = Rect::new(0, 0, 1, 4);
        let mut buffer = Buffer::empty(area);
        let letters = |index: usize| (char::from(b'a' + index as u8), Style::new());
        stack(&mut buffer, area, 0, &[1.0, 0.0, 2.0], 4.0, letters);
        let column: String = (0..4).rev().map(|y| buffer[(0, y)].symbol().to_owned()).collect();
        assert_eq!(column, "acc ");
        stack(&mut buffer, area, 0, &[9.0, 9.0, 9.0], 4.0, letters);
        assert_eq!(buffer[(0, 3)].symbol(), "a");
        bar(&mut buffer, area, 0, 7.0, Style::new());
        assert_eq!(buffer[(0, 0)].symbol(), "█");
        bar(&mut buffer, area, 7, 0.5, Style::new());
    }

    #[test]
    fn a_larger_part_never_has_fewer_cells() {
        assert_eq!(cells(&[2.4, 1.71, 0.9, 0.8, 0.5], 2), [1, 1, 0, 0, 0]);
        assert_eq!(cells(&[2.4, 1.71, 0.9, 0.8, 0.5], 6), [2, 2, 1, 1, 0]);
        assert_eq!(cells(&[0.0, 0.0], 3), [0, 0]);
        assert_eq!(cells(&[f64::NAN, 1.0], 3), [0, 3]);
    }

    #[test]
    fn a_small_value_still_shows() {
        let area = Rect::new(0, 0, 1, 2);
        let mut buffer = Buffer::empty(area);
        bar(&mut buffer, area, 0, 0.000_1, Style::new());
        assert_eq!((buffer[(0, 0)].symbol(), buffer[(0, 1)].symbol()), (" ", "▁"));
        assert_eq!(
            (level(1.0, 1.0, 100.0, 5), level(10.0, 1.0, 100.0, 5), level(500.0, 1.0, 100.0, 5)),
            (4, 2, 0)
        );
    }
}
