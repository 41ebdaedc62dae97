//! Charts over time: each file by itself, comparisons of several, and bandwidth over bytes written.

use crate::chart::Axis;
use std::collections::BTreeMap;

use kelvin_storage::Direction;
use kelvin_storage::log::LogKind;

use super::Chart;
use super::draw::{COLOURS, INK, Line, Lines, Stroke};
use super::series::{LogSeries, quantity_name, unit};
use kelvin_measure::text::{coefficient, significant};

/// More lines than this in one panel cannot be distinguished.
const TOGETHER: usize = 8;

/// The colour of a direction on charts of several directions.
pub(super) fn colour(direction: Direction) -> &'static str {
    COLOURS[direction as usize]
}

/// A suitable unit of time (seconds, minutes or hours), and its length in seconds.
fn clock(end: f64) -> (&'static str, f64) {
    if end > 3.0 * 7200.0 {
        ("h", 3600.0)
    } else if end > 1200.0 {
        ("min", 60.0)
    } else {
        ("s", 1.0)
    }
}

fn end(series: &[&LogSeries]) -> f64 {
    series.iter().filter_map(|one| one.points.last()).map(|point| point.time).fold(0.0, f64::max)
}

/// A chart per file, with a colour per direction.
pub(super) fn each(series: &[LogSeries], about: &dyn Fn(&str) -> Option<String>) -> Vec<Chart> {
    let mut files: BTreeMap<(&str, LogKind), Vec<&LogSeries>> = BTreeMap::new();
    for one in series {
        files.entry((&one.name, one.quantity)).or_default().push(one);
    }
    files.into_iter().map(|((name, quantity), series)| one(name, quantity, &series, about)).collect()
}

fn one(
    name: &str,
    quantity: LogKind,
    series: &[&LogSeries],
    about: &dyn Fn(&str) -> Option<String>,
) -> Chart {
    let (unit, size) = unit(quantity, series.iter().map(|one| one.greatest()).fold(0.0, f64::max));
    let (seconds, clock) = clock(end(series));
    let mut explained: Vec<String> = series.first().and_then(|one| about(&one.prefix)).into_iter().collect();
    let mut lines = Vec::new();
    for one in series {
        let (direction, colour) = (one.direction, colour(one.direction));
        explained.push(format!("{direction}: {}; mean {} {unit}", one.how, significant(one.mean() / size)));
        let at = |value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
            let place = |(at, point): (usize, &super::series::Point)| (point.time / clock, value(at) / size);
            one.points.iter().enumerate().map(place).collect()
        };
        let raw = at(&|at| one.points[at].value);
        let mut measured = Line::new(format!("{direction}, as measured"), colour, Stroke::Pale, raw);
        let banded = one.points.iter().any(|point| point.high > point.low);
        if banded {
            // The maxima of single I/Os may be far above all means: the axis covers the means, and the band
            // is clipped.
            let top = one.greatest() * 1.6;
            measured.band = one
                .points
                .iter()
                .map(|point| (point.time / clock, point.low / size, point.high.min(top) / size))
                .collect();
            if one.points.iter().any(|point| point.high > top) {
                let most = one.points.iter().map(|point| point.high).fold(0.0, f64::max);
                explained.push(format!(
                    "{direction}: the band is cut off at {} {unit}; the maximum is {} {unit}",
                    significant(top / size),
                    significant(most / size)
                ));
            }
        }
        lines.push(measured);
        if one.points.len() >= 5 {
            let smoothed = one.smoothed();
            let smoothed = at(&|at| smoothed.get(at).copied().unwrap_or(f64::NAN));
            lines.push(Line::new(format!("{direction}, moving average"), colour, Stroke::Full, smoothed));
        }
        if let Some(trend) = one.trend() {
            let ends: Vec<f64> =
                [one.points.first(), one.points.last()].into_iter().flatten().map(|p| p.time).collect();
            let at_ends: Vec<f64> = ends.iter().map(|time| trend.start + trend.slope * time).collect();
            // A trend line that is negative at either end does not fit the data.
            if at_ends.iter().any(|value| *value < 0.0) {
                explained.push(format!("{direction}: no trend drawn: it is not linear"));
                continue;
            }
            let line: Vec<(f64, f64)> =
                ends.iter().map(|time| (time / clock, (trend.start + trend.slope * time) / size)).collect();
            let span = ends.last().unwrap_or(&0.0) - ends.first().unwrap_or(&0.0);
            let per = if span < 120.0 { ("s", 1.0) } else { ("min", 60.0) };
            // Relative to the start of the line; omitted if that is 0.
            let share = Some(trend.slope * span / at_ends[0] * 100.0).filter(|share| share.is_finite());
            let share = share
                .map_or_else(String::new, |share| format!(" ({} % overall)", signed(&format!("{share:.1}"))));
            let slope = signed(&coefficient(trend.slope * per.1 / size));
            let name = format!("{direction}, trend: {slope} {unit} per {}{share}", per.0);
            lines.push(Line::new(name, colour, Stroke::Dashed, line));
        }
    }
    let directions: Vec<&str> = series.iter().map(|one| one.direction.word()).collect();
    let picture = Lines {
        title: format!("{name}: {}, {}", quantity_name(quantity), directions.join(" and ")),
        about: explained,
        x: Axis::linear(format!("time, {seconds}")).ending_with_data(),
        y: Axis::linear(format!("{}, {unit}", quantity_name(quantity))),
        panels: vec![(String::new(), lines)],
    };
    // The name of a log contains the quantity, that of a run does not.
    let what = if name.contains(quantity.word()) { String::new() } else { format!("-{}", quantity.word()) };
    Chart::new(&format!("{name}{what}-time"), &picture.title, picture.svg())
}

/// With a minus sign: a hyphen is hardly visible at the size of a legend.
fn signed(words: &str) -> String {
    match words.strip_prefix('-') {
        Some(rest) if rest.contains(|digit: char| ('1'..='9').contains(&digit)) => format!("\u{2212}{rest}"),
        Some(rest) => rest.to_owned(),
        None if words.contains(|digit: char| ('1'..='9').contains(&digit)) => format!("+{words}"),
        None => words.to_owned(),
    }
}

/// All series of one quantity and direction on one chart, with their mean. If there are many, each has a
/// small panel on the same scale.
pub(super) fn compared(series: &[LogSeries]) -> Vec<Chart> {
    let mut groups: BTreeMap<(LogKind, Direction), Vec<&LogSeries>> = BTreeMap::new();
    for one in series {
        groups.entry((one.quantity, one.direction)).or_default().push(one);
    }
    groups
        .into_iter()
        .filter(|(_, group)| group.len() > 1)
        .map(|(of, group)| comparison(of, &group))
        .collect()
}

fn comparison((quantity, direction): (LogKind, Direction), series: &[&LogSeries]) -> Chart {
    let (unit, size) = unit(quantity, series.iter().map(|one| one.greatest()).fold(0.0, f64::max));
    let end = end(series);
    let (seconds, clock) = clock(end);
    let mean = series.iter().map(|one| one.mean()).sum::<f64>() / series.len() as f64;
    let level = || {
        let name = format!("mean of all {}: {} {unit}", series.len(), significant(mean / size));
        Line::new(name, INK, Stroke::Dashed, vec![(0.0, mean / size), (end / clock, mean / size)])
    };
    let line = |at: usize, one: &LogSeries| {
        let points = one.points.iter().map(|point| (point.time / clock, point.value / size)).collect();
        let name = format!("{} (mean {} {unit})", one.name, significant(one.mean() / size));
        Line::new(name, COLOURS[at % COLOURS.len()], Stroke::Full, points)
    };
    let panels: Vec<(String, Vec<Line>)> = if series.len() <= TOGETHER {
        let lines = series.iter().enumerate().map(|(at, one)| line(at, one)).chain([level()]);
        vec![(String::new(), lines.collect())]
    } else {
        series.iter().map(|one| (one.name.clone(), vec![line(0, one), level()])).collect()
    };
    let picture = Lines {
        title: format!("{} compared: {direction}, {} logs or runs", quantity_name(quantity), series.len()),
        about: Vec::new(),
        x: Axis::linear(format!("time, {seconds}")).ending_with_data(),
        y: Axis::linear(format!("{} of {direction}s, {unit}", quantity_name(quantity))),
        panels,
    };
    Chart::new(&format!("compared-{}-{direction}", quantity.word()), &picture.title, picture.svg())
}

/// Bandwidth of writes over the bytes already written. If a cache of the device fills up, the line falls, and
/// the position shows the size of the cache.
pub(super) fn written(series: &[LogSeries]) -> Option<Chart> {
    let wanted = |one: &&LogSeries| one.quantity == LogKind::Bandwidth && one.direction == Direction::Write;
    let series: Vec<&LogSeries> = series.iter().filter(wanted).collect();
    let (unit, size) = unit(LogKind::Bandwidth, series.iter().map(|one| one.greatest()).fold(0.0, f64::max));
    let lines: Vec<(&LogSeries, Vec<(f64, f64)>)> = series
        .iter()
        .map(|one| {
            let mut written = 0.0;
            let points = one.points.iter().map(|point| {
                written += point.value * point.width;
                (written, point.value / size)
            });
            (*one, points.collect())
        })
        .collect();
    let most = lines.iter().filter_map(|line| Some(line.1.last()?.0)).reduce(f64::max)?;
    let (bytes, amount) =
        [("TiB", 2_f64.powi(40)), ("GiB", 2_f64.powi(30)), ("MiB", 2_f64.powi(20)), ("KiB", 1024.0)]
            .into_iter()
            .find(|unit| most >= unit.1)
            .unwrap_or(("B", 1.0));
    let drawn: Vec<(String, Vec<Line>)> = {
        let line = |at: usize, one: &LogSeries, points: &[(f64, f64)]| {
            let points = points.iter().map(|(x, y)| (x / amount, *y)).collect();
            Line::new(one.name.clone(), COLOURS[at % COLOURS.len()], Stroke::Full, points)
        };
        if lines.len() <= TOGETHER {
            let all = lines.iter().enumerate().map(|(at, (one, points))| line(at, one, points));
            vec![(String::new(), all.collect())]
        } else {
            lines.iter().map(|(one, points)| (one.name.clone(), vec![line(0, one, points)])).collect()
        }
    };
    let picture = Lines {
        title: "bandwidth against bytes written, write".into(),
        about: vec![
            "bytes are the sum of bandwidth × time of the writes of each log; at a step down a cache (SLC, \
             controller, page cache) was full"
                .into(),
        ],
        x: Axis::linear(format!("written, {bytes}")).ending_with_data(),
        y: Axis::linear(format!("bandwidth of writes, {unit}")),
        panels: drawn,
    };
    Some(Chart::new("bandwidth-written", &picture.title, picture.svg()))
}
