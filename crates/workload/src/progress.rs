//! How long-running work reports progress and is asked to stop.

pub use kelvin_measure::Stop;

/// Hears how far a long piece of work is. Called from any thread, a few times a second at most.
pub trait BuildProgress: Sync {
    /// `done` of `total` units of `what` ("warehouses loaded"), and `rows` rows so far (0 where rows are not
    /// counted).
    fn update(&self, what: &str, done: u64, total: u64, rows: u64);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl BuildProgress for Quiet {
    fn update(&self, _what: &str, _done: u64, _total: u64, _rows: u64) {}
}
