//! The interface between a point and load generators on other hosts: what the point requires of a fleet, and
//! what a host does. It is independent of the transport.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kelvin_measure::event::{HostClock, Series};
use kelvin_measure::{Clock, Event, Machine, Sink, Source, SourceId};
use kelvin_workload::{Stop, UserRange};
use serde::{Deserialize, Serialize};

use super::generator_report::GeneratorReport;
use super::load_times::LoadTimes;
use crate::error::RunError;
use crate::spec::Load;

/// The assignment of one generator of a point. The host already has the run's specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorAssignment {
    /// Index of the point in the run.
    pub point: u32,
    /// Its users, a range of the users of all generators.
    pub range: UserRange,
    /// The largest number of users of any point of the run, on all hosts.
    pub most_users: u32,
    /// Arrivals per second of the whole point; the generator's share follows from its users.
    pub rate: Option<f64>,
    /// The load. It may differ from the specification's: trials of a search may take longer.
    pub load: Load,
    /// Whether other work on the host is accepted.
    pub accept_noise: bool,
    /// The series of the run; the host's must be the same.
    pub series: Vec<Series>,
}

/// A point as a fleet is asked to run it.
#[derive(Debug, Clone, Copy)]
pub struct FleetPoint<'a> {
    /// The generators, one for each host, in the order of [`Fleet::hosts`].
    pub assignments: &'a [GeneratorAssignment],
    /// The clock of all times of the point.
    pub clock: &'a Clock,
    /// Requests an early end.
    pub stop: &'a Stop,
}

/// The hosts that generate a run's load.
pub trait Fleet: Send + Sync {
    /// Their names, in a fixed order.
    fn hosts(&self) -> Vec<String>;

    /// Their machines in the same order; `None` where unknown.
    fn machines(&self) -> Vec<Option<Machine>> {
        Vec::new()
    }

    /// Connects the users of as many hosts as there are assignments, and returns when all have connected.
    /// `connected` is called a few times per second with the number of connected users of all hosts; its
    /// error ends the wait.
    ///
    /// # Errors
    /// When a host refuses, or does not answer.
    fn arm<'a>(
        &'a self,
        point: &FleetPoint<'_>,
        connected: &mut dyn FnMut(u64) -> Result<(), RunError>,
    ) -> Result<Box<dyn RemoteGenerators + 'a>, RunError>;
}

/// The generators of a point, with connected users, numbered like their assignments. Dropping them before
/// their end ends their load.
pub trait RemoteGenerators: Send {
    /// How long in advance the order to start must be given to reach all hosts in time.
    fn notice(&self) -> Duration;

    /// Orders all generators to start at these times of the point's clock.
    ///
    /// # Errors
    /// When the order cannot be sent.
    fn start(&mut self, times: LoadTimes) -> Result<(), RunError>;

    /// Orders all generators to end window and load at these times, earlier than planned.
    fn end_at(&mut self, times: LoadTimes);

    /// Orders all generators to stop immediately.
    fn abort(&mut self);

    /// The next few received messages, only a few since each may be large when decoded; empty when none is
    /// left. Does not wait.
    fn poll(&mut self) -> Vec<(usize, GeneratorMessage)>;

    /// The clocks of all hosts; `None` for a host that cannot be queried. Called once, when all have ended.
    fn clocks(&mut self) -> Vec<Option<HostClock>>;
}

/// A message from a generator on another host.
#[derive(Debug)]
pub enum GeneratorMessage {
    /// An event. Events arrive in order and exactly once.
    Event(Event),
    /// The generator has ended; follows its last event.
    Ended(Box<GeneratorReport>),
    /// The generator failed, with the reason.
    Failed(String),
    /// Nothing has been received from it for a moment; with what is missing.
    Suspect(String),
    /// It has been silent for so long that it is given up, with the reason. Its later results are in its own
    /// file only.
    Lost(String),
}

/// A generator's connection to its point: takes events, and provides the times of the load.
pub trait ControllerLink: Sink {
    /// Reports that all users are connected and waits for the order to start. The times are those of this
    /// host's clock.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] when the load is no longer to start.
    fn armed(&mut self) -> Result<LoadTimes, RunError>;
}

/// The order to end a running load earlier than planned.
#[derive(Debug, Default)]
pub struct EndOrder(Mutex<Option<LoadTimes>>);

impl EndOrder {
    /// No order yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Orders window and load to end at these times of the generator's clock. The start in `times` is
    /// ignored.
    pub fn give(&self, times: LoadTimes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(times);
    }

    /// The newest order that was not yet taken.
    pub(crate) fn take(&self) -> Option<LoadTimes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Declares the hosts of a fleet as sources of a run's events.
pub(crate) fn declare(fleet: &dyn Fleet, sink: &mut dyn Sink) -> Result<(), RunError> {
    let hosts = fleet.hosts();
    if hosts.len() > usize::from(u16::MAX) {
        return Err(RunError::Start(format!("a fleet of {} hosts is too large", hosts.len())));
    }
    let machines = fleet.machines().into_iter().chain(std::iter::repeat(None));
    for (number, (host, machine)) in (0_u16..).zip(hosts.into_iter().zip(machines)) {
        let source = Source { generator: Some(number), host: Some(host), machine, ..Source::default() };
        sink.event(&Event::Source { id: source_of(number), source })?;
    }
    Ok(())
}

/// The source of a host's events, by the host's index. The controller is the first source.
pub(crate) fn source_of(host: u16) -> SourceId {
    SourceId(host.saturating_add(1))
}
