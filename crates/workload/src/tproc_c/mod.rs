//! TPROC-C: an open workload derived from TPC-C, in the `spec` and `hammerdb` profiles.

mod names;
mod options;

pub use options::{Calls, Mix, Options, Profile};
