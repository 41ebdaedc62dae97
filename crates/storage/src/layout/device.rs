//! The block devices under files, by their names in sysfs.

use kelvin_host::disk::{device_name, device_number};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kelvin_host::SystemTree;

/// The size of a block device in bytes, as the kernel reports it.
pub(super) fn size(tree: &SystemTree, name: &str) -> Option<u64> {
    // Sectors of 512 bytes, independent of the device's sector size.
    tree.number(format!("/sys/class/block/{name}/size"))?.checked_mul(512)
}

/// The device that holds a file with this metadata; `None` for a filesystem without a device. Files on filesystems such
/// as btrfs have a device number without a device: the mount identifies the device.
pub(super) fn under(tree: &SystemTree, path: &Path, facts: &std::fs::Metadata) -> Option<String> {
    let own = device_number(facts.dev());
    device_name(tree, &own).or_else(|| {
        let all = tree.mounts();
        let mount = kelvin_host::Mount::showing(&all, path, &own)?;
        let source = std::fs::metadata(mount.source.starts_with('/').then_some(&mount.source)?).ok()?;
        device_name(tree, &device_number(source.rdev()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use kelvin_host::disk::member_devices;

    use super::*;

    #[test]
    fn sizes_and_what_lies_below_are_those_of_sysfs() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in
            ["sys/class/block", "sys/dev/block", "sys/devices/pci0/vda/vda1", "sys/devices/dm-0/slaves/vda1"]
        {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("sys/devices/pci0/vda/vda1/partition"), "1\n").unwrap();
        fs::write(at("sys/devices/pci0/vda/vda1/size"), "8\n").unwrap();
        symlink("../../devices/pci0/vda", at("sys/class/block/vda")).unwrap();
        symlink("../../devices/pci0/vda/vda1", at("sys/class/block/vda1")).unwrap();
        symlink("../../devices/dm-0", at("sys/class/block/dm-0")).unwrap();
        let tree = SystemTree::at(root.path());
        let facts = fs::metadata(root.path()).unwrap();
        assert_eq!(under(&tree, root.path(), &facts), None, "no device of this number is in the tree");
        symlink("../../devices/pci0/vda/vda1", at("sys/dev/block").join(device_number(facts.dev()))).unwrap();
        assert_eq!(under(&tree, root.path(), &facts).as_deref(), Some("vda1"), "a partition, not its disk");
        assert_eq!(member_devices(&tree, "dm-0"), ["vda1"]);
        assert_eq!(member_devices(&tree, "vda"), Vec::<String>::new());
        assert_eq!(size(&tree, "vda1"), Some(4096));
    }
}
