//! Observation beside a run: which watchers, and how what they see gets among the run's events.

use std::path::PathBuf;
use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_measure::observation::{Observation, Observer, UnavailableMetrics};
use kelvin_measure::{Clock, Event, Sink, SinkError, SourceId};
use kelvin_observe::engine;
use kelvin_observe::sample::{Config, Process};
use kelvin_observe::scrape::ScrapeWatcher;
use kelvin_observe::watch::{HostWatcher, Stage, Watch, Watcher};

use crate::spec::Observe;

/// Asks every endpoint that is to be scraped once, at the same time: one that cannot be had is better known before a load
/// than after it.
///
/// # Errors
/// When one cannot be reached, or has nothing that is known here; each with its reason.
pub fn probe(plan: &Observe) -> Result<(), String> {
    if !plan.enabled {
        return Ok(());
    }
    let ask = |url: &str| {
        let watcher = ScrapeWatcher::new(url, plan.interval.duration()).map_err(|error| error.to_string())?;
        watcher.probe().map_err(|why| format!("--scrape: {why}"))
    };
    let refused: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> = plan.scrape.iter().map(|url| scope.spawn(move || ask(url))).collect();
        asked.into_iter().filter_map(|one| one.join().ok()?.err()).collect()
    });
    if refused.is_empty() { Ok(()) } else { Err(refused.join("; ")) }
}

/// What is watched, and what could not be.
#[derive(Default)]
pub struct Watchers {
    /// Ready to start; the database's have their connections.
    pub watchers: Vec<Box<dyn Watcher>>,
    /// What could not be watched, with its reason.
    pub refused: Vec<UnavailableMetrics>,
}

impl Watchers {
    /// Makes the watchers of host, database and other hosts that `plan` asks for. In a server that is `ours` they may
    /// create what they read; in one that is `loaded` by us, other applications' sessions are distinguished.
    pub fn for_plan(plan: &Observe, ours: bool, loaded: bool, engine: Option<&Arc<dyn Engine>>) -> Self {
        let mut found = Self::default();
        if !plan.enabled {
            return found;
        }
        let mut host = of_this_process();
        if let Some(engine) = engine {
            found.database(plan, (ours, loaded), engine, &mut host);
        }
        found.host_and_endpoints(plan, host);
        found
    }

    fn host_and_endpoints(&mut self, plan: &Observe, host: Config) {
        let interval = plan.interval.duration();
        self.watchers.push(Box::new(HostWatcher::new(host, interval)));
        for url in &plan.scrape {
            match ScrapeWatcher::new(url, interval) {
                Ok(watcher) => self.watchers.push(Box::new(watcher)),
                Err(error) => self.refuse("an endpoint", &error.to_string()),
            }
        }
    }

    /// Makes the watchers of the host, of this process with those that it starts, and of other hosts.
    pub fn of_host(plan: &Observe) -> Self {
        let mut found = Self::default();
        if plan.enabled {
            let mut host = of_this_process();
            host.processes.iter_mut().for_each(|own| own.children = true);
            found.host_and_endpoints(plan, host);
        }
        found
    }

    /// Makes the watchers of one of several databases, which is not ours to change, and nothing else.
    pub fn of_database(plan: &Observe, engine: &Arc<dyn Engine>) -> Self {
        let mut found = Self::default();
        if plan.enabled {
            found.database(plan, (false, true), engine, &mut Config::default());
        }
        found
    }

    /// The same beside I/O jobs: the host and this process, and the devices below `paths`.
    pub(crate) fn beside_files(plan: &Observe, paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        if plan.enabled {
            let paths = paths.iter().map(|path| ("data".to_owned(), path.clone())).collect();
            found.host_and_endpoints(plan, Config { paths, ..of_this_process() });
        }
        found
    }

    fn database(
        &mut self,
        plan: &Observe,
        (ours, loaded): (bool, bool),
        engine: &Arc<dyn Engine>,
        host: &mut Config,
    ) {
        if plan.explain.is_some() && !engine.capabilities().executed_plans {
            self.refuse(
                "statements executed for their plans",
                "only those of PostgreSQL, MySQL and MariaDB are",
            );
        }
        let plan = engine::WatchPlan {
            looks: plan.looks,
            figures: plan.interval.duration(),
            statements: plan.statements as usize,
            create_extension: ours,
            apart: loaded,
            texts: false,
            explain: plan.explain,
        };
        match engine::watchers(engine, &plan) {
            Ok(found) => {
                self.watchers.extend(found.watchers);
                host.paths.extend(found.place.data.map(|path| ("data".into(), path)));
                host.paths.extend(found.place.wal.map(|path| ("wal".into(), path)));
                // A server of threads is one process; of children only the first thread's waiting is counted.
                let children = found.place.forks;
                let group = found.place.server.and_then(kelvin_observe::sample::other_group);
                host.cgroups.extend(group.map(|path| ("server".into(), path)));
                host.processes.extend(found.place.server.map(|pid| Process {
                    name: "server".into(),
                    pid,
                    children,
                }));
            }
            Err(error) => self.refuse("the database", &error.to_string()),
        }
    }

    fn refuse(&mut self, what: &str, why: &str) {
        self.refused.push(UnavailableMetrics { what: what.into(), why: why.into() });
    }
}

/// The host with this process, before it is known what else is of interest.
fn of_this_process() -> Config {
    Config {
        processes: vec![Process { name: "client".into(), pid: std::process::id(), children: false }],
        ..Config::default()
    }
}

/// A sink that puts what is seen among the events.
pub struct Watched<'a> {
    sink: &'a mut dyn Sink,
    watch: Option<Watch>,
    /// What sessions of other sources' databases do.
    beside: Vec<(SourceId, Watch)>,
}

impl<'a> Watched<'a> {
    /// Starts the watchers. Nobody to watch is no error: the load matters more.
    ///
    /// # Errors
    /// When the sink does not take what cannot be watched.
    pub fn start(sink: &'a mut dyn Sink, watchers: Watchers, clock: &Clock) -> Result<Self, SinkError> {
        let Watchers { watchers, mut refused } = watchers;
        let mut watch = None;
        if !watchers.is_empty() {
            match Watch::start(watchers, clock) {
                Ok(started) => watch = Some(started),
                Err(error) => {
                    refused.push(UnavailableMetrics {
                        what: "host and database".into(),
                        why: error.to_string(),
                    });
                }
            }
        }
        if !refused.is_empty() {
            let observer = Observer { source: "kelvin".into(), absent: refused, ..Observer::default() };
            sink.event(&Event::Observed(Observation::Observer(observer)))?;
        }
        Ok(Self { sink, watch, beside: Vec::new() })
    }

    /// Starts watchers of another source's database, of which what the sessions do is put among the events.
    ///
    /// # Errors
    /// When the sink does not take what cannot be watched.
    pub fn beside(&mut self, source: SourceId, watchers: Watchers, clock: &Clock) -> Result<(), SinkError> {
        let Watchers { watchers, mut refused } = watchers;
        let started = match &self.watch {
            _ if watchers.is_empty() => None,
            Some(watch) => Some(watch.start_beside(watchers, clock)),
            None => Some(Watch::start(watchers, clock)),
        };
        match started {
            Some(Ok(started)) => self.beside.push((source, started)),
            Some(Err(error)) => {
                refused.push(UnavailableMetrics { what: "database".into(), why: error.to_string() });
            }
            None => {}
        }
        if !refused.is_empty() {
            let observer = Observer { source: "kelvin".into(), absent: refused, ..Observer::default() };
            self.sink.event_from(source, &Event::Observed(Observation::Observer(observer)))?;
        }
        Ok(())
    }

    /// Ends the watchers and forwards their final observations.
    ///
    /// # Errors
    /// When the sink does not take them.
    pub fn finish(self) -> Result<(), SinkError> {
        let Self { sink, watch, beside } = self;
        for (source, watch) in beside {
            watch.finish(|seen| {
                if !is_of_sessions(&seen) {
                    return Ok(());
                }
                sink.event_from(source, &Event::Observed(seen))
            })?;
        }
        watch.map_or(Ok(()), |watch| watch.finish(|seen| sink.event(&Event::Observed(seen))))
    }
}

impl Sink for Watched<'_> {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        if let Some(watch) = &self.watch {
            for seen in watch.take() {
                self.sink.event(&Event::Observed(seen))?;
            }
            if let Event::Phase { point, phase, .. } = event {
                watch.stage(Stage { point: *point, phase: *phase });
            }
        }
        for (of, watch) in &self.beside {
            for seen in watch.take().filter(is_of_sessions) {
                self.sink.event_from(*of, &Event::Observed(seen))?;
            }
        }
        self.sink.event_from(source, event)
    }
}

/// Whether it says what sessions do, or why that is not known.
fn is_of_sessions(seen: &Observation) -> bool {
    matches!(seen, Observation::WaitGroups { .. } | Observation::Waits(_) | Observation::Lost(_))
}
