//! `--bandwidth-log`: the bandwidth of all workers together, a file for each direction.

use std::fmt::Write as _;
use std::path::Path;

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use crate::tick::Tick;
use crate::{Direction, Error, Result};

/// The time that a row covers, which is fio's default.
const WINDOW: Nanos = 500_000_000;
/// A last window shorter than this gives no meaningful rate.
const SHORTEST: Nanos = WINDOW / 10;

/// Bytes by window. A tick's bytes are spread evenly over its time, since ticks of several workers do not end together.
#[derive(Debug, Default)]
pub struct BandwidthLog {
    /// Bytes by direction.
    windows: Vec<[f64; 3]>,
    begin: Option<Nanos>,
    end: Nanos,
}

impl BandwidthLog {
    /// Adds a tick of the measured part. Other ticks are ignored.
    pub fn tick(&mut self, tick: &Tick) {
        if tick.part != LoadPart::Measured || tick.to <= tick.from {
            return;
        }
        let begin = *self.begin.get_or_insert(tick.from);
        self.end = self.end.max(tick.to);
        let mut bytes = [0.0; 3];
        for (place, (_, tally)) in tick.targets.iter().flat_map(|target| target.iter().enumerate()) {
            bytes[place] += tally.as_ref().map_or(0.0, |tally| tally.bytes as f64);
        }
        // A worker that began before the first tick was received is counted from there.
        let (from, to) = (tick.from.max(begin) - begin, tick.to - begin);
        let length = (to - from).max(1) as f64;
        for window in from / WINDOW..=(to - 1) / WINDOW {
            let place = window as usize;
            if self.windows.len() <= place {
                self.windows.resize(place + 1, [0.0; 3]);
            }
            let covered = to.min((window + 1) * WINDOW) - from.max(window * WINDOW);
            for (sum, more) in self.windows[place].iter_mut().zip(bytes) {
                *sum += more * covered as f64 / length;
            }
        }
    }

    /// The rows of a direction: milliseconds, KiB a second, direction, 0, 0, as fio's averaged logs have them.
    fn rows(&self, direction: usize) -> String {
        let mut text = String::new();
        let whole = self.end - self.begin.unwrap_or(self.end);
        for (place, window) in self.windows.iter().enumerate() {
            let from = place as u64 * WINDOW;
            let to = (from + WINDOW).min(whole);
            if to < from + SHORTEST && place > 0 {
                break;
            }
            let rate = window[direction] / 1024.0 / (to.saturating_sub(from).max(1) as f64 / 1e9);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}, {}, {direction}, 0, 0", to / 1_000_000, rate.round() as u64);
        }
        text
    }

    /// Writes `agg-read_bw.log`, `agg-write_bw.log` and `agg-trim_bw.log`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        for (place, direction) in Direction::ALL.into_iter().enumerate() {
            let path = directory.join(format!("agg-{direction}_bw.log"));
            let what = || format!("cannot write {}", path.display());
            std::fs::write(&path, self.rows(place)).map_err(Error::system(what()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PerDirection;
    use crate::tick::{DepthCounts, Tally};

    #[test]
    fn trial_c7_the_log_has_all_workers_in_windows() {
        let tick = |worker, from: Nanos, to: Nanos, bytes| Tick {
            worker,
            from,
            to,
            part: LoadPart::Measured,
            targets: vec![PerDirection([Some(Box::new(Tally { bytes, ..Tally::default() })), None, None])],
            syncs: crate::Moments::default(),
            sync_bins: None,
            depth: DepthCounts::default(),
            failures: Vec::new(),
        };
        let mut log = BandwidthLog::default();
        let second = 1_000_000_000;
        log.tick(&tick(0, 5 * second, 6 * second, 4 << 20));
        log.tick(&tick(1, 5 * second + WINDOW, 6 * second, 1 << 20));
        let mut ramp = tick(0, 6 * second, 7 * second, 1 << 30);
        ramp.part = LoadPart::RampUp;
        log.tick(&ramp);
        // 2 MiB in the first half second; 3 MiB in the second.
        assert_eq!(log.rows(0), "500, 4096, 0, 0, 0\n1000, 6144, 0, 0, 0\n");
        assert_eq!(log.rows(1), "500, 0, 1, 0, 0\n1000, 0, 1, 0, 0\n");
        assert_eq!(BandwidthLog::default().rows(0), "");
    }
}
