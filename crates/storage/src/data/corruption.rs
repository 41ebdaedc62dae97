//! Data that differs from what was written.

use std::fmt;

/// A block that was not read as it was written, with the first error in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// Offset of the wrong chunk in the target, in bytes.
    pub offset: u64,
    /// The index of the job's target.
    pub target: u32,
    /// The error, as text.
    pub problem: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.problem)
    }
}
