//! Runs fio's jobs on files and block devices.
//!
//! A job file or flags become [`job::Jobs`] (crate `kelvin-fio`). Their files are laid out, and worker threads do and
//! count their I/Os. Workers send [`tick::Tick`]s, whose sums are the [`result::JobsOutcome`]: every output is made
//! from it.

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
