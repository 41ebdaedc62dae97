//! Reports of users in addition to their samples.

use kelvin_database::{Error, PreparedPlans};
use kelvin_measure::Nanos;

/// What a user reports to the driver in addition to its samples. Reports are rare, so they may allocate.
#[derive(Debug)]
pub enum UserReport {
    /// An error.
    Failure {
        /// Time of the error.
        at: Nanos,
        /// The transaction type; `None` when a new connection failed.
        kind: Option<u16>,
        /// Whether the transaction is retried.
        retried: bool,
        /// The error.
        error: Error,
    },
    /// How the user's prepared statements were planned, reported at its end.
    Plans(Vec<PreparedPlans>),
    /// A note for the timeline.
    Note {
        /// Time of the note.
        at: Nanos,
        /// Its text.
        text: String,
    },
}
