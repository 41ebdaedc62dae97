//! Squeezing: a run in which one resource at a time is cut by a tenth or a fifth, in short slices in random order,
//! while the throughput is measured. If the work waits for a resource, the elasticity of the throughput to it is 1;
//! if it does not, it is 0. This is the experiment behind a verdict; all other evidence is circumstantial.
//!
//! [`Squeeze::prepare`] moves the server's processes into a control group, or selects another method where there is
//! none, and determines the resources that can be cut. [`Squeeze::around`] wraps the run's sink, applies cuts while
//! the window is open, and inserts [`Event::Squeeze`] before the end of the run. However the run ends, the processes
//! are moved back and every limit is removed.

mod affinity;
mod control;
mod elasticity;
mod meter;
mod plan;
mod rate_cap;
mod throttle;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use kelvin_database::Engine;
use kelvin_measure::event::{Elasticity, LoadPart, Phase, Second, Series, Squeeze as Outcome, SqueezeSlice};
use kelvin_measure::observation::UnavailableMetrics;
use kelvin_measure::{Clock, Event, Nanos, Sink, SinkError, SourceId};

use crate::control_group::{Controller, Group, disk_below};
use control::{SqueezeRecord, SqueezedResource, Valves, work};
use kelvin_run::Spec;
use plan::Slice;
pub use throttle::Means;
use throttle::Throttle;

/// The first seconds of a slice that are not counted, because delayed work has to pass first.
const SETTLE: u64 = 1;

/// CPUs used by other processes above which a squeeze is reported as disturbed.
const QUIET: f64 = 0.3;

/// Size and number of the cuts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The share of each resource that is removed, within (0, 1).
    pub cut: f64,
    /// Pairs of slices with and without a cut for each resource; at least two.
    pub pairs: u32,
    /// Seconds of a slice, at least two; the first is not counted.
    pub slice: u64,
    /// Seconds without a cut at the beginning.
    pub pilot: u64,
    /// The method for cutting the server's CPU; none selects the best available one.
    pub means: Option<Means>,
}

impl Default for Options {
    /// A cut of a fifth in ten pairs of slices of 3 s: about two minutes for three resources.
    fn default() -> Self {
        Self { cut: 0.2, pairs: 10, slice: 3, pilot: 6, means: None }
    }
}

/// Refuses a run that cannot be squeezed.
pub fn suits(spec: &Spec) -> Result<(), String> {
    if spec.is_io() {
        return Err("a squeeze reduces a database's resources; I/O jobs have no database".into());
    }
    let load = &spec.load;
    if load.is_open_loop() || load.transactions.is_some() || load.points().len() != 1 {
        return Err(
            "a squeeze needs a constant number of users that run without pause until it ends: no --rate, \
            --find-max, --transactions or --sweep"
                .into(),
        );
    }
    Ok(())
}

/// The resources that can be cut, and those that cannot.
#[derive(Debug)]
pub struct Squeeze {
    options: Options,
    valves: Valves,
    plan: Vec<Slice>,
    not_cut: Vec<UnavailableMetrics>,
    /// Why no control group cuts the server's CPU, where one was requested.
    no_group: Option<String>,
}

impl Squeeze {
    /// Moves the processes and creates the plan. The database must be on this host and have no users yet.
    ///
    /// # Errors
    /// When nothing can be cut, with every reason.
    pub fn prepare(options: Options, engine: &dyn Engine, users: u32, seed: u64) -> Result<Self, String> {
        let embedded = engine.capabilities().embedded;
        let mut session = engine.connect().map_err(|error| error.to_string())?;
        let (server, data) = if embedded {
            (Some(std::process::id()), engine.data_directory(&mut *session))
        } else {
            // A process id in a file may belong to another process by now: only a process that certainly serves this
            // database is moved.
            let place = kelvin_observe::engine::locate_server(engine, &mut *session);
            (place.server, place.data)
        };
        drop(session);
        let mut not_cut = elsewhere();
        let mut miss = |what: &str, why: String| not_cut.push(UnavailableMetrics { what: what.into(), why });
        // Why no control group cuts the server's CPU.
        let mut no_group = None;
        let Some(server) = server else {
            return Err(
                "its server is not on this host, or cannot be identified: run kelvin on the server's \
                        host, outside of containers, as the server's user or as root"
                    .into(),
            );
        };
        let by_group = options.means.is_none_or(|means| means == Means::ControlGroup);
        let (group, refused) = hold(server, by_group);
        for (controller, why) in refused {
            match controller {
                Controller::Cpu => no_group = Some(why),
                Controller::Io => miss("server I/O", why),
                Controller::Memory => miss("memory", why),
            }
        }
        let mut resources = Vec::new();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let client_threads = users.max(1).min(cpus as u32);
        let mut throttle = Throttle::Group;
        if group.has_cpu() {
            group.weigh_as(users.max(1))?;
            resources.push(SqueezedResource::ServerCpu);
        } else {
            match Throttle::without_groups(options.means, server, embedded, options.cut) {
                Ok(other) => {
                    throttle = other;
                    resources.push(SqueezedResource::ServerCpu);
                }
                Err(why) => {
                    let first = no_group.as_ref().map_or_else(String::new, |why| format!("{why}; "));
                    miss("server CPU", format!("{first}{why}"));
                }
            }
        }
        let client = if embedded {
            miss("client CPU", "the database is in this process and shares its CPU time".into());
            None
        } else {
            let own = std::process::id();
            let (mut client, refused) = Group::make("client", own, &[Controller::Cpu]);
            for (_, why) in refused {
                miss("client CPU", why);
            }
            if client.has_cpu() {
                client.weigh_as(client_threads)?;
                client.take(&[own])?;
                resources.push(SqueezedResource::ClientCpu);
            }
            Some(client)
        };
        let device = match data.as_deref().map(device) {
            _ if !group.has_io() => None,
            None => {
                miss("server I/O", "the location of the data is not known".into());
                None
            }
            Some(Err(why)) => {
                miss("server I/O", why);
                None
            }
            Some(Ok(device)) => {
                resources.push(SqueezedResource::DeviceIo);
                Some(device)
            }
        };
        if resources.is_empty() {
            let reasons: Vec<_> = not_cut.iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
            return Err(format!("nothing can be squeezed here: {}", reasons.join("; ")));
        }
        let plan = plan::slices(resources.len(), options.pairs, options.slice, options.pilot, seed);
        let cut = options.cut;
        let client_cores = f64::from(client_threads);
        let process = server;
        let valves =
            Valves { server: group, throttle, process, client, device, client_cores, resources, cut };
        Ok(Self { options, valves, plan, not_cut, no_group })
    }

    /// The required length of the window in seconds.
    pub fn seconds(&self) -> u64 {
        self.plan.last().map_or(0, |slice| slice.to)
    }

    /// Wraps a sink. `series` are the series of the run, `clock` is its clock.
    pub fn around<'a>(self, sink: &'a mut dyn Sink, series: &[Series], clock: &Clock) -> Squeezed<'a> {
        Squeezed {
            counted: series.iter().map(Series::is_transaction).collect(),
            squeeze: Some(self),
            sink,
            clock: clock.clone(),
            stop: Arc::new(AtomicBool::new(false)),
            thread: None,
            good: BTreeMap::new(),
            elapsed: 0,
        }
    }

    /// The name of a resource and the method of its cut; `cut` is the share that was removed.
    fn resource(&self, what: SqueezedResource, done: &SqueezeRecord, cut: f64) -> (String, String) {
        let percent = cut * 100.0;
        let capacity = done.capacity;
        match what {
            SqueezedResource::ServerCpu => {
                let how = capacity.map_or_else(String::new, |c| {
                    let n = done.used.len().max(1) as f64;
                    let sum = |sum: (f64, f64), one: &(f64, f64)| (sum.0 + one.0 / n, sum.1 + one.1 / n);
                    let (then, bound) = done.used.iter().fold((0.0, 0.0), sum);
                    format!(
                        "{percent:.0} % less of the {:.2} CPUs that were available to it; it used {:.2} \
                         before, and {then:.2} of the remaining {bound:.2}",
                        c.cores, c.used
                    )
                });
                let because = self
                    .no_group
                    .as_ref()
                    .map_or_else(String::new, |why| format!(" (no control group: {why})"));
                (what.name().into(), format!("{how}{}{because}", self.valves.throttle.how()))
            }
            SqueezedResource::ClientCpu => {
                let cores = self.valves.client_cores;
                (
                    "client CPU".into(),
                    format!("{percent:.0} % less of the {cores:.0} CPUs that its threads can use"),
                )
            }
            SqueezedResource::DeviceIo => {
                let name = self.valves.device.as_ref().map_or("", |(name, _)| name);
                let busy = capacity.map_or(0.0, |c| c.device_busy * 100.0);
                let how = format!(
                    "{percent:.0} % less of the capacity of {name}, which was {busy:.0} % busy before"
                );
                (what.name().into(), how)
            }
        }
    }

    fn conclude(mut self, done: &SqueezeRecord, good: &BTreeMap<i64, u64>, elapsed: Nanos) -> Outcome {
        let mut throughput = BTreeMap::new();
        let mut slices = Vec::new();
        let mut left = vec![Vec::new(); self.valves.resources.len()];
        for (index, cut) in &done.slices {
            let slice = self.plan[*index];
            if slice.to * 1_000_000_000 > elapsed {
                continue;
            }
            let counted = (slice.from + SETTLE) as i64..slice.to as i64;
            let seconds = counted.end - counted.start;
            let rate = good.range(counted).map(|(_, count)| count).sum::<u64>() as f64 / seconds as f64;
            throughput.insert(*index, rate);
            if let Some((resource, cut)) = slice.resource.zip(*cut) {
                left[resource].push(cut.left);
            }
            let resource = slice.resource.map(|resource| self.valves.resources[resource].name().to_owned());
            let bound = cut.map(|cut| cut.to_string());
            slices.push(SqueezeSlice { from: slice.from as i64, to: slice.to as i64, resource, bound, rate });
        }
        let mut resources = Vec::new();
        for (index, &what) in self.valves.resources.iter().enumerate() {
            let cut = taken(&left[index]).unwrap_or(self.options.cut);
            if let Some(found) = elasticity::estimate_elasticity(&self.plan, &throughput, index, cut) {
                let (resource, how) = self.resource(what, done, cut);
                let means = match what {
                    SqueezedResource::ServerCpu => self.valves.throttle.means(),
                    SqueezedResource::ClientCpu | SqueezedResource::DeviceIo => Means::ControlGroup,
                };
                let other = ((cut - self.options.cut).abs() > 0.001).then_some(cut);
                let means = means.describe().into();
                resources.push(Elasticity { resource, how, means, cut: other, ..found });
            } else {
                let unknown = done.unknown.iter().find(|(refused, _)| *refused == what);
                let why = unknown.map(|(_, why)| why.clone()).or_else(|| done.error.clone());
                let why = why.unwrap_or_else(|| "it ended after fewer than two pairs".into());
                self.not_cut.push(UnavailableMetrics { what: what.name().into(), why });
            }
        }
        Outcome { cut: self.options.cut, settle: SETTLE, resources, not_cut: self.not_cut, slices }
    }
}

/// A sink that forwards to another one and squeezes while the window is open.
pub struct Squeezed<'a> {
    squeeze: Option<Squeeze>,
    sink: &'a mut dyn Sink,
    clock: Clock,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Squeeze, SqueezeRecord)>>,
    /// Which series count.
    counted: Vec<bool>,
    /// Successful transactions by second of the window.
    good: BTreeMap<i64, u64>,
    elapsed: Nanos,
}

impl Squeezed<'_> {
    fn start(&mut self, open: Nanos) -> Result<(), SinkError> {
        let Some(squeeze) = self.squeeze.take() else { return Ok(()) };
        let (clock, stop) = (self.clock.clone(), Arc::clone(&self.stop));
        let work = move || {
            let done = work(&squeeze.valves, &squeeze.plan, &clock, open, &stop);
            (squeeze, done)
        };
        self.thread = Some(std::thread::Builder::new().name("squeeze".into()).spawn(work)?);
        Ok(())
    }

    fn count(&mut self, second: &Second) {
        if second.part == LoadPart::Measured {
            let kinds = second.kinds.iter().zip(&self.counted).filter(|(_, counts)| **counts);
            *self.good.entry(second.second).or_default() += kinds.map(|(kind, _)| kind.good()).sum::<u64>();
        }
    }

    /// Ends the thread, and returns its result.
    fn conclude(&mut self) -> Result<(), SinkError> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let (squeeze, done) = thread.join().map_err(|_| "the squeeze thread panicked")?;
        let outcome = squeeze.conclude(&done, &self.good, self.elapsed);
        // The CPU of other processes is not under Kelvin's control: what they use changes the capacity that each cut
        // is a share of.
        if let Some(others) = done.capacity.map(|one| one.others).filter(|others| *others > QUIET) {
            let text = format!(
                "other processes used {others:.1} CPUs of this host meanwhile: squeeze again when the host \
                is quiet"
            );
            self.sink.event(&Event::Note { point: 0, second: 0, text })?;
        }
        if let Some(why) = done.error {
            let text = format!("the squeeze ended early: {why}");
            self.sink.event(&Event::Note { point: 0, second: 0, text })?;
        }
        self.sink.event(&Event::Squeeze(outcome))
    }
}

impl Sink for Squeezed<'_> {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Phase { phase: Phase::RampUp, at, planned, .. } => {
                self.start(at + planned.unwrap_or(0))?;
            }
            Event::Phase { phase: Phase::Measure, at, .. } => self.start(*at)?,
            // Nothing is cut while the users finish their transactions.
            Event::Phase { phase: Phase::Stop, .. } => self.stop.store(true, Ordering::Release),
            Event::Second(second) => self.count(second),
            Event::Window(window) => self.elapsed = window.elapsed,
            Event::Finished { .. } => self.conclude()?,
            _ => {}
        }
        self.sink.event_from(source, event)
    }
}

impl Drop for Squeezed<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // The thread removes the limits and moves the processes back.
            let _ended = thread.join();
        }
    }
}

/// Resources that cannot be squeezed.
fn elsewhere() -> Vec<UnavailableMetrics> {
    let absent = |what: &str, why: &str| UnavailableMetrics { what: what.into(), why: why.into() };
    vec![
        absent(
            "memory",
            "filling a cache takes longer than a slice: compare runs with different shared_buffers",
        ),
        absent(
            "network delay",
            "a squeeze cannot change a delay: compare runs from another host or through a proxy",
        ),
    ]
}

/// Moves the server's processes into a group of Kelvin's. Returns the group, and the controllers that are unavailable
/// with the reason. Without `cpu`, the group only limits other resources.
fn hold(server: u32, cpu: bool) -> (Group, Vec<(Controller, String)>) {
    let wanted: &[Controller] = if cpu { &[Controller::Cpu, Controller::Io] } else { &[Controller::Io] };
    let (mut group, mut refused) = Group::make("server", server, wanted);
    // Twice, because the server may have created another process while the first ones were moved.
    for _ in 0..2 {
        if let Err(why) = group.take(&tree::processes(server)) {
            let had = [(Controller::Cpu, group.has_cpu()), (Controller::Io, group.has_io())];
            refused.extend(had.into_iter().filter(|(_, had)| *had).map(|(one, _)| (one, why.clone())));
            return (Group::none(), refused);
        }
    }
    (group, refused)
}

/// The share that was removed, from the share that was left in each slice; none without slices.
fn taken(left: &[f64]) -> Option<f64> {
    let logarithms = left.iter().map(|left| left.ln()).sum::<f64>();
    (!left.is_empty()).then(|| 1.0 - (logarithms / left.len() as f64).exp())
}

/// The only disk below the WAL, or otherwise below the data: its name and its number.
fn device(data: &Path) -> Result<(String, String), String> {
    let log = data.join("pg_wal");
    disk_below(if log.exists() { &log } else { data })
}
