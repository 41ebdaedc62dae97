//! fio's language: job files and flags become [`job::Jobs`], and what a run of them counted becomes fio's outputs.
//!
//! Everything here happens before and after the I/O, so that a release build does not optimise it. The little that a
//! worker calls for each I/O or tick is `#[inline]`: it is compiled, and optimised, in the crate that calls it.

mod bins;
mod direction;
pub mod error;
pub mod event;
mod io;
pub mod job;
pub mod jobfile;
mod moments;
pub mod output;
pub mod result;
mod target;
pub mod tick;

pub use bins::{BINS, BinSums, Bins, bin, middle};
pub use direction::{Direction, PerDirection};
pub use error::{Error, Result};
pub use io::{Io, NextIo, SyncCall};
pub use moments::Moments;
pub use target::{Target, TargetKind};
