//! Drives files and block devices in fio's language.
//!
//! A job file or flags become [`job::Jobs`] (crate `kelvin-fio`); these are laid out, run by worker threads, and counted.
//! Workers hand over [`tick::Tick`]s, whose sums are the [`result::JobsOutcome`], from which every output is made.

pub mod control;
pub mod data;
mod engine;
pub mod layout;
pub mod log;
pub mod message;
pub mod probe;
pub mod seconds;
mod series_layout;
pub mod stream;
pub mod vioperf;
pub mod worker;

pub use series_layout::SeriesLayout;

pub use kelvin_fio::{
    BINS, BinSums, Bins, Direction, Error, Io, Moments, NextIo, PerDirection, Result, SyncCall, Target,
    TargetKind, bin, error, event, job, jobfile, middle, output, result, tick,
};
