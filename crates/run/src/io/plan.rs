//! Properties of a run that its jobs determine before it begins: its duration, its points and its series.

use std::collections::BTreeSet;
use std::time::Duration;

use kelvin_measure::event::{Series, SeriesRole};
use kelvin_storage::job::{Job, Jobs, RateProcess};
use kelvin_storage::{Direction, PerDirection, Target, TargetKind};

/// Devices above which series are by direction only.
const MOST_PLACES: usize = 32;

/// Splits a job that names several files or devices into one job for each, so that each has the whole depth.
pub(crate) fn split_targets(jobs: &mut Jobs) {
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
pub(crate) fn seed(jobs: &mut Jobs, seed: u64) {
    for job in jobs.jobs.iter_mut().filter(|job| seed != 1 && job.pattern.seed.is_none()) {
        job.pattern.seed = Some(seed);
    }
}

/// The point of each job: jobs between two stonewalls run together and are one point.
pub(crate) fn points(jobs: &Jobs) -> Vec<u32> {
    let mut point = 0;
    let each = jobs.jobs.iter().enumerate().map(|(index, job)| {
        point += u32::from(index > 0 && job.course.stonewall);
        point
    });
    each.collect()
}

/// The longest time that the jobs of a point may take by the clock; none where the amount decides.
pub(crate) fn planned_measure(jobs: &Jobs, point: u32) -> Option<Duration> {
    let of_point = jobs.jobs.iter().zip(points(jobs)).filter(|(_, of)| *of == point);
    let each = of_point.map(|(job, _)| job.course.runtime.map(Duration::from_nanos));
    each.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The maximum wall-clock duration of the jobs; `None` where the amount decides.
pub(crate) fn planned(jobs: &Jobs) -> Option<Duration> {
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
pub(crate) fn is_open_loop(jobs: &Jobs) -> bool {
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
pub(crate) fn asked_of_job(job: &Job) -> Option<f64> {
    if !job.rate.limits() {
        return None;
    }
    let asked = asked(job);
    let directions = Direction::ALL.into_iter().filter(|direction| job.pattern.has(*direction));
    directions.map(|direction| asked[direction]).sum()
}

/// I/Os per second that all jobs request; none where one has no rate, or one that cannot be computed.
pub(crate) fn asked_of_all(jobs: &Jobs) -> Option<f64> {
    let sum: Option<f64> = jobs.jobs.iter().map(asked_of_job).sum();
    sum.filter(|rate| *rate > 0.0)
}

/// Whether the gaps of a point's I/Os are random.
pub(crate) fn is_random(jobs: &Jobs, point: u32) -> bool {
    let mut of_point = jobs.jobs.iter().zip(points(jobs)).filter(|(_, of)| *of == point);
    of_point.any(|(job, _)| job.rate.process == RateProcess::Poisson)
}

/// Whether the I/Os of all jobs are Poisson arrivals.
pub(crate) fn is_poisson(jobs: &Jobs) -> bool {
    let is = |job: &Job| job.rate.process == RateProcess::Poisson && asked_of_job(job).is_some();
    !jobs.jobs.is_empty() && jobs.jobs.iter().all(is)
}

/// The label of a target's series: its device, or the file where there is none.
fn location(target: &Target) -> String {
    let of_path =
        || target.path.file_name().unwrap_or(target.path.as_os_str()).to_string_lossy().into_owned();
    match target.kind {
        TargetKind::Block => of_path(),
        TargetKind::None => "null".into(),
        TargetKind::File | TargetKind::Character => target.device.clone().unwrap_or_else(of_path),
    }
}

/// The series of a run, and to which each target of each worker belongs.
#[derive(Debug)]
pub(crate) struct SeriesLayout {
    /// The series, transactions first.
    pub(crate) series: Vec<Series>,
    /// The number of transaction kinds.
    pub(crate) kinds: usize,
    /// By worker and target: the transactions' series of each direction.
    of: Vec<Vec<PerDirection<Option<u16>>>>,
    /// By transactions' series: the series of its response times.
    response: Vec<Option<u16>>,
}

impl SeriesLayout {
    /// Of workers, each with its job and its targets. On a fleet, whose hosts run these jobs, the devices are in one series for
    /// each direction, and each host has the directions of all.
    pub(crate) fn new(workers: &[(&Job, &[Target])], of_fleet: Option<&Jobs>) -> Self {
        let places: BTreeSet<String> =
            workers.iter().flat_map(|(_, targets)| targets.iter().map(location)).collect();
        let apart = of_fleet.is_none() && (2..=MOST_PLACES).contains(&places.len());
        let name = |direction: Direction, target: &Target| {
            if apart {
                format!("{} {}", direction.word(), location(target))
            } else {
                direction.word().to_owned()
            }
        };
        // Reads of all devices come first, then writes.
        let mut names: BTreeSet<(Direction, String)> = BTreeSet::new();
        for (job, targets) in workers {
            for direction in Direction::ALL.into_iter().filter(|direction| job.does(*direction)) {
                names.extend(targets.iter().map(|target| (direction, name(direction, target))));
            }
        }
        let of_fleet = || of_fleet.iter().flat_map(|jobs| &jobs.jobs);
        for job in of_fleet() {
            let directions = Direction::ALL.into_iter().filter(|direction| job.does(*direction));
            names.extend(directions.map(|direction| (direction, direction.word().to_owned())));
        }
        if names.is_empty() {
            names.insert((Direction::Read, "read".into()));
        }
        let names: Vec<(Direction, String)> = names.into_iter().collect();
        let index = |direction: Direction, wanted: &str| {
            names.iter().position(|(of, name)| *of == direction && name == wanted).map(|at| at as u16)
        };
        let of = workers.iter().map(|(_, targets)| {
            let each = targets.iter().map(|target| {
                PerDirection(Direction::ALL.map(|direction| index(direction, &name(direction, target))))
            });
            each.collect()
        });
        let of = of.collect();
        let mut series: Vec<Series> = names.iter().map(|(_, name)| Series::transaction(name, true)).collect();
        let kinds = series.len();
        let mut response = vec![None; kinds];
        if workers.iter().map(|(job, _)| *job).chain(of_fleet()).any(Job::is_open_loop) {
            for (kind, (_, name)) in names.iter().enumerate() {
                response[kind] = Some(series.len() as u16);
                let role = SeriesRole::Response { of: kind as u16 };
                series.push(Series { name: format!("{name}, response"), headline: false, role });
            }
        }
        Self { series, kinds, of, response }
    }

    /// Those of jobs on any host: a job's directions, whatever its targets are.
    pub(crate) fn of_jobs(jobs: &Jobs) -> Self {
        Self::new(&[], Some(jobs))
    }

    /// Names of the counters: bytes by series.
    pub(crate) fn counters(&self) -> Vec<String> {
        self.series.iter().take(self.kinds).map(|series| format!("bytes, {}", series.name)).collect()
    }

    /// The series of the transactions of a worker on a target.
    pub(crate) fn kind(&self, worker: u32, target: usize, direction: Direction) -> Option<u16> {
        self.of.get(worker as usize)?.get(target)?[direction]
    }

    /// The series of the response times of a series of transactions.
    pub(crate) fn response(&self, kind: u16) -> Option<u16> {
        *self.response.get(usize::from(kind))?
    }
}
