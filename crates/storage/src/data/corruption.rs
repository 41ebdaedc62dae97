//! Data that is not what was written.

use std::fmt;

/// A block that was not read as it was written: the first thing that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// Where the wrong chunk begins in the target, in bytes.
    pub offset: u64,
    /// Which of the job's targets.
    pub target: u32,
    /// What is wrong, as text.
    pub problem: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.problem)
    }
}
