//! The undo journal: the state to restore is written to a file and synced to disk before it is changed. From the
//! journal of a process that was killed, [`crate::factor::recover`] restores everything.
//!
//! A journal is a file of lines, each a JSON value: a header, then [`ReversibleChange`]s with numbers, then the numbers
//! of those that were undone. The process that owns it holds a lock on it, so that no other process undoes changes that
//! are still in use. Its entries name files and contain commands, so it is trusted only if it belongs to this user and
//! nobody else can write it.

mod change;
mod journal;

pub use change::{Process, ReversibleChange};
pub use journal::{Journal, JournalError, Pending};
