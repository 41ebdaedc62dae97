//! What the host is. Every run stores this beside its figures, because a figure without its machine cannot be
//! compared with anything.

pub mod host;
mod process;
pub mod sample;
mod threads;

pub use process::cpu_time;
pub use threads::{ThreadTimes, thread_id, threads};
