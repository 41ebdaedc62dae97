//! The host sampler as a watcher.

use std::time::Duration;

use kelvin_host::disk::whole_disk;
use kelvin_host::{SystemTree, chosen};
use kelvin_measure::Nanos;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{
    DatabaseDirectory, DiskQueue, Metric, Observation, Observer, UnavailableMetrics,
};

use super::other_processes::OtherProcesses;
use super::{Feed, Stage, Watcher};
use crate::sample::{Config, HostSampler};

/// The interval at which all processes are read: some hundred take milliseconds.
const PROCESSES: Nanos = 5_000_000_000;

/// Samples the host at an interval.
pub struct HostWatcher {
    config: Config,
    interval: Duration,
    made: Option<Made>,
    others: OtherProcesses,
    /// When the open window began, and when all processes were last read; none outside of a window.
    window: Option<(Nanos, Nanos)>,
}

/// What the kernel says of the queue of a device's disk.
fn queue(tree: &SystemTree, device: &str) -> DiskQueue {
    let disk = whole_disk(tree, device);
    let line = |name: &str| tree.line(format!("/sys/block/{disk}/queue/{name}"));
    let number = |name: &str| line(name)?.parse::<u64>().ok();
    let choices = line("scheduler");
    let names = choices.as_deref().unwrap_or_default().split_whitespace();
    DiskQueue {
        scheduler: choices.as_deref().map(|choices| chosen(choices).to_owned()),
        schedulers: names.map(|name| name.trim_matches(['[', ']']).to_owned()).collect(),
        read_ahead: number("read_ahead_kb").map(|kib| kib * 1024),
        rotational: number("rotational").map(|flag| flag == 1),
        disk,
    }
}

struct Made {
    sampler: HostSampler,
    first: u32,
    values: Vec<f64>,
    last: Option<Nanos>,
}

impl HostWatcher {
    /// A watcher of what `config` names.
    pub fn new(config: Config, interval: Duration) -> Self {
        let others = OtherProcesses::new(config.processes.iter().map(|one| one.pid).collect());
        Self { config, interval, made: None, others, window: None }
    }
}

impl Watcher for HostWatcher {
    fn name(&self) -> String {
        "host".into()
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, feed: &mut Feed) {
        let sampler = HostSampler::new(&self.config);
        let metrics = sampler.series().iter();
        let metrics = metrics.map(|one| Metric {
            name: one.name.clone(),
            unit: one.unit.into(),
            help: one.help.into(),
        });
        let absent =
            sampler.absent().iter().map(|a| UnavailableMetrics { what: a.what.clone(), why: a.why.clone() });
        let places = sampler.places().iter().map(|(role, place)| DatabaseDirectory {
            role: role.clone(),
            path: place.path.display().to_string(),
            device: place.device.clone(),
            mount: place.mount_point.clone().unwrap_or_default(),
            filesystem: place.kind.clone().unwrap_or_default(),
            queue: place.device.as_deref().map(|device| queue(&SystemTree::default(), device)),
        });
        let first = feed.declare(Observer {
            source: "host".into(),
            first: 0,
            metrics: metrics.collect(),
            absent: absent.collect(),
            places: places.collect(),
        });
        let values = vec![f64::NAN; sampler.series().len()];
        self.made = Some(Made { sampler, first, values, last: None });
    }

    fn sample(&mut self, feed: &mut Feed) -> Result<(), String> {
        let Some(Made { sampler, first, values, last }) = &mut self.made else {
            return Err("it has not started".into());
        };
        let now = feed.now();
        let elapsed = Duration::from_nanos(now - last.unwrap_or(now));
        sampler.sample(elapsed, values);
        // The first sample primes the counters: it has no rates, but gauges.
        feed.reading(*first, values.iter().map(|&value| value as f32).collect());
        *last = Some(now);
        if let Some((_, looked)) = self.window.as_mut().filter(|(_, looked)| now >= *looked + PROCESSES) {
            *looked = now;
            self.others.add_usage();
        }
        Ok(())
    }

    fn stage(&mut self, stage: Stage, feed: &mut Feed) -> Result<(), String> {
        let now = feed.now();
        match stage.phase {
            Phase::Measure => {
                self.others.begin();
                self.window = Some((now, now));
            }
            Phase::Stop => {
                if let Some((from, _)) = self.window.take() {
                    self.others.add_usage();
                    let processes = self.others.top(now.saturating_sub(from) as f64 / 1e9);
                    feed.send(Observation::OtherProcesses { point: stage.point, processes });
                }
            }
            _ => {}
        }
        Ok(())
    }
}
