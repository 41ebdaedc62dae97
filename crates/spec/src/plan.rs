//! Properties of a run that its jobs determine before it begins: its duration and its points.

use std::time::Duration;

use kelvin_storage::job::{Job, Jobs, RateProcess};
use kelvin_storage::{Direction, PerDirection};

/// Splits a job that names several files or devices into one job for each, so that each has the whole depth.
pub fn split_targets(jobs: &mut Jobs) {
    let split = |job: Job| -> Vec<Job> {
        if job.targets.filenames.len() < 2 {
            return vec![job];
        }
        let each = job.targets.filenames.iter().enumerate().map(|(index, file)| {
            let mut one = job.clone();
            let last = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
            one.name = format!("{}.{last}", job.name);
            one.targets.filenames = vec![file.clone()];
            one.targets.files = 1;
            // The jobs begin together, whatever the original job waited for.
            one.course.stonewall &= index == 0;
            one.course.new_group &= index == 0;
            one
        });
        each.collect()
    };
    jobs.jobs = std::mem::take(&mut jobs.jobs).into_iter().flat_map(split).collect();
}

/// Replaces fio's default random seeds; a seed of 1 keeps them, as does a job with explicit seeds.
pub fn seed(jobs: &mut Jobs, seed: u64) {
    for job in jobs.jobs.iter_mut().filter(|job| seed != 1 && job.pattern.seed.is_none()) {
        job.pattern.seed = Some(seed);
    }
}

/// The point of each job: jobs between two stonewalls run together and are one point.
pub fn points(jobs: &Jobs) -> Vec<u32> {
    let mut point = 0;
    let each = jobs.jobs.iter().enumerate().map(|(index, job)| {
        point += u32::from(index > 0 && job.course.stonewall);
        point
    });
    each.collect()
}

/// The longest time that the jobs of a point may take by the clock; none where the amount decides.
pub fn planned_measure(jobs: &Jobs, point: u32) -> Option<Duration> {
    let of_point = jobs.jobs.iter().zip(points(jobs)).filter(|(_, of)| *of == point);
    let each = of_point.map(|(job, _)| job.course.runtime.map(Duration::from_nanos));
    each.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The maximum wall-clock duration of the jobs; `None` where the amount decides.
pub fn planned(jobs: &Jobs) -> Option<Duration> {
    let points = points(jobs);
    let last = points.last().copied()?;
    let one = |point: u32| -> Option<Duration> {
        let of_point = jobs.jobs.iter().zip(&points).filter(|(_, of)| **of == point);
        let each = of_point.map(|(job, _)| {
            let before = job.course.start_delay.1.saturating_add(job.course.ramp);
            job.course.runtime.map(|runtime| Duration::from_nanos(before.saturating_add(runtime)))
        });
        each.collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    (0..=last).map(one).sum()
}

/// Whether a rate, or the times of a trace, decide when I/Os begin, in every direction of every job: where some find
/// their throughput out, the whole does.
pub fn is_open_loop(jobs: &Jobs) -> bool {
    let is_open = |job: &Job| {
        let limited = |direction: &Direction| {
            job.rate.bytes[*direction].is_some() || job.rate.iops[*direction].is_some()
        };
        let in_every_direction = || Direction::ALL.iter().filter(|one| job.does(**one)).all(limited);
        job.is_open_loop() && (job.replay.is_some() || in_every_direction())
    };
    !jobs.jobs.is_empty() && jobs.jobs.iter().all(is_open)
}

/// I/Os per second that a job requests in each direction, over all its clones; `None` where no rate is requested, or
/// the block size is not fixed.
fn asked(job: &Job) -> PerDirection<Option<f64>> {
    let clones = f64::from(job.clones);
    let of = |direction: Direction| {
        if !job.pattern.has(direction) {
            return None;
        }
        let sizes = &job.blocks.sizes[direction];
        let by_bytes = job.rate.bytes[direction]
            .filter(|_| sizes.smallest() == sizes.largest() && sizes.smallest() > 0)
            .map(|bytes| bytes as f64 / f64::from(sizes.smallest()));
        let by_ios = job.rate.iops[direction].map(|ios| ios as f64);
        by_ios.or(by_bytes).map(|each| each * clones)
    };
    PerDirection(Direction::ALL.map(of))
}

/// I/Os per second that a job requests in all its directions, over all its clones; `None` where that cannot be
/// computed.
pub fn asked_of_job(job: &Job) -> Option<f64> {
    if !job.rate.limits() {
        return None;
    }
    let asked = asked(job);
    let directions = Direction::ALL.into_iter().filter(|direction| job.pattern.has(*direction));
    directions.map(|direction| asked[direction]).sum()
}

/// I/Os per second that all jobs request; none where one has no rate, or one that cannot be computed.
pub fn asked_of_all(jobs: &Jobs) -> Option<f64> {
    let sum: Option<f64> = jobs.jobs.iter().map(asked_of_job).sum();
    sum.filter(|rate| *rate > 0.0)
}

/// Whether the gaps of a point's I/Os are random.
pub fn is_random(jobs: &Jobs, point: u32) -> bool {
    let mut of_point = jobs.jobs.iter().zip(points(jobs)).filter(|(_, of)| *of == point);
    of_point.any(|(job, _)| job.rate.process == RateProcess::Poisson)
}

/// Whether the I/Os of all jobs are Poisson arrivals.
pub fn is_poisson(jobs: &Jobs) -> bool {
    let is = |job: &Job| job.rate.process == RateProcess::Poisson && asked_of_job(job).is_some();
    !jobs.jobs.is_empty() && jobs.jobs.iter().all(is)
}
