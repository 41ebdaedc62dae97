//! The content of blocks: [`Filler`] generates it for writes, and [`Verifier`] verifies it after reads.
//!
//! A verified block consists of chunks (`verify_interval`, else the whole block), each with a header of 40 bytes and a
//! checksum, in the layout of fio 3.33, so that either tool can verify what the other wrote; see `header.rs` for the
//! two methods that do not permit this. The content after the header is derived from the header's seed, and the seed
//! from the number of the write: the expected content can be computed and need not be stored.

mod checksum;
mod chunks;
mod content;
mod corruption;
mod draws;
#[cfg(test)]
mod example;
mod filler;
mod header;
mod pattern;
mod remembered_writes;
mod seeds;
mod state;
mod verifier;

pub(crate) use content::random as random_bytes;
pub use corruption::Corruption;
pub use filler::Filler;
pub use state::{check_state, state_name};
pub use verifier::Verifier;
pub(crate) use verifier::{Examiner, ReadExpectation};
