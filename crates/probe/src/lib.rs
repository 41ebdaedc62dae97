//! The facts about a run's environment that a reader of a storage result needs: where its bytes came from and went to.
//!
//! [`facts_before_run`] inspects files, devices and the machine before the run, [`StorageFacts::watching`] counts
//! during the run, and [`StorageFacts::add_outcome`] adds the facts of the run. `kelvin_diagnose::io_findings` derives
//! findings from [`StorageFacts`] alone. [`safety::check`] decides whether a target may be written at all.

mod after_run;
mod cache;
mod content;
mod counters;
mod device;
pub mod extents;
mod facts;
pub mod filesystem_map;
mod host;
mod jobs;
mod limits;
mod run_counts;
mod run_facts;
pub mod safety;
mod targets;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

pub use after_run::BEYOND;
pub use content::{BLOCK, BlockReader, Counting, is_zero};
pub use facts::*;
pub use run_counts::RunCounts;
pub use run_facts::*;
pub use watch::Watching;

use self::counters::Reading;
use kelvin_fio::job::{EngineName, Job, Jobs};
use kelvin_fio::{Direction, Target, TargetKind};
use kelvin_host::SystemTree;

/// Maximum number of inspected targets; of more, a sample spread over all of them.
const TARGETS: usize = 64;
/// Time limit for all inspections.
const LONGEST: Duration = Duration::from_millis(900);

/// Inspects the targets of the jobs. `plan` has for each worker the name of its job and its targets, in the order
/// of the jobs; or for each job all its targets. Reads at most a few megabytes of the targets, writes only pages
/// that are dirty already, and takes less than a second. `written` returns the content of a job's writes, if known.
pub fn facts_before_run(
    plan: &[(String, Vec<Target>)],
    jobs: &Jobs,
    written: &dyn Fn(&Job) -> Option<Content>,
) -> StorageFacts {
    let tree = SystemTree::default();
    let until = Instant::now() + LONGEST;
    let mut facts = StorageFacts::default();
    let planned = jobs::planned(jobs, plan);
    let mut places: BTreeMap<&Path, usize> = BTreeMap::new();
    let all: usize = {
        let mut paths: Vec<&Path> = Vec::new();
        for targets in planned.iter().flatten() {
            paths.extend(targets.iter().map(|target| target.path.as_path()));
        }
        paths.sort_unstable();
        paths.dedup();
        let every = paths.len().div_ceil(TARGETS).max(1);
        for (place, path) in paths.iter().step_by(every).enumerate() {
            places.insert(path, place);
        }
        paths.len()
    };
    if places.len() < all {
        facts.unseen.push(format!("{} of {all} files were examined", places.len()));
    }
    facts.targets = vec![TargetFacts::default(); places.len()];
    for (job, workers) in jobs.jobs.iter().zip(&planned) {
        let mut of = jobs::probe_job(&tree, job, workers);
        of.buffers = written(job);
        for target in workers.iter().flat_map(|targets| targets.iter()) {
            let Some((place, known)) = places
                .get(target.path.as_path())
                .and_then(|place| Some((*place, facts.targets.get_mut(*place)?)))
            else {
                continue;
            };
            let fresh = known.path.as_os_str().is_empty();
            known.path.clone_from(&target.path);
            known.kind =
                if job.engine.name == EngineName::Null { ProbedTargetKind::None } else { target.kind.into() };
            known.device.clone_from(&target.device);
            let end = target.begin.saturating_add(target.length);
            known.region = if fresh {
                (target.begin, end)
            } else {
                (known.region.0.min(target.begin), known.region.1.max(end))
            };
            known.read |= job.does(Direction::Read);
            known.written |= job.does(Direction::Write);
            known.direct |= jobs::is_direct(job);
            known.buffered |= !jobs::is_direct(job);
            if !of.targets.contains(&place) {
                of.targets.push(place);
            }
        }
        facts.jobs.push(of);
    }
    let with_ring = jobs.jobs.iter().any(|job| job.engine.name == EngineName::IoUring);
    facts.host = host::probe_host(&tree, with_ring);
    let mut unseen = std::mem::take(&mut facts.unseen);
    targets::probe_targets(&tree, &mut facts.targets, until, &mut unseen);
    facts.unseen = unseen;
    let mut names: Vec<String> = facts.targets.iter().filter_map(|target| target.device.clone()).collect();
    let of_workers = planned.iter().flatten().flat_map(|targets| targets.iter());
    names.extend(
        of_workers
            .filter(|target| target.kind != TargetKind::None)
            .filter_map(|target| target.device.clone()),
    );
    names.sort_unstable();
    names.dedup();
    facts.devices = names.iter().filter_map(|name| device::probe_device(&tree, name)).collect();
    facts.limits = limits::io(&tree);
    facts.watched.jobs = jobs
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(place, job)| std::iter::repeat_n(place, job.clones.max(1) as usize))
        .collect();
    facts.watched.series = vec![run_counts::Series::default(); jobs.jobs.len()];
    facts.watched.begun = Some(Reading::without_others(&tree));
    facts
}
