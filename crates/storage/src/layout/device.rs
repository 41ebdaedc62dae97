//! The block devices under files, by their names in sysfs.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::probe::mounts;
use crate::probe::tree::Tree;

/// A block device's name by its number: `vda1` is told apart from `vda`.
pub(super) fn by_number(tree: &Tree, number: u64) -> Option<String> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    tree.link(&format!("/sys/dev/block/{major}:{minor}"))
}

/// The size of a block device in bytes, as the kernel has it.
pub(super) fn size(tree: &Tree, name: &str) -> Option<u64> {
    // Sectors of 512 bytes whatever the device's own are.
    tree.number(&format!("/sys/class/block/{name}/size"))?.checked_mul(512)
}

/// The device that holds a file with these facts; none for a filesystem that is on none. A filesystem such as btrfs,
/// whose files have a number that no device has, is found by what is mounted.
pub(super) fn under(tree: &Tree, path: &Path, facts: &std::fs::Metadata) -> Option<String> {
    by_number(tree, facts.dev()).or_else(|| {
        let number = format!("{}:{}", rustix::fs::major(facts.dev()), rustix::fs::minor(facts.dev()));
        let all = mounts::all(tree);
        let mount = mounts::of(&all, path, &number)?;
        let source = std::fs::metadata(mount.source.starts_with('/').then_some(&mount.source)?).ok()?;
        by_number(tree, source.rdev())
    })
}

/// The whole disk of a partition; itself for any other.
pub(crate) fn disk(tree: &Tree, name: &str) -> String {
    if !tree.has(&format!("/sys/class/block/{name}/partition")) {
        return name.to_owned();
    }
    let home = std::fs::read_link(tree.path(&format!("/sys/class/block/{name}"))).ok();
    let parent = home.as_deref().and_then(|home| home.parent()?.file_name()?.to_str());
    parent.unwrap_or(name).to_owned()
}

/// The devices that a mapped or RAID device is made of.
pub(crate) fn below(tree: &Tree, name: &str) -> Vec<String> {
    tree.names(&format!("/sys/class/block/{name}/slaves"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_partition_is_told_from_its_disk() {
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
        symlink("../../devices/pci0/vda/vda1", at("sys/dev/block/254:1")).unwrap();
        let tree = Tree::at(root.path());
        assert_eq!(by_number(&tree, rustix::fs::makedev(254, 1)).as_deref(), Some("vda1"));
        assert_eq!(by_number(&tree, rustix::fs::makedev(254, 9)), None);
        assert_eq!(disk(&tree, "vda1"), "vda");
        assert_eq!(disk(&tree, "vda"), "vda");
        assert_eq!(below(&tree, "dm-0"), ["vda1"]);
        assert_eq!(below(&tree, "vda"), Vec::<String>::new());
        assert_eq!(size(&tree, "vda1"), Some(4096));
    }
}
