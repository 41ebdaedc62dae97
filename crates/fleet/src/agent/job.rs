//! An agent's part in one run: the opened target, the load of one point at a time, and the agent's own store
//! of the run.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kelvin_measure::event::{Phase, Status as RunStatus};
use kelvin_measure::{Clock, Event, Nanos, SECOND, Sink, SinkError, SourceId};
use kelvin_run::driver::{GeneratorReport, LoadTimes};
use kelvin_run::fleet::{ControllerLink, EndOrder, GeneratorAssignment};
use kelvin_run::spec::Load;
use kelvin_run::{RunError, Spec};
use kelvin_store::{RunWriter, Store};
use kelvin_workload::Stop;

use super::opened::OpenedLoad;
use super::outbox::Outbox;
use super::{ClockTestHook, Status};
use crate::bus::{Bus, Task};
use crate::error::{FleetError, causes};
use crate::message::{AgentState, ControllerBeat, OutputItem, decode};
use crate::subject::{Name, Subjects};

type Result<T> = std::result::Result<T, FleetError>;

/// How often a load that waits for its start checks for a stop request.
const PATIENCE: Duration = Duration::from_millis(50);

/// How far ahead a start may be, in nanoseconds; agents receive the order seconds before it.
const FURTHEST: Nanos = 600 * SECOND;

/// Time after which a load that was asked to end is interrupted.
const ORDERLY: Duration = Duration::from_secs(5);

/// The parts of the agent that a job uses.
pub(super) struct AgentContext {
    pub(super) agent: Name,
    pub(super) bus: Arc<Bus>,
    pub(super) subjects: Subjects,
    pub(super) clock: Clock,
    pub(super) hook: ClockTestHook,
    pub(super) status: Arc<Status>,
}

/// The reason for a job's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobEnd {
    /// The controller ended the run.
    Over,
    /// The controller was silent for too long.
    Alone,
    /// Any other reason.
    Aborted,
}

/// A run that the agent takes part in.
pub(super) struct Job {
    run: Name,
    /// As returned by [`super::allow::AllowedTargets::check`].
    spec: Spec,
    opened: OpenedLoad,
    context: AgentContext,
    writer: Arc<Mutex<RunWriter>>,
    outbox: Outbox,
    load: Option<PointLoad>,
    /// When the last message of the controller arrived, and how long it may be silent.
    heard: Arc<Mutex<Instant>>,
    alone: Duration,
    _beats: Task,
    ending: Option<JobEnd>,
    /// When the load was asked to end.
    stopping: Option<Instant>,
}

/// The load of a point.
struct PointLoad {
    point: u32,
    orders: Arc<PointOrders>,
    thread: JoinHandle<()>,
}

/// The controller's orders to the load of a point.
#[derive(Default)]
struct PointOrders {
    stop: Stop,
    end: EndOrder,
    start: Mutex<Option<LoadTimes>>,
    changed: Condvar,
}

impl PointOrders {
    fn start(&self) -> MutexGuard<'_, Option<LoadTimes>> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Starts the stored run, and listens to the controller.
    pub(super) fn prepare(
        (run, spec, opened): (Name, Spec, OpenedLoad),
        store: &Store,
        alone: Duration,
        context: AgentContext,
    ) -> Result<Self> {
        let refused = |error: &dyn std::error::Error| FleetError::Refused(causes(error));
        let info = opened.describe(&run, &context.agent, &spec)?;
        let writer = store.begin_run(&info).map_err(|error| refused(&error))?;
        let heard = Arc::new(Mutex::new(Instant::now()));
        let hears = Arc::clone(&heard);
        let beats = context.bus.subscribe(&context.subjects.controller(&run), move |incoming| {
            if decode::<ControllerBeat>(&incoming.payload).is_ok() {
                *hears.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            }
        })?;
        let outbox = Outbox::start(Arc::clone(&context.bus), &context.subjects, &run, &context.agent)?;
        Ok(Self {
            run,
            spec,
            opened,
            context,
            writer: Arc::new(Mutex::new(writer)),
            outbox,
            load: None,
            heard,
            alone,
            _beats: beats,
            ending: None,
            stopping: None,
        })
    }

    pub(super) fn run(&self) -> &Name {
        &self.run
    }

    /// Records a message from the controller.
    pub(super) fn heard(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The load of the checked specification. A point may only change the length of its window.
    fn allowed_load(&self, assignment: &GeneratorAssignment) -> Result<Load> {
        if self.spec.is_io() {
            return Ok(self.spec.load.clone());
        }
        let mut spec = self.spec.clone();
        spec.load.duration = assignment.load.duration;
        spec.validate().map_err(|error| FleetError::Refused(error.to_string()))?;
        let total = assignment.range.total();
        let known = spec.load.points().iter().any(|(users, _)| *users == total);
        let possible = assignment.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0);
        if !known || !possible {
            let why = format!("a point with {total} users is not one of the run's specification");
            return Err(FleetError::Refused(why));
        }
        Ok(spec.load)
    }

    /// Connects the users of a point, which then wait for the start.
    pub(super) fn arm(&mut self, mut assignment: GeneratorAssignment) -> Result<()> {
        assignment.load = self.allowed_load(&assignment)?;
        if !self.is_idle() {
            return Err(FleetError::Refused("its load of another point is still running".into()));
        }
        let Some(sender) = self.outbox.sender() else {
            return Err(FleetError::Refused("its run has ended".into()));
        };
        let (point, orders) = (assignment.point, Arc::new(PointOrders::default()));
        let link = Link {
            point,
            users: assignment.range.count(),
            orders: Arc::clone(&orders),
            writer: Arc::clone(&self.writer),
            sender,
            clock: self.context.clock.clone(),
            status: Arc::clone(&self.context.status),
        };
        let load = self.opened.take_load(&self.spec)?;
        self.context.status.set(AgentState::Connecting { point, done: 0 });
        let clock = self.context.clock.clone();
        let thread = std::thread::Builder::new()
            .name("generator".into())
            .spawn(move || {
                let mut link = link;
                let orders = Arc::clone(&link.orders);
                let ended = link.begin().and_then(|()| {
                    load.generate(&assignment, (&clock, &orders.stop), &orders.end, &mut link)
                });
                link.end(ended);
            })
            .map_err(|error| FleetError::Refused(format!("cannot start a thread: {error}")))?;
        self.load = Some(PointLoad { point, orders, thread });
        Ok(())
    }

    fn load(&self, point: u32) -> Result<&PointLoad> {
        let load = self.load.as_ref().filter(|load| load.point == point);
        load.ok_or_else(|| FleetError::Refused(format!("it has no load of point {point}")))
    }

    /// Orders the start. Returns its time in nanoseconds of the kernel's monotonic clock.
    pub(super) fn start(&self, point: u32, times: LoadTimes) -> Result<u64> {
        let load = self.load(point)?;
        let times = self.context.hook.real_times(times);
        let (now, kernel) = clocks_at_once(&self.context.clock);
        let ahead = lead(times, now)?;
        *load.orders.start() = Some(times);
        load.orders.changed.notify_all();
        Ok(kernel + ahead)
    }

    /// Orders an earlier end.
    pub(super) fn end_at(&self, point: u32, times: LoadTimes) -> Result<()> {
        self.load(point)?.orders.end.give(self.context.hook.real_times(times));
        Ok(())
    }

    /// Stops the load immediately.
    pub(super) fn abort(&mut self) {
        if let Some(load) = &self.load {
            load.orders.stop.request();
            load.orders.stop.request();
            load.orders.changed.notify_all();
        }
    }

    /// Ends the run, and stops a running load.
    pub(super) fn end(&mut self) {
        self.ending.get_or_insert(JobEnd::Over);
        self.abort();
    }

    /// Whether there is no load.
    pub(super) fn is_idle(&self) -> bool {
        self.load.is_none()
    }

    /// Removes a load that has ended, and stops one without a controller.
    pub(super) fn look_after(&mut self) {
        if let Some(load) = self.load.take_if(|load| load.thread.is_finished()) {
            // A panic is reported by the end of the link, or else noticed by the controller from the beats.
            let _panicked = load.thread.join();
        }
        let silent = self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        if silent > self.alone && self.ending.is_none() {
            self.ending = Some(JobEnd::Alone);
            self.stopping = Some(Instant::now());
            if let Some(load) = &self.load {
                load.orders.stop.request();
                load.orders.changed.notify_all();
            }
        }
        if self.stopping.is_some_and(|since| since.elapsed() > ORDERLY) {
            self.stopping = None;
            self.abort();
        }
    }

    /// The reason for the job's end, once its load has ended.
    pub(super) fn is_over(&self) -> Option<JobEnd> {
        self.ending.filter(|_| self.is_idle())
    }

    /// Closes the stored run, and waits until the NATS server has all messages. Returns a sentence about
    /// both.
    pub(super) fn finish(self, end: JobEnd, stop: &Stop) -> Result<String> {
        let (status, why) = match end {
            JobEnd::Over => (RunStatus::Complete, None),
            JobEnd::Alone => {
                let why = format!("no message from the controller for {} s", self.alone.as_secs_f64());
                (RunStatus::Interrupted, Some(why))
            }
            JobEnd::Aborted => (RunStatus::Interrupted, Some("the agent was stopped".into())),
        };
        let Self { writer, outbox, opened, .. } = self;
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = writer.event(&Event::Finished { status, error: why.clone() });
        let id = writer.id();
        drop(writer);
        let sent = outbox.finish(stop);
        drop(opened);
        finished.map_err(|error| FleetError::Refused(format!("its file is incomplete: {error}")))?;
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        let sent = if sent { "" } else { "; the NATS server did not receive all of it" };
        Ok(format!("ended, stored as run {id} on this host{why}{sent}"))
    }
}

/// The agent's clock and the kernel's monotonic clock at the same time. Of several readings the closest pair
/// counts, since the thread may be preempted between the two.
fn clocks_at_once(clock: &Clock) -> (Nanos, Nanos) {
    let read = || {
        let before = clock.now();
        let kernel = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let after = clock.now();
        (after - before, before.midpoint(after), kernel.tv_sec as u64 * SECOND + kernel.tv_nsec as u64)
    };
    let closest = (0..8).map(|_| read()).min_by_key(|(apart, ..)| *apart);
    closest.map_or((0, 0), |(_, own, kernel)| (own, kernel))
}

/// How far ahead the start is, in nanoseconds. Refuses implausible times.
fn lead(times: LoadTimes, now: Nanos) -> Result<Nanos> {
    let LoadTimes { begin, open, close, end } = times;
    let refused = |why: &str| Err(FleetError::Refused(why.into()));
    if !(begin <= open && open <= close && close <= end) {
        return refused("the times of the load are out of order");
    }
    match begin.saturating_sub(now) {
        0 => refused("the start time has already passed"),
        ahead if ahead > FURTHEST => refused("the start time is too far ahead"),
        ahead => Ok(ahead),
    }
}

/// The load's connection to the controller: events go into the agent's store and the outbox.
struct Link {
    point: u32,
    users: u32,
    orders: Arc<PointOrders>,
    writer: Arc<Mutex<RunWriter>>,
    sender: Sender<OutputItem>,
    clock: Clock,
    status: Arc<Status>,
}

impl Link {
    fn keep(&self, event: &Event) -> std::result::Result<(), SinkError> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).event(event)
    }

    fn begin(&self) -> std::result::Result<(), RunError> {
        let (phase, at) = (Phase::Connect, self.clock.now());
        Ok(self.keep(&Event::Phase { point: self.point, phase, at, users: self.users, planned: None })?)
    }

    /// Reports how the load ended, and stores the sums with which the seconds in the agent's store are
    /// compared. The report does not wait for the disk, since the controller has all the seconds.
    fn end(self, ended: std::result::Result<GeneratorReport, RunError>) {
        let point = self.point;
        // Locked first, so that the store is not closed without the sums.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = ended.as_ref().ok().map(|report| report.totals().clone());
        let item = match ended {
            Ok(report) => OutputItem::Ended { point, report: Box::new(report) },
            Err(error) => OutputItem::Failed { point, why: causes(&error) },
        };
        // The outbox lives as long as the job.
        let _gone = self.sender.send(item);
        // A write error is reported again when the store is closed.
        let _kept = totals.map(|totals| writer.set_totals(point, &totals));
        drop(writer);
        self.status.set(AgentState::Prepared);
    }
}

impl Sink for Link {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> std::result::Result<(), SinkError> {
        if let Event::Progress { done, .. } = event {
            self.status.set(AgentState::Connecting { point: self.point, done: *done });
            return Ok(());
        }
        self.keep(event)?;
        // The controller emits the phases itself. Observations of this host are only in the agent's own
        // store.
        let of_the_run = match event {
            Event::Second(_)
            | Event::Arrivals(_)
            | Event::Errors(_)
            | Event::Note { .. }
            | Event::Counters { .. }
            | Event::Query(_)
            | Event::Window(_)
            | Event::Invariant { .. } => true,
            Event::Storage { what, .. } => what != "facts",
            _ => false,
        };
        if !of_the_run {
            return Ok(());
        }
        let item = OutputItem::Event { point: self.point, event: event.clone() };
        self.sender.send(item).map_err(|_| "the thread that sends the results has ended".into())
    }
}

impl ControllerLink for Link {
    fn armed(&mut self) -> std::result::Result<LoadTimes, RunError> {
        self.status.set(AgentState::Armed { point: self.point });
        let mut ordered = self.orders.start();
        loop {
            if self.orders.stop.requested() {
                return Err(RunError::Interrupted);
            }
            if let Some(times) = ordered.take() {
                self.status.set(AgentState::Running { point: self.point });
                return Ok(times);
            }
            let waited = self.orders.changed.wait_timeout(ordered, PATIENCE);
            ordered = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_soon_and_its_times_are_in_order() {
        let times = |begin, open, close, end| LoadTimes { begin, open, close, end };
        let refusal = |times, now| lead(times, now).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(lead(times(7, 7, u64::MAX, u64::MAX), 5).unwrap(), 2);
        assert_eq!(lead(times(FURTHEST, FURTHEST, u64::MAX, u64::MAX), 0).unwrap(), FURTHEST);
        // An order that was replayed, or delayed for a long time.
        assert!(refusal(times(7, 8, 9, 10), 7).contains("already passed"));
        assert!(refusal(times(u64::MAX, u64::MAX, u64::MAX, u64::MAX), 0).contains("too far ahead"));
        for wrong in [times(8, 7, 9, 10), times(7, 9, 8, 10), times(7, 8, 10, 9)] {
            assert!(refusal(wrong, 5).contains("out of order"));
        }
    }
}
