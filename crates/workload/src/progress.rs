//! How long-running work reports progress.

pub use kelvin_measure::Stop;

/// Receives the progress of long-running work. Called from any thread, at most a few times a second.
pub trait BuildProgress: Sync {
    /// `done` of `total` units of `what` (such as "warehouses loaded"), and `rows` rows so far; 0 if rows are
    /// not counted.
    fn update(&self, what: &str, done: u64, total: u64, rows: u64);
}

/// Ignores progress.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl BuildProgress for Quiet {
    fn update(&self, _what: &str, _done: u64, _total: u64, _rows: u64) {}
}
