//! The timed driver: one point of a run, that is, one number of users.
//!
//! The point's [`Generator`]s connect their users one after another before the clock starts, ramp up, are
//! measured, and finish the open transactions. The thread that calls [`Point::run`] has them drain their
//! samples, emits the events, and closes the window; then it merges the generators' reports and compares them
//! with the server's own counters. A run on this host has one generator with all users. A run on a fleet has
//! one on each host: the point receives their messages (`remote`), and each host runs its own without
//! accounting (`assigned`).

mod accounting;
mod assigned;
mod client_cpu;
pub mod fleet;
mod generator;
mod generator_report;
mod load_times;
mod open_files;
mod remote;
mod resumed;
mod saturation;
mod server_counters;
#[cfg(test)]
mod tests;
mod underway;

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_measure::event::{AuditLine, KindCounts, Phase, Window};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::{Clock, Event, Nanos, Sink, Source, SourceId, Totals, second_from};
use kelvin_workload::{Stop, UserRange, Workload};

use crate::control::{Change, LoadControl};
use crate::error::RunError;
use crate::series::series;
use crate::spec::Load;
pub use assigned::generate;
use fleet::EndOrder;
use generator::{ArmedGenerator, Generator};
pub use generator_report::GeneratorReport;
pub use load_times::LoadTimes;
pub use remote::FleetShare;
pub(crate) use remote::{RemoteBooks, RemoteLoad};
pub use resumed::BegunPoint;
use server_counters::{Monitor, ServerCounters};
use underway::Underway;

/// How often the samples are drained: short compared with a second, long compared with the cost of a wake-up.
const TICK: Duration = Duration::from_millis(50);

/// Interval of the checks whether all arrivals of the window have begun.
const FOLLOW_TICK: Duration = Duration::from_millis(2);

/// Time from the last connection to the users' first statement, so that all users are waiting by then.
const HEAD_START: Duration = Duration::from_millis(50);

/// Additional head start for each user, whose thread is created first.
const HEAD_START_EACH: Duration = Duration::from_micros(100);

/// How much longer than a statement's time-out a user may take to end before its statement is interrupted.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much longer users on other hosts may take to end than users here: these hosts follow an open loop and
/// interrupt statements themselves, and their reports arrive after that.
const PATIENCE_WITH_HOSTS: Duration = Duration::from_secs(20);

/// Up to this number of users a thread for each is at most as expensive as event loops (`cargo xtask bench
/// users`).
const MOST_THREADS: u32 = 3;

/// Domain of [`Random::part`] for think times: "thinking" in ASCII.
const THINKING: u64 = 0x7468_696e_6b69_6e67;

/// What a point measured.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// The window and its headline counts.
    pub window: Window,
    /// Counts and histograms.
    pub totals: Totals,
    /// The self-audit.
    pub audit: Vec<AuditLine>,
    /// What was checked.
    pub invariants: Vec<Invariant>,
    /// Errors counted, including those of transactions that were retried.
    pub errors: u64,
    /// The last error of a user, if all users gave up.
    pub gave_up: Option<String>,
    /// Whether a stop was requested.
    pub interrupted: bool,
}

impl PointResult {
    /// Good transactions of all types per second of the measured window.
    pub fn throughput(&self) -> f64 {
        let good: u64 = self.totals.transactions(&self.totals.measured).map(KindCounts::good).sum();
        if self.window.elapsed == 0 { 0.0 } else { good as f64 * 1e9 / self.window.elapsed as f64 }
    }

    /// Whether every invariant holds; a point in which one does not is void.
    pub fn holds(&self) -> bool {
        self.invariants.iter().all(|invariant| invariant.holds)
    }
}

/// One point, ready to run.
#[derive(Debug)]
pub struct Point<'a> {
    /// Its index in the run.
    pub index: u32,
    /// Virtual users.
    pub users: u32,
    /// The largest number of users of any point of the run. It determines threads or event loops for all
    /// points, since a change between them would put a step into the curve.
    pub most_users: u32,
    /// Arrivals per second of an open loop; `None` for a closed loop.
    pub rate: Option<f64>,
    /// Ramp-up, duration, seed and limits.
    pub load: &'a Load,
    /// Whether other work on the machine is accepted, even where it keeps this process from running.
    pub accept_noise: bool,
    /// Whether this process also observes the database; users then report how their statements were planned.
    pub observed: bool,
    /// The run's clock.
    pub clock: &'a Clock,
    /// Requests an early end.
    pub stop: &'a Stop,
    /// The timeline's control; `None` for a load that starts and ends without a timeline.
    pub control: Option<&'a LoadControl>,
    /// The hosts that generate the load; `None` if this process does.
    pub fleet: Option<FleetShare<'a>>,
}

/// The sums of the columns of several lists.
pub(crate) fn sum_columns(lists: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
    let add =
        |sum: Vec<u64>, list: Vec<u64>| sum.iter().zip(list).map(|(a, b)| a.saturating_add(b)).collect();
    lists.reduce(add).unwrap_or_default()
}

/// How long an open loop may continue after its window so that waiting arrivals can begin: a tenth of the
/// window, from 1 to 30 seconds. A queue that takes longer was growing, and its remaining arrivals count as
/// unanswered.
pub fn overrun_limit(window: Duration) -> Duration {
    (window / 10).clamp(Duration::from_secs(1), Duration::from_secs(30))
}

impl Point<'_> {
    /// Connects the users, generates the load and measures it. An error means that the point could not start
    /// or its events could not be stored; errors of the database during the load are part of the result.
    pub fn run(
        &self,
        engine: &Arc<dyn Engine>,
        workload: &Arc<dyn Workload>,
        sink: &mut dyn Sink,
    ) -> Result<PointResult, RunError> {
        let all = [UserRange::all(self.users)];
        self.run_on(if self.fleet.is_some() { &[] } else { &all }, engine, workload, sink)
    }

    /// As [`Point::run`], with a generator in this process for each of these ranges. Together with the
    /// fleet's generators they must cover all users.
    fn run_on(
        &self,
        ranges: &[UserRange],
        engine: &Arc<dyn Engine>,
        workload: &Arc<dyn Workload>,
        sink: &mut dyn Sink,
    ) -> Result<PointResult, RunError> {
        let mut monitor = Monitor::connect(engine, workload, self.load.timeout.duration())?;
        let counts = workload.counts_on_server();
        let before = if counts { Some(monitor.headline()?) } else { None };
        self.phase(sink, Phase::Connect, self.clock.now(), None)?;
        let mut armed = Vec::with_capacity(ranges.len());
        for (generator, &range) in (0_u16..).zip(ranges) {
            let source = SourceId(generator);
            if !source.is_local() {
                let named = Source { generator: Some(generator), ..Source::default() };
                sink.event(&Event::Source { id: source, source: named })?;
            }
            armed.push(ArmedGenerator::connect(self, (source, range), engine, workload, sink)?);
        }
        let remote = self.fleet.map(|fleet| RemoteLoad::arm(self, fleet, &**workload, sink)).transpose()?;
        let mut underway = self.start(armed, remote, monitor, sink)?;
        let ended = self.drive_to_end(&mut underway, &**workload, None, sink)?;
        self.close(underway, ended, engine, &**workload, before, sink)
    }

    /// Drives a load from its start until all users have ended; returns whether they have.
    fn drive_to_end(
        &self,
        underway: &mut Underway<'_>,
        workload: &dyn Workload,
        order: Option<&EndOrder>,
        sink: &mut dyn Sink,
    ) -> Result<bool, RunError> {
        let driven = self.drive(underway, workload, order, sink);
        if driven.is_err() {
            // The sink has failed: end the load in order, then return the error.
            let now = self.clock.now();
            underway.times.close = underway.times.close.min(now);
            underway.close_server_window();
            underway.generators.iter().for_each(|generator| generator.abandon(now));
            if let Some(remote) = &mut underway.remote {
                remote.abort();
            }
        }
        self.follow(underway, order);
        let (ended, heard) = self.wait_for_users(underway, sink);
        driven.and(heard).map(|()| ended)
    }

    /// When the load starts, is measured and ends: as the timeline orders, otherwise soon, but not within
    /// `notice`.
    fn times(&self, notice: Duration) -> Result<LoadTimes, RunError> {
        let by_count = self.load.transactions.is_some();
        let head = notice.max(HEAD_START + HEAD_START_EACH * self.users);
        let begin = match self.control {
            None => self.clock.now() + head.as_nanos() as u64,
            Some(control) => {
                control.wait_to_begin(self.clock, head, self.stop).ok_or(RunError::Interrupted)?
            }
        };
        let open = begin + if by_count { 0 } else { self.load.ramp_up.nanos() };
        let close = if by_count { u64::MAX } else { open + self.load.duration.nanos() };
        let follows = self.rate.map_or(0, |_| overrun_limit(self.load.duration.duration()).as_nanos() as u64);
        Ok(LoadTimes { begin, open, close, end: close.saturating_add(follows) })
    }

    /// Starts the clock and the users' threads.
    fn start<'f>(
        &self,
        armed: Vec<ArmedGenerator<'_>>,
        mut remote: Option<RemoteLoad<'f>>,
        monitor: Monitor,
        sink: &mut dyn Sink,
    ) -> Result<Underway<'f>, RunError> {
        let times = self.times(remote.as_ref().map_or(Duration::ZERO, RemoteLoad::notice))?;
        if let Some(remote) = &mut remote {
            remote.start(times)?;
        }
        let LoadTimes { open, close, .. } = times;
        let server = ServerCounters::start(monitor, (open, close), self.clock.clone(), self.stop.clone())?;
        let mut generators = Vec::with_capacity(armed.len());
        for armed in armed {
            generators.push(armed.start(times, sink)?);
        }
        self.first_phase(times, sink)?;
        Ok(Underway { generators, remote, server: Some(server), times })
    }

    /// Emits the first phase of the load.
    fn first_phase(&self, times: LoadTimes, sink: &mut dyn Sink) -> Result<(), RunError> {
        let LoadTimes { begin, open, close, .. } = times;
        let first = if open > begin { Phase::RampUp } else { Phase::Measure };
        let window = (close != u64::MAX).then(|| close - open);
        let planned = if open > begin { Some(open - begin) } else { window };
        self.phase(sink, first, begin, planned)
    }

    /// What distinguishes the point from others of its run, for display.
    fn label(&self) -> String {
        self.rate.map_or_else(String::new, |rate| {
            format!("{} arrivals per second, ", (rate * 100.0).round() / 100.0)
        })
    }

    /// Drains and emits until the window has closed: by time, by count, or by a requested stop.
    fn drive(
        &self,
        underway: &mut Underway<'_>,
        workload: &dyn Workload,
        order: Option<&EndOrder>,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        let LoadTimes { begin, open, .. } = underway.times;
        let mut measuring = open == begin;
        let mut counted_until = 0;
        loop {
            self.tick();
            let now = self.clock.now();
            self.change(underway, now);
            if let Some(ordered) = order.and_then(EndOrder::take) {
                underway.end_as_ordered(ordered, now);
            }
            let mut stopped = self.stop.requested();
            if stopped && underway.remote.is_some() {
                underway.end_remote(now);
                stopped = self.stop.is_immediate();
            }
            // Read before draining: users that have ended by then have passed on all their samples.
            let all_ended = underway.all_ended();
            let planned = underway.times.close;
            if !measuring && now >= open {
                measuring = true;
                self.phase(sink, Phase::Measure, open, Some(planned.saturating_sub(open)))?;
            }
            stopped |= underway.generators.iter().any(Generator::panicked);
            let closing = stopped || now >= planned || all_ended;
            // A window that closes as planned is closed already, and an open loop continues after it.
            if closing && now < planned && self.load.transactions.is_none() || stopped {
                underway.close(now.min(planned));
            }
            underway.emit(now, sink)?;
            self.emit_executions(workload, open, sink)?;
            let second = second_from(open, now);
            if measuring && second > counted_until {
                counted_until = second;
                sink.event(&Event::Counters { point: self.index, values: underway.counters() })?;
            }
            if closing {
                return self.phase(sink, Phase::Stop, now.min(planned), None);
            }
        }
    }

    /// Emits the executions whose answers the workload keeps.
    fn emit_executions(
        &self,
        workload: &dyn Workload,
        open: Nanos,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        for mut execution in workload.take_executions() {
            (execution.point, execution.at) = (self.index, execution.at.saturating_sub(open));
            sink.event(&Event::Query(execution))?;
        }
        Ok(())
    }

    /// Waits until samples are to be drained or a change of the timeline is due.
    fn tick(&self) {
        let now = self.clock.now();
        let ordered = self.control.and_then(LoadControl::next_change);
        let until = ordered.map_or(TICK, |at| Duration::from_nanos(at.saturating_sub(now)).min(TICK));
        std::thread::sleep(until);
    }

    /// Applies the timeline's changes that are due at `now`.
    fn change(&self, underway: &mut Underway<'_>, now: Nanos) {
        for (at, change) in self.control.map(|control| control.take_changes(now)).unwrap_or_default() {
            match change {
                Change::Close => underway.end_at(at, self.rate.is_some()),
                change => underway.generators.iter().for_each(|generator| generator.change(change, now)),
            }
        }
    }

    /// Continues an open loop until every arrival of the window has begun or [`overrun_limit`] has passed.
    /// Arrivals that wait for a user when the window closes have some of the longest response times; without
    /// them percentiles would be too low.
    fn follow(&self, underway: &mut Underway<'_>, order: Option<&EndOrder>) {
        if !underway.generators.iter().any(Generator::is_open_loop) {
            return;
        }
        let mut waited = true;
        while waited && !self.stop.requested() {
            let now = self.clock.now();
            if let Some(ordered) = order.and_then(EndOrder::take) {
                underway.end_as_ordered(ordered, now);
            }
            // One check more than necessary, so that an arrival claimed a moment ago has started.
            waited = underway.generators.iter().any(|generator| generator.is_followed(now));
            underway.take_samples();
            std::thread::sleep(FOLLOW_TICK);
        }
        let now = self.clock.now();
        underway.generators.iter().for_each(|generator| generator.end_arrivals(now));
    }

    /// Waits for every user to end its transaction. Users that take too long are interrupted, and all are
    /// when an immediate stop is requested. Returns whether all have ended, and whether the sink took the
    /// events of other hosts.
    fn wait_for_users(
        &self,
        underway: &mut Underway<'_>,
        sink: &mut dyn Sink,
    ) -> (bool, Result<(), RunError>) {
        if let Some(server) = &underway.server {
            server.wake(underway.all_ended());
        }
        underway.generators.iter().for_each(Generator::wake);
        let mut patience = self.load.timeout.duration() + PATIENCE;
        let mut since = self.clock.now();
        if underway.remote.is_some() {
            patience += PATIENCE_WITH_HOSTS;
            since = since.max(if underway.times.end == Nanos::MAX { 0 } else { underway.times.end });
        }
        let patience = patience.as_nanos() as u64;
        let (mut interrupted_at, mut heard, mut all_read) = (None, Ok(()), true);
        while !underway.all_ended() {
            let now = self.clock.now();
            if self.stop.requested() {
                // Hosts that follow an open loop are told to end.
                underway.end_remote(now);
            }
            match interrupted_at {
                None if self.stop.is_immediate() || all_read && now > since + patience => {
                    interrupted_at = Some(now);
                    underway.cancel_all();
                }
                // Interrupted and still not back: the server is unreachable, and the thread is left behind.
                Some(at)
                    if (all_read || self.stop.is_immediate()) && now > at + PATIENCE.as_nanos() as u64 =>
                {
                    return (false, heard);
                }
                _ => {}
            }
            // Otherwise the rings would overflow.
            underway.take_samples();
            if let Some(remote) = &mut underway.remote {
                // Emitted now: kept until the end, their histograms would fill the memory.
                let emitted = remote.emit(now, sink);
                all_read = !matches!(emitted, Ok(false));
                heard = heard.and(emitted.map(|_| ()));
            }
            if all_read {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        (true, heard)
    }

    /// The accounting of the point: the window, the counts of both sides, the invariants, the audit.
    fn close(
        &self,
        underway: Underway<'_>,
        ended: bool,
        engine: &Arc<dyn Engine>,
        workload: &dyn Workload,
        before: Option<u64>,
        sink: &mut dyn Sink,
    ) -> Result<PointResult, RunError> {
        let Underway { generators, remote, server, times } = underway;
        let hurry = self.stop.is_immediate();
        let mut reports = Vec::with_capacity(generators.len());
        for generator in generators {
            reports.push(generator.finish(ended, hurry, sink)?);
        }
        let remote = remote.map(|remote| remote.finish(self.clock.now(), sink)).transpose()?;
        let (of_hosts, hosts) = remote.unzip();
        reports.extend(of_hosts.into_iter().flatten());
        self.emit_executions(workload, times.open, sink)?;
        let counters = sum_columns(reports.iter().map(|report| report.counters.clone()));
        sink.event(&Event::Counters { point: self.index, values: counters.clone() })?;
        let mut server = server.and_then(|server| server.finish(hurry));
        let after = server
            .as_mut()
            .filter(|_| !hurry && before.is_some())
            .map(|readings| readings.monitor.final_headline());
        let totals = self.totals(workload, &reports);
        let headline: Vec<bool> = workload.kinds().iter().map(|kind| kind.headline).collect();
        let closing = accounting::PointAccounting {
            point: self.index,
            users: self.users,
            headline: &headline,
            embedded: engine.capabilities().embedded,
            open: times.open,
            rate: self.rate.filter(|_| self.control.is_none()),
            generators: &reports,
            hosts: hosts.as_ref(),
            totals: &totals,
            server: server.as_ref(),
            accept_noise: self.accept_noise,
        };
        let (window, invariants) = closing.emit(None, ended, before.zip(after), sink)?;
        let audit = workload.audit(&counters, self.users);
        // Without a window there is nothing to check.
        if window.elapsed > 0 {
            sink.event(&Event::Audit { point: self.index, lines: audit.clone() })?;
        }
        let gave_up: u32 = reports.iter().map(|report| report.gave_up).sum();
        let last_error = reports.iter().find_map(|report| report.last_error.clone());
        let gave_up =
            (gave_up == self.users).then(|| last_error.unwrap_or_else(|| "every user gave up".into()));
        let errors = reports.iter().map(|report| report.errors).sum();
        let interrupted = self.stop.requested();
        Ok(PointResult { window, totals, audit, invariants, errors, gave_up, interrupted })
    }

    /// The sums of all generators.
    fn totals(&self, workload: &dyn Workload, reports: &[GeneratorReport]) -> Totals {
        let roles = series(workload.kinds(), self.rate.is_some()).into_iter().map(|series| series.role);
        let mut totals = Totals::new(roles.collect());
        for report in reports {
            totals.merge(&report.totals);
        }
        totals
    }

    fn phase(
        &self,
        sink: &mut dyn Sink,
        phase: Phase,
        at: Nanos,
        planned: Option<Nanos>,
    ) -> Result<(), RunError> {
        sink.event(&Event::Phase { point: self.index, phase, at, users: self.users, planned })?;
        Ok(())
    }
}
