//! The findings, one file each.

mod autovacuum_in_window;
mod buffers_too_small;
mod changed_plan;
mod checkpoint_in_window;
mod data_in_page_cache;
mod data_write_burst;
mod effect;
mod fsync_off;
mod hot_page;
mod hot_rows;
mod huge_pages_off;
mod memory_pressure;
mod missing_statistics;
mod numa_remote;
mod scan_without_index;
mod setting;
#[cfg(test)]
mod staged;
mod swapping;
mod synchronous_commit_off;
mod top_statement_dominates;
mod unseen;
mod wal_forced_checkpoint;
mod words;

use crate::{Evidence, Finding};

/// A finding as it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its stable name.
    pub id: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Looks at the evidence. Whatever the evidence lacks is no finding.
    pub look: fn(&Evidence) -> Vec<Finding>,
}

/// Every finding that is known, in the order of a reader's questions.
const KNOWN: &[About] = &[
    fsync_off::ABOUT,
    synchronous_commit_off::ABOUT,
    wal_forced_checkpoint::ABOUT,
    checkpoint_in_window::ABOUT,
    autovacuum_in_window::ABOUT,
    hot_rows::ABOUT,
    hot_page::ABOUT,
    scan_without_index::ABOUT,
    buffers_too_small::ABOUT,
    data_in_page_cache::ABOUT,
    changed_plan::ABOUT,
    top_statement_dominates::ABOUT,
    missing_statistics::ABOUT,
    huge_pages_off::ABOUT,
    numa_remote::ABOUT,
    data_write_burst::ABOUT,
    swapping::ABOUT,
    memory_pressure::ABOUT,
    unseen::ABOUT,
];

/// Every finding that is known.
pub fn all() -> &'static [About] {
    KNOWN
}

/// What the evidence shows, the most severe first, otherwise in the order of [`all`].
pub fn find(evidence: &Evidence) -> Vec<Finding> {
    let mut found: Vec<Finding> = KNOWN.iter().flat_map(|about| (about.look)(evidence)).collect();
    found.sort_by_key(|finding| finding.severity);
    found
}

/// What keeps two runs from being compared as if they differed in nothing but the factor under study.
pub fn compared(_first: &Evidence, _second: &Evidence) -> Vec<Finding> {
    Vec::new()
}
