//! Findings about I/O jobs from real files, devices and runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod before;
mod run;
mod support;
