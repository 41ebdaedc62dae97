//! A job for tests, with fio's defaults: 4 KiB random writes of a file of 1 MiB.

use std::path::PathBuf;

use crate::job::*;
use crate::{Direction, Io, Target, TargetKind};

pub(super) fn job() -> Job {
    let mut job = Job::named("example");
    job.targets.size = Some(Amount::Bytes(1 << 20));
    (job.pattern.reads, job.pattern.writes, job.pattern.random) = (false, true, true);
    job
}

/// The same with `verify=`.
pub(super) fn verifying(method: VerifyMethod) -> Job {
    let pattern = matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader)
        .then(|| Pieces(vec![Piece::Bytes(b"kelvin".to_vec()), Piece::Offset]));
    Job { verify: Some(Verify { pattern, ..Verify::by(method) }), ..job() }
}

pub(super) fn target(path: impl Into<PathBuf>) -> Target {
    Target { path: path.into(), kind: TargetKind::File, begin: 0, length: 1 << 20, device: None }
}

pub(super) fn write(offset: u64, length: u32) -> Io {
    Io { direction: Direction::Write, target: 0, offset, length }
}

pub(super) fn read(offset: u64, length: u32) -> Io {
    Io { direction: Direction::Read, ..write(offset, length) }
}
