//! The seconds of the run's clock, for the charts of the view.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use super::sessions::CLASSES;

/// Largest number of seconds kept: the width of the widest terminal.
const MOST: usize = 600;

/// Number of distinguished CPU modes, in stacking order.
pub(crate) const MODES: usize = 5;

/// One second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Column {
    /// The part of the load; none for a second without load.
    pub(crate) part: Option<LoadPart>,
    /// Headline transactions that ended in it.
    pub(crate) headline: u64,
    /// Errors in it, including retried ones.
    pub(crate) errors: u64,
    /// Median, 95th percentile, 99th percentile and maximum of the latency, in nanoseconds.
    pub(crate) latency: [Option<Nanos>; 4],
    /// The point that started in it.
    pub(crate) begins: Option<u32>,
    sessions: [f64; CLASSES],
    looks: u32,
    cpu: [f64; MODES],
    readings: u32,
}

impl Column {
    /// Average number of sessions per class; none without samples.
    pub(crate) fn sessions(&self) -> Option<[f64; CLASSES]> {
        (self.looks > 0).then(|| self.sessions.map(|sum| sum / f64::from(self.looks)))
    }

    /// Shares of CPU time, 0 to 1; none if not read.
    pub(crate) fn cpu(&self) -> Option<[f64; MODES]> {
        (self.readings > 0).then(|| self.cpu.map(|sum| sum / f64::from(self.readings)))
    }

    /// Adds `looks` samples of the sessions, and the number of sessions per class, totalled over them.
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
    /// The column that contains a moment.
    pub(super) fn column_at(&mut self, at: Nanos) -> &mut Column {
        let second = at / 1_000_000_000;
        if self.columns.len() >= MOST && !self.columns.contains_key(&second) {
            self.columns.pop_first();
        }
        self.columns.entry(second).or_default()
    }

    /// A second of the run's clock.
    pub(crate) fn get(&self, second: u64) -> Option<&Column> {
        self.columns.get(&second)
    }

    /// Whether there are no seconds yet.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The newest `width` seconds in ascending order, each with its number on the run's clock.
    pub(crate) fn last(&self, width: usize) -> impl Iterator<Item = (u64, Option<&Column>)> {
        let end = self.columns.last_key_value().map_or(0, |(second, _)| second + 1);
        // If the run is shorter than the chart is wide, it starts at the left edge.
        let from = end.saturating_sub(width as u64);
        (from..from + width as u64).map(|second| (second, self.columns.get(&second)))
    }
}
