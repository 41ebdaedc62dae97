//! Values with a separate grammar.

pub(crate) mod bytes;
pub(crate) mod distribution;
pub(crate) mod errors;
pub(crate) mod priorities;
pub(crate) mod split;
