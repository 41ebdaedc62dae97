//! The jobs' requests, as far as findings need them.

use std::collections::BTreeMap;
use std::path::Path;

use super::facts::JobFacts;
use kelvin_fio::job::{BlockSizes, Distribution, EngineName, Job, Jobs, SyncOpen};
use kelvin_fio::{Direction, PerDirection, Target};
use kelvin_host::SystemTree;

/// The targets of each job's workers: the plan has them by worker, or by job where workers were combined.
pub(crate) fn planned<'a>(jobs: &Jobs, plan: &'a [(String, Vec<Target>)]) -> Vec<Vec<&'a [Target]>> {
    let mut rest = plan.iter().peekable();
    let mut of = |job: &Job| {
        let mut found = Vec::new();
        while found.len() < job.clones.max(1) as usize
            && let Some((_, targets)) = rest.next_if(|(name, _)| *name == job.name)
        {
            found.push(targets.as_slice());
        }
        found
    };
    jobs.jobs.iter().map(&mut of).collect()
}

/// A job, with its workers' targets.
pub(crate) fn probe_job(tree: &SystemTree, job: &Job, workers: &[&[Target]]) -> JobFacts {
    let does = PerDirection(Direction::ALL.map(|direction| job.does(direction)));
    let clones = job.clones.max(1);
    let largest = workers.iter().max_by_key(|targets| targets.len()).copied().unwrap_or(&[]);
    // If the workers of a job were combined, each of them has a part.
    let each = if workers.len() == clones as usize { largest.len() } else { files(job).min(largest.len()) };
    let mut devices: Vec<String> = Vec::new();
    for device in largest.iter().take(each).filter_map(|target| target.device.as_ref()) {
        if !devices.contains(device) {
            devices.push(device.clone());
        }
    }
    let paced =
        job.is_open_loop() || job.thinking.is_some() || job.latency.target.is_some() || job.flow.is_some();
    let polls = job.engine.high_priority
        || job.engine.sq_poll
        || job.depth.complete_min == Some(0)
        || job.thinking.is_some_and(|thinking| thinking.spin > 0);
    let sync = &job.sync;
    let syncs = sync.open != SyncOpen::None
        || [sync.fsync, sync.fdatasync, sync.write_barrier].iter().any(|every| *every > 0)
        || sync.range.is_some()
        || sync.end_fsync
        || sync.fsync_on_close;
    let same_bytes = same_bytes(job, workers, each);
    let draws_again = job.pattern.no_random_map
        || job.pattern.distribution.iter().any(|(_, distribution)| *distribution != Distribution::Uniform);
    JobFacts {
        name: job.name.clone(),
        workers: clones,
        engine: job.engine.name.word().into(),
        asynchronous: job.engine.name.is_asynchronous(),
        depth: job.depth.depth,
        direct: is_direct(job),
        does,
        random: job.pattern.random,
        block: PerDirection(Direction::ALL.map(|direction| {
            let sizes = &job.blocks.sizes[direction];
            if does[direction] { (sizes.smallest(), sizes.largest()) } else { (0, 0) }
        })),
        aligned: aligned(job, workers),
        targets: Vec::new(),
        worker_targets: each as u32,
        worker_devices: devices,
        same_bytes,
        rate: PerDirection(Direction::ALL.map(|direction| rate(job, direction))),
        paced,
        polls,
        syncs,
        repeats: job.course.time_based
            || job.course.loops > 1
            || same_bytes > 1
            || job.pattern.random && draws_again,
        nodes: nodes(tree, job),
        buffers: None,
        percentiles: job.report.percentiles.clone(),
    }
}

/// Whether a job bypasses the page cache. A mapped file is in the page cache.
pub(crate) fn is_direct(job: &Job) -> bool {
    job.sync.direct && job.engine.name != EngineName::Mmap
}

/// The number of files per worker, by its options.
fn files(job: &Job) -> usize {
    job.targets.filenames.len().max(job.targets.files as usize).max(1)
}

/// The number of workers that begin at the same offset of the same target and continue from there.
fn same_bytes(job: &Job, workers: &[&[Target]], each: usize) -> u32 {
    if job.pattern.random || job.replay.is_some() {
        return 1;
    }
    if workers.len() == job.clones.max(1) as usize {
        let mut begins: BTreeMap<(&Path, u64), u32> = BTreeMap::new();
        for target in workers.iter().flat_map(|targets| targets.iter()) {
            *begins.entry((target.path.as_path(), target.begin)).or_default() += 1;
        }
        return begins.into_values().max().unwrap_or(1);
    }
    // If workers were combined, a common target is listed once.
    let together: usize = workers.iter().map(|targets| targets.len()).sum();
    let planned = job.clones.max(1) as usize * each;
    (planned / together.max(1)).max(1) as u32
}

/// The largest power of two that divides all offsets, lengths and starts of regions.
fn aligned(job: &Job, workers: &[&[Target]]) -> u64 {
    let mut all: Vec<u64> = Vec::new();
    for direction in Direction::ALL.into_iter().filter(|direction| job.pattern.has(*direction)) {
        match &job.blocks.sizes[direction] {
            BlockSizes::One(size) => all.push(u64::from(*size)),
            BlockSizes::Range(smallest, _) if !job.blocks.unaligned => all.push(u64::from(*smallest)),
            BlockSizes::Range(..) => all.push(1),
            BlockSizes::Split(parts) => all.extend(parts.iter().map(|part| u64::from(part.0))),
        }
        all.extend(job.blocks.align[direction].filter(|_| job.pattern.random));
    }
    all.extend(workers.iter().flat_map(|targets| targets.iter().map(|target| target.begin)));
    let powers = all.into_iter().filter(|value| *value > 0).map(|value| value & value.wrapping_neg());
    powers.min().unwrap_or(0)
}

/// Rate limit per worker in bytes per second.
fn rate(job: &Job, direction: Direction) -> Option<u64> {
    let mean = match &job.blocks.sizes[direction] {
        BlockSizes::One(size) => f64::from(*size),
        BlockSizes::Range(smallest, largest) => f64::midpoint(f64::from(*smallest), f64::from(*largest)),
        BlockSizes::Split(parts) => {
            parts.iter().map(|(size, percent)| f64::from(*size) * percent / 100.0).sum()
        }
    };
    let by_ios = job.rate.iops[direction].map(|ios| (ios as f64 * mean) as u64);
    job.rate.bytes[direction].into_iter().chain(by_ios).min()
}

/// The NUMA nodes whose CPUs it may use; empty if it is not bound.
fn nodes(tree: &SystemTree, job: &Job) -> Vec<u32> {
    let mut nodes = job.process.numa_cpu_nodes.clone();
    for cpu in &job.process.cpus {
        let names = tree.names(format!("/sys/devices/system/cpu/cpu{cpu}"));
        nodes.extend(names.iter().filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok()));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
