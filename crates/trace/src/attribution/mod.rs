//! Which file, and which object of a database, each request was for.
//!
//! While it is recorded, [`FileWatcher`] asks the filesystems where files lie (FIEMAP) and what they keep for themselves
//! (GETFSMAP), and the recording gets that as [`Change`]s with their times. [`attribute`] finds for each request the file
//! that had its place at its time. Without the recording's changes nothing is attributed.

mod lookup;
mod servers;
mod share;
mod thread;
mod watcher;

pub(crate) use lookup::CurrentFiles;
pub use lookup::attribute;
pub use servers::catalogue_names;
pub(crate) use servers::name_objects;
pub use share::{Attribution, ObjectShare, attribution};
pub use thread::{FileThread, LastLook};
pub use watcher::FileWatcher;

pub use crate::file_class::{DatabaseRoot, FileClass, RootKind, classify, relation_object, stream_label};
