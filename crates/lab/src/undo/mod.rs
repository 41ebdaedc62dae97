//! The undo journal: the previous state is written to a file and synced to disk before a change is made.
//! [`crate::factor::recover`] restores everything from the journal of a process that was killed.
//!
//! A journal is a file of lines, each a JSON value: a header, [`ReversibleChange`]s with numbers, and the numbers of
//! those that were undone. The process that owns it holds a lock on it, so that no other process undoes changes that
//! are still in use. Its entries name files and contain commands, so it is trusted only if it belongs to this user
//! and no other user can write it.

mod change;
mod journal;

pub use change::{Process, ReversibleChange};
pub use journal::{Journal, JournalError, Pending};
