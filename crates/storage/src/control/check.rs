//! Checks that can refuse jobs before anything is examined or written.

use std::collections::HashMap;
use std::sync::Arc;

use rustix::fs::Access;

use super::{PlannedWorker, RunOptions};
use crate::job::{Job, Jobs};
use crate::probe::safety;
use crate::worker;
use crate::{Error, Result, Target, TargetKind};
use kelvin_host::SystemTree;

/// Refuses an existing file that cannot be opened, before earlier files are emptied.
fn may_open(job: &Job, target: &Target, writes: bool) -> Result<()> {
    // Another user has other rights.
    if job.process.user.is_some() || !target.path.exists() {
        return Ok(());
    }
    let access = if writes { Access::WRITE_OK } else { Access::READ_OK };
    let what = || format!("cannot {} {}", if writes { "write" } else { "read" }, target.path.display());
    rustix::fs::access(&target.path, access).map_err(|error| Error::system(what())(error.into()))
}

/// Refuses jobs that contradict themselves, each other or the run's options.
pub(super) fn jobs(jobs: &Jobs, options: &RunOptions) -> Result<()> {
    let mut before: HashMap<&str, usize> = HashMap::new();
    for job in &jobs.jobs {
        let refused = |problem: String| Err(Error::refused(&job.name, problem));
        if let Some(other) = &job.course.wait_for {
            match before.get(other.as_str()) {
                Some(1) => {}
                Some(_) => {
                    return refused(format!("wait_for={other} is ambiguous: several jobs have that name"));
                }
                None => return refused(format!("wait_for={other}: no earlier job has that name")),
            }
        }
        *before.entry(&job.name).or_default() += 1;
        if options.read_only && job.pattern.changes_data() && job.replay.is_none() {
            return refused("it writes or trims, which --readonly forbids".into());
        }
        if let Some(flow) = job.flow
            && flow.weight <= 0
        {
            return refused(format!("flow={} is not a valid weight: give a number above 0", flow.weight));
        }
        if let Some(steady) = job.steady
            && (steady.interval == 0 || steady.window / steady.interval < 2)
        {
            return refused("ss_dur= must be at least twice ss_interval=".into());
        }
    }
    Ok(())
}

/// Refuses jobs that workers would refuse when they begin: by then, files were laid out and emptied.
pub(super) fn workers(workers: &[PlannedWorker], jobs: &[Arc<Job>], options: &RunOptions) -> Result<()> {
    let mut before: Option<&PlannedWorker> = None;
    for (number, planned) in workers.iter().enumerate() {
        let job = &jobs[planned.job];
        let regions =
            |planned: &PlannedWorker| planned.targets.iter().map(|target| target.length).collect::<Vec<_>>();
        let alike = |other: &PlannedWorker| other.job == planned.job && regions(other) == regions(planned);
        let loads = job.verify.as_ref().is_some_and(|verify| verify.state_load);
        // The state may be written by an earlier job, and does not exist yet.
        let comes = loads && workers.iter().take(number).any(|other| jobs[other.job].name == job.name);
        if job.targets.create_only || comes || !loads && before.is_some_and(alike) {
            continue;
        }
        worker::check(&planned.plan(number as u32, job, options.aux_directory.as_deref()))?;
        before = Some(planned);
    }
    Ok(())
}

/// Refuses targets that must not be written, or that do not support what the job requests.
pub(super) fn targets(job: &Job, targets: &[Target], options: &RunOptions, tree: &SystemTree) -> Result<()> {
    let writes = (job.pattern.changes_data() || job.replay.is_some()) && !options.read_only;
    for target in targets {
        if target.kind != TargetKind::None {
            safety::check_with(&target.path, writes, &options.destroy, job.targets.allow_mounted_write)?;
            may_open(job, target, writes)?;
        }
        if let (Some(scheduler), Some(device)) = (&job.process.scheduler, &target.device) {
            super::scheduler::check(tree, device, scheduler)
                .map_err(|problem| Error::refused(&job.name, problem))?;
        }
        if job.pattern.trims && target.kind == TargetKind::Character {
            return Err(Error::refused(
                &job.name,
                format!("{} is a character device, which cannot be trimmed", target.path.display()),
            ));
        }
    }
    Ok(())
}
