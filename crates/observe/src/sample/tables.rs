//! The tables and formulas that hold for a host wherever its counters were read.

pub(crate) use super::disk::missing;
pub(crate) use super::fields::{Field, Kind};
pub(crate) use super::iostat::{COLUMNS, columns};
pub(crate) use super::memory::{EVENTS, MEMORY};
pub(crate) use super::numa::{KEYS as NUMA_KEYS, LEVELS as NUMA_LEVELS};
