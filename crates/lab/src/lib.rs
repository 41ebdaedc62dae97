//! Many runs with one answer: runs that repeat ([`repeat`]), A against B ([`ab`]), studies of factors ([`study`],
//! [`factor`]), what is put back before and after ([`reset`], [`undo`]), and less of the machine than there
//! is ([`squeeze`]). One run is [`kelvin_run`]'s.

pub mod ab;
pub mod bench;
pub mod conditions;
pub mod factor;
pub mod repeat;
pub mod reset;
pub mod simulated;
pub mod squeeze;
pub mod study;
pub mod undo;

pub use bench::{Bench, BenchError, Measured, Planned};
