//! The measured path: a worker gets the next I/O, submits it to an engine, reaps completions, and counts.

mod checkers;
mod counter;
mod depth_search;
mod flow;
mod halt;
mod lock;
mod measured;
mod pace;
mod parts;
mod shared;
mod thread_setup;
mod ticker;
mod usage;

use std::sync::Arc;

pub use flow::FlowGroups;
pub use pace::RateChanges;
pub(crate) use parts::check;
pub(crate) use thread_setup::take_rights;

pub use shared::{Shared, Spare, UnderWay, WorkerPlan};

use crate::engine::{Blocking, BufferPool, DEEPEST, Files, Libaio, Mapped, Null, Offload, Uring};
use crate::event::WorkerState;
use crate::job::EngineName;
use crate::message::{Message, WorkerEnd};
use crate::{Direction, Result};
use halt::Halt;
use measured::{Loop, LoopEnd, Made};
use parts::{IoStream, WorkerParts};

/// Carries out a plan in the calling thread, and reports to the channel of `shared`; the last message is
/// [`Message::End`]. An error ends the worker and not the process: it is in the returned value and in that message.
#[allow(clippy::needless_pass_by_value, reason = "a worker owns its plan")]
pub fn run(plan: WorkerPlan, shared: &Shared) -> WorkerEnd {
    run_parts(&plan, shared, || WorkerParts::for_plan(&plan))
}

/// Carries out a plan with these parts in the calling thread, and reports to the channel of `shared`.
pub(crate) fn run_parts<S: IoStream>(
    plan: &WorkerPlan,
    shared: &Shared,
    parts: impl FnOnce() -> Result<WorkerParts<S>>,
) -> WorkerEnd {
    let mut end =
        WorkerEnd { worker: plan.number, thread: thread_setup::thread_id(), ..WorkerEnd::default() };
    let begun = shared.clock.now();
    end.course = (begun, begun);
    match attempt(plan, shared, parts) {
        Ok(course) => {
            end.course = (course.begun, course.ended);
            (end.cpu, end.run_delay) = (course.usage.cpu, course.usage.run_delay);
            (end.switches, end.faults) = (course.usage.switches, course.usage.faults);
            end.counted = course.usage.span();
            end.error = course.halt.map(|halt| (halt.number, halt.message));
            end.latency_depth = course.latency_depth;
            end.notes = course.notes;
            end.verified = course.verified;
        }
        Err(halt) => end.error = Some((halt.number, halt.message)),
    }
    let _ = shared.messages.send(Message::End(Box::new(end.clone())));
    end
}

/// Creates what the worker needs, and runs it.
fn attempt<S: IoStream>(
    plan: &WorkerPlan,
    shared: &Shared,
    parts: impl FnOnce() -> Result<WorkerParts<S>>,
) -> std::result::Result<LoopEnd, Halt> {
    let job = &plan.job;
    thread_setup::set_up_thread(plan)?;
    let mut notes = Vec::new();
    let files = Arc::new(Files::open(job, &plan.targets)?);
    if job.targets.pre_read {
        let _ = shared.messages.send(Message::State(plan.number, WorkerState::PreReading));
        files.read_all(|| !shared.stop.requested())?;
    }
    let name = job.engine.name;
    let several = name.is_asynchronous() || job.depth.offload;
    let wanted = job.depth.depth.max(1);
    // Other threads may examine read data while the next block is read: each then has a separate buffer.
    let looked_at = job.verify.as_ref().is_some_and(|verify| verify.threads > 0);
    let depth = if several || looked_at { wanted.min(DEEPEST) } else { 1 };
    if depth < wanted {
        notes.push(format!("iodepth={wanted}, but {} has {depth} in flight at a time", name.word()));
    }
    if job.depth.offload && matches!(name, EngineName::IoUring | EngineName::Libaio | EngineName::Null) {
        notes.push(format!(
            "io_submit_mode=offload: {} submits without blocking, in the job's own thread",
            name.word()
        ));
    }
    let largest = Direction::ALL.into_iter().filter(|direction| *direction != Direction::Trim);
    let largest = largest.map(|direction| job.blocks.sizes[direction].largest()).max().unwrap_or(0);
    let parts = parts()?;
    let size = (largest as usize).max(parts.stream.longest() as usize);
    let pool = BufferPool::new(depth as usize, size, &job.buffers, job.process.numa_memory.as_ref())?;
    let seed = plan.seed;
    let own = Arc::clone(&files);
    macro_rules! run {
        ($engine:expr) => {{
            let engine = $engine;
            let made = Made { files, pool, parts, depth, notes };
            Ok(Loop::new(shared, plan, engine, made).run())
        }};
    }
    match name {
        EngineName::Null => run!(Null::new(depth)),
        EngineName::IoUring => run!(Uring::new(job, own, &pool, depth, seed, &mut notes)?),
        EngineName::Libaio => run!(Libaio::new(job, own, depth, seed)?),
        EngineName::Mmap => run!(Mapped::new(job, own)?),
        EngineName::Sync | EngineName::Psync | EngineName::Pvsync | EngineName::Pvsync2 => {
            if job.depth.offload {
                let threads = Offload::new(depth, |number| {
                    Blocking::new(job, Arc::clone(&own), seed.wrapping_add(u64::from(number)))
                });
                run!(threads.map_err(|error| Halt::call("io_submit_mode=offload", &error))?)
            } else {
                run!(Blocking::new(job, own, seed))
            }
        }
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
