//! Files of each kind, jobs from their text, and their findings.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use kelvin_diagnose::{Severity, io_findings};
use kelvin_measure::{Random, Stop};
use kelvin_storage::control::{self, Prepared, RunOptions};
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::job::Jobs;
use kelvin_storage::probe::{self, StorageFacts};
use kelvin_storage::result::JobsOutcome;

pub(crate) const SIZE: u64 = 8 << 20;

/// A file of random bytes that are on the medium.
pub(crate) fn written(path: &Path) {
    let file = File::create(path).unwrap();
    let mut random = Random::part(3, 1, 4);
    let block: Vec<u8> = (0..SIZE / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
    file.write_all_at(&block, 0).unwrap();
    file.sync_all().unwrap();
}

pub(crate) fn sparse(path: &Path) {
    File::create(path).unwrap().set_len(SIZE).unwrap();
}

pub(crate) fn reserved(path: &Path) {
    let file = File::create(path).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE).unwrap();
    file.sync_all().unwrap();
}

pub(crate) fn jobs(text: &str) -> Jobs {
    kelvin_storage::jobfile::parse_text(text, None, &[]).unwrap()
}

/// Jobs with their targets, and the facts about these before the run.
pub(crate) fn prepare(text: &str) -> (Prepared, StorageFacts) {
    let jobs = jobs(text);
    let prepared = control::prepare(&jobs, &RunOptions::default()).unwrap();
    let facts = probe::facts_before_run(&prepared.targets(), &jobs);
    (prepared, facts)
}

/// A watcher that ignores all events.
struct Deaf;

impl IoWatcher for Deaf {
    fn event(&mut self, _: &IoEvent<'_>) {}
}

/// Runs jobs and returns the facts before and after. One run at a time: the kernel counts for the whole process.
pub(crate) fn run(text: &str) -> (StorageFacts, JobsOutcome) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (prepared, mut facts) = prepare(text);
    let options = RunOptions::default();
    let outcome = control::run(prepared, &options, &Stop::new(), &mut facts.watching(&mut Deaf)).unwrap();
    for worker in &outcome.workers {
        assert_eq!(worker.error, None, "{text}");
    }
    facts.add_outcome(&outcome);
    (facts, outcome)
}

/// The same facts after being stored and read.
pub(crate) fn kept(facts: &StorageFacts) -> StorageFacts {
    serde_json::from_str(&serde_json::to_string(facts).unwrap()).unwrap()
}

/// The findings, by name and severity, without notes.
pub(crate) fn found(facts: &StorageFacts) -> Vec<(&'static str, Severity)> {
    let grave = io_findings(facts).into_iter().filter(|finding| finding.severity != Severity::Note);
    grave.map(|finding| (finding.id, finding.severity)).collect()
}
