//! Observation during a run: selects the watchers, and inserts their observations into the run's events.

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

/// Queries every endpoint to be scraped once, all at the same time, so that an unavailable endpoint is
/// reported before the load and not after it.
///
/// # Errors
/// When an endpoint cannot be reached or exports no known metrics; with the reason for each.
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

/// The watchers of a run, and what cannot be watched.
#[derive(Default)]
pub struct Watchers {
    /// Watchers ready to start; those of the database are connected.
    pub watchers: Vec<Box<dyn Watcher>>,
    /// What could not be watched, with its reason.
    pub refused: Vec<UnavailableMetrics>,
}

impl Watchers {
    /// Creates the watchers of host, database and other hosts that `plan` requests. `ours` means that they
    /// may create what they read in the server; `loaded` means that the load comes from this process, so that
    /// sessions of other applications are distinguished.
    pub fn for_plan(plan: &Observe, ours: bool, loaded: bool, engine: Option<&Arc<dyn Engine>>) -> Self {
        let mut found = Self::default();
        if !plan.enabled {
            return found;
        }
        let mut host = this_process();
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

    /// Creates the watchers of the host, of this process with its child processes, and of other hosts.
    pub fn for_host(plan: &Observe) -> Self {
        let mut found = Self::default();
        if plan.enabled {
            let mut host = this_process();
            host.processes.iter_mut().for_each(|own| own.children = true);
            found.host_and_endpoints(plan, host);
        }
        found
    }

    /// Creates only the watchers of one of several databases, in which they must not create anything.
    pub fn for_database(plan: &Observe, engine: &Arc<dyn Engine>) -> Self {
        let mut found = Self::default();
        if plan.enabled {
            found.database(plan, (false, true), engine, &mut Config::default());
        }
        found
    }

    /// Creates the watchers for I/O jobs: the host, this process, the devices below `paths`, and other hosts.
    pub(crate) fn for_files(plan: &Observe, paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        if plan.enabled {
            let paths = paths.iter().map(|path| ("data".to_owned(), path.clone())).collect();
            found.host_and_endpoints(plan, Config { paths, ..this_process() });
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
            looks: plan.sample_rate,
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
                // A threaded server is one process, and of child processes only the first thread's waits are
                // counted.
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

/// The host and this process only.
fn this_process() -> Config {
    Config {
        processes: vec![Process { name: "client".into(), pid: std::process::id(), children: false }],
        ..Config::default()
    }
}

/// A sink that inserts observations into the events.
pub struct Watched<'a> {
    sink: &'a mut dyn Sink,
    watch: Option<Watch>,
    /// Watchers of other sources' databases, of which only sessions are reported.
    beside: Vec<(SourceId, Watch)>,
}

impl<'a> Watched<'a> {
    /// Starts the watchers. If they cannot start, that is reported as an event and not an error: the load
    /// matters more.
    ///
    /// # Errors
    /// When the sink fails.
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

    /// Starts watchers of another source's database. Only their observations of sessions are inserted into
    /// the events.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn watch_source(
        &mut self,
        source: SourceId,
        watchers: Watchers,
        clock: &Clock,
    ) -> Result<(), SinkError> {
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
    /// When the sink fails.
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

/// Whether an observation is about sessions, or about why there is none.
fn is_of_sessions(seen: &Observation) -> bool {
    matches!(seen, Observation::WaitGroups { .. } | Observation::Waits(_) | Observation::Lost(_))
}
