//! Values over time, one direction each, and what is made of them: windows, smoothing, trend.

use kelvin_stats::trend::{Line, theil_sen};
use kelvin_storage::Direction;
use kelvin_storage::log::LogKind;

use super::log::{Log, Row, Rows};

/// More points than this are drawn as windows.
const MOST: usize = 600;
/// A window of single I/Os has about so many of them, where there are enough.
const A_WINDOW: usize = 20;

/// What is over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Bytes a second.
    Bandwidth,
    /// I/Os a second.
    Iops,
    /// Nanoseconds of handing over.
    Submission,
    /// Nanoseconds from the end of handing over to the completion.
    Completion,
    /// Nanoseconds of both.
    Total,
}

impl Quantity {
    fn of(kind: LogKind) -> Self {
        match kind {
            LogKind::Bandwidth => Self::Bandwidth,
            LogKind::Iops => Self::Iops,
            LogKind::Submission => Self::Submission,
            LogKind::Completion => Self::Completion,
            LogKind::Total => Self::Total,
        }
    }

    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Iops => "I/Os a second",
            Self::Submission => "submission time",
            Self::Completion => "completion time",
            Self::Total => "total time",
        }
    }

    /// As part of a file's name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Submission => "slat",
            Self::Completion => "clat",
            Self::Total => "lat",
        }
    }

    /// The unit in which the greatest value reads well: its name, and how much of the base unit it is.
    pub(super) fn unit(self, greatest: f64) -> (&'static str, f64) {
        let units: &[(&str, f64)] = match self {
            Self::Bandwidth => {
                &[("GiB/s", 10_737_418_240.0), ("MiB/s", 1_048_576.0), ("KiB/s", 1024.0), ("B/s", 1.0)]
            }
            Self::Iops => &[("IOPS", 1.0)],
            Self::Submission | Self::Completion | Self::Total => {
                &[("s", 1e10), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)]
            }
        };
        // The largest unit begins at ten of it: 2,400 MiB/s says more than 2.3 GiB/s.
        let found = units.iter().find(|unit| greatest >= unit.1).or(units.last());
        match found {
            Some(("GiB/s", _)) => ("GiB/s", 1_073_741_824.0),
            Some(("s", _)) => ("s", 1e9),
            Some((name, size)) => (name, *size),
            None => ("", 1.0),
        }
    }
}

/// A value at a time, with the range of what it is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Seconds since the log's beginning, at the end of what it covers.
    pub time: f64,
    /// Seconds that it covers.
    pub width: f64,
    /// In base units: bytes a second, I/Os a second, nanoseconds.
    pub value: f64,
    /// The least of what it is made of.
    pub low: f64,
    /// The greatest of what it is made of.
    pub high: f64,
}

/// One direction of one log or run.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// By which it is told from the others.
    pub name: String,
    /// The name of its log without kind and number: the job's, as a rule.
    pub prefix: String,
    /// What it is of.
    pub quantity: Quantity,
    /// Direction.
    pub direction: Direction,
    /// What the points are, in words.
    pub how: String,
    /// In the order of time; at least one.
    pub points: Vec<Point>,
}

impl Series {
    /// The greatest of its points.
    pub(super) fn greatest(&self) -> f64 {
        self.points.iter().map(|point| point.value).fold(0.0, f64::max)
    }

    /// The mean of its points over the time that they cover.
    pub(super) fn mean(&self) -> f64 {
        let covered: f64 = self.points.iter().map(|point| point.width).sum();
        if covered > 0.0 {
            return self.points.iter().map(|point| point.value * point.width).sum::<f64>() / covered;
        }
        self.points.iter().map(|point| point.value).sum::<f64>() / self.points.len().max(1) as f64
    }

    /// The line of Theil and Sen over time; none of fewer than five points.
    pub(super) fn trend(&self) -> Option<Line> {
        let points: Vec<(f64, f64)> = self.points.iter().map(|point| (point.time, point.value)).collect();
        if points.len() < 5 { None } else { theil_sen(&points) }
    }

    /// A moving mean over a twentieth of the points, at least three: a mean never goes beyond what it is made of. At the
    /// ends it becomes narrower on both sides, so that it does not lag.
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

/// The series of a log: each direction and, where several workers are in it, each of them apart.
pub(super) fn of(log: &Log) -> Vec<Series> {
    let Rows::Values { kind, single, parts } = &log.rows else { return Vec::new() };
    let quantity = Quantity::of(*kind);
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        // With log_unix_epoch the times are not since the beginning.
        let zero = part.first().map_or(0, |row| if row.time > 100_000_000_000 { row.time } else { 0 });
        let mut name = log.name.trim_end_matches(".fz").trim_end_matches(".log").to_owned();
        if parts.len() > 1 {
            name = format!("{name} worker {}", at + 1);
        }
        for direction in Direction::ALL {
            let rows: Vec<Row> = part.iter().copied().filter(|row| row.direction == direction).collect();
            if rows.is_empty() {
                continue;
            }
            let (points, how) =
                if *single { windows(&rows, zero, quantity) } else { averaged(&rows, zero, quantity) };
            let (points, how) = thinned(points, how);
            found.push(Series {
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

fn in_base(value: f64, quantity: Quantity) -> f64 {
    if quantity == Quantity::Bandwidth { value * 1024.0 } else { value }
}

/// Rows that are means already: each covers the time since the one before it.
fn averaged(rows: &[Row], zero: u64, quantity: Quantity) -> (Vec<Point>, String) {
    let mut gaps: Vec<u64> = rows.windows(2).map(|pair| pair[1].time - pair[0].time).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    let mut last = None;
    let points = rows.iter().map(|row| {
        // Of times since 1970 the first row does not say when its window began.
        let covered = match last {
            Some(last) => row.time - last,
            None if zero > 0 => usual,
            None => row.time.min(usual.max(1)),
        };
        last = Some(row.time);
        let value = in_base(row.value, quantity);
        let time = (row.time - zero) as f64 / 1e3;
        Point { time, width: covered as f64 / 1e3, value, low: value, high: value }
    });
    let points = points.collect();
    (points, format!("windows of about {usual} ms as logged"))
}

/// Single I/Os: rates are counted in windows, since the rate of one I/O says nothing of the device; times are means.
fn windows(rows: &[Row], zero: u64, quantity: Quantity) -> (Vec<Point>, String) {
    let (first, last) = (rows.first().map_or(0, |r| r.time), rows.last().map_or(0, |r| r.time));
    let span = (last - first).max(1);
    let wanted = (rows.len() / A_WINDOW).clamp(1, MOST) as u64;
    let width = round_up(span.div_ceil(wanted));
    let start = if zero > 0 { zero } else { first / width * width };
    let is_rate = matches!(quantity, Quantity::Bandwidth | Quantity::Iops);
    let mut points = Vec::new();
    let mut left = rows;
    while let Some(row) = left.first() {
        let window = (row.time - start) / width;
        let end = start + (window + 1) * width;
        let count = left.iter().take_while(|row| row.time < end).count().max(1);
        let (here, behind) = left.split_at(count);
        left = behind;
        // A rate of the last window would be of a part of it.
        if is_rate && left.is_empty() && !points.is_empty() && last + 1 < end {
            break;
        }
        let seconds = if is_rate && left.is_empty() && points.is_empty() {
            (last - first).max(1) as f64 / 1e3
        } else {
            width as f64 / 1e3
        };
        let time = (end - zero) as f64 / 1e3;
        if is_rate {
            gap(&mut points, time, seconds);
        }
        let value = match quantity {
            Quantity::Bandwidth => here.iter().map(|row| row.length as f64).sum::<f64>() / seconds,
            Quantity::Iops => count as f64 / seconds,
            _ => here.iter().map(|row| row.value).sum::<f64>() / count as f64,
        };
        let of = |pick: fn(f64, f64) -> f64| here.iter().map(|row| row.value).reduce(pick).unwrap_or(value);
        let (low, high) = if is_rate { (value, value) } else { (of(f64::min), of(f64::max)) };
        points.push(Point { time, width: seconds, value, low, high });
    }
    let of = format!("{} single I/Os", crate::figure::whole(rows.len() as u64));
    let how = if is_rate {
        format!("{of}, counted in windows of {width} ms")
    } else {
        format!("{of}, means of windows of {width} ms; the band reaches from the least to the greatest")
    };
    (points, how)
}

/// Windows in which nothing ended are rates of 0, not gaps that a line is drawn across.
fn gap(points: &mut Vec<Point>, time: f64, seconds: f64) {
    let Some(last) = points.last().copied() else { return };
    let missing = ((time - last.time) / seconds).round() as usize;
    for at in 1..missing.min(MOST) {
        let time = last.time + at as f64 * seconds;
        points.push(Point { time, width: seconds, value: 0.0, low: 0.0, high: 0.0 });
    }
}

/// The next of 1, 2 and 5 times powers of ten.
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

/// So few points that a picture can show them, each the mean of as many.
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
    (thin, format!("{how}; {each} of them to a point, the band reaches from the least to the greatest"))
}
