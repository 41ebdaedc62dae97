//! The findings, one file each.

mod adaptive_hash_latch;
mod autovacuum_in_window;
mod binlog_sync;
pub(crate) mod buffers_too_small;
mod causes;
mod changed_plan;
mod changed_query_plan;
mod checkpoint_in_window;
mod client_saturated;
mod client_throttled;
mod compared;
mod compared_tables;
mod connection_storm;
mod data_in_page_cache;
mod data_write_burst;
mod duplicate_index;
mod durability_off;
mod effect;
mod errors_and_retries;
mod estimator;
mod flush_method;
mod foreign_sessions;
mod fsync_off;
mod full_page_images;
pub(crate) mod generic_plan;
mod held_snapshot;
mod history_list;
mod hot_page;
mod hot_rows;
pub(crate) mod hot_updates_lost;
mod huge_pages_off;
mod io;
mod jit_cost;
mod lock_holder;
mod lock_queue;
mod log_beside_data;
mod log_write_latency;
mod machine_changed;
mod memory_grants;
mod memory_pressure;
pub(crate) mod misestimate;
pub(crate) mod missing_statistics;
mod network_round_trips;
mod noisy_neighbour;
mod not_reset;
mod not_steady;
pub(crate) mod numa_remote;
mod numa_skew;
mod odd_host;
mod outage;
mod parallel_workers;
mod parallelism_waits;
mod partition_scan;
mod past_the_knee;
mod performance_schema_off;
mod query_plans;
mod query_store_cost;
mod ramp_up_too_short;
mod redo_log_too_small;
mod scan_without_index;
mod server_fault;
mod server_latch;
mod server_throttled;
pub(crate) mod setting;
#[cfg(test)]
pub(crate) mod staged;
pub(crate) mod stale_statistics;
mod steal;
mod swapping;
mod synchronous_commit_off;
mod tempdb_contention;
pub(crate) mod temporary_files;
mod toast_volume;
mod too_few_users;
mod top_statement_dominates;
mod unseen;
mod unused_index;
pub(crate) mod useless_indexes;
pub(crate) mod wal_forced_checkpoint;
mod worker_threads;
mod working_set;

use kelvin_measure::labels;

pub use self::io::{IoFindingDefinition, all as io_all, find as io_findings};
use crate::{Evidence, Finding, Severity};

/// A finding as it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct FindingDefinition {
    /// Its stable name.
    pub id: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Looks at the evidence. Whatever the evidence lacks is no finding.
    pub find: fn(&Evidence) -> Vec<Finding>,
}

/// Every finding that is known, in the order of a reader's questions.
const KNOWN: &[FindingDefinition] = &[
    lock_holder::ABOUT,
    client_saturated::ABOUT,
    steal::ABOUT,
    server_throttled::ABOUT,
    noisy_neighbour::ABOUT,
    ramp_up_too_short::ABOUT,
    not_steady::ABOUT,
    errors_and_retries::ABOUT,
    too_few_users::ABOUT,
    past_the_knee::ABOUT,
    network_round_trips::ABOUT,
    log_write_latency::ABOUT,
    log_beside_data::ABOUT,
    full_page_images::ABOUT,
    toast_volume::ABOUT,
    machine_changed::ABOUT,
    not_reset::ABOUT,
    server_fault::ABOUT,
    fsync_off::ABOUT,
    synchronous_commit_off::ABOUT,
    durability_off::ABOUT,
    wal_forced_checkpoint::ABOUT,
    redo_log_too_small::ABOUT,
    binlog_sync::ABOUT,
    history_list::ABOUT,
    checkpoint_in_window::ABOUT,
    autovacuum_in_window::ABOUT,
    held_snapshot::ABOUT,
    hot_rows::ABOUT,
    hot_page::ABOUT,
    lock_queue::ABOUT,
    server_latch::ABOUT,
    adaptive_hash_latch::ABOUT,
    tempdb_contention::ABOUT,
    worker_threads::ABOUT,
    memory_grants::ABOUT,
    query_store_cost::ABOUT,
    scan_without_index::ABOUT,
    duplicate_index::ABOUT,
    unused_index::ABOUT,
    hot_updates_lost::ABOUT,
    temporary_files::ABOUT,
    jit_cost::ABOUT,
    parallel_workers::ABOUT,
    generic_plan::ABOUT,
    connection_storm::ABOUT,
    buffers_too_small::ABOUT,
    data_in_page_cache::ABOUT,
    flush_method::ABOUT,
    working_set::ABOUT,
    changed_plan::ABOUT,
    top_statement_dominates::ABOUT,
    parallelism_waits::ABOUT,
    missing_statistics::ABOUT,
    misestimate::ABOUT,
    partition_scan::ABOUT,
    huge_pages_off::ABOUT,
    numa_remote::ABOUT,
    numa_skew::ABOUT,
    odd_host::ABOUT,
    data_write_burst::ABOUT,
    swapping::ABOUT,
    foreign_sessions::ABOUT,
    outage::ABOUT,
    memory_pressure::ABOUT,
    performance_schema_off::ABOUT,
    unseen::ABOUT,
];

/// Those that say something about a run without a database, too.
const OF_ANY_LOAD: [&str; 4] = ["steal", "machine-changed", "swapping", "memory-pressure"];

/// Those that read the sum of all series over time, which in a scenario is that of different tenants and changes with its steps.
const OF_ONE_LOAD: [&str; 6] =
    ["not-steady", "ramp-up-too-short", "too-few-users", "past-the-knee", "data-write-burst", "outage"];

/// Every finding that is known.
pub fn known_findings() -> &'static [FindingDefinition] {
    KNOWN
}

/// What the evidence shows: the most severe first, of these a lock holder, whose locks explain the other waits, then the one with the
/// largest effect, otherwise in the order of [`known_findings`]. One with an unknown effect comes after those with one.
pub fn findings_for(evidence: &Evidence) -> Vec<Finding> {
    let scenario = evidence.context.workload == labels::SCENARIO;
    let asked = KNOWN.iter().filter(|about| !evidence.is_io() || OF_ANY_LOAD.contains(&about.id));
    let asked = asked.filter(|about| !scenario || !OF_ONE_LOAD.contains(&about.id));
    let mut found: Vec<Finding> = asked.flat_map(|about| (about.find)(evidence)).collect();
    causes::settle(&mut found, evidence);
    crate::effect::mark(&mut found, evidence);
    found.extend(evidence.storage().map(crate::io_findings).unwrap_or_default());
    let effect = |finding: &Finding| finding.effect.high().unwrap_or(-1.0);
    let held = |finding: &Finding| finding.id == lock_holder::ABOUT.id && finding.severity == Severity::Red;
    found.sort_by(|a, b| {
        let by_severity = a.severity.cmp(&b.severity);
        by_severity.then_with(|| held(b).cmp(&held(a))).then_with(|| effect(b).total_cmp(&effect(a)))
    });
    found
}

/// What keeps the runs of two sides from being compared as if they differed in nothing but the factor under study:
/// first what their tables and indexes are, then how they were run and on what.
pub fn compared(first: &[&Evidence], second: &[&Evidence]) -> Vec<Finding> {
    let mut found = compared_tables::compared(first, second);
    found.extend(compared::compared(first, second));
    found.sort_by_key(|finding| finding.severity);
    found
}

/// Whether a fact of a specification or of the environment, by its path ("/client_host/load_average"), differs from run
/// to run without being a cause of anything.
pub fn is_incidental(path: &str) -> bool {
    compared::is_incidental(path)
}

/// Titles and next steps are sentences: whatever a test puts together is checked for it.
#[cfg(test)]
pub(crate) fn check_words(evidence: &Evidence) {
    let small =
        |text: &str| text.is_empty() || text.starts_with(|first: char| first.is_lowercase() || first == '`');
    for finding in KNOWN.iter().flat_map(|about| (about.find)(evidence)) {
        assert!(
            !small(&finding.title) && !finding.title.ends_with('.'),
            "title of {}: {}",
            finding.id,
            finding.title
        );
        crate::effect::check(&finding);
        assert!(
            !small(&finding.next) && finding.next.ends_with('.'),
            "next of {}: {}",
            finding.id,
            finding.next
        );
    }
}
