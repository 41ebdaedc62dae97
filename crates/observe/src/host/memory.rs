//! Memory: how much, and in which pages.

use kelvin_host::{SystemTree, chosen};
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
        let names = ["MemTotal", "SwapTotal", "HugePages_Total", "Hugepagesize"];
        let [total, swap, huge_pages, huge_page] =
            SystemTree::default().values("/proc/meminfo", names).map(Option::unwrap_or_default);
        Self {
            total_bytes: total << 10,
            swap_bytes: swap << 10,
            huge_pages,
            huge_page_bytes: huge_page << 10,
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|modes| chosen(&modes).to_owned()),
            swappiness: line("/proc/sys/vm/swappiness").and_then(|l| l.parse().ok()),
        }
    }
}
