//! A scratch file in an existing directory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A new file, removed when dropped.
pub(super) struct Scratch {
    pub(super) file: File,
    path: PathBuf,
}

impl Scratch {
    /// Makes it in `directory`, opened with `flags` besides. Only its owner can read it.
    pub(super) fn make(directory: &Path, flags: i32) -> io::Result<Self> {
        let mut tried = 0;
        loop {
            let path = directory.join(format!(".kelvin-doctor-{}-{tried}", std::process::id()));
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600).custom_flags(flags);
            match options.open(&path) {
                // One that was killed left its file, and its number was dealt out again.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < 100 => tried += 1,
                made => return made.map(|file| Self { file, path }),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may have been removed already; a drop can report nothing.
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// The directory for the scratch file near a database's files: the parent, if it is on the same filesystem, so that no
/// file is ever created among the database's own files; else the directory itself.
pub(super) fn beside(data: &Path) -> PathBuf {
    let device = |path: &Path| path.metadata().ok().map(|found| found.dev());
    match data.parent() {
        Some(parent) if device(parent).is_some() && device(parent) == device(data) => parent.to_owned(),
        _ => data.to_owned(),
    }
}

/// The part of `bytes` that begins at a multiple of `to`; `bytes` must be longer by as much.
pub(super) fn aligned(bytes: &mut [u8], to: usize, length: usize) -> Option<&mut [u8]> {
    let from = bytes.as_ptr().align_offset(to);
    bytes.get_mut(from..from.checked_add(length)?)
}

/// Fills `bytes` with incompressible data.
pub(super) fn fill(bytes: &mut [u8], seed: u64) {
    let mut state = seed | 1;
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let one = Scratch::make(directory.path(), 0).unwrap();
        let two = Scratch::make(directory.path(), 0).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
        drop((one, two));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(Scratch::make(Path::new("/no/such"), 0).is_err());
    }

    #[test]
    fn a_buffer_begins_where_the_device_wants_it() {
        let mut bytes = vec![0; 3 * 4096];
        let part = aligned(&mut bytes, 4096, 8192).unwrap();
        assert_eq!((part.as_ptr() as usize % 4096, part.len()), (0, 8192));
        assert!(aligned(&mut [0; 100], 4096, 8192).is_none());
    }

    #[test]
    fn a_databases_neighbour_is_the_directory_above() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        std::fs::create_dir(&data).unwrap();
        assert_eq!(beside(&data), directory.path());
        assert_eq!(beside(Path::new("/proc/self")), Path::new("/proc"));
        assert_eq!(beside(Path::new("/proc")), Path::new("/proc"));
    }
}
