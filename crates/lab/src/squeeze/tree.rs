//! The processes of a server.

use std::fs;

use kelvin_host::SystemTree;

/// A process and its descendants.
pub(super) fn processes(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(&process) = all.get(next) {
        next += 1;
        for thread in SystemTree::default().threads(process) {
            let path = format!("/proc/{process}/task/{thread}/children");
            let text = fs::read_to_string(path).unwrap_or_default();
            for child in text.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                if !all.contains(&child) {
                    all.push(child);
                }
            }
        }
    }
    all
}
