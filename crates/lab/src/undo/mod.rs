//! The undo journal: what has to be restored is in a file, brought to disk, before it is changed. Whoever finds the
//! journal of a process that was killed can restore everything.
//!
//! A journal is a file of lines, each a JSON value: a head, then [`ReversibleChange`]s with numbers, then the numbers of those that
//! were undone. The process that owns it holds a lock on it, so that nobody undoes what a living one needs. Its entries
//! name files and hold commands: it is believed only when it belongs to this user and nobody else can write it.

mod change;
mod journal;
mod restore;

pub use change::{Process, ReversibleChange};
pub use journal::{Journal, JournalError, Pending};
pub(crate) use restore::restore_changes;
pub use restore::{RestoredChanges, UndoError, recover};
