//! Estimates the size of a data set before it is loaded.

use kelvin_measure::text::binary;
use std::fmt::Write as _;

/// Bytes of a page, of its header, and of a row's line pointer.
const PAGE: u64 = 8192;
const PAGE_HEADER: u64 = 24;
const POINTER: u64 = 4;
const ACCOUNTS: u64 = 100_000;

/// Bytes of a table with `rows` rows of `width` bytes (including header and alignment).
fn heap(rows: u64, width: u64, fillfactor: u64) -> u64 {
    // Rows are not added to a page if they would leave less free space than the fill factor requires.
    let usable = (PAGE * fillfactor / 100).saturating_sub(PAGE_HEADER);
    rows.div_ceil((usable / (width + POINTER)).max(1)) * PAGE
}

/// Bytes of a B-tree over one 4-byte column, as filled by CREATE INDEX: 90 % of each leaf.
fn index(rows: u64) -> u64 {
    let per_leaf = ((PAGE - PAGE_HEADER - 16) * 90 / 100) / (16 + POINTER);
    let leaves = rows.div_ceil(per_leaf);
    (leaves + leaves.div_ceil(285) + 1) * PAGE
}

/// Bytes of pgbench's tables and keys at this scale factor and a fill factor of 100.
pub fn size_estimate(scale: u32) -> u64 {
    size_with_fillfactor(scale, 100)
}

/// Bytes of pgbench's tables and keys at this scale factor and fill factor (10 to 100 percent).
pub fn size_with_fillfactor(scale: u32, fillfactor: u8) -> u64 {
    let (scale, fill) = (u64::from(scale), u64::from(fillfactor.clamp(10, 100)));
    // Accounts: 24 bytes of header, three integers, 84 blanks after a length byte, rounded up to a multiple
    // of 8. The filler of tellers and branches is NULL.
    let accounts =
        heap(scale * ACCOUNTS, (24 + 12 + 85_u64).next_multiple_of(8), fill) + index(scale * ACCOUNTS);
    let tellers = heap(scale * 10, 40, fill) + index(scale * 10);
    let branches = heap(scale, 32, fill) + index(scale);
    accounts + tellers + branches
}

/// A sentence that compares the size of the data with the server's cache and the host's memory. `cache` has
/// the name of its setting and, if known, its bytes; `memory` is the memory of the server's host in bytes, if
/// known.
pub fn working_set(
    scale: u32,
    fillfactor: u8,
    (setting, cache): (&str, Option<u64>),
    memory: Option<u64>,
) -> String {
    let size = size_with_fillfactor(scale, fillfactor);
    let mut text = format!("scale {scale} is {} of tables and keys", binary(size));
    match cache {
        Some(buffers) if size <= buffers => {
            let _ = write!(text, "; it fits in {setting} ({})", binary(buffers));
        }
        Some(buffers) => {
            let part = size as f64 / buffers as f64;
            let _ = write!(text, ", {part:.1} times {setting} ({})", binary(buffers));
        }
        None => {}
    }
    match memory {
        Some(memory) if size <= memory => {
            let _ = write!(text, "; it fits in memory ({}): reads seldom reach the disk", binary(memory));
        }
        Some(memory) => {
            let part = size as f64 / memory as f64;
            let _ =
                write!(text, "; it is {part:.1} times the memory ({}): reads reach the disk", binary(memory));
        }
        None => {}
    }
    text
}
