//! Files and devices before the run: the stored part, the part in the page cache, and the content.

use kelvin_host::disk::{device_name, device_number};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use super::facts::{Alignment, Cached, Coverage, Filesystem, ProbedTargetKind, TargetFacts};
use kelvin_host::Mount;

use super::{cache, content, device, extents};
use kelvin_fio::TargetKind;
use kelvin_host::SystemTree;

/// If more bytes are dirty, they are not written for an inspection: that would take as long as a run.
const DIRTY: u64 = 64 << 20;
/// Blocks sampled from all files together, and from a device.
const OF_FILES: u32 = 64;
const OF_DEVICE: u32 = 256;
/// Time for samples, and for another inspection when the jobs begin.
const SAMPLING: Duration = Duration::from_millis(300);
const AGAIN: Duration = Duration::from_millis(50);

/// Mount options that are relevant to I/O. No others are stored: some contain names and passwords.
const OPTIONS: [&str; 12] = [
    "discard",
    "compress",
    "compress-force",
    "data",
    "dax",
    "sync",
    "dirsync",
    "nobarrier",
    "barrier",
    "nodatacow",
    "journal_async_commit",
    "background_gc",
];

impl From<TargetKind> for ProbedTargetKind {
    fn from(kind: TargetKind) -> Self {
        match kind {
            TargetKind::File => Self::File,
            TargetKind::Block => Self::Block,
            TargetKind::Character => Self::Character,
            TargetKind::None => Self::None,
        }
    }
}

/// Inspects all targets, until `until` at the latest. Missing facts are listed in `unseen`.
pub(crate) fn probe_targets(
    tree: &SystemTree,
    targets: &mut [TargetFacts],
    until: Instant,
    unseen: &mut Vec<String>,
) {
    let mounts = tree.mounts();
    for target in targets.iter_mut() {
        if Instant::now() > until {
            unseen.push(format!("{}: no time was left to examine it", target.path.display()));
            continue;
        }
        one(tree, &mounts, target, until, unseen);
    }
    let until = until.min(Instant::now() + SAMPLING);
    let files =
        targets.iter().filter(|target| target.kind == ProbedTargetKind::File && target.read).count() as u32;
    for target in targets.iter_mut().filter(|target| target.read) {
        let most = match target.kind {
            ProbedTargetKind::File => OF_FILES.div_ceil(files.max(1)),
            ProbedTargetKind::Block => OF_DEVICE,
            _ => continue,
        };
        let Some(size) = target.size else { continue };
        // If more than half of it is not stored, the content of the rest is irrelevant.
        if target.coverage.as_ref().is_some_and(|found| (found.hole + found.unwritten) * 2 > found.bytes) {
            continue;
        }
        let region = (target.region.0, target.region.1.min(size));
        let needs = target.alignment.as_ref().map_or(0, |alignment| alignment.offset);
        let block = content::BLOCK.max(needs.next_power_of_two());
        match content::sample(&target.path, region, block, most, until) {
            Ok(found) => target.sample = found,
            Err(error) => unseen.push(format!("{}: blocks were not sampled: {error}", target.path.display())),
        }
    }
}

fn one(
    tree: &SystemTree,
    mounts: &[Mount],
    target: &mut TargetFacts,
    until: Instant,
    unseen: &mut Vec<String>,
) {
    if !matches!(target.kind, ProbedTargetKind::File | ProbedTargetKind::Block) {
        return;
    }
    target.filesystem = filesystem(mounts, target);
    // A file that does not exist yet will be laid out.
    let file = match File::open(&target.path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            unseen.push(format!("{}: {error}", target.path.display()));
            return;
        }
    };
    let Ok(metadata) = file.metadata() else { return };
    if target.device.is_none() {
        target.device = device::device_under_file(tree, &metadata);
    }
    let attributes = cache::attributes(&file);
    target.compressed = attributes.compressed;
    target.encrypted = attributes.encrypted;
    target.dax = attributes.dax;
    target.alignment = attributes.alignment;
    if metadata.file_type().is_block_device() {
        let disk = device_number(metadata.rdev());
        let facts = device_name(tree, &disk).and_then(|name| device::probe_device(tree, &name));
        target.size = facts.as_ref().map(|device| device.size);
        if target.alignment.is_none() {
            target.alignment = facts.and_then(|device| device.queue.logical).map(|block| Alignment {
                memory: block as u32,
                offset: block as u32,
                source: "the device's logical block".into(),
            });
        }
        return;
    }
    target.size = Some(metadata.len());
    target.cached = cache::cached(&file, target.region);
    let sync = target.cached.is_none_or(|cached| cached.dirty <= DIRTY);
    match extents::coverage(&file, target.region, sync, until) {
        Ok(found) => target.coverage = Some(with_dirty(found, target.cached)),
        Err(error) => {
            unseen.push(format!(
                "{}: the filesystem does not report which blocks are stored: {error}",
                target.path.display()
            ));
        }
    }
}

/// The stored part of a file's region after the run, as far as it can be determined quickly.
pub(crate) fn stored(file: &File, region: (u64, u64), cached: Option<Cached>) -> Option<Coverage> {
    let sync = cached.is_none_or(|cached| cached.dirty <= DIRTY);
    let found = extents::coverage(file, region, sync, Instant::now() + AGAIN).ok()?;
    Some(with_dirty(found, cached))
}

/// Dirty pages in memory count as written, although their blocks on the device are still unwritten.
fn with_dirty(mut coverage: Coverage, cached: Option<Cached>) -> Coverage {
    if !coverage.synced {
        coverage.unwritten = coverage.unwritten.saturating_sub(cached.map_or(0, |cached| cached.dirty));
    }
    coverage
}

fn filesystem(mounts: &[Mount], target: &TargetFacts) -> Option<Filesystem> {
    if target.kind != ProbedTargetKind::File {
        return None;
    }
    // For a file that does not exist yet, the location is that of its directory.
    let there = target.path.ancestors().find_map(|path| {
        if path.as_os_str().is_empty() {
            Path::new(".").canonicalize().ok()
        } else {
            path.canonicalize().ok()
        }
    })?;
    let number = device_number(there.metadata().ok()?.dev());
    let mount = Mount::showing(mounts, &there, &number)?;
    let matters = |option: &&str| OPTIONS.contains(&option.split('=').next().unwrap_or(""));
    Some(Filesystem {
        kind: mount.kind.clone(),
        point: mount.point.clone(),
        options: mount.all_options().filter(matters).map(str::to_owned).collect(),
    })
}

/// Determines again which parts of files are stored, after they were created or filled. Writes nothing back: the run is
/// about to begin.
pub(crate) fn stored_again(targets: &mut [TargetFacts]) {
    let until = Instant::now() + AGAIN;
    for target in targets.iter_mut().filter(|target| target.kind == ProbedTargetKind::File) {
        let Some(file) = File::open(&target.path).ok().filter(|_| Instant::now() <= until) else { continue };
        target.size = file.metadata().ok().map(|metadata| metadata.len());
        target.cached = cache::cached(&file, target.region);
        let found = extents::coverage(&file, target.region, false, until).ok();
        target.coverage = found.map(|found| with_dirty(found, target.cached));
        let attributes = cache::attributes(&file);
        target.alignment = target.alignment.take().or(attributes.alignment);
    }
}

/// Determines again which parts of files are in the page cache.
pub(crate) fn cached_again(targets: &mut [TargetFacts]) {
    let until = Instant::now() + AGAIN;
    for target in targets.iter_mut().filter(|target| target.kind == ProbedTargetKind::File) {
        let Some(file) = File::open(&target.path).ok().filter(|_| Instant::now() <= until) else { continue };
        target.cached = cache::cached(&file, target.region).or(target.cached);
    }
}
