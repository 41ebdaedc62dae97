//! Files of each kind, jobs from their text, and what is found of them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use kelvin_diagnose::{Severity, io_findings};
use kelvin_measure::Random;
use kelvin_storage::Target;
use kelvin_storage::control::{self, Prepared, RunOptions};
use kelvin_storage::job::Jobs;
use kelvin_storage::probe::{self, Facts};

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

/// Jobs with their targets, and what is seen of these before the run.
pub(crate) fn prepare(text: &str) -> (Prepared, Facts) {
    let jobs = jobs(text);
    let prepared = control::prepare(&jobs, &RunOptions::default()).unwrap();
    let plan: Vec<(String, Vec<Target>)> = prepared
        .workers()
        .iter()
        .map(|worker| (jobs.jobs[worker.job].name.clone(), worker.targets.clone()))
        .collect();
    let facts = probe::before(&plan, &jobs);
    (prepared, facts)
}

/// What is found, by name and severity; notes are left out.
pub(crate) fn found(facts: &Facts) -> Vec<(&'static str, Severity)> {
    let grave = io_findings(facts).into_iter().filter(|finding| finding.severity != Severity::Note);
    grave.map(|finding| (finding.id, finding.severity)).collect()
}
