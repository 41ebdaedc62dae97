//! Files and devices before the first I/O: which a worker has, how large they are, what is made, filled, reserved and
//! dropped, and what is deleted at the end.
//!
//! [`plan::plan`] looks and decides, [`space::check`] refuses what has no room, [`make::make`] does it.

mod cache;
pub(crate) mod device;
mod extent;
mod fill;
mod make;
mod name;
mod plan;
mod size;
mod space;

use std::io;

pub(crate) use cache::invalidate;
pub(crate) use make::{carry_out_plan, size as size_now};
pub(crate) use plan::{LayoutPlan, LayoutRules, LayoutWorker, plan_layout};
pub(crate) use space::check as check_space;

use crate::{Target, TargetKind};

/// Deletes the regular files among targets (`unlink=`). Devices stay. A file that is gone already is no error.
pub(crate) fn unlink(targets: &[Target]) -> io::Result<()> {
    for target in targets.iter().filter(|target| target.kind == TargetKind::File) {
        match std::fs::remove_file(&target.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
