//! Mounts, from `/proc/self/mountinfo`.

use kelvin_host::Mount;

use super::tree::SystemTree;

/// All mounts that this process sees.
pub(crate) fn read_mounts(tree: &SystemTree) -> Vec<Mount> {
    Mount::all(&tree.text("/proc/self/mountinfo").unwrap_or_default())
}
