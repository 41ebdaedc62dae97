//! Memory and its pages: `/proc/meminfo`, `/proc/vmstat`.
//!
//! Source: `Documentation/filesystems/proc.rst`, "meminfo"; `Documentation/admin-guide/mm/transhuge.rst` and
//! `hugetlbpage.rst`.

use super::Registry;
use super::fields::{Field, Fields, Kind};
use super::source::Source;

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
    bytes("MemTotal", "total", "memory that the kernel manages"),
    bytes("MemFree", "free", "memory unused"),
    bytes("MemAvailable", "available", "memory that could be had without swapping"),
    bytes("Buffers", "buffers", "cache of block devices"),
    bytes("Cached", "cached", "page cache, shared memory included"),
    bytes("Shmem", "shared", "shared memory and tmpfs"),
    bytes("Slab", "slab", "the kernel's own objects"),
    bytes(
        "PageTables",
        "page_tables",
        "page tables: with small pages each backend has its own for the shared buffers",
    ),
    bytes("Dirty", "dirty", "changed and not yet on its way to a device"),
    bytes("Writeback", "writeback", "on its way to a device"),
    bytes("AnonPages", "anonymous", "memory of processes that no file is behind"),
    bytes("AnonHugePages", "anonymous_huge", "the part of it in transparent huge pages"),
    bytes("SwapFree", "swap_free", "swap space unused"),
    bytes("Hugepagesize", "huge_pages.size", "bytes of a huge page of the default size"),
    pages("HugePages_Total", "huge_pages.total", "huge pages set aside; in use are those that are not free"),
    pages("HugePages_Free", "huge_pages.free", "huge pages not in use, reserved ones included"),
    pages("HugePages_Rsvd", "huge_pages.reserved", "huge pages promised and not yet touched"),
    pages("HugePages_Surp", "huge_pages.surplus", "huge pages beyond the number set aside"),
];

pub(crate) const EVENTS: [Field; 22] = [
    rate("pgfault", "faults", "page faults, minor and major"),
    rate("pgmajfault", "major_faults", "page faults that had to read"),
    rate("pswpin", "swap_in", "pages read from swap"),
    rate("pswpout", "swap_out", "pages written to swap"),
    rate("pgscan_kswapd", "scan_background", "pages looked at for reclaim, in the background"),
    rate("pgscan_direct", "scan_direct", "pages looked at for reclaim, by the tasks that wanted memory"),
    rate("pgsteal_kswapd", "reclaim_background", "pages reclaimed in the background"),
    rate("pgsteal_direct", "reclaim_direct", "pages reclaimed by the tasks that wanted memory"),
    rate("allocstall*", "allocation_stalls", "allocations that had to reclaim first"),
    rate("compact_stall", "compaction_stalls", "allocations that had to compact memory first"),
    rate("compact_fail", "compaction_failures", "compactions that did not yield a huge page"),
    rate("thp_fault_alloc", "thp.faults", "faults answered with a transparent huge page"),
    rate("thp_fault_fallback", "thp.fallbacks", "faults that wanted one and got small pages"),
    rate("thp_collapse_alloc", "thp.collapses", "transparent huge pages made of small ones"),
    rate("thp_split_page", "thp.splits", "transparent huge pages split"),
    rate("numa_pte_updates", "numa.marked", "pages marked to see who uses them"),
    rate("numa_hint_faults", "numa.hint_faults", "faults on marked pages"),
    rate("numa_hint_faults_local", "numa.hint_faults_local", "those of a CPU beside the memory"),
    rate("numa_pages_migrated", "numa.migrated", "pages moved to another node"),
    rate("workingset_refault_file", "refaults", "pages of files read again soon after they were dropped"),
    rate("nr_dirtied", "dirtied", "pages of files made dirty"),
    rate("nr_written", "written", "pages of files written back"),
];

pub(super) fn register(source: &Source, registry: &mut Registry) {
    Fields::register(source, registry, "/proc/meminfo", 0, "host.memory", &MEMORY);
    Fields::register(source, registry, "/proc/vmstat", 0, "host.pages", &EVENTS);
}
