//! One log of several workers, combined window by window: rates are added up, times are means over all I/Os of the
//! window.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;

use super::{Chunk, LogKind, LogRow};
use crate::{Direction, PerDirection};

/// How long a window waits for workers that have not reported yet.
const HELD: Nanos = 1_000_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// For rates: the sum of value × seconds. For times: their sum.
    amount: f64,
    ios: u64,
    greatest: u64,
    /// The longest time that a worker contributed to this window.
    over: Nanos,
}

/// The windows of one kind.
#[derive(Debug)]
pub(super) struct Summed {
    kind: LogKind,
    length: Nanos,
    /// By the number of the window on the run's clock.
    windows: BTreeMap<u64, PerDirection<Sum>>,
    /// The time up to which each active worker has reported everything.
    reported: BTreeMap<u32, Nanos>,
    latest: Nanos,
    /// The first window that was not written yet.
    open: u64,
    seen: PerDirection<bool>,
    /// I/Os that were reported after their window was written.
    late: u64,
}

impl Summed {
    /// Without windows in the log (`length` 0), windows are of one second.
    pub(super) fn new(kind: LogKind, length: Nanos) -> Self {
        Self {
            kind,
            length: if length == 0 { 1_000_000_000 } else { length },
            windows: BTreeMap::new(),
            reported: BTreeMap::new(),
            latest: 0,
            open: 0,
            seen: PerDirection::default(),
            late: 0,
        }
    }

    /// Adds a worker's chunk. Rows are used unchanged; the writer first makes rows of I/Os (`done`).
    pub(super) fn add(&mut self, worker: u32, chunk: &Chunk, rows: impl Iterator<Item = LogRow>) {
        let kind = self.kind;
        for row in rows.filter(|row| row.kind == kind) {
            self.row(chunk.begin, &row);
        }
        self.latest = self.latest.max(chunk.until);
        if chunk.last {
            self.reported.remove(&worker);
        } else {
            self.reported.insert(worker, chunk.until);
        }
    }

    fn row(&mut self, begin: Nanos, row: &LogRow) {
        // A window's row has the time of its end, which is the beginning of the next.
        let within = if row.weight.1 > 0 { row.at.saturating_sub(1) } else { row.at };
        let number = within / self.length;
        if number < self.open {
            self.late += row.weight.0;
            return;
        }
        let window_begin = (number * self.length).max(begin);
        let over = if row.weight.1 > 0 {
            row.weight.1
        } else {
            ((number + 1) * self.length).saturating_sub(window_begin)
        };
        let sum = &mut self.windows.entry(number).or_default()[row.direction];
        sum.amount += match self.kind {
            LogKind::Bandwidth if row.weight.1 == 0 => f64::from(row.length) / 1024.0,
            LogKind::Iops if row.weight.1 == 0 => 1.0,
            LogKind::Bandwidth | LogKind::Iops => row.value * over as f64 / 1e9,
            _ => row.value * row.weight.0 as f64,
        };
        sum.ios += row.weight.0;
        sum.greatest = sum.greatest.max(row.greatest.unwrap_or(row.value as u64));
        sum.over = sum.over.max(over);
    }

    /// The rows of the complete windows; with `all`, of every window.
    pub(super) fn rows(&mut self, all: bool, maximum: bool) -> Vec<LogRow> {
        let until = self.reported.values().copied().min().unwrap_or(self.latest);
        let complete = until.min(self.latest.saturating_sub(HELD)) / self.length;
        let mut rows = Vec::new();
        while let Some(entry) = self.windows.first_entry() {
            let number = *entry.key();
            if !all && number >= complete {
                break;
            }
            let sums = entry.remove();
            self.open = number + 1;
            for direction in Direction::ALL {
                let sum = sums[direction];
                self.seen[direction] |= sum.ios > 0;
                if !self.seen[direction] || sum.over == 0 {
                    continue;
                }
                let is_rate = matches!(self.kind, LogKind::Bandwidth | LogKind::Iops);
                if !is_rate && sum.ios == 0 {
                    continue;
                }
                let value =
                    if is_rate { sum.amount / (sum.over as f64 / 1e9) } else { sum.amount / sum.ios as f64 };
                let greatest = if is_rate { value.round() as u64 } else { sum.greatest };
                rows.push(LogRow {
                    kind: self.kind,
                    at: (number + 1) * self.length,
                    value,
                    greatest: maximum.then_some(greatest),
                    direction,
                    length: 0,
                    offset: 0,
                    priority: 0,
                    issued: 0,
                    weight: (sum.ios, sum.over),
                });
            }
        }
        rows
    }

    /// The kind of log.
    pub(super) fn kind(&self) -> LogKind {
        self.kind
    }

    /// I/Os that are missing because they were reported after their window was written.
    pub(super) fn late(&self) -> u64 {
        self.late
    }
}
