//! Which file, and which object of a database, each request was for.
//!
//! While it is recorded, [`FileWatcher`] asks the filesystems where files lie (FIEMAP) and what they keep for themselves
//! (GETFSMAP), and the recording gets that as [`Change`]s with their times. [`attribute`] finds for each request the file
//! that had its place at its time. Without the recording's changes nothing is attributed.

mod classes;
mod lookup;
mod servers;
mod share;
mod thread;
mod watcher;

use kelvin_measure::Nanos;
use serde::{Deserialize, Serialize};

pub use classes::{DatabaseRoot, FileClass, RootKind, classify, relation_object, stream_label};
pub(crate) use lookup::CurrentFiles;
pub use lookup::attribute;
pub use servers::catalogue_names;
pub(crate) use servers::name_objects;
pub use share::{Attribution, ObjectShare, attribution};
pub use thread::{FileThread, LastLook};
pub use watcher::{DiskRange, FileWatcher};

/// A file of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TracedFile {
    /// Its path when it was first seen.
    pub path: String,
    /// What it belongs to.
    pub class: FileClass,
    /// The object of the database, such as "relation 5/16384" or its name, or what kind of file it is; of other files
    /// the path.
    pub object: String,
    /// The data directory of the server that it belongs to; of a trace that was read only if there are several servers of one
    /// kind, whose objects have equal names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The loop device that it is behind: major and minor, and where in the file the device begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<((u32, u32), u64)>,
}

/// A range of a device that holds a part of a file from some time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When this was seen, by the recording's clock.
    pub seen: Nanos,
    /// The disk: major and minor.
    pub device: (u32, u32),
    /// The first byte on the disk.
    pub begin: u64,
    /// How many bytes.
    pub length: u64,
    /// The file, by its place in the recording's list; none if the range became free.
    pub file: Option<u32>,
    /// Where the part begins in the file.
    pub logical: u64,
}

/// What was found about files since the last time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileChanges {
    /// New files, which continue the recording's list.
    pub files: Vec<TracedFile>,
    /// In the order of their times; of one time, later ones replace earlier ones.
    pub changes: Vec<Change>,
}
