//! The file system and the device under a path.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::line;

/// Where a database's files lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filesystem {
    /// The path that was asked for.
    pub path: PathBuf,
    /// Where its file system is mounted.
    pub mount_point: String,
    /// Its type, such as "ext4"; "tmpfs" means that no disk is measured.
    pub kind: String,
    /// Mount options.
    pub options: String,
    /// What is mounted, such as "/dev/vda1".
    pub source: String,
    /// Bytes that an unprivileged user could still write.
    pub free_bytes: u64,
    /// The disk's model, where the kernel knows one.
    pub device_model: Option<String>,
    /// Whether the disk turns; absent where there is no disk.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
}

impl Filesystem {
    /// The file system that holds `path`, which must exist.
    pub fn of(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let device = fs::metadata(&path).ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let info = fs::read_to_string("/proc/self/mountinfo").ok()?;
        // Of several mounts over one another the longest mount point that contains the path is the one seen.
        let mount = info.lines().filter_map(Mount::parse).filter(|m| path.starts_with(&m.point));
        let mount = mount.max_by_key(|m| m.point.len())?;
        let free = rustix::fs::statvfs(&path).map_or(0, |s| s.f_bavail * s.f_frsize);
        let queue = |name: &str| {
            let base = format!("/sys/dev/block/{major}:{minor}");
            // A partition has no queue of its own: its disk, one level up, has.
            line(format!("{base}/queue/{name}")).or_else(|| line(format!("{base}/../queue/{name}")))
        };
        Some(Self {
            mount_point: mount.point,
            kind: mount.kind,
            options: mount.options,
            source: mount.source,
            free_bytes: free,
            device_model: line(format!("/sys/dev/block/{major}:{minor}/device/model"))
                .or_else(|| line(format!("/sys/dev/block/{major}:{minor}/../device/model"))),
            rotational: queue("rotational").map(|r| r == "1"),
            scheduler: queue("scheduler").map(|modes| {
                let inner = modes.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                inner.map_or(modes.clone(), |(word, _)| word.to_owned())
            }),
            path,
        })
    }
}

/// A mount as `/proc/self/mountinfo` shows it.
pub(crate) struct Mount {
    /// "major:minor".
    pub(crate) device: String,
    /// What of the file system is mounted: "/" but for bind mounts and the like.
    pub(crate) root: String,
    pub(crate) point: String,
    pub(crate) kind: String,
    pub(crate) options: String,
    pub(crate) source: String,
}

impl Mount {
    /// A line of /proc/self/mountinfo: id, parent, major:minor, root, mount point, options, optional fields,
    /// a hyphen, type, source, options of the file system.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let (device, root) = (before.next()?, before.next()?);
        let (point, options) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, source, more) = (after.next()?, after.next()?, after.next().unwrap_or(""));
        Some(Self {
            device: device.into(),
            root: unescape(root),
            point: unescape(point),
            kind: kind.into(),
            options: if more.is_empty() { options.into() } else { format!("{options},{more}") },
            source: unescape(source),
        })
    }
}

/// The kernel writes blanks, tabs, line ends and backslashes in paths as three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 8).ok());
        match octal {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_under_this_directory_is_found() {
        let found = Filesystem::of(Path::new(".")).unwrap();
        assert!(!found.kind.is_empty());
        assert!(found.path.starts_with(&found.mount_point));
    }

    #[test]
    fn a_mount_point_with_a_blank_is_read() {
        let mount =
            Mount::parse("36 35 98:0 / /mnt/my\\040disk rw,noatime master:1 - ext4 /dev/sda1 rw").unwrap();
        assert_eq!((mount.point.as_str(), mount.options.as_str()), ("/mnt/my disk", "rw,noatime,rw"));
    }
}
