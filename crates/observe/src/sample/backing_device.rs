//! Which device holds a path.

use kelvin_host::disk::{device_name, device_number, member_devices, whole_disk};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kelvin_host::Mount;

use kelvin_host::SystemTree;

/// Where a path lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackingDevice {
    /// The path, without symbolic links: a `pg_wal` that is a link lies where the link leads.
    pub path: PathBuf,
    /// Where its file system is mounted.
    pub mount_point: Option<String>,
    /// The file system's type, such as "xfs".
    pub kind: Option<String>,
    /// The device that holds it, by the kernel's name: "nvme0n1p2", "dm-3", "md0", "vda".
    pub device: Option<String>,
    /// The whole disks below it, sorted; the device itself where it is one.
    pub disks: Vec<String>,
    /// Why the device is unknown or uncertain.
    pub unknown: Option<String>,
}

/// A block device and what is mounted from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name.
    pub name: String,
    /// The mount points of file systems on it, on its partitions, or on volumes and arrays that it is part of, sorted.
    pub mounts: Vec<String>,
    /// The whole disks below it, sorted; the device itself where it is one.
    pub disks: Vec<String>,
}

impl Device {
    /// Looks the devices up.
    pub(super) fn all(source: &SystemTree, names: Vec<String>) -> Vec<Self> {
        // Each mount with its device and all that is below it.
        let mounts: Vec<(String, BTreeSet<String>)> = source
            .mounts()
            .into_iter()
            .filter_map(|mount| {
                let device = device_name(source, &mount.number)?;
                let mut all = BTreeSet::from([device.clone()]);
                descend(source, &device, 0, &mut |device, _| {
                    all.insert(device.to_owned());
                });
                Some((mount.point.to_string_lossy().into_owned(), all))
            })
            .collect();
        let device = |name: String| {
            let held =
                mounts.iter().filter(|(_, below)| below.contains(&name)).map(|(point, _)| point.clone());
            let held: BTreeSet<String> = held.collect();
            let disks = whole_disks(source, &name);
            Self { name, mounts: held.into_iter().collect(), disks }
        };
        names.into_iter().map(device).collect()
    }
}

impl BackingDevice {
    /// Finds it. The path must exist; nothing is written.
    pub fn find(source: &SystemTree, path: &Path) -> Self {
        let mut place = Self {
            path: path.to_owned(),
            mount_point: None,
            kind: None,
            device: None,
            disks: Vec::new(),
            unknown: None,
        };
        match path.canonicalize().and_then(|p| Ok((fs::metadata(&p)?.dev(), p))) {
            Err(error) => place.unknown = Some(format!("{}: {error}", path.display())),
            Ok((device, path)) => {
                place.path = path;
                place.resolve(source, &device_number(device));
            }
        }
        place
    }

    /// The same for a path whose device number is known.
    fn resolve(&mut self, source: &SystemTree, number: &str) {
        let mounts = source.mounts();
        let mount = Mount::showing(&mounts, &self.path, number);
        self.mount_point = mount.map(|mount| mount.point.to_string_lossy().into_owned());
        self.kind = mount.map(|mount| mount.kind.clone());
        if let Some(device) = device_name(source, number) {
            self.hold(source, device);
            return;
        }
        let Some(mount) = mount else {
            self.unknown = Some(format!("no mount of device {number} in /proc/self/mountinfo"));
            return;
        };
        self.unknown = Some(match mount.kind.as_str() {
            "overlay" => {
                let upper = mount.all_options().find_map(|option| option.strip_prefix("upperdir="));
                // In a container the upper directory is outside of what can be seen.
                let below =
                    upper.map(|upper| Self::find(source, Path::new(upper))).filter(|p| p.device.is_some());
                let Some(below) = below else {
                    return self.unknown =
                        Some("an overlay whose upper directory is not visible here (a container): put the path on a volume".into());
                };
                self.device = below.device;
                self.disks = below.disks;
                return;
            }
            "btrfs" | "bcachefs" => {
                let device = fs::metadata(source.path(&mount.source)).ok().map(|m| m.rdev());
                let device = device.and_then(|device| device_name(source, &device_number(device)));
                if let Some(device) = device {
                    self.hold(source, device);
                }
                format!("{} may span more devices than the one it names ({})", mount.kind, mount.source)
            }
            "tmpfs" | "ramfs" => format!("{} is in memory: there is no device", mount.kind),
            "zfs" => format!("zfs does not report which devices hold {}: see `zpool status`", mount.source),
            kind if kind.starts_with("nfs") || matches!(kind, "cifs" | "ceph" | "9p" | "virtiofs") => {
                format!("{kind}: the device is on another machine ({})", mount.source)
            }
            kind => format!("a file system of type {kind} does not report a block device"),
        });
    }

    fn hold(&mut self, source: &SystemTree, device: String) {
        self.disks = whole_disks(source, &device);
        self.device = Some(device);
    }
}

/// The whole disks below a device, sorted; itself where it is one.
fn whole_disks(source: &SystemTree, device: &str) -> Vec<String> {
    let mut disks = BTreeSet::new();
    descend(source, device, 0, &mut |device, lowest| {
        if lowest {
            disks.insert(device.to_owned());
        }
    });
    disks.into_iter().collect()
}

/// Shows a device and those below it, and whether there is none below: a partition's disk, the parts of a volume or
/// array, and theirs.
fn descend(source: &SystemTree, device: &str, depth: u32, each: &mut dyn FnMut(&str, bool)) {
    // Deeper than any stack of volumes: a cycle, which only a broken tree has.
    if depth > 16 {
        return;
    }
    let mut below = member_devices(source, device);
    let disk = whole_disk(source, device);
    if below.is_empty() && disk != device {
        below.push(disk);
    }
    each(device, below.is_empty());
    for device in below {
        descend(source, &device, depth + 1, each);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// nvme0n1 with p1, and dm-0 over p2 and vdb, as sysfs shows them.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let devices = ["nvme0n1", "nvme0n1/nvme0n1p1", "nvme0n1/nvme0n1p2", "vdb", "dm-0"];
        for directory in ["sys/class/block", "sys/dev/block", "proc/self"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        for (minor, device) in devices.iter().enumerate() {
            let home = root.path().join("sys/devices").join(device);
            fs::create_dir_all(&home).unwrap();
            let name = Path::new(device).file_name().unwrap();
            if device.contains('/') {
                fs::write(home.join("partition"), "1\n").unwrap();
            } else {
                fs::create_dir_all(home.join("slaves")).unwrap();
            }
            symlink(Path::new("../../devices").join(device), root.path().join("sys/class/block").join(name))
                .unwrap();
            symlink(
                Path::new("../../devices").join(device),
                root.path().join(format!("sys/dev/block/259:{minor}")),
            )
            .unwrap();
        }
        for slave in ["nvme0n1p2", "vdb"] {
            symlink("../../vdb", root.path().join("sys/devices/dm-0/slaves").join(slave)).unwrap();
        }
        let mounts = "1 0 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n\
                      2 1 259:4 / /data rw - xfs /dev/mapper/data rw\n\
                      3 1 0:40 / /over rw - overlay overlay rw,lowerdir=/l,upperdir=/nowhere/u,workdir=/w\n\
                      4 1 0:41 / /shm rw - tmpfs tmpfs rw\n\
                      5 1 0:42 / /nfs rw - nfs4 host:/x rw\n";
        fs::write(root.path().join("proc/self/mountinfo"), mounts).unwrap();
        root
    }

    fn place(path: &str, number: &str) -> BackingDevice {
        let root = tree();
        let mut place = BackingDevice {
            path: path.into(),
            mount_point: None,
            kind: None,
            device: None,
            disks: Vec::new(),
            unknown: None,
        };
        place.resolve(&SystemTree::at(root.path()), number);
        place
    }

    #[test]
    fn data_and_log_are_distinguished() {
        let log = place("/pg_wal", "259:1");
        assert_eq!((log.device.as_deref(), &log.disks[..]), (Some("nvme0n1p1"), &["nvme0n1".to_owned()][..]));
        let data = place("/data/base", "259:4");
        assert_eq!(data.device.as_deref(), Some("dm-0"));
        assert_eq!(data.disks, ["nvme0n1", "vdb"]);
        assert_eq!((data.mount_point.as_deref(), data.kind.as_deref()), (Some("/data"), Some("xfs")));
        assert_eq!(data.unknown, None);
    }

    #[test]
    fn a_disk_shows_what_is_mounted_from_it() {
        let root = tree();
        let names = ["nvme0n1", "nvme0n1p1", "vdb", "dm-0"].map(str::to_owned).to_vec();
        let devices = Device::all(&SystemTree::at(root.path()), names);
        let mounts: Vec<_> = devices.iter().map(|device| device.mounts.join(" ")).collect();
        assert_eq!(mounts, ["/ /data", "/", "/data", "/data"]);
        assert_eq!(devices[3].disks, ["nvme0n1", "vdb"]);
    }

    #[test]
    fn a_device_that_is_unknown_has_a_reason() {
        for (path, number, word) in [
            ("/over/x", "0:40", "overlay"),
            ("/shm/x", "0:41", "memory"),
            ("/nfs/x", "0:42", "another machine"),
        ] {
            let place = place(path, number);
            assert_eq!(place.device, None);
            assert!(place.unknown.as_ref().unwrap().contains(word), "{place:?}");
        }
        let missing = BackingDevice::find(&SystemTree::default(), Path::new("/no/such/path"));
        assert!(missing.unknown.is_some());
    }
}
