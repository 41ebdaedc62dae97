//! Statistics for performance measurements. Pure mathematics: no clock, no files.

pub mod bootstrap;
pub mod ess;
pub mod kolmogorov;
pub mod proportion;
pub mod student;
pub mod usl;
