//! The host sampler as a watcher.

use std::time::Duration;

use kelvin_measure::Nanos;
use kelvin_measure::observation::{DatabaseDirectory, Metric, Observer, UnavailableMetrics};

use super::{Feed, Watcher};
use crate::sample::{Config, HostSampler};

/// Samples the host at an interval.
pub struct HostWatcher {
    config: Config,
    interval: Duration,
    made: Option<Made>,
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
        Self { config, interval, made: None }
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
        Ok(())
    }
}
