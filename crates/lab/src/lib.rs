//! Groups of runs with one answer: repeated runs ([`repeat`]), A/B comparisons ([`ab`]), studies of factors
//! ([`study`], [`factor`]), restoring state before and after runs ([`reset`], [`undo`]), runs with reduced
//! resources ([`squeeze`]), and proofs of advice ([`advise`]). A single run is made by [`kelvin_run`];
//! [`store_bench`] opens its target, prepares its data and stores the run.

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
