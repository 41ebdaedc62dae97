//! The file system and the device under a path.

use kelvin_host::disk::device_number;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kelvin_host::{Mount, SystemTree, chosen};
use serde::{Deserialize, Serialize};

use super::line;

/// The filesystem of a database's files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filesystem {
    /// The requested path.
    pub path: PathBuf,
    /// Its mount point.
    pub mount_point: String,
    /// Its type, such as "ext4"; "tmpfs" means that no disk is measured.
    pub kind: String,
    /// Mount options.
    pub options: String,
    /// The mounted device, such as "/dev/vda1".
    pub source: String,
    /// Bytes that an unprivileged user could still write.
    pub free_bytes: u64,
    /// The disk's model, where the kernel knows it.
    pub device_model: Option<String>,
    /// Whether the disk turns; absent where there is no disk.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
}

impl Filesystem {
    /// The file system that holds `path`, which must exist.
    pub fn containing(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let device = fs::metadata(&path).ok()?.dev();
        let number = device_number(device);
        let mounts = SystemTree::default().mounts();
        let mount = Mount::showing(&mounts, &path, &number)?;
        let free = rustix::fs::statvfs(&path).map_or(0, |s| s.f_bavail * s.f_frsize);
        let queue = |name: &str| {
            let base = format!("/sys/dev/block/{number}");
            // A partition has no queue directory; that of its disk is one level up.
            line(format!("{base}/queue/{name}")).or_else(|| line(format!("{base}/../queue/{name}")))
        };
        Some(Self {
            mount_point: mount.point.to_string_lossy().into_owned(),
            kind: mount.kind.clone(),
            options: mount.all_options().collect::<Vec<_>>().join(","),
            source: mount.source.clone(),
            free_bytes: free,
            device_model: line(format!("/sys/dev/block/{number}/device/model"))
                .or_else(|| line(format!("/sys/dev/block/{number}/../device/model"))),
            rotational: queue("rotational").map(|r| r == "1"),
            scheduler: queue("scheduler").map(|modes| chosen(&modes).to_owned()),
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_under_this_directory_is_found() {
        let found = Filesystem::containing(Path::new(".")).unwrap();
        assert!(!found.kind.is_empty());
        assert!(found.path.starts_with(&found.mount_point));
    }
}
