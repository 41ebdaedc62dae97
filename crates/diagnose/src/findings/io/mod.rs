//! Findings about a run of I/O jobs: whether its figures describe the intended storage.
//!
//! They are made from what was seen around the run ([`Facts`]). Those that need only what was there before are found
//! before the run, too.

mod alignment;
mod allocating_writes;
mod behind_schedule;
mod compressible;
mod cpu_bound;
mod cpu_taken;
mod depth_not_reached;
mod device_cache;
mod direct_fell_back;
mod discard;
mod few_samples;
mod foreign_traffic;
mod holes;
mod layers;
mod limited;
mod not_preconditioned;
mod not_steady;
mod numa;
mod page_cache;
mod request_size;
mod same_bytes;
mod shared_depth;
#[cfg(test)]
mod staged;
mod timer_floor;
mod unseen;
mod unsynced_writes;
mod unwritten;
mod write_amplification;
mod zero_blocks;
mod zoned;

use kelvin_measure::text::{self, nanos};
use kelvin_storage::Direction;
use kelvin_storage::probe::{DeviceFacts, DeviceRun, JobFacts, RunFacts, StorageFacts, TargetFacts};

use crate::effect::mark_io;
use crate::{EvidenceLine, Finding};

/// A finding about I/O jobs as it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct IoFindingDefinition {
    /// Its stable name.
    pub id: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Looks at the facts. Whatever they lack is no finding.
    pub find: fn(&StorageFacts) -> Vec<Finding>,
}

/// Every finding that is known, in the order of a reader's questions.
const KNOWN: &[IoFindingDefinition] = &[
    holes::ABOUT,
    unwritten::ABOUT,
    zero_blocks::ABOUT,
    layers::ABOUT,
    page_cache::ABOUT,
    unsynced_writes::ABOUT,
    direct_fell_back::ABOUT,
    alignment::ABOUT,
    zoned::ABOUT,
    limited::ABOUT,
    foreign_traffic::ABOUT,
    cpu_bound::ABOUT,
    cpu_taken::ABOUT,
    not_steady::ABOUT,
    behind_schedule::ABOUT,
    depth_not_reached::ABOUT,
    shared_depth::ABOUT,
    same_bytes::ABOUT,
    request_size::ABOUT,
    allocating_writes::ABOUT,
    write_amplification::ABOUT,
    compressible::ABOUT,
    timer_floor::ABOUT,
    numa::ABOUT,
    device_cache::ABOUT,
    not_preconditioned::ABOUT,
    discard::ABOUT,
    few_samples::ABOUT,
    unseen::ABOUT,
];

/// Every finding about I/O jobs that is known.
pub fn all() -> &'static [IoFindingDefinition] {
    KNOWN
}

/// What the facts show, the most severe first, otherwise in the order of [`all`]. Before the run, what can be known then.
pub fn find(facts: &StorageFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = KNOWN.iter().flat_map(|about| (about.find)(facts)).collect();
    let series = facts.run.iter().flat_map(|run| &run.jobs).map(|job| job.series.as_slice());
    let series: Vec<&[f64]> = series.filter(|series| !series.is_empty()).collect();
    mark_io(&mut found, &series);
    found.sort_by_key(|finding| finding.severity);
    found
}

/// Whether the kernel's null engine does the work: no figure of it describes storage.
fn is_null(job: &JobFacts) -> bool {
    job.engine == "null"
}

/// The jobs that do I/O of a direction at all.
fn doing(facts: &StorageFacts, direction: Direction) -> impl Iterator<Item = &JobFacts> {
    facts.jobs.iter().filter(move |job| job.does[direction] && !is_null(job))
}

/// Whether I/O of a direction is among the jobs', and all of it goes past the page cache.
fn all_direct(facts: &StorageFacts, direction: Direction) -> bool {
    let mut jobs = doing(facts, direction).peekable();
    jobs.peek().is_some() && jobs.all(|job| job.direct)
}

/// Whether I/O of a direction is among the jobs', and all of it goes through the page cache.
fn all_buffered(facts: &StorageFacts, direction: Direction) -> bool {
    let mut jobs = doing(facts, direction).peekable();
    jobs.peek().is_some() && jobs.all(|job| !job.direct)
}

/// A device that a target is on.
fn device_of<'a>(facts: &'a StorageFacts, target: &TargetFacts) -> Option<&'a DeviceFacts> {
    facts.devices.iter().find(|device| Some(&device.name) == target.device.as_ref())
}

/// The devices that a job works on.
fn devices_of<'a>(facts: &'a StorageFacts, job: &'a JobFacts) -> impl Iterator<Item = &'a DeviceFacts> {
    facts.devices.iter().filter(|device| {
        let mut targets = job.targets.iter().filter_map(|place| facts.targets.get(*place));
        targets.any(|target| target.device.as_ref() == Some(&device.name))
            || job.worker_devices.contains(&device.name)
    })
}

/// The counters of what reached the storage, each once.
fn counted<'a>(facts: &'a StorageFacts, run: &'a RunFacts) -> impl Iterator<Item = &'a DeviceRun> {
    run.devices.iter().filter(|of| facts.devices.iter().any(|device| device.counted.contains(&of.name)))
}

/// Bytes of a direction that reached the storage, of all its users.
fn reached(facts: &StorageFacts, run: &RunFacts, direction: Direction) -> u64 {
    counted(facts, run).map(|device| device.bytes[direction]).sum()
}

/// A share; nothing of nothing is none of it.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The part of the reading jobs' regions that `of` counts, among what was examined: the share, and a line for each of the
/// three targets with most.
fn stored(
    facts: &StorageFacts,
    of: impl Fn(&kelvin_storage::probe::Coverage) -> u64,
    what: &str,
) -> (f64, Vec<EvidenceLine>) {
    let mut found: Vec<(u64, u64, &TargetFacts)> = facts
        .targets
        .iter()
        .enumerate()
        .filter(|(place, target)| target.read && (facts.run.is_some() || !filled_first(facts, *place)))
        .filter_map(|(_, target)| {
            let coverage = target.coverage.as_ref()?;
            // What the jobs filled meanwhile is not there only in part of the reads, or in none.
            let after = target.after.as_ref().and_then(|after| after.coverage.as_ref());
            let missing = after.map_or(u64::MAX, &of).min(of(coverage));
            Some((missing, coverage.bytes, target))
        })
        .collect();
    let whole = share(found.iter().map(|one| one.0).sum(), found.iter().map(|one| one.1).sum());
    found.retain(|one| one.0 > 0);
    found.sort_by_key(|one| std::cmp::Reverse(one.0));
    let line = |(part, bytes, target): &(u64, u64, &TargetFacts)| {
        let found = format!("{what} {} of {}", text::storage(*part as f64), text::storage(*bytes as f64));
        EvidenceLine::new(target.path.display().to_string(), found)
    };
    (whole, found.iter().take(3).map(line).collect())
}

/// Whether a target is written by a job that stands before those that read it: what was there before is not what is read.
fn filled_first(facts: &StorageFacts, place: usize) -> bool {
    let of_target = || facts.jobs.iter().enumerate().filter(|(_, job)| job.targets.contains(&place));
    let reads = of_target().find(|(_, job)| job.does[Direction::Read]).map(|(number, _)| number);
    let writes = of_target().find(|(_, job)| job.does[Direction::Write]).map(|(number, _)| number);
    writes.zip(reads).is_some_and(|(writes, reads)| writes < reads)
}

/// Names, the first three of them.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    text::few(all, 3)
}
