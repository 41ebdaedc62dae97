//! Block requests as the kernel saw them.
//!
//! [`capture`] records them from the kernel's ring buffers into a [`file`], [`import`] reads that file and the traces of
//! other tools into one [`Trace`]. [`stream`] describes a trace: sizes, arrivals, depth, sequentiality, working set;
//! [`attribution`] finds the file and
//! the database's object of each request, [`blender`] compares the streams with what they become when they are merged; [`cache`] predicts what a cache would
//! bring, [`zeros`] samples what reads found, [`job`] turns a trace into jobs for fio. Nothing here prints.

pub mod attribution;
pub mod blender;
pub mod cache;
pub mod capture;
mod error;
pub mod export;
pub mod file;
mod file_class;
pub mod import;
pub mod job;
mod matcher;
pub mod recording;
mod request;
pub mod stream;
pub mod summary;
pub mod zeros;

pub use error::{Error, Result};
pub use request::{Builder, Device, Flags, Operation, Process, Reading, Request, Trace, Visitor};

/// A sector, whatever the device says.
const SECTOR: u64 = 512;
