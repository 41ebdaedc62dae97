//! Block requests as the kernel saw them.
//!
//! [`capture`] records them from the kernel's ring buffers into a [`file`], [`import`] reads that file and the traces of
//! other tools into one [`Trace`]. [`stream`] describes a trace: sizes, arrivals, depth, sequentiality, working set;
//! [`blender`] compares the streams with what they become when they are merged; [`cache`] predicts what a cache would
//! bring. Nothing here prints.

pub mod blender;
pub mod cache;
pub mod capture;
mod error;
pub mod file;
pub mod import;
mod request;
pub mod stream;

pub use error::{Error, Result};
pub use request::{Builder, Device, Flags, Operation, Process, Request, Trace};
