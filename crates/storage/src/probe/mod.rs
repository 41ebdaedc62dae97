//! What the machine says of itself.

pub(crate) mod mounts;
pub(crate) mod tree;
