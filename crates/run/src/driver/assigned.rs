//! A generator on an agent's host: it connects its users, waits for the order to start, drives them to their
//! end, and reports. The accounting is done by the controller's point.

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_measure::event::Series;
use kelvin_measure::{Clock, SourceId};
use kelvin_workload::{Stop, Workload};

use super::fleet::{ControllerLink, EndOrder, GeneratorAssignment};
use super::generator::ArmedGenerator;
use super::generator_report::GeneratorReport;
use super::{Point, Underway};
use crate::error::RunError;
use crate::series::series;

/// Executes an assignment of a point on another host, with an inspected workload: connects the users, reports
/// that they are armed, generates load from the ordered start, and returns the generator's report. Events go
/// to `link`.
///
/// # Errors
/// When this host's workload differs, when the users cannot connect or start, or when events cannot be sent.
pub fn generate(
    assignment: &GeneratorAssignment,
    engine: &Arc<dyn Engine>,
    workload: &Arc<dyn Workload>,
    clock: &Clock,
    stop: &Stop,
    order: &EndOrder,
    link: &mut dyn ControllerLink,
) -> Result<GeneratorReport, RunError> {
    let GeneratorAssignment { range, load, rate, .. } = assignment;
    let own = series(workload.kinds(), rate.is_some());
    if own != assignment.series {
        let names =
            |series: &[Series]| series.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(RunError::Start(format!(
            "the workload has other transaction types here ({}) than on the controller ({})",
            names(&own),
            names(&assignment.series)
        )));
    }
    if range.count() == 0 {
        return Err(RunError::Start("no user was assigned".into()));
    }
    let point = Point {
        index: assignment.point,
        users: range.total(),
        most_users: assignment.most_users,
        rate: *rate,
        load,
        accept_noise: assignment.accept_noise,
        observed: false,
        clock,
        stop,
        control: None,
        fleet: None,
    };
    let armed = ArmedGenerator::connect(&point, (SourceId::LOCAL, *range), engine, workload, &mut *link)?;
    let times = link.armed()?;
    let generator = armed.start(times, &mut *link)?;
    point.first_phase(times, &mut *link)?;
    let mut underway = Underway { generators: vec![generator], remote: None, server: None, times };
    let ended = point.drive_to_end(&mut underway, &**workload, Some(order), &mut *link)?;
    point.emit_executions(&**workload, times.open, &mut *link)?;
    let generator =
        underway.generators.pop().ok_or_else(|| RunError::Start("the generator is gone".into()))?;
    generator.finish(ended, stop.is_immediate(), &mut *link)
}
