//! What is in the blocks: what a write puts there ([`Filler`]), and whether a read finds it again ([`Verifier`]).
//!
//! A verified block is made of chunks (`verify_interval`, else the whole block), each with a header of 40 bytes and its
//! sum, laid out as fio 3.33 does, so that either tool can look at what the other wrote; see `header.rs` for the two
//! methods where that cannot be. The content behind the header follows from the header's seed, and the seed from the
//! number of the write: the expected content can be computed and need not be stored.

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
