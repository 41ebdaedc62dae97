//! Statistics for performance measurements: pure functions, no I/O, no clock.

pub mod proportion;
