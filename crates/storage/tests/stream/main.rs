//! Which I/O comes next: every pattern has the distribution that its options say, and traces go both ways between Kelvin
//! and the real fio.

#![allow(clippy::unwrap_used, reason = "functions of tests")]

mod corpus;
mod distributions;
mod files;
mod patterns;
mod properties;
mod replay;
mod sizes;
#[path = "../../src/stream/statistics.rs"]
mod statistics;
mod support;
mod with_fio;
