//! What is printed and written of results, and how it is read again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod arithmetic;
mod likeness;
mod reading;
mod status;
mod texts;
