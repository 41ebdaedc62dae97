//! The panels of the load and of the database's sessions.

use kelvin_diagnose::metric;
use kelvin_measure::event::{LoadPart, Series, SeriesRole};
use kelvin_measure::text::{fixed_percent, short};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::model::{CLASSES, Column, Lane, LaneState, Model, NAMES, RECENT, Timeline};
use super::charts::{self, round_up};
use super::formatting::{self, figure, latency, line};
use super::palette::Palette;
use super::titled;

/// Width of the axis labels to the left of a chart.
const LABELS: u16 = 7;

/// Throughput over time, with marks below it.
pub(super) fn throughput(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let chart = Rect { height: area.height.saturating_sub(1), ..area };
    let plot = charts::plot(chart, LABELS);
    if plot.width == 0 || plot.height == 0 {
        return;
    }
    let rate =
        |column: &Column| column.part.map(|part| (part, model.about.per.seconds() * column.headline as f64));
    let columns: Vec<_> = model.timeline.last(usize::from(plot.width)).collect();
    let most = columns.iter().filter_map(|(_, column)| column.and_then(rate)).map(|(_, rate)| rate);
    let top = round_up(most.fold(0.0, f64::max));
    charts::axis(buffer, chart, LABELS, &short(top), "0", ink.faint());
    for (x, (second, column)) in columns.into_iter().enumerate() {
        let x = x as u16;
        if let Some((part, rate)) = column.and_then(rate) {
            let style = if part == LoadPart::Measured { ink.load() } else { ink.faint() };
            charts::bar(buffer, plot, x, rate / top, style);
        }
        let errors = column.is_some_and(|column| column.errors > 0);
        let mark = model.mark(second, column).or(errors.then_some('e'));
        // The ramp-up belongs to no result: besides its colour, a dot marks it.
        let ramp = column.is_some_and(|column| column.part == Some(LoadPart::RampUp)).then_some('.');
        if let Some(mark) = mark.or(ramp) {
            let style = if mark == 'e' { ink.red() } else { ink.faint() };
            buffer[(plot.x + x, chart.bottom())].set_char(mark).set_style(style);
        }
    }
    line(buffer, Rect { width: LABELS - 1, ..area }, area.height - 1, " marks", ink.faint());
}

/// A lane for each of several sources of load. Returns the rest of the area: all of it if there is only one
/// source, or if the sources are tenants, which have a separate panel.
pub(super) fn sources(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) -> Rect {
    let mut lanes = model.lanes.loaded();
    let rows = lanes.len().min(usize::from(area.height / 4));
    if rows == 0 || model.has_tenants() {
        return area;
    }
    // If there are too few rows, the sources with the most transactions are shown.
    lanes.sort_by_key(|(_, lane, _)| std::cmp::Reverse(lane.headline));
    let hidden = lanes.len() - rows;
    let more = if hidden > 0 { format!(", {hidden} more not shown") } else { String::new() };
    let own = Rect { height: rows as u16 + 2, ..area };
    titled(buffer, own, &format!("sources: {} by second{more}", model.about.headline), ink);
    let below = Rect { y: own.y + 1, height: own.height - 1, ..own };
    draw_lanes(buffer, below, ("source", &lanes[..rows]), model, ink);
    Rect { y: own.bottom(), height: area.height - own.height, ..area }
}

/// The tenants of a scenario, one lane each.
pub(super) fn tenants(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let lanes = model.lanes.loaded();
    // One row is the header; if not all tenants fit, another says so.
    let room = usize::from(area.height.saturating_sub(1));
    let rows = if lanes.len() > room { room.saturating_sub(1) } else { lanes.len() };
    draw_lanes(buffer, area, ("tenant", &lanes[..rows]), model, ink);
    if rows < lanes.len() {
        let more = format!("{} more not shown", lanes.len() - rows);
        line(buffer, area, area.height.saturating_sub(1), &more, ink.faint());
    }
}

/// A header, and a row per lane.
fn draw_lanes(
    buffer: &mut Buffer,
    own: Rect,
    (noun, lanes): (&str, &[(String, &Lane, &Timeline)]),
    model: &Model,
    ink: Palette,
) {
    let head = format!("{noun:<22}{:>9}{:>9}{:>11}{:>8}", "now", "mean", "p95", "errors");
    line(buffer, own, 0, &head, ink.faint());
    let plot = charts::plot(own, head.len() as u16 + 2);
    let seconds: Vec<u64> = model.timeline.last(usize::from(plot.width)).map(|(second, _)| second).collect();
    let count = |timeline: &Timeline, second| timeline.get(second).map_or(0, |column| column.headline);
    let highest = |timeline: &Timeline| seconds.iter().map(|second| count(timeline, *second)).max();
    let most = lanes.iter().filter_map(|(_, _, timeline)| highest(timeline)).max().unwrap_or(0);
    for (row, (name, lane, timeline)) in (1..).zip(lanes) {
        // The throughputs of different tenants have no common scale.
        let most = if model.has_tenants() { highest(timeline).unwrap_or(0) } else { most }.max(1);
        let pace = |count, seconds| model.pace(count, seconds).map_or("–".into(), short);
        let now = match lane.state(model.load.newest()) {
            LaneState::Starting => "–".into(),
            LaneState::Running(count) => pace(count, 1.0),
            LaneState::Silent => "silent".into(),
            LaneState::Stopped => "stopped".into(),
        };
        let mean = pace(lane.headline, model.seconds_of(lane));
        let shown: String = name.chars().take(21).collect();
        let p95 = latency(lane.p95());
        let text = format!("{shown:<22}{now:>9}{mean:>9}{p95:>11}{:>8}", short(lane.errors as f64));
        line(buffer, own, row, &text, Style::new());
        let strip = Rect { y: own.y + row, height: 1, ..plot };
        for (x, second) in (0..).zip(&seconds) {
            charts::bar(buffer, strip, x, count(timeline, *second) as f64 / most as f64, ink.load());
        }
    }
}

/// The percentiles of the last seconds, and of the window.
pub(super) fn latencies(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let last = format!("last {RECENT} s");
    line(buffer, area, 0, &format!("{:6}{last:>11}{:>11}", "", "window"), ink.faint());
    for (row, name) in ["p50", "p95", "p99", "max"].into_iter().enumerate() {
        let [now, all] = model.load.latency.map(|figures| latency(figures[row]));
        let text = format!("{name:<6}{now:>11}{all:>11}");
        line(buffer, area, row as u16 + 1, &text, Style::new());
        line(buffer, area, row as u16 + 1, name, ink.percentile(row));
    }
}

/// The percentiles over time, on a logarithmic scale.
pub(super) fn latency_over_time(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    const LABELS: u16 = 10;
    /// The characters of the percentiles.
    const LETTERS: [char; 4] = ['5', '9', '#', '^'];
    let chart = Rect { height: area.height.saturating_sub(1), ..area };
    let plot = charts::plot(chart, LABELS);
    if plot.width == 0 || plot.height == 0 {
        return;
    }
    let columns: Vec<_> = model.timeline.last(usize::from(plot.width)).collect();
    let known =
        || columns.iter().filter_map(|(_, column)| *column).flat_map(|column| column.latency).flatten();
    let (Some(low), Some(high)) = (known().min(), known().max()) else {
        return line(buffer, area, 0, "nothing has completed yet", ink.faint());
    };
    let (low, high) = (low as f64, (high as f64).max(low as f64 * 2.0));
    charts::axis(buffer, chart, LABELS, &latency(Some(high as u64)), &latency(Some(low as u64)), ink.faint());
    for (x, (_, column)) in columns.iter().enumerate() {
        let Some(column) = column else { continue };
        // The median is drawn last: if lines coincide, it is the most important.
        for index in (0..LETTERS.len()).rev() {
            let Some(value) = column.latency[index] else { continue };
            let y = plot.y + charts::level(value as f64, low, high, plot.height);
            buffer[(plot.x + x as u16, y)].set_char(LETTERS[index]).set_style(ink.percentile(index));
        }
    }
    let legend = "5 p50   9 p95   # p99   ^ max   logarithmic";
    line(buffer, charts::plot(area, LABELS), area.height - 1, legend, ink.faint());
}

/// Current results of each direction on each device; response times if they are known.
fn devices_now(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    // A small panel has no room for the maximum.
    let times = if area.width < 60 { 3 } else { 4 };
    let name = usize::from(area.width).saturating_sub(9 * (times + 1)).clamp(10, 24);
    let mut header = format!("{:<name$}", "");
    for head in ["now", "p50", "p95", "p99", "max"].iter().take(times + 1) {
        header.push_str(&format!("{head:>9}"));
    }
    line(buffer, area, 0, &header, ink.faint());
    let load = &model.load;
    let response = |kind: usize| {
        let of =
            |series: &Series| matches!(series.role, SeriesRole::Response { of } if usize::from(of) == kind);
        load.series.iter().position(of).and_then(|place| load.kinds.get(place))
    };
    let rows = load.series.iter().zip(&load.kinds).enumerate();
    let rows = rows.filter(|(_, (series, _))| series.role == SeriesRole::Transaction);
    for (row, (kind, (series, sum))) in (1..).zip(rows) {
        let (now, own) = sum.now();
        let of_rate = response(kind).map(|sum| sum.now().1).filter(|times| times[3].is_some());
        let shown: String = series.name.chars().take(name - 1).collect();
        let mut text = format!("{shown:<name$}{:>9}", figure(now as f64));
        for time in of_rate.unwrap_or(own).into_iter().take(times) {
            text.push_str(&format!("{:>9}", latency(time)));
        }
        line(buffer, area, row, &text, Style::new());
    }
}

/// Waits of the sessions over time.
pub(super) fn waits(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    if model.is_io() {
        return devices_now(buffer, area, model, ink);
    }
    if !model.sessions.any() {
        let why = metric::SESSIONS
            .iter()
            .find_map(|of| model.host.unavailable_reason(of))
            .unwrap_or("no sessions sampled yet (an embedded database has none)");
        for (row, text) in formatting::wrap(why, usize::from(area.width)).iter().enumerate() {
            line(buffer, area, row as u16, text, ink.faint());
        }
        return;
    }
    let average = model.sessions.average();
    let legend = legend_rows(area);
    let chart = Rect { height: area.height.saturating_sub(legend), ..area };
    let plot = charts::plot(chart, LABELS);
    let columns: Vec<_> = model.timeline.last(usize::from(plot.width)).collect();
    let sessions = || columns.iter().filter_map(|(_, column)| column.and_then(Column::sessions));
    let top = round_up(sessions().map(|classes| classes.iter().sum::<f64>()).fold(0.0, f64::max));
    charts::axis(buffer, chart, LABELS, &short(top), "0", ink.faint());
    for (x, (_, column)) in columns.iter().enumerate() {
        if let Some(classes) = column.and_then(Column::sessions) {
            let cell = |class: usize| (NAMES[class].0, ink.class(class));
            charts::stack(buffer, plot, x as u16, &classes, top, cell);
        }
    }
    let below = Rect { y: chart.bottom(), height: legend, ..area };
    wait_legend(buffer, below, &average, ink);
}

/// Number of rows for the legend: one in a small panel.
fn legend_rows(area: Rect) -> u16 {
    if area.height >= 8 { 2 } else { 1 }
}

/// The observed classes in descending order, with their average sessions.
fn wait_legend(buffer: &mut Buffer, area: Rect, average: &[f64; CLASSES], ink: Palette) {
    let mut classes: Vec<usize> = (0..CLASSES).filter(|&class| average[class] > 0.0).collect();
    classes.sort_by(|&a, &b| average[b].total_cmp(&average[a]));
    let (mut x, mut y) = (area.x, area.y);
    for class in classes {
        let (letter, name, short_name) = NAMES[class];
        let text = if area.width < 70 {
            format!(" {short_name} {:.1} ", average[class])
        } else {
            format!(" {name} {}  ", figure(average[class]))
        };
        let width = text.chars().count() as u16 + 1;
        if x + width > area.right() + 2 && x > area.x {
            (x, y) = (area.x, y + 1);
        }
        if y >= area.bottom() || x + 1 >= area.right() {
            return;
        }
        buffer[(x, y)].set_char(letter).set_style(ink.class(class));
        let room = usize::from(area.right() - x - 1);
        buffer.set_stringn(x + 1, y, text, room, Style::new());
        x += width;
    }
}

/// The statements with the most sessions, or the workload's types if sessions were not sampled.
pub(super) fn statements(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let rows = usize::from(area.height).saturating_sub(1);
    let top = model.sessions.top(rows);
    if top.is_empty() {
        if area.width < 60 || model.is_io() {
            return types(buffer, area, model, ink);
        }
        // If there is enough room, the types have a separate panel.
        let why = if model.sessions.any() {
            "the sessions do not show their statements: compute_query_id is off, or not readable"
        } else {
            "no sessions to sample"
        };
        for (row, text) in (0..).zip(&formatting::wrap(why, usize::from(area.width))) {
            line(buffer, area, row, text, ink.faint());
        }
        return;
    }
    let all: f64 = model.sessions.average().iter().sum();
    let narrow = area.width < 60;
    let header = if narrow { "share mostly statement" } else { "sessions  share mostly       statement" };
    line(buffer, area, 0, header, ink.faint());
    for (row, statement) in (1..).zip(&top) {
        let share = fixed_percent(Some(statement.sessions / all), 0);
        let (letter, name, short_name) = NAMES[statement.mostly];
        let (text, at) = if narrow {
            (format!("{share:>5} {letter} {short_name:<6}{}", statement.text), 6)
        } else {
            let sessions = figure(statement.sessions);
            let name: String = name.chars().take(11).collect();
            (format!("{sessions:>8} {share:>6} {letter} {name:<12}{}", statement.text), 16)
        };
        line(buffer, area, row, &text, Style::new());
        if row < area.height && area.width > at {
            buffer[(area.x + at, area.y + row)].set_style(ink.class(statement.mostly));
        }
    }
}

/// The transaction types, or timed statements, with rate and 95th percentile.
pub(super) fn types(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let load = &model.load;
    let seconds = load.seconds;
    // Names have the width that the values leave.
    let name = usize::from(area.width).saturating_sub(28).clamp(12, 24);
    let header = format!("{:<name$}{:>9}{:>11}{:>8}", "type", "per s", "p95", "failed");
    line(buffer, area, 0, &header, ink.faint());
    let rows = load.top(|role| role == SeriesRole::Transaction);
    let statements = load.top(|role| matches!(role, SeriesRole::Statement { .. }));
    for (row, (kind, sum)) in (1..).zip(rows.into_iter().chain(statements)) {
        let rate = if seconds > 0.0 { figure(sum.good as f64 / seconds) } else { "–".into() };
        let shown: String = kind.chars().take(name - 1).collect();
        let text = format!("{shown:<name$}{rate:>9}{:>11}{:>8}", latency(sum.p95), short(sum.failed as f64));
        line(buffer, area, row, &text, Style::new());
    }
}
