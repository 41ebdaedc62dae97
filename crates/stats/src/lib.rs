//! Statistics for performance measurements. Pure mathematics: no clock, no files.

pub mod bootstrap;
pub mod ess;
pub mod kolmogorov;
pub mod level;
pub mod mser;
pub mod proportion;
pub mod steady;
pub mod student;
pub mod trend;
pub mod usl;
