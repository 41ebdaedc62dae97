//! Memory: how much, and in which pages.

use std::fs;

use kelvin_host::chosen;
use serde::{Deserialize, Serialize};

use super::line;

/// The memory of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes of RAM that the kernel manages.
    pub total_bytes: u64,
    /// Bytes of swap space.
    pub swap_bytes: u64,
    /// Huge pages reserved, of the default size.
    pub huge_pages: u64,
    /// Bytes of a huge page of the default size.
    pub huge_page_bytes: u64,
    /// The mode of transparent huge pages, such as "madvise".
    pub transparent_huge_pages: Option<String>,
    /// `vm.swappiness`.
    pub swappiness: Option<u32>,
}

impl Memory {
    pub(super) fn read() -> Self {
        let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let number = |name: &str| -> u64 {
            info.lines()
                .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))
                .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
                .unwrap_or(0)
        };
        Self {
            total_bytes: number("MemTotal") * 1024,
            swap_bytes: number("SwapTotal") * 1024,
            huge_pages: number("HugePages_Total"),
            huge_page_bytes: number("Hugepagesize") * 1024,
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|modes| chosen(&modes).to_owned()),
            swappiness: line("/proc/sys/vm/swappiness").and_then(|l| l.parse().ok()),
        }
    }
}
