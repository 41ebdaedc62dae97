//! Memory and its pages: `/proc/meminfo`, `/proc/vmstat`.
//!
//! Source: `Documentation/filesystems/proc.rst`, "meminfo"; `Documentation/admin-guide/mm/transhuge.rst` and
//! `hugetlbpage.rst`.

use super::Registry;
use super::fields::{Field, Fields, Kind};
use super::system_files::SystemFiles;

const fn bytes(key: &'static str, name: &'static str, help: &'static str) -> Field {
    Field { key, name, unit: "B", help, kind: Kind::Level(1024.0) }
}

const fn pages(key: &'static str, name: &'static str, help: &'static str) -> Field {
    Field { key, name, unit: "1", help, kind: Kind::Level(1.0) }
}

const fn rate(key: &'static str, name: &'static str, help: &'static str) -> Field {
    Field { key, name, unit: "1/s", help, kind: Kind::Rate(1.0) }
}

pub(crate) const MEMORY: [Field; 18] = [
    bytes("MemTotal", "total", "memory managed by the kernel"),
    bytes("MemFree", "free", "memory unused"),
    bytes("MemAvailable", "available", "memory available without swapping"),
    bytes("Buffers", "buffers", "cache of block devices"),
    bytes("Cached", "cached", "page cache, including shared memory"),
    bytes("Shmem", "shared", "shared memory and tmpfs"),
    bytes("Slab", "slab", "kernel objects (slab)"),
    bytes(
        "PageTables",
        "page_tables",
        "page tables: without huge pages, each backend has its own for the shared buffers",
    ),
    bytes("Dirty", "dirty", "dirty memory, not yet being written back"),
    bytes("Writeback", "writeback", "memory being written back"),
    bytes("AnonPages", "anonymous", "anonymous memory of processes"),
    bytes("AnonHugePages", "anonymous_huge", "anonymous memory in transparent huge pages"),
    bytes("SwapFree", "swap_free", "swap space unused"),
    bytes("Hugepagesize", "huge_pages.size", "default huge page size"),
    pages("HugePages_Total", "huge_pages.total", "huge pages allocated; those not free are in use"),
    pages("HugePages_Free", "huge_pages.free", "free huge pages, including reserved ones"),
    pages("HugePages_Rsvd", "huge_pages.reserved", "huge pages reserved but not yet touched"),
    pages("HugePages_Surp", "huge_pages.surplus", "surplus huge pages"),
];

pub(crate) const EVENTS: [Field; 22] = [
    rate("pgfault", "faults", "page faults, minor and major"),
    rate("pgmajfault", "major_faults", "page faults that read from a device"),
    rate("pswpin", "swap_in", "pages read from swap"),
    rate("pswpout", "swap_out", "pages written to swap"),
    rate("pgscan_kswapd", "scan_background", "pages scanned by background reclaim"),
    rate("pgscan_direct", "scan_direct", "pages scanned by direct reclaim"),
    rate("pgsteal_kswapd", "reclaim_background", "pages reclaimed by background reclaim"),
    rate("pgsteal_direct", "reclaim_direct", "pages reclaimed by direct reclaim"),
    rate("allocstall*", "allocation_stalls", "allocations stalled by direct reclaim"),
    rate("compact_stall", "compaction_stalls", "allocations stalled by compaction"),
    rate("compact_fail", "compaction_failures", "compactions that failed to produce a huge page"),
    rate("thp_fault_alloc", "thp.faults", "page faults served with a transparent huge page"),
    rate("thp_fault_fallback", "thp.fallbacks", "page faults that fell back to small pages"),
    rate("thp_collapse_alloc", "thp.collapses", "transparent huge pages collapsed from small pages"),
    rate("thp_split_page", "thp.splits", "transparent huge pages split"),
    rate("numa_pte_updates", "numa.marked", "page table entries marked for NUMA hinting"),
    rate("numa_hint_faults", "numa.hint_faults", "NUMA hinting faults"),
    rate("numa_hint_faults_local", "numa.hint_faults_local", "NUMA hinting faults on local memory"),
    rate("numa_pages_migrated", "numa.migrated", "pages migrated to another NUMA node"),
    rate("workingset_refault_file", "refaults", "file pages read again soon after eviction"),
    rate("nr_dirtied", "dirtied", "file pages dirtied"),
    rate("nr_written", "written", "file pages written back"),
];

pub(super) fn register(source: &SystemFiles, registry: &mut Registry) {
    Fields::register(source, registry, "/proc/meminfo", 0, "host.memory", &MEMORY);
    Fields::register(source, registry, "/proc/vmstat", 0, "host.pages", &EVENTS);
}
