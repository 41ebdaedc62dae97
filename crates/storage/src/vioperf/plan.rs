//! The plan of a measurement: number of threads, and file sizes that do not fill any filesystem.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::block::ALIGNMENT;
use super::{Cores, Options};
use crate::error::{Error, Location, Result};

/// The largest I/O, in bytes.
pub const LARGEST_BUFFER: usize = 64 << 20;

/// Maximum bytes of files on a filesystem, unless another amount is requested: more than the cache of most controllers,
/// and little enough to be written in a minute.
const MOST: u64 = 16 << 30;

/// The files use one part of the free space in this many.
const PART: u64 = 4;

/// Minimum number of blocks of a file: fewer could not be read out of order.
const LEAST_BLOCKS: u64 = 4;

/// The plan of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VioperfPlan {
    /// The divisor of rates.
    pub cores: Cores,
    /// Threads in total.
    pub threads: u32,
    /// The directories.
    pub directories: Vec<DirectoryPlan>,
    /// Bytes per I/O.
    pub buffer: usize,
    /// Whether I/O bypasses the page cache.
    pub direct: bool,
    /// Whether blocks hold a checksum.
    pub crc: bool,
    /// Seconds of each of the four tests.
    pub seconds: f64,
    /// Seconds between two rows.
    pub interval: f64,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The plan for a directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectoryPlan {
    /// Its path as given.
    pub path: PathBuf,
    /// Free bytes of its filesystem.
    pub free: u64,
    /// Threads, each with a file.
    pub threads: u32,
    /// Maximum bytes of each file.
    pub file: u64,
}

impl VioperfPlan {
    /// Maximum bytes of all files.
    pub fn working_set(&self) -> u64 {
        self.directories.iter().map(|directory| u64::from(directory.threads) * directory.file).sum()
    }
}

/// An option that cannot be fulfilled.
pub(super) fn refused(problem: String) -> Error {
    Error::Input { place: Location::default(), problem }
}

/// Bytes of the filesystem under a path that are free for this user.
pub(super) fn free(path: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(path).map_err(|error| {
        Error::system(format!("cannot determine the free space of {}", path.display()))(error.into())
    })?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Makes the plan. Writes nothing.
pub(super) fn make(options: &Options) -> Result<VioperfPlan> {
    let buffer = options.buffer;
    if !(ALIGNMENT..=LARGEST_BUFFER).contains(&buffer) || !buffer.is_multiple_of(ALIGNMENT) {
        return Err(refused(format!(
            "a buffer of {buffer} bytes is not a multiple of {ALIGNMENT} up to {LARGEST_BUFFER}"
        )));
    }
    let count = options.directories.len() as u32;
    if count == 0 {
        return Err(refused("no directory is given".into()));
    }
    let cores = Cores::read();
    let threads = options.threads.unwrap_or((cores.counted.ceil() as u32).max(1));
    if threads < count || threads > 4096 {
        return Err(refused(format!(
            "{threads} threads for {count} directories: give at least one per directory and at most 4096"
        )));
    }
    let mut filesystems: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    let mut directories = Vec::new();
    for (index, path) in options.directories.iter().enumerate() {
        let found = path.metadata().map_err(|error| {
            refused(format!("{} cannot be used: {error}; give an existing directory", path.display()))
        })?;
        if !found.is_dir() {
            return Err(refused(format!("{} is not a directory", path.display())));
        }
        let free = free(path)?;
        // Distributed round robin.
        let mine = threads / count + u32::from((index as u32) < threads % count);
        let filesystem = filesystems.entry(found.dev()).or_insert((free, 0));
        filesystem.1 += mine;
        directories.push((found.dev(), DirectoryPlan { path: path.clone(), free, threads: mine, file: 0 }));
    }
    for (device, directory) in &mut directories {
        let (free, on_it) = filesystems.get(device).copied().unwrap_or((directory.free, directory.threads));
        let share = options.working_set.map(|asked| asked * u64::from(on_it) / u64::from(threads));
        if let Some(share) = share.filter(|share| *share > free / 2) {
            return Err(refused(format!(
                "a working set of {share} bytes is more than half of the {free} bytes free in {}; \
                 choose a smaller one",
                directory.path.display()
            )));
        }
        let budget = share.unwrap_or((free / PART).min(MOST));
        let file = budget / u64::from(on_it.max(1)) / buffer as u64 * buffer as u64;
        if file < LEAST_BLOCKS * buffer as u64 {
            return Err(refused(format!(
                "not enough space in {}: of {free} bytes free, {budget} may be used by {on_it} threads, \
                 which need {} each; free some space, or give fewer threads or a smaller buffer",
                directory.path.display(),
                LEAST_BLOCKS * buffer as u64
            )));
        }
        directory.file = file;
    }
    Ok(VioperfPlan {
        cores,
        threads,
        directories: directories.into_iter().map(|(_, directory)| directory).collect(),
        buffer,
        direct: options.direct,
        crc: options.crc,
        seconds: options.duration.as_secs_f64() / 4.0,
        interval: options.interval.as_secs_f64(),
        notes: Vec::new(),
    })
}
