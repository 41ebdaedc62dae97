//! A running load: the generators of this process and of other hosts, and the reader of the server's
//! counters.

use std::time::Duration;

use kelvin_measure::{Nanos, Sink};

use super::generator::Generator;
use super::load_times::LoadTimes;
use super::remote::RemoteLoad;
use super::server_counters::ServerCounters;
use super::{overrun_limit, sum_columns};
use crate::error::RunError;

/// How far ahead a requested early end is scheduled when other hosts have to be told.
const NOTICE_OF_END: Duration = Duration::from_millis(500);

/// A running point.
pub(super) struct Underway<'a> {
    pub(super) generators: Vec<Generator>,
    /// The generators on other hosts.
    pub(super) remote: Option<RemoteLoad<'a>>,
    /// `None` where the point's controller, on another host, reads the server's counters.
    pub(super) server: Option<ServerCounters>,
    pub(super) times: LoadTimes,
}

impl Underway<'_> {
    pub(super) fn all_ended(&self) -> bool {
        self.generators.iter().all(Generator::all_ended)
            && self.remote.as_ref().is_none_or(RemoteLoad::all_ended)
    }

    /// Ends window and load at `close`, earlier than planned. `close` must not be in the future.
    pub(super) fn close(&mut self, close: Nanos) {
        let close = self.generators.iter().map(|generator| generator.closes_at(close)).min().unwrap_or(close);
        (self.times.close, self.times.end) = (close, close);
        self.close_server_window();
        self.generators.iter_mut().for_each(|generator| generator.close(close));
        let times = self.times;
        if let Some(remote) = &mut self.remote {
            remote.end_at(times);
        }
    }

    /// Ends window and load as ordered, or now if that is later, unless they end earlier anyway.
    pub(super) fn end_as_ordered(&mut self, ordered: LoadTimes, now: Nanos) {
        let close = ordered.close.max(now).min(self.times.close);
        (self.times.close, self.times.end) = (close, ordered.end.max(close).min(self.times.end));
        let times = self.times;
        self.generators.iter_mut().for_each(|generator| generator.end_at(times));
    }

    /// Ends window and load of generators on other hosts, as soon as all of them can have been told. After
    /// the window of an open loop only the load ends. The order is sent once.
    pub(super) fn end_remote(&mut self, now: Nanos) {
        let end = now + NOTICE_OF_END.as_nanos() as u64;
        if end >= self.times.end {
            return;
        }
        (self.times.close, self.times.end) = (end.min(self.times.close), end);
        self.close_server_window();
        let times = self.times;
        if let Some(remote) = &mut self.remote {
            remote.end_at(times);
        }
    }

    pub(super) fn close_server_window(&self) {
        if let Some(server) = &self.server {
            server.close(self.times.close);
        }
    }

    /// Ends the window at `close`, which may be in the future, and the load after it as after a planned
    /// window.
    pub(super) fn end_at(&mut self, close: Nanos, open_loop: bool) {
        let close = close.max(self.times.open + 1).min(self.times.close);
        let window = Duration::from_nanos(close - self.times.open);
        let follows = if open_loop { overrun_limit(window).as_nanos() as u64 } else { 0 };
        (self.times.close, self.times.end) = (close, close + follows);
        self.close_server_window();
        let times = self.times;
        self.generators.iter_mut().for_each(|generator| generator.end_at(times));
        if let Some(remote) = &mut self.remote {
            remote.end_at(times);
        }
    }

    /// Emits complete seconds and the events of other hosts.
    pub(super) fn emit(&mut self, now: Nanos, sink: &mut dyn Sink) -> Result<(), RunError> {
        self.generators.iter_mut().try_for_each(|generator| generator.emit(now, sink))?;
        self.remote.as_mut().map_or(Ok(()), |remote| remote.emit(now, sink).map(|_| ()))
    }

    /// Drains the users' samples without emitting anything.
    pub(super) fn take_samples(&mut self) {
        self.generators.iter_mut().for_each(Generator::take_samples);
    }

    /// The sums of all users' audit counters so far.
    pub(super) fn counters(&self) -> Vec<u64> {
        let remote = self.remote.iter().flat_map(RemoteLoad::counters);
        sum_columns(self.generators.iter().map(Generator::counters).chain(remote))
    }

    /// Cancels whatever is running.
    pub(super) fn cancel_all(&mut self) {
        self.generators.iter().for_each(Generator::cancel_all);
        if let Some(remote) = &mut self.remote {
            remote.abort();
        }
    }
}
