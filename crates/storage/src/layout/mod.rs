//! Files and devices before the first I/O: the targets of each worker, their sizes, creating, filling, reserving and
//! dropping from the cache, and deletion at the end.
//!
//! [`plan::plan`] examines and decides, [`space::check`] refuses a layout without enough space, [`make::make`] carries
//! it out.

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

/// Deletes the regular files among targets (`unlink=`). Devices stay. A missing file is not an error.
pub(crate) fn unlink(targets: &[Target]) -> io::Result<()> {
    for target in targets.iter().filter(|target| target.kind == TargetKind::File) {
        match std::fs::remove_file(&target.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
