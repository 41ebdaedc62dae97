//! The part of the logs that runs in the measured loop.

use kelvin_measure::Nanos;

use super::{Chunk, CompletedIo, HistogramRow, Issued, LogKind, LogRow};
use crate::job::{Job, LogValue};
use crate::{Bins, Direction, Io, PerDirection, SyncCall};

/// I/Os or issues after which a chunk should be fetched, so that memory stays bounded: 4 MiB of [`CompletedIo`].
const FULL: usize = 65_536;

/// Sums of a direction in the current window.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    ios: u64,
    bytes: u64,
    submission: Brief,
    completion: Brief,
    total: Brief,
}

/// Summary of a series of times, as far as a row needs it.
#[derive(Debug, Clone, Copy, Default)]
struct Brief {
    sum: u64,
    greatest: u64,
}

impl Brief {
    #[inline]
    fn record(&mut self, nanos: u64) {
        self.sum += nanos;
        self.greatest = self.greatest.max(nanos);
    }
}

/// The windows of averaged logs.
#[derive(Debug)]
struct Windows {
    length: Nanos,
    /// The beginning and the end of the current one.
    from: Nanos,
    end: Nanos,
    sums: PerDirection<Window>,
    /// Directions that have occurred: from then on, a window without I/O is a row of zero and not a gap.
    seen: PerDirection<bool>,
    /// Whether a complete window was written.
    emitted: bool,
}

/// The windows of the histogram log.
#[derive(Debug)]
struct Histograms {
    length: Nanos,
    end: Nanos,
    bins: PerDirection<Box<Bins>>,
    /// Length of the last I/O of the window; 0 when there was none.
    io_length: PerDirection<u32>,
}

/// Records a worker's I/Os for the log files that its job requests. With windows, an I/O costs a few additions and no
/// allocation; without windows, it costs 64 bytes.
#[derive(Debug)]
pub struct LogRecorder {
    begin: Option<Nanos>,
    /// The earlier of the ends of the current windows. An I/O that ends later closes them first.
    next: Nanos,
    /// Windows are aligned to the run's clock and not to the worker's, so that those of all workers coincide.
    shared_grid: bool,
    window: Option<Nanos>,
    every: bool,
    kinds: Kinds,
    averaged: Option<Windows>,
    histogram_window: Option<Nanos>,
    histograms: Option<Histograms>,
    issues: bool,
    chunk: Chunk,
}

/// The requested logs.
#[derive(Debug, Clone, Copy)]
struct Kinds {
    bandwidth: bool,
    iops: bool,
    submission: bool,
    completion: bool,
    total: bool,
    maximum: bool,
}

impl Kinds {
    fn for_job(job: &Job) -> Self {
        let (logs, disabled) = (&job.logs, job.report.disabled);
        let latency = logs.latency.is_some();
        Self {
            bandwidth: logs.bandwidth.is_some(),
            iops: logs.iops.is_some(),
            submission: latency && !disabled.submission,
            completion: latency && !disabled.completion,
            total: latency && !disabled.latency,
            maximum: logs.value != LogValue::Average,
        }
    }
}

impl LogRecorder {
    /// For a worker of a job; `None` if it requests no log. All clones record the same logs.
    pub fn new(job: &Job, _clone: u32) -> Option<Self> {
        let logs = &job.logs;
        let rows = logs.bandwidth.is_some() || logs.iops.is_some() || logs.latency.is_some();
        let issues = logs.iolog.is_some();
        if !rows && !issues && logs.histogram.is_none() {
            return None;
        }
        let window = logs.window.filter(|window| *window > 0);
        // fio's `log_hist_msec=0` writes a row for each I/O. Here a window of a second is used instead.
        let histogram_window = logs
            .histogram
            .as_ref()
            .map(|_| logs.histogram_window.filter(|window| *window > 0).unwrap_or(1_000_000_000));
        Some(Self {
            begin: None,
            next: 0,
            shared_grid: logs.summed,
            window: window.filter(|_| rows),
            every: rows && window.is_none(),
            kinds: Kinds::for_job(job),
            averaged: None,
            histogram_window,
            histograms: None,
            issues,
            chunk: Chunk::default(),
        })
    }

    /// The worker begins: time zero of its logs. Without this call, it is the issue of the first I/O.
    pub fn begin(&mut self, at: Nanos) {
        if self.begin.is_some() {
            return;
        }
        self.begin = Some(at);
        self.chunk.begin = at;
        let end = |length: Nanos| {
            if self.shared_grid { (at / length + 1) * length } else { at + length }
        };
        self.averaged = self.window.map(|length| Windows {
            length,
            from: at,
            end: end(length),
            sums: PerDirection::default(),
            seen: PerDirection::default(),
            emitted: false,
        });
        self.histograms = self.histogram_window.map(|length| Histograms {
            length,
            end: end(length),
            bins: PerDirection::default(),
            io_length: PerDirection::default(),
        });
        self.set_next();
    }

    fn set_next(&mut self) {
        let averaged = self.averaged.as_ref().map_or(Nanos::MAX, |windows| windows.end);
        let histograms = self.histograms.as_ref().map_or(Nanos::MAX, |windows| windows.end);
        self.next = averaged.min(histograms);
    }

    /// Records a completed I/O of the measured part.
    #[inline]
    pub fn record(&mut self, done: &CompletedIo) {
        if done.at >= self.next {
            self.close(done.issued, done.at);
        }
        if let Some(windows) = &mut self.averaged {
            let window = &mut windows.sums[done.direction];
            window.ios += 1;
            window.bytes += u64::from(done.length);
            window.submission.record(done.submission);
            window.completion.record(done.completion);
            window.total.record(done.total);
        } else if self.every {
            self.chunk.done.push(*done);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.bins[done.direction].record(done.completion);
            histograms.io_length[done.direction] = done.length;
        }
    }

    /// Records an issued I/O, for `write_iolog`.
    #[inline]
    pub fn issued(&mut self, at: Nanos, io: &Io) {
        if self.issues {
            self.begin(at);
            self.chunk.issued.push((at, Issued::Io(*io)));
        }
    }

    /// Records an issued sync, for `write_iolog`.
    pub fn synced(&mut self, at: Nanos, target: u32, how: SyncCall) {
        if self.issues {
            self.begin(at);
            self.chunk.issued.push((at, Issued::Sync { target, how }));
        }
    }

    /// Whether so much is buffered that [`Self::take`] should be called early.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.chunk.done.len() >= FULL || self.chunk.issued.len() >= FULL
    }

    /// Closes the windows that ended before `now`.
    #[cold]
    fn close(&mut self, first_issued: Nanos, now: Nanos) {
        // `next` is 0 until the beginning is known, so that the first I/O gets here.
        self.begin(first_issued.min(now));
        if let Some(windows) = &mut self.averaged {
            while now >= windows.end {
                windows.emit(windows.end, self.kinds, &mut self.chunk.rows);
                windows.end += windows.length;
            }
        }
        if let Some(windows) = &mut self.histograms {
            while now >= windows.end {
                windows.emit(windows.end, &mut self.chunk.histograms);
                windows.end += windows.length;
            }
        }
        self.set_next();
    }

    /// The chunk to hand over at `now`; `None` if there is nothing to write.
    pub fn take(&mut self, now: Nanos) -> Option<Chunk> {
        if self.begin.is_some() && now >= self.next {
            self.close(now, now);
        }
        self.chunk.until = now;
        if self.chunk.is_empty() {
            return None;
        }
        let rest = Chunk { begin: self.chunk.begin, ..Chunk::default() };
        Some(std::mem::replace(&mut self.chunk, rest))
    }

    /// The worker has ended at `now`: the remaining rows, with the last window at its actual length.
    pub fn finish(&mut self, now: Nanos) -> Option<Chunk> {
        self.begin?;
        if now >= self.next {
            self.close(now, now);
        }
        if let Some(windows) = &mut self.averaged
            && windows.sums.iter().any(|(_, window)| window.ios > 0)
        {
            let mut kinds = self.kinds;
            // I/Os shortly after the last complete window give no rate: two I/Os in 0.1 ms would be a spike of 20,000
            // IOPS in the log of a job that was limited to 1,000. fio writes no rate for any remainder.
            if windows.emitted && now.saturating_sub(windows.from) < windows.length / 10 {
                (kinds.bandwidth, kinds.iops) = (false, false);
            }
            // All I/Os may have ended in the same nanosecond: the window is at least a microsecond.
            windows.emit(now.max(windows.from + 1000), kinds, &mut self.chunk.rows);
        }
        if let Some(windows) = &mut self.histograms {
            windows.emit(now, &mut self.chunk.histograms);
        }
        (self.averaged, self.histograms) = (None, None);
        self.chunk.until = now;
        self.chunk.last = true;
        Some(std::mem::take(&mut self.chunk))
    }
}

impl Windows {
    fn emit(&mut self, at: Nanos, kinds: Kinds, rows: &mut Vec<LogRow>) {
        let over = at - self.from;
        for direction in Direction::ALL {
            let window = std::mem::take(&mut self.sums[direction]);
            self.seen[direction] |= window.ios > 0;
            if !self.seen[direction] {
                continue;
            }
            let mut row = |kind, value: f64, greatest: u64| {
                rows.push(LogRow {
                    kind,
                    at,
                    value,
                    greatest: kinds.maximum.then_some(greatest),
                    direction,
                    length: 0,
                    offset: 0,
                    priority: 0,
                    issued: 0,
                    weight: (window.ios, over),
                });
            };
            let seconds = over as f64 / 1e9;
            // A window has one rate, which is both its mean and its maximum.
            let bandwidth = window.bytes as f64 / 1024.0 / seconds;
            let iops = window.ios as f64 / seconds;
            if kinds.bandwidth {
                row(LogKind::Bandwidth, bandwidth, bandwidth as u64);
            }
            if kinds.iops {
                row(LogKind::Iops, iops, iops as u64);
            }
            // Without I/Os there are no times.
            if window.ios == 0 {
                continue;
            }
            let times = [
                (kinds.submission, LogKind::Submission, window.submission),
                (kinds.completion, LogKind::Completion, window.completion),
                (kinds.total, LogKind::Total, window.total),
            ];
            for (asked, kind, times) in times {
                if asked {
                    row(kind, times.sum as f64 / window.ios as f64, times.greatest);
                }
            }
        }
        (self.from, self.emitted) = (at, true);
    }
}

impl Histograms {
    fn emit(&mut self, at: Nanos, rows: &mut Vec<HistogramRow>) {
        for direction in Direction::ALL {
            let length = std::mem::take(&mut self.io_length[direction]);
            if length > 0 {
                rows.push(HistogramRow {
                    at,
                    direction,
                    length,
                    bins: std::mem::take(&mut self.bins[direction]),
                });
            }
        }
    }
}
