//! The seam between a point and load generators on other hosts: what the point asks of a fleet, and what a host of it does.
//! How the two reach each other is not known here.

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

/// What one generator of a point is to do. The specification of the run is known on its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorAssignment {
    /// Index of the point in the run.
    pub point: u32,
    /// Its users, of those of all generators.
    pub range: UserRange,
    /// The most users of any point of the run, on all hosts.
    pub most_users: u32,
    /// Arrivals a second of the whole point; its share follows from the users.
    pub rate: Option<f64>,
    /// How the load is put on; it may differ from the specification's, as the trials of a search take longer.
    pub load: Load,
    /// Whether other work on the host is taken for good.
    pub accept_noise: bool,
    /// The series of the run, which must be the host's, too.
    pub series: Vec<Series>,
}

/// What a point wants of a fleet.
#[derive(Debug, Clone, Copy)]
pub struct FleetPoint<'a> {
    /// The generators: the one of each host, in the order of [`Fleet::hosts`].
    pub assignments: &'a [GeneratorAssignment],
    /// The clock that all times of the point are of.
    pub clock: &'a Clock,
    /// Asks for an early end.
    pub stop: &'a Stop,
}

/// The hosts that generate the load of a run.
pub trait Fleet: Send + Sync {
    /// Their names, in an order that stays.
    fn hosts(&self) -> Vec<String>;

    /// Their machines in the same order, as far as they are known.
    fn machines(&self) -> Vec<Option<Machine>> {
        Vec::new()
    }

    /// Has as many hosts as there are assignments connect their users, and returns when all have. `connected` is called a
    /// few times a second with the number of users of all hosts that have a connection; its error ends the wait.
    ///
    /// # Errors
    /// When a host refuses, or does not answer.
    fn arm<'a>(
        &'a self,
        point: &FleetPoint<'_>,
        connected: &mut dyn FnMut(u64) -> Result<(), RunError>,
    ) -> Result<Box<dyn RemoteGenerators + 'a>, RunError>;
}

/// The generators of a point, whose users are connected; by the index of their assignments. Dropped without an end, they end
/// their load.
pub trait RemoteGenerators: Send {
    /// How long before its time the order to start must be given, so that all have it by then.
    fn notice(&self) -> Duration;

    /// Orders all to start at these times of the point's clock.
    ///
    /// # Errors
    /// When the order cannot be sent.
    fn start(&mut self, times: LoadTimes) -> Result<(), RunError>;

    /// Orders all to end their window and load at these times, sooner than planned.
    fn end_at(&mut self, times: LoadTimes);

    /// Orders all to end at once, whatever they are doing.
    fn abort(&mut self);

    /// The next few of what has come, since decoded each may be large; none when there is no more. Does not wait.
    fn poll(&mut self) -> Vec<(usize, GeneratorMessage)>;

    /// The clocks of all hosts; none of a host that cannot be asked. Asked for once, when all have ended.
    fn clocks(&mut self) -> Vec<Option<HostClock>>;
}

/// What comes from a generator on another host.
#[derive(Debug)]
pub enum GeneratorMessage {
    /// An event, in their order and each once.
    Event(Event),
    /// Its end, after its last event.
    Ended(Box<GeneratorReport>),
    /// It broke off; why.
    Failed(String),
    /// It has not been heard of for a moment; what is missing.
    Suspect(String),
    /// It has not been heard of for so long that nobody waits for it any more; why. What it says later is in its own file.
    Lost(String),
}

/// A generator's way to its point: takes its events, and knows when it starts.
pub trait ControllerLink: Sink {
    /// Says that all users are connected and waits for the order to start; its times are of this host's clock.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] when there is nothing to start any more.
    fn armed(&mut self) -> Result<LoadTimes, RunError>;
}

/// The order to end a load sooner than planned, given while it runs.
#[derive(Debug, Default)]
pub struct EndOrder(Mutex<Option<LoadTimes>>);

impl EndOrder {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Orders the end of window and load at these times of the generator's clock; their beginning does not count.
    pub fn give(&self, times: LoadTimes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(times);
    }

    /// The newest order that was not taken yet.
    pub(crate) fn take(&self) -> Option<LoadTimes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Declares the hosts of a fleet as the sources of a run's events.
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

/// The source of the events of a host, by its index: the controller is a source, too, and the first.
pub(crate) fn source_of(host: u16) -> SourceId {
    SourceId(host.saturating_add(1))
}
