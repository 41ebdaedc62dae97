//! What users report besides their samples.

use kelvin_database::{Error, PreparedPlans};
use kelvin_measure::Nanos;

/// What a user reports to the driver besides its samples. Rare by nature, so it may allocate.
#[derive(Debug)]
pub enum UserReport {
    /// Something failed.
    Failure {
        /// When.
        at: Nanos,
        /// The transaction type; none when a new connection failed.
        kind: Option<u16>,
        /// Whether the transaction is tried again.
        retried: bool,
        /// What.
        error: Error,
    },
    /// How the user's prepared statements were planned, when it ended.
    Plans(Vec<PreparedPlans>),
    /// Something that the timeline should show.
    Note {
        /// When.
        at: Nanos,
        /// As text.
        text: String,
    },
}
