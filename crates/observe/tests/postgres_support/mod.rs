//! Watching a server for a test: what was seen, and sessions that give something to see.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unreachable_pub, missing_docs, clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../database/tests/support/mod.rs"]
pub mod server;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_database::{Engine, Session};
use kelvin_measure::Clock;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{
    Observation, Occurrence, Reading, UnavailableMetrics, WaitGroup, WaitSamples,
};
use kelvin_observe::ServerPlacement;
use kelvin_observe::engine::{EngineWatchers, WatchPlan, watchers};
use kelvin_observe::watch::{Stage, Watch};

pub fn engine(config: Config) -> Arc<dyn Engine> {
    Arc::new(PostgresEngine::new(config))
}

/// A watch and all that it has seen.
pub struct Watching {
    watch: Option<Watch>,
    pub clock: Clock,
    pub seen: Vec<Observation>,
    pub server: Option<u32>,
    pub data: Option<std::path::PathBuf>,
    pub wal: Option<std::path::PathBuf>,
}

impl Watching {
    pub fn start(config: Config, plan: &WatchPlan) -> Self {
        let EngineWatchers { watchers, place: ServerPlacement { server, forks, data, wal } } =
            watchers(&engine(config), plan).unwrap();
        assert!(forks || server.is_none());
        let clock = Clock::real();
        let watch = Some(Watch::start(watchers, &clock).unwrap());
        Self { watch, clock, seen: Vec::new(), server, data, wal }
    }

    pub fn stage(&self, point: u32, phase: Phase) {
        self.watch.as_ref().unwrap().stage(Stage { point, phase });
    }

    /// Takes what is there until `enough` says so; a minute at most.
    pub fn until(&mut self, what: &str, enough: impl Fn(&[Observation]) -> bool) {
        let began = Instant::now();
        loop {
            self.seen.extend(self.watch.as_ref().unwrap().take());
            if enough(&self.seen) {
                return;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "no {what} was seen: {:#?}", self.seen);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn for_seconds(&mut self, seconds: f64) {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            self.seen.extend(self.watch.as_ref().unwrap().take());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn finish(&mut self) {
        let seen = &mut self.seen;
        let watch = self.watch.take().unwrap();
        watch
            .finish(|observation| {
                seen.push(observation);
                Ok::<_, ()>(())
            })
            .unwrap();
    }

    pub fn waits(&self) -> Vec<&WaitSamples> {
        all_waits(&self.seen).collect()
    }

    pub fn groups(&self) -> HashMap<u32, &WaitGroup> {
        let mut groups = HashMap::new();
        for one in &self.seen {
            if let Observation::WaitGroups { first, groups: named } = one {
                groups.extend(named.iter().enumerate().map(|(index, group)| (first + index as u32, group)));
            }
        }
        groups
    }

    /// Sessions seen by a property of their state, and the looks.
    pub fn sessions_by<K: std::hash::Hash + Eq>(
        &self,
        key: impl Fn(&WaitGroup) -> Option<K>,
    ) -> (HashMap<K, u32>, u32) {
        let groups = self.groups();
        let (mut found, mut looks) = (HashMap::new(), 0);
        for waits in self.waits() {
            looks += waits.looks;
            for (group, seen) in &waits.seen {
                if let Some(key) = key(groups[group]) {
                    *found.entry(key).or_default() += seen;
                }
            }
        }
        (found, looks)
    }

    pub fn occurrences(&self) -> Vec<&Occurrence> {
        occurrences(&self.seen).collect()
    }

    pub fn lost(&self) -> Vec<&UnavailableMetrics> {
        self.seen
            .iter()
            .filter_map(|one| if let Observation::Lost(absent) = one { Some(absent) } else { None })
            .collect()
    }

    pub fn absent(&self) -> Vec<&UnavailableMetrics> {
        self.seen
            .iter()
            .filter_map(|one| if let Observation::Observer(observer) = one { Some(observer) } else { None })
            .flat_map(|observer| &observer.absent)
            .collect()
    }

    /// Values of a metric with their times.
    pub fn metric(&self, name: &str) -> Vec<(u64, f32)> {
        let mut index = None;
        let mut values = Vec::new();
        for one in &self.seen {
            match one {
                Observation::Observer(observer) => {
                    if let Some(at) = observer.metrics.iter().position(|metric| metric.name == name) {
                        index = Some(observer.first + at as u32);
                    }
                }
                Observation::Reading(Reading { at, first, values: read }) => {
                    let found = index
                        .and_then(|index| index.checked_sub(*first))
                        .and_then(|at| read.get(at as usize));
                    values.extend(found.map(|value| (*at, *value)));
                }
                _ => {}
            }
        }
        values
    }
}

pub fn occurrences(seen: &[Observation]) -> impl Iterator<Item = &Occurrence> {
    seen.iter()
        .filter_map(|one| if let Observation::Occurrence(occurrence) = one { Some(occurrence) } else { None })
}

fn all_waits(seen: &[Observation]) -> impl Iterator<Item = &WaitSamples> {
    seen.iter().filter_map(|one| if let Observation::Waits(waits) = one { Some(waits) } else { None })
}

pub fn waits(seen: &[Observation]) -> usize {
    all_waits(seen).count()
}

/// How often the sessions were looked at.
pub fn samples(seen: &[Observation]) -> u32 {
    all_waits(seen).map(|waits| waits.looks).sum()
}

/// How often their locks were.
pub fn lock_samples(seen: &[Observation]) -> u32 {
    all_waits(seen).map(|waits| waits.lock_looks).sum()
}

pub fn readings(seen: &[Observation]) -> usize {
    seen.iter().filter(|one| matches!(one, Observation::Reading(_))).count()
}

/// A session that does the same again and again in a separate thread.
pub struct Busy {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    pub fn start(config: &Config, mut work: impl FnMut(&mut dyn Session) + Send + 'static) -> Self {
        let mut session = engine(config.clone()).connect().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                work(session.as_mut());
            }
        });
        Self { stop, thread: Some(thread) }
    }

    pub fn running(config: &Config, sql: &'static str) -> Self {
        Self::start(config, move |session| session.run(sql).unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
