//! Jobs for the tests of the engines and of the loop.

use std::path::Path;

use crate::job::*;
use crate::{Target, TargetKind};

/// The heap, and random bytes.
pub(crate) fn buffers() -> Buffers {
    Job::named("").buffers
}

/// Random reads of 4 KiB by an engine, with a depth.
pub(crate) fn job(name: EngineName, depth: u32) -> Job {
    let mut job = Job::named("test");
    (job.pattern.random, job.pattern.no_random_map) = (true, true);
    (job.engine.name, job.engine.given) = (name, name.word().into());
    job.depth.depth = depth;
    job
}

/// The same, writing.
pub(crate) fn writing(mut job: Job) -> Job {
    (job.pattern.reads, job.pattern.writes) = (false, true);
    job
}

/// A file as a target.
pub(crate) fn file(path: &Path, length: u64) -> Target {
    Target { path: path.to_owned(), kind: TargetKind::File, begin: 0, length, device: None }
}
