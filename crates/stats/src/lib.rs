//! Statistics for performance measurements. Pure mathematics: no clock, no files.

pub mod ess;
pub mod proportion;
pub mod student;
