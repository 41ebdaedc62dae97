//! The next I/O: every pattern has the distribution that its options specify, and traces are exchanged in both
//! directions between Kelvin and the real fio.

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
