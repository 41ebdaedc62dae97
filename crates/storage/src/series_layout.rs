//! The series of an I/O run, which its jobs determine before it begins.

use std::collections::BTreeSet;

use crate::job::{Job, Jobs};
use crate::{Direction, PerDirection, Target, TargetKind};
use kelvin_measure::event::{Series, SeriesRole};

/// Maximum number of devices with separate series; with more, series are by direction only.
const MOST_PLACES: usize = 32;

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

/// The series of a run, and the series of each target of each worker.
#[derive(Debug)]
pub struct SeriesLayout {
    /// The series, transactions first.
    pub series: Vec<Series>,
    /// The number of transaction kinds.
    pub kinds: usize,
    /// By worker and target: the transaction series of each direction.
    of: Vec<Vec<PerDirection<Option<u16>>>>,
    /// By transaction series: the series of its response times.
    response: Vec<Option<u16>>,
}

impl SeriesLayout {
    /// For workers, each with its job and its targets. On a fleet, whose hosts run these jobs, all devices share one
    /// series per direction, and each host has the directions of all jobs.
    pub fn new(workers: &[(&Job, &[Target])], of_fleet: Option<&Jobs>) -> Self {
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

    /// The series of these jobs on any host: the jobs' directions, whatever their targets are.
    pub fn of_jobs(jobs: &Jobs) -> Self {
        Self::new(&[], Some(jobs))
    }

    /// Names of the counters: bytes by series.
    pub fn counters(&self) -> Vec<String> {
        self.series.iter().take(self.kinds).map(|series| format!("bytes, {}", series.name)).collect()
    }

    /// The transaction series of a worker on a target.
    pub fn kind(&self, worker: u32, target: usize, direction: Direction) -> Option<u16> {
        self.of.get(worker as usize)?.get(target)?[direction]
    }

    /// The series of the response times of a transaction series.
    pub fn response(&self, kind: u16) -> Option<u16> {
        *self.response.get(usize::from(kind))?
    }
}
