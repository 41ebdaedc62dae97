//! Groups of runs with one answer: runs that repeat ([`repeat`]), A against B ([`ab`]), studies of factors ([`study`],
//! [`factor`]), what is restored before and after ([`reset`], [`undo`]), and less of the machine than there
//! is ([`squeeze`]), changes that are proved ([`advise`]). One run is [`kelvin_run`]'s; [`store_bench`] opens its target, prepares its data and keeps it.

pub mod ab;
pub mod advise;
pub mod bench;
mod cleanup_shell;
pub mod conditions;
mod control_group;
mod deep_observation;
pub mod directories;
mod error;
pub mod factor;
pub mod limits;
pub mod live;
pub mod open;
pub mod repeat;
pub mod reset;
pub mod run_trace;
pub mod selected_workload;
pub mod simulated;
pub mod squeeze;
pub mod store_bench;
pub mod study;
pub mod undo;

pub use bench::{Bench, BenchError, Measured, Planned};
