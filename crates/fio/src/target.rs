//! A file or device as a worker sees it, after it was laid out.

use std::path::PathBuf;

/// What kind of thing a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A regular file.
    File,
    /// A block device.
    Block,
    /// A character device such as `/dev/zero`.
    Character,
    /// Nothing: the null engine needs no file.
    None,
}

/// A file or device that a worker reads or writes, and the region of it that is the worker's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub kind: TargetKind,
    /// Where the region begins, in bytes.
    pub begin: u64,
    /// How long the region is, in bytes. I/Os lie within `begin..begin + length`.
    pub length: u64,
    /// The block device that the data is on, such as `vda1` or `dm-0`; none for a filesystem without one.
    pub device: Option<String>,
}
