//! Whether there is enough free space for the layout.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::extent;
use super::plan::{LayoutPlan, LayoutStep};
use crate::{Error, Result, TargetKind};
use kelvin_measure::text::exact;

/// The total capacity of a filesystem in bytes; 0 if unknown.
pub(super) fn capacity(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |facts| facts.f_blocks.saturating_mul(facts.f_frsize))
}

/// The bytes that are free for this process.
fn free(path: &Path) -> Option<u64> {
    let facts = rustix::fs::statvfs(path).ok()?;
    let blocks = if rustix::process::geteuid().is_root() { facts.f_bfree } else { facts.f_bavail };
    Some(blocks.saturating_mul(facts.f_frsize))
}

/// The additional space that a filesystem needs.
struct Need {
    bytes: u64,
    job: String,
    first: PathBuf,
    files: usize,
    free: u64,
}

/// Refuses a layout that needs more than a filesystem has free.
pub(crate) fn check(plan: &LayoutPlan) -> Result<()> {
    let mut needs: BTreeMap<u64, Need> = BTreeMap::new();
    for making in plan.makings.iter().filter(|making| making.kind == TargetKind::File) {
        let facts = fs::metadata(&making.path).ok();
        let there = nearest(&making.path);
        let device = match &facts {
            Some(facts) => facts.dev(),
            None => fs::metadata(&there).map_or(0, |facts| facts.dev()),
        };
        // A filesystem that does not report its free space is not checked.
        let Some(free) = free(&there) else { continue };
        let allocated = facts.map_or(0, |facts| facts.blocks().saturating_mul(512));
        let need = needs.entry(device).or_insert_with(|| Need {
            bytes: 0,
            job: making.job.clone(),
            first: making.path.clone(),
            files: 0,
            free,
        });
        need.bytes = need.bytes.saturating_add(more(&making.path, &making.steps, allocated));
        need.files += 1;
    }
    let Some(need) = needs.values().find(|need| need.bytes > need.free) else { return Ok(()) };
    let others = if need.files > 1 { format!(" and {} more files", need.files - 1) } else { String::new() };
    Err(Error::refused(
        &need.job,
        format!(
            "laying out {}{others} needs {} more space, but the filesystem has {} free: give a smaller \
             size= or free space",
            need.first.display(),
            exact(need.bytes),
            exact(need.free)
        ),
    ))
}

/// The nearest existing directory.
fn nearest(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|path| path.exists());
    found.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// The bytes that a file's steps allocate in addition to what it has. Space reserved by an interrupted run is included
/// in what it has.
fn more(path: &Path, steps: &[LayoutStep], mut allocated: u64) -> u64 {
    let (mut sum, mut given_back) = (0_u64, 0_u64);
    for step in steps {
        let bytes = match *step {
            LayoutStep::Truncate => {
                given_back = given_back.saturating_add(std::mem::take(&mut allocated));
                0
            }
            LayoutStep::Reserve { how: crate::job::Fallocate::Truncate, .. }
            | LayoutStep::UntilFull { .. } => 0,
            LayoutStep::Reserve { to, .. } => to.saturating_sub(allocated),
            LayoutStep::Data { from, to, .. } => to.saturating_sub(from).min(to.saturating_sub(allocated)),
            LayoutStep::Fill { from, to } => holes(path, from, to),
        };
        allocated = allocated.saturating_add(bytes);
        sum = sum.saturating_add(bytes);
    }
    sum.saturating_sub(given_back)
}

/// The bytes to allocate to fill a file: its holes. Reserved extents have their blocks already.
fn holes(path: &Path, from: u64, to: u64) -> u64 {
    let Ok(file) = fs::File::open(path) else { return 0 };
    let Ok(facts) = file.metadata() else { return 0 };
    let missing = extent::unwritten(&file, from..to).unwrap_or_default();
    let missing: u64 = missing.iter().map(|part| part.end - part.start).sum();
    missing.min(facts.len().saturating_sub(facts.blocks().saturating_mul(512)))
}
