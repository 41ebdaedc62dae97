//! Values over time, one series per direction, and values derived from them: windows, moving averages,
//! trends.

use kelvin_stats::trend::{Line, theil_sen};
use kelvin_storage::Direction;
use kelvin_storage::log::LogKind;

use super::log::{IoLogFile, Row, Rows};

/// More points than this are combined into windows.
const MOST: usize = 600;
/// Approximate number of single I/Os per window, if there are enough.
const A_WINDOW: usize = 20;

/// Whether it is a rate, which is 0 without I/Os, and not a latency.
fn is_rate(quantity: LogKind) -> bool {
    matches!(quantity, LogKind::Bandwidth | LogKind::Iops)
}

/// The name of a quantity.
pub(super) fn quantity_name(quantity: LogKind) -> &'static str {
    match quantity {
        LogKind::Bandwidth => "bandwidth",
        LogKind::Iops => "I/Os per second",
        LogKind::Submission => "submission time",
        LogKind::Completion => "completion time",
        LogKind::Total => "total time",
    }
}

/// A suitable unit for the largest value (in bytes per second, I/Os per second or nanoseconds): its name, and
/// its size in the base unit.
pub(super) fn unit(quantity: LogKind, greatest: f64) -> (&'static str, f64) {
    let units: &[(&str, f64)] = match quantity {
        LogKind::Bandwidth => {
            &[("GiB/s", 10_737_418_240.0), ("MiB/s", 1_048_576.0), ("KiB/s", 1024.0), ("B/s", 1.0)]
        }
        LogKind::Iops => &[("IOPS", 1.0)],
        LogKind::Submission | LogKind::Completion | LogKind::Total => {
            &[("s", 1e10), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)]
        }
    };
    // The largest unit is used from ten of it: 2,400 MiB/s is more precise than 2.3 GiB/s.
    let found = units.iter().find(|unit| greatest >= unit.1).or(units.last());
    match found {
        Some(("GiB/s", _)) => ("GiB/s", 1_073_741_824.0),
        Some(("s", _)) => ("s", 1e9),
        Some((name, size)) => (name, *size),
        None => ("", 1.0),
    }
}

/// A value at a time, with its range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// End of the interval, in seconds since the start of the log.
    pub time: f64,
    /// Length of the interval in seconds.
    pub width: f64,
    /// In base units: bytes per second, I/Os per second, nanoseconds.
    pub value: f64,
    /// The smallest of the combined values.
    pub low: f64,
    /// The largest of the combined values.
    pub high: f64,
}

/// One direction of one log or run.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSeries {
    /// Its label, which distinguishes it from the others.
    pub name: String,
    /// The name of its log without kind and number: usually the job's name.
    pub prefix: String,
    /// The quantity.
    pub quantity: LogKind,
    /// Direction.
    pub direction: Direction,
    /// How the points were computed, as text.
    pub how: String,
    /// In chronological order; at least one.
    pub points: Vec<Point>,
}

impl LogSeries {
    /// The largest value of its points.
    pub(super) fn greatest(&self) -> f64 {
        self.points.iter().map(|point| point.value).fold(0.0, f64::max)
    }

    /// The mean of its points, weighted by the lengths of their intervals.
    pub(super) fn mean(&self) -> f64 {
        let covered: f64 = self.points.iter().map(|point| point.width).sum();
        if covered > 0.0 {
            return self.points.iter().map(|point| point.value * point.width).sum::<f64>() / covered;
        }
        self.points.iter().map(|point| point.value).sum::<f64>() / self.points.len().max(1) as f64
    }

    /// The Theil-Sen line over time; none for fewer than five points.
    pub(super) fn trend(&self) -> Option<Line> {
        let points: Vec<(f64, f64)> = self.points.iter().map(|point| (point.time, point.value)).collect();
        if points.len() < 5 { None } else { theil_sen(&points) }
    }

    /// A moving mean over a twentieth of the points, at least three. A mean cannot overshoot. At the ends the
    /// window shrinks on both sides, so that the mean does not lag.
    pub(super) fn smoothed(&self) -> Vec<f64> {
        let count = self.points.len();
        let half = (count / 40).max(1);
        (0..count)
            .map(|at| {
                let half = half.min(at).min(count - 1 - at);
                let around = self.points.iter().skip(at - half).take(2 * half + 1);
                around.map(|point| point.value).sum::<f64>() / (2 * half + 1) as f64
            })
            .collect()
    }
}

/// The series of a log: one per direction, and per worker if it contains several.
pub(super) fn series_of_log(log: &IoLogFile) -> Vec<LogSeries> {
    let Rows::Values { kind, single, parts } = &log.rows else { return Vec::new() };
    let quantity = *kind;
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        // With log_unix_epoch, times are milliseconds since 1970 and not since the start.
        let zero = part.first().map_or(0, |row| if row.time > 100_000_000_000 { row.time } else { 0 });
        let mut name = log.name.trim_end_matches(".fz").trim_end_matches(".log").to_owned();
        if parts.len() > 1 {
            name = format!("{name} worker {}", at + 1);
        }
        let span = (part.first().map_or(0, |row| row.time), part.last().map_or(0, |row| row.time));
        let window = window(part, zero);
        for direction in Direction::ALL {
            let rows: Vec<Row> = part.iter().copied().filter(|row| row.direction == direction).collect();
            if rows.is_empty() {
                continue;
            }
            let (points, how) = if *single {
                windows(&rows, zero, quantity, span)
            } else {
                averaged(&rows, zero, quantity, window)
            };
            let (points, how) = thinned(points, how);
            found.push(LogSeries {
                name: name.clone(),
                prefix: log.prefix.clone(),
                quantity,
                direction,
                how,
                points,
            });
        }
    }
    found
}

fn in_base(value: f64, quantity: LogKind) -> f64 {
    if quantity == LogKind::Bandwidth { value * 1024.0 } else { value }
}

/// The window length of a log: the 10th percentile of the gaps between its rows. fio omits windows without
/// I/O, so longer gaps say nothing, and the last window may be incomplete.
fn window(rows: &[Row], zero: u64) -> u64 {
    let mut times: Vec<u64> = rows.iter().map(|row| row.time).collect();
    times.dedup();
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() > 1 {
        gaps.pop();
    }
    // With times since 1970, the start of the first window is unknown.
    gaps.extend(times.first().filter(|first| zero == 0 && **first > 0));
    gaps.sort_unstable();
    gaps.get(gaps.len().saturating_sub(1) / 10).copied().unwrap_or(1)
}

/// For rows that are already means, one per window.
fn averaged(rows: &[Row], zero: u64, quantity: LogKind, window: u64) -> (Vec<Point>, String) {
    let mut points: Vec<Point> = Vec::with_capacity(rows.len());
    let (mut last, mut left_out) = (None, false);
    for row in rows {
        let since = row.time - last.unwrap_or_else(|| row.time.saturating_sub(window).max(zero));
        last = Some(row.time);
        // On a busy host fio samples a window late, and its rate covers the whole time since the preceding
        // sample. A gap of at least two and a half windows contains windows without I/O, which fio omits.
        let covered = if is_rate(quantity) && since * 2 >= window * 5 { window } else { since };
        let time = (row.time - zero) as f64 / 1e3;
        if covered < since && !points.is_empty() {
            left_out = true;
            nothing(&mut points, time - covered as f64 / 1e3, window as f64 / 1e3);
        }
        let value = in_base(row.value, quantity);
        points.push(Point { time, width: covered as f64 / 1e3, value, low: value, high: value });
    }
    let gaps = if left_out { "; windows missing in the log are 0" } else { "" };
    (points, format!("windows of {window} ms as logged{gaps}"))
}

/// Fills windows without I/O with a rate of 0: a gap would be drawn as a straight line.
fn nothing(points: &mut Vec<Point>, until: f64, width: f64) {
    let Some(from) = points.last().map(|point| point.time) else { return };
    let zero = |time: f64, width: f64| Point { time, width, value: 0.0, low: 0.0, high: 0.0 };
    let count = ((until - from) / width).round().max(1.0);
    if count <= MOST as f64 {
        let each = (until - from) / count;
        points.extend((1..=count as usize).map(|at| zero(from + at as f64 * each, each)));
    } else {
        points.extend([zero(from + width, width), zero(until, until - from - width)]);
    }
}

/// For rows of single I/Os: rates are counted in windows, because the rate of one I/O says nothing about the
/// device; latencies are averaged. The last parameter is the times of the first and the last row of the log
/// in any direction: a direction that pauses has a rate of 0.
fn windows(rows: &[Row], zero: u64, quantity: LogKind, (first, last): (u64, u64)) -> (Vec<Point>, String) {
    let wanted = (rows.len() / A_WINDOW).clamp(1, MOST) as u64;
    let width = round_up((last - first).max(1).div_ceil(wanted));
    let start = if zero > 0 { zero } else { first / width * width };
    let is_rate = is_rate(quantity);
    let count = ((last - start) / width + 1) as usize;
    let mut points = Vec::with_capacity(count);
    let mut left = rows;
    for at in 1..=count as u64 {
        let end = start + at * width;
        let (here, behind) = left.split_at(left.partition_point(|row| row.time < end));
        left = behind;
        let time = (end - zero) as f64 / 1e3;
        let values = || here.iter().map(|row| row.value);
        if is_rate {
            let amount = match quantity {
                LogKind::Bandwidth => here.iter().map(|row| row.length as f64).sum::<f64>(),
                _ => here.len() as f64,
            };
            points.push(Point { time, width: width as f64 / 1e3, value: amount, low: 0.0, high: 0.0 });
        } else if !here.is_empty() {
            let value = values().sum::<f64>() / here.len() as f64;
            let (low, high) = (values().fold(value, f64::min), values().fold(value, f64::max));
            points.push(Point { time, width: width as f64 / 1e3, value, low, high });
        }
    }
    if is_rate {
        // The log ends within the last window. Its I/Os are added to the preceding window, for the time
        // actually measured.
        let part = (last + 1 - (start + (count as u64 - 1) * width)).min(width);
        if let Some(end) = points.last_mut() {
            end.width = if count == 1 { (last - first).max(1) } else { part } as f64 / 1e3;
            end.time = (last + 1 - zero) as f64 / 1e3;
        }
        if part < width && count > 1 {
            let end = points.pop();
            if let (Some(end), Some(before)) = (end, points.last_mut()) {
                *before = Point {
                    time: end.time,
                    width: before.width + end.width,
                    value: before.value + end.value,
                    ..end
                };
            }
        }
        for point in &mut points {
            point.value /= point.width;
            (point.low, point.high) = (point.value, point.value);
        }
    }
    let of = format!("{} single I/Os", kelvin_measure::text::whole(rows.len() as u64));
    let how = if is_rate {
        format!("{of}, counted in windows of {width} ms")
    } else {
        format!("{of}, means of windows of {width} ms; the band shows minimum to maximum")
    };
    (points, how)
}

/// The next larger 1, 2 or 5 times a power of ten.
fn round_up(value: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for step in [1, 2, 5] {
            if power.saturating_mul(step) >= value {
                return power.saturating_mul(step);
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Reduces the number of points to what a chart can show, each the mean of equally many.
fn thinned(points: Vec<Point>, how: String) -> (Vec<Point>, String) {
    if points.len() <= MOST {
        return (points, how);
    }
    let each = points.len().div_ceil(MOST);
    let mean = |some: &[Point]| {
        let width: f64 = some.iter().map(|point| point.width).sum();
        let weighted = some.iter().map(|point| point.value * point.width).sum::<f64>() / width;
        let plain = some.iter().map(|point| point.value).sum::<f64>() / some.len() as f64;
        Point {
            time: some.last().map_or(0.0, |point| point.time),
            width,
            value: if width > 0.0 { weighted } else { plain },
            low: some.iter().map(|point| point.low).fold(f64::INFINITY, f64::min),
            high: some.iter().map(|point| point.high).fold(0.0, f64::max),
        }
    };
    let thin = points.chunks(each).map(mean).collect();
    (thin, format!("{how}; {each} of them per point, the band shows minimum to maximum"))
}
