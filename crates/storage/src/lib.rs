//! Drives files and block devices in fio's language.
//!
//! A job file or flags become [`job::Jobs`]; these are laid out, run by worker threads, and counted. Workers hand over
//! [`tick::Tick`]s, whose sums are the [`result::Outcome`], from which every output is made.

mod bins;
pub mod control;
pub mod data;
mod direction;
mod engine;
pub mod error;
pub mod event;
mod io;
pub mod job;
pub mod jobfile;
pub mod layout;
pub mod log;
pub mod message;
mod moments;
pub mod output;
pub mod probe;
pub mod result;
pub mod stream;
mod target;
pub mod tick;
pub mod vioperf;
pub mod worker;

pub use bins::{BINS, BinSums, Bins, bin, middle};
pub use direction::{Direction, PerDirection};
pub use error::{Error, Result};
pub use io::{Io, NextIo, SyncCall};
pub use moments::Moments;
pub use target::{Target, TargetKind};
