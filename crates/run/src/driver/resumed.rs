//! Completes a point whose controller died: another process receives the hosts' messages until their end and
//! does the accounting, without what only the first process knew. Such a point never counts.

use std::time::Duration;

use kelvin_measure::event::{Phase, Series, SeriesRole};
use kelvin_measure::invariant::{CONTROLLER_STAYED, Invariant};
use kelvin_measure::{Clock, Event, Nanos, Sink, Totals};
use kelvin_workload::{Stop, UserRange};

use super::fleet::RemoteGenerators;
use super::load_times::LoadTimes;
use super::remote::RemoteLoad;
use super::{PATIENCE, PATIENCE_WITH_HOSTS, PointResult, TICK, accounting, overrun_limit, sum_columns};
use crate::error::RunError;
use crate::spec::Load;

/// A point that another process has begun. Its times are those of the stored events, since the run's clock is
/// not available here.
#[derive(Debug)]
pub struct BegunPoint<'a> {
    /// Its index in the run.
    pub index: u32,
    /// Virtual users.
    pub users: u32,
    /// The hosts of the fleet that generate its load, in their order.
    pub hosts: &'a [String],
    /// The series of the run.
    pub series: &'a [Series],
    /// How many audit counters the workload has.
    pub counters: usize,
    /// Ramp-up, duration and limits.
    pub load: &'a Load,
    /// When the window opened, or was to open.
    pub open: Nanos,
    /// The newest point in time of the stored events.
    pub reached: Nanos,
    /// Whether the measured phase is stored.
    pub measuring: bool,
    /// Whether other work on the hosts is accepted.
    pub accept_noise: bool,
}

impl BegunPoint<'_> {
    /// Receives the hosts' messages until they have ended, and completes the point.
    ///
    /// # Errors
    /// When an event cannot be stored.
    pub fn finish<'g>(
        &self,
        generators: Box<dyn RemoteGenerators + 'g>,
        (clock, stop): (&Clock, &Stop),
        sink: &mut dyn Sink,
    ) -> Result<PointResult, RunError> {
        let times = self.times();
        let hosts = self.hosts.len() as u32;
        let ranges = (0..hosts).filter_map(|host| UserRange::share(self.users, host, hosts));
        let names = self.hosts.iter().cloned().zip(ranges).collect();
        let roles: Vec<SeriesRole> = self.series.iter().map(|series| series.role).collect();
        let described = (names, roles.clone(), self.counters);
        let limit = self.load.start_skew.nanos();
        let mut remote = RemoteLoad::of_hosts(self.index, generators, described, limit).started_at(times);
        if !self.measuring {
            let planned = (times.close != Nanos::MAX).then_some(times.close - times.open);
            self.phase(Phase::Measure, times.open, planned, sink)?;
        }
        let text = "the controller was killed; another process receives the results from here on".into();
        let second = kelvin_measure::second_from(self.open, self.reached);
        sink.event(&Event::Note { point: self.index, second, text })?;
        let ended = self.hear(&mut remote, times.end, (clock, stop), sink)?;
        let (reports, books) = remote.finish(self.reached, sink)?;
        let counters = sum_columns(reports.iter().map(|report| report.counters.clone()));
        sink.event(&Event::Counters { point: self.index, values: counters })?;
        let mut totals = Totals::new(roles);
        for report in &reports {
            totals.merge(&report.totals);
        }
        let headline: Vec<bool> = self.series.iter().map(|series| series.headline).collect();
        let closing = accounting::PointAccounting {
            point: self.index,
            users: self.users,
            headline: &headline,
            embedded: false,
            open: times.open,
            rate: None,
            generators: &reports,
            hosts: Some(&books),
            totals: &totals,
            server: None,
            accept_noise: self.accept_noise,
        };
        let evidence = format!(
            "it was killed about {second} s into the window; the server's counters were not read \
                after that"
        );
        let stayed = Invariant::new(CONTROLLER_STAYED, false, evidence);
        let (window, invariants) = closing.emit(Some(stayed), ended, None, sink)?;
        self.phase(Phase::Stop, times.open + window.elapsed, None, sink)?;
        let errors = reports.iter().map(|report| report.errors).fold(0, u64::saturating_add);
        let (audit, gave_up) = (Vec::new(), None);
        Ok(PointResult { window, totals, audit, invariants, errors, gave_up, interrupted: stop.requested() })
    }

    fn times(&self) -> LoadTimes {
        let by_count = self.load.transactions.is_some();
        let begin = self.open.saturating_sub(self.load.ramp_up.nanos());
        let close = if by_count { Nanos::MAX } else { self.open + self.load.duration.nanos() };
        let open_loop = self.series.iter().any(|series| series.role == SeriesRole::Lag);
        let follows = if open_loop { overrun_limit(self.load.duration.duration()) } else { Duration::ZERO };
        LoadTimes { begin, open: self.open, close, end: close.saturating_add(follows.as_nanos() as u64) }
    }

    /// Whether all hosts have ended. A host that neither ends nor is lost is waited for as long as its own
    /// controller would wait.
    fn hear(
        &self,
        remote: &mut RemoteLoad<'_>,
        end: Nanos,
        (clock, stop): (&Clock, &Stop),
        sink: &mut dyn Sink,
    ) -> Result<bool, RunError> {
        let patience = (self.load.timeout.duration() + PATIENCE + PATIENCE_WITH_HOSTS).as_nanos() as u64;
        let since = clock.now();
        let (mut end, mut aborted) = (end, false);
        loop {
            let now = self.reached + (clock.now() - since);
            let all = remote.emit(now, sink)?;
            if remote.all_ended() {
                return Ok(true);
            }
            if stop.requested() && !aborted {
                (end, aborted) = (end.min(now), true);
                remote.abort();
            }
            if all && now > end.saturating_add(patience) || stop.is_immediate() {
                return Ok(false);
            }
            if all {
                std::thread::sleep(TICK);
            }
        }
    }

    fn phase(
        &self,
        phase: Phase,
        at: Nanos,
        planned: Option<Nanos>,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        sink.event(&Event::Phase { point: self.index, phase, at, users: self.users, planned })?;
        Ok(())
    }
}
