//! Seconds of the run's clock, side by side: what every chart of the view is drawn from.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use super::sessions::CLASSES;

/// Seconds that are kept: the widest terminal shows no more.
const MOST: usize = 600;

/// CPU shares that are distinguished, in stacking order.
pub(crate) const MODES: usize = 5;

/// One second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Column {
    /// The part of the load; none where no second of the load fell on it.
    pub(crate) part: Option<LoadPart>,
    /// Headline transactions that ended in it.
    pub(crate) headline: u64,
    /// Errors in it, mended ones included.
    pub(crate) errors: u64,
    /// Median, 95th and 99th percentile and largest latency in nanoseconds.
    pub(crate) latency: [Option<Nanos>; 4],
    /// The point that began in it.
    pub(crate) begins: Option<u32>,
    sessions: [f64; CLASSES],
    looks: u32,
    cpu: [f64; MODES],
    readings: u32,
}

impl Column {
    /// Average number of sessions by class; none without samples.
    pub(crate) fn sessions(&self) -> Option<[f64; CLASSES]> {
        (self.looks > 0).then(|| self.sessions.map(|sum| sum / f64::from(self.looks)))
    }

    /// Shares of CPU time, of 1; none where they were not read.
    pub(crate) fn cpu(&self) -> Option<[f64; MODES]> {
        (self.readings > 0).then(|| self.cpu.map(|sum| sum / f64::from(self.readings)))
    }

    /// Adds samples of the sessions: their number, and the sessions in each class, summed over them.
    pub(super) fn looked(&mut self, looks: u32, seen: &[f64; CLASSES]) {
        self.looks += looks;
        self.sessions.iter_mut().zip(seen).for_each(|(sum, new)| *sum += new);
    }

    /// Adds a reading of the CPU.
    pub(super) fn read(&mut self, shares: [f64; MODES]) {
        self.readings += 1;
        self.cpu.iter_mut().zip(shares).for_each(|(sum, new)| *sum += new);
    }
}

/// The newest seconds of a run.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    columns: BTreeMap<u64, Column>,
}

impl Timeline {
    /// The column of a moment.
    pub(super) fn column_at(&mut self, at: Nanos) -> &mut Column {
        let second = at / 1_000_000_000;
        if self.columns.len() >= MOST && !self.columns.contains_key(&second) {
            self.columns.pop_first();
        }
        self.columns.entry(second).or_default()
    }

    /// What a second of the run's clock came to.
    pub(crate) fn get(&self, second: u64) -> Option<&Column> {
        self.columns.get(&second)
    }

    /// Whether there is no second yet.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The newest `width` seconds, the oldest first, each with its second on the run's clock.
    pub(crate) fn last(&self, width: usize) -> impl Iterator<Item = (u64, Option<&Column>)> {
        let end = self.columns.last_key_value().map_or(0, |(second, _)| second + 1);
        // A run that is younger than the chart is wide begins at its left edge.
        let from = end.saturating_sub(width as u64);
        (from..from + width as u64).map(|second| (second, self.columns.get(&second)))
    }
}
