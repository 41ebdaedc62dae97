//! Copies of files at rest: by clone (reflink) where the file system shares blocks, else byte by byte in the kernel.
//! Never by hard link: the database's later writes would then be in the snapshot, too.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Seal, SnapshotInfo, stopped};
use crate::{Error, ErrorClass, Result};

/// Bytes between two checks for a stop request.
const CHUNK: usize = 16 << 20;

/// The path with this ending behind its whole name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Bytes that an unprivileged user could still write where `path` is.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(path).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Whether files in this directory can be cloned; tested with a file of a few bytes.
pub(crate) fn clones(directory: &Path) -> bool {
    let name = format!(".kelvin-clone-{}", std::process::id());
    let (from, to) = (directory.join(format!("{name}-a")), directory.join(format!("{name}-b")));
    let cloned = (|| -> io::Result<()> {
        let mut source = new_file(&from, 0o600)?;
        source.write_all(&[1; 4096])?;
        let target = new_file(&to, 0o600)?;
        Ok(rustix::fs::ioctl_ficlone(&target, &source)?)
    })();
    let _ = std::fs::remove_file(&from);
    let _ = std::fs::remove_file(&to);
    cloned.is_ok()
}

fn new_file(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// How a file was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    Cloned,
    Copied,
}

impl Copied {
    pub(crate) fn copy_method(self) -> &'static str {
        match self {
            Self::Cloned => "clone of the file (reflink)",
            Self::Copied => "copy of the file",
        }
    }
}

/// Copies one file to an unused name, with its mode, and syncs it to disk. A partial copy is removed on failure.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    each: &mut dyn FnMut(u64, u64),
    stop: &dyn Fn() -> bool,
) -> Result<Copied> {
    let copied = copy_to(from, to, each, stop);
    if copied.is_err() {
        let _ = std::fs::remove_file(to);
    }
    copied
}

fn copy_to(
    from: &Path,
    to: &Path,
    each: &mut dyn FnMut(u64, u64),
    stop: &dyn Fn() -> bool,
) -> Result<Copied> {
    let reading = |error: io::Error| io_error("read", from, &error);
    let writing = |error: io::Error| io_error("write", to, &error);
    let mut source = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(from)
        .map_err(reading)?;
    let metadata = source.metadata().map_err(reading)?;
    let mut target = new_file(to, metadata.mode() & 0o777).map_err(writing)?;
    if rustix::process::geteuid().is_root() {
        // A database that is not root's would be closed to its owner.
        rustix::fs::fchown(
            &target,
            Some(rustix::fs::Uid::from_raw(metadata.uid())),
            Some(rustix::fs::Gid::from_raw(metadata.gid())),
        )
        .map_err(|error| writing(error.into()))?;
    }
    if rustix::fs::ioctl_ficlone(&target, &source).is_ok() {
        target.sync_all().map_err(writing)?;
        return Ok(Copied::Cloned);
    }
    let total = metadata.len();
    let (mut done, mut in_kernel, mut buffer) = (0_u64, true, Vec::new());
    loop {
        if stop() {
            return Err(stopped("the copy was incomplete and was removed"));
        }
        let moved = if in_kernel {
            match rustix::fs::copy_file_range(&source, None, &target, None, CHUNK) {
                Ok(moved) => moved,
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if done == 0 => {
                    in_kernel = false;
                    buffer.resize(CHUNK, 0);
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(error) => return Err(writing(error.into())),
            }
        } else {
            let read = source.read(&mut buffer).map_err(reading)?;
            target.write_all(&buffer[..read]).map_err(writing)?;
            read
        };
        if moved == 0 {
            break;
        }
        done += moved as u64;
        each(done, total);
    }
    if done < total {
        return Err(Error::new(
            ErrorClass::Server,
            format!("{} shrank while it was being copied", from.display()),
        ));
    }
    // Dirty pages would otherwise be written back while the next run is measured.
    target.sync_all().map_err(writing)?;
    Ok(Copied::Copied)
}

/// Brings the names in a directory to the disk.
pub(crate) fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory)
        .and_then(|file| file.sync_all())
        .map_err(|error| io_error("sync", directory, &error))
}

/// Brings a file to the disk.
pub(crate) fn sync_file(path: &Path) -> Result<()> {
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path);
    opened.and_then(|file| file.sync_all()).map_err(|error| io_error("sync", path, &error))
}

/// Syncs every file below a directory to disk, and no other: a sync of the whole file system would wait for the writes
/// of every other process on the machine.
pub(crate) fn sync_tree(directory: &Path) -> Result<()> {
    let failed = |error: io::Error| io_error("sync", directory, &error);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        } else if kind.is_file() {
            sync_file(&entry.path())?;
        }
    }
    sync_directory(directory)
}

/// Writes a small file completely or not at all.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Path::new(&unfinished);
    let failed = |error: io::Error| io_error("write", path, &error);
    let _ = std::fs::remove_file(unfinished);
    let mut file = new_file(unfinished, 0o644).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(unfinished, path).map_err(failed)?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// The state of a file, or of all files below a directory; links are not followed.
pub(crate) fn seal(path: &Path) -> Result<Seal> {
    let mut seal = Seal { files: 0, bytes: 0, newest: 0 };
    add_to_seal(path, &mut seal).map_err(|error| io_error("read", path, &error))?;
    Ok(seal)
}

fn add_to_seal(path: &Path, seal: &mut Seal) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path)? {
            add_to_seal(&entry?.path(), seal)?;
        }
        return Ok(());
    }
    seal.files += 1;
    seal.bytes += metadata.len();
    let modified = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    seal.newest = seal.newest.max(modified);
    Ok(())
}

pub(crate) fn io_error(doing: &str, path: &Path, error: &io::Error) -> Error {
    let class = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorClass::DiskFull,
        _ => ErrorClass::Usage,
    };
    Error::new(class, format!("cannot {doing} {}: {error}", path.display()))
}

/// Processes other than this one that have the file open, such as "4711 (sqlite3)".
pub(crate) fn users_of(path: &Path) -> Vec<String> {
    let Ok(file) = std::fs::metadata(path) else { return Vec::new() };
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found = Vec::new();
    for process in processes {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == own {
            continue;
        }
        let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let same = |entry: std::fs::DirEntry| {
            std::fs::metadata(entry.path())
                .is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
        };
        if open.into_iter().any(same) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(format!("{pid} ({})", name.trim()));
        }
    }
    found
}

/// Removes the description first: the remains of an interrupted removal are then not a snapshot.
pub(crate) fn remove_both(description: &Path, data: &Path) -> Result<()> {
    std::fs::remove_file(description).map_err(|error| io_error("remove", description, &error))?;
    match std::fs::remove_file(data) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error("remove", data, &error)),
        _ => Ok(()),
    }
}

/// The descriptions in files of this directory whose names begin with `prefix` and end with `suffix`, sorted by name.
pub(crate) fn list(directory: &Path, prefix: &str, suffix: &str) -> Result<Vec<SnapshotInfo>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("read", directory, &error)),
    };
    let mut found: Vec<SnapshotInfo> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(prefix) && name.ends_with(suffix)
        })
        .filter_map(|entry| SnapshotInfo::from_text(&std::fs::read_to_string(entry.path()).ok()?))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_bytes_and_stands_alone() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&from, &content).unwrap();
        copy(&from, &to, &mut |_, _| (), &|| false).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), content);
        std::fs::write(&from, b"changed").unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), content, "not a second name of the same file");
        assert!(copy(&from, &to, &mut |_, _| (), &|| false).is_err(), "nothing is written over");
    }

    #[test]
    fn an_interrupted_copy_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        std::fs::write(&from, [7; 5000]).unwrap();
        if !clones(place.path()) {
            assert!(copy(&from, &to, &mut |_, _| (), &|| true).is_err());
            assert!(!to.exists());
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "no trace of the trial");
    }

    #[test]
    fn no_room_is_an_error_of_its_own_and_leaves_nothing_behind() {
        // The kernel's device that is always full.
        let error = io::Error::from(Errno::NOSPC);
        assert_eq!(io_error("write", Path::new("/x"), &error).class(), ErrorClass::DiskFull);
    }

    #[test]
    fn a_seal_detects_a_change() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("inner")).unwrap();
        std::fs::write(place.path().join("inner/a"), b"abc").unwrap();
        let before = seal(place.path()).unwrap();
        assert_eq!((before.files, before.bytes), (1, 3));
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(place.path().join("inner/a"), b"abd").unwrap();
        assert_ne!(seal(place.path()).unwrap(), before);
    }
}
