//! I/O jobs on an agent's host: they are prepared, wait for the controller's order to start, run to their
//! end, and report as any load generator does.

use std::cell::RefCell;
use std::sync::Arc;

use kelvin_measure::event::Event;
use kelvin_measure::{Clock, Nanos, Sink, SinkError, SourceId, Stop, Totals};
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::probe::StorageFacts;

use super::run::{IoRun, IoRunWatcher};
use crate::control::LoadControl;
use crate::driver::{GeneratorReport, LoadTimes};
use crate::error::RunError;
use crate::fleet::{ControllerLink, EndOrder, GeneratorAssignment};
use crate::spec::Spec;

/// Runs all workers of these jobs as assigned by a controller. Events go to `link`, which also provides the
/// order to start; `order` may end the jobs early.
///
/// # Errors
/// When the jobs differ from the controller's, cannot be prepared, or are stopped by anything other than
/// `order`.
pub fn generate(
    run: IoRun,
    spec: &Spec,
    assignment: &GeneratorAssignment,
    (clock, stop): (&Clock, &Stop),
    order: &EndOrder,
    link: &mut dyn ControllerLink,
) -> Result<GeneratorReport, RunError> {
    let workers = assignment.range.count();
    if run.series() != assignment.series || run.workers() != workers as usize {
        return Err(RunError::Start("the jobs have other workers or directions here".into()));
    }
    let roles = assignment.series.iter().map(|series| series.role).collect();
    let control = Arc::new(LoadControl::new());
    let link = RefCell::new(link);
    let mut sink = ToLink { link: &link, bytes: vec![0; run.counters().len()] };
    let mut view = StartView {
        link: &link,
        control: &control,
        clock,
        stop,
        order,
        times: None,
        began: None,
        ordered: false,
    };
    let done = run.controlled(Arc::clone(&control)).execute(spec, clock, stop, &mut sink, &mut view)?;
    let (Some(times), true) = (view.times, done.result.is_some()) else {
        return Err(done.error.filter(|_| !stop.requested()).map_or(RunError::Interrupted, RunError::Start));
    };
    if stop.requested() && !view.ordered {
        return Err(RunError::Interrupted);
    }
    let totals = done.totals.into_iter().next().map_or_else(|| Totals::new(roles), |(_, totals)| totals);
    // An ordered end is not an error of the jobs.
    let broken = done.error;
    Ok(GeneratorReport::of_jobs((times, view.began), totals, (sink.bytes, done.failed), workers, broken))
}

/// Forwards the jobs' events to the controller.
struct ToLink<'a, 'b> {
    link: &'a RefCell<&'b mut dyn ControllerLink>,
    /// Bytes by series.
    bytes: Vec<u64>,
}

impl Sink for ToLink<'_, '_> {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        match event {
            // The controller ends the run.
            Event::Finished { .. } => return Ok(()),
            Event::Counters { values, .. } => self.bytes.clone_from(values),
            // The layout's progress is in bytes. The controller counts armed workers: none before the layout
            // is done.
            Event::Progress { what, rows, .. } => {
                let waiting = Event::Progress { what: what.clone(), done: 0, total: 0, rows: *rows };
                return self.link.borrow_mut().event_from(source, &waiting);
            }
            _ => {}
        }
        self.link.borrow_mut().event_from(source, event)
    }
}

/// Waits for the order to start when the files are ready, records when the first worker began, and follows an
/// order to end.
struct StartView<'a, 'b> {
    link: &'a RefCell<&'b mut dyn ControllerLink>,
    control: &'a LoadControl,
    clock: &'a Clock,
    stop: &'a Stop,
    order: &'a EndOrder,
    times: Option<LoadTimes>,
    began: Option<Nanos>,
    /// Whether the controller ended the jobs.
    ordered: bool,
}

impl StartView<'_, '_> {
    fn follow_order(&mut self) {
        if let (Some(times), Some(ordered)) = (&mut self.times, self.order.take()) {
            times.close = times.close.min(ordered.close);
        }
        let due = self.times.is_some_and(|times| self.clock.now() >= times.close);
        if due && !self.ordered && !self.stop.requested() {
            self.ordered = true;
            self.stop.request();
        }
    }
}

impl IoWatcher for StartView<'_, '_> {
    fn event(&mut self, event: &IoEvent<'_>) {
        if let IoEvent::Tick(tick) = event {
            self.began = Some(self.began.map_or(tick.from, |began| began.min(tick.from)));
        }
        self.follow_order();
    }

    fn idle(&mut self) {
        self.follow_order();
    }
}

impl IoRunWatcher for StartView<'_, '_> {
    fn looked(&mut self, _facts: &StorageFacts) {
        let armed = self.link.borrow_mut().armed();
        match armed {
            Ok(times) => {
                self.times = Some(times);
                self.control.begin_at(times.begin);
            }
            // The load is no longer to start.
            Err(_) => self.stop.request(),
        }
    }
}
