//! What can be refused before anything is looked at or written.

use std::collections::HashMap;

use super::RunOptions;
use crate::job::{Job, Jobs};
use crate::probe::safety;
use crate::probe::tree::Tree;
use crate::stream::replay;
use crate::{Direction, Error, Result, Target, TargetKind};

/// Refuses jobs that contradict themselves, each other or what the run may do.
pub(super) fn jobs(jobs: &Jobs, options: &RunOptions) -> Result<()> {
    let mut before: HashMap<&str, usize> = HashMap::new();
    for job in &jobs.jobs {
        let refused = |problem: String| Err(Error::refused(&job.name, problem));
        if let Some(other) = &job.course.wait_for {
            match before.get(other.as_str()) {
                Some(1) => {}
                Some(_) => {
                    return refused(format!(
                        "wait_for={other} does not say which: several jobs have that name"
                    ));
                }
                None => return refused(format!("wait_for={other}: no job before this one has that name")),
            }
        }
        *before.entry(&job.name).or_default() += 1;
        if options.read_only && job.pattern.changes_data() && job.replay.is_none() {
            return refused("it writes or trims, which --readonly forbids".into());
        }
        if job.replay.is_some() && options.read_only {
            for clone in 0..job.clones.max(1) {
                let reached = replay::files(job, clone)?;
                let changed = reached
                    .iter()
                    .find(|file| file.bytes[Direction::Write] > 0 || file.bytes[Direction::Trim] > 0);
                if let Some(file) = changed {
                    return refused(format!(
                        "its trace writes or trims {}, which --readonly forbids: add replay_skip=write,trim",
                        file.path.display()
                    ));
                }
            }
        }
        if job.targets.unlink_each_loop && (job.course.loops > 1 || job.course.time_based) {
            return refused(
                "unlink_each_loop= with more than one loop is not supported: take unlink=1 and numjobs="
                    .into(),
            );
        }
        if let Some(flow) = job.flow
            && flow.weight <= 0
        {
            return refused(format!("flow={} is no weight: give a number above 0", flow.weight));
        }
        if let Some(steady) = job.steady
            && (steady.interval == 0 || steady.window / steady.interval < 2)
        {
            return refused(
                "ss_dur= has to hold at least two of ss_interval=, or nothing can be seen".into(),
            );
        }
    }
    Ok(())
}

/// Refuses targets that must not be written, or that cannot do what is asked of them.
pub(super) fn targets(job: &Job, targets: &[Target], options: &RunOptions, tree: &Tree) -> Result<()> {
    let writes = (job.pattern.changes_data() || job.replay.is_some()) && !options.read_only;
    for target in targets {
        if target.kind != TargetKind::None {
            safety::check_with(&target.path, writes, &options.destroy, job.targets.allow_mounted_write)?;
        }
        if let (Some(scheduler), Some(device)) = (&job.process.scheduler, &target.device) {
            super::scheduler::check(tree, device, scheduler)
                .map_err(|problem| Error::refused(&job.name, problem))?;
        }
        if job.pattern.trims && target.kind == TargetKind::Character {
            return Err(Error::refused(
                &job.name,
                format!("{} is a character device: there is nothing to trim", target.path.display()),
            ));
        }
    }
    Ok(())
}
