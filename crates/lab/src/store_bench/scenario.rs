//! The bench for scenarios: the database of each tenant with its data, and a single stored run with the events of
//! all.

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_measure::{Event, Sink, SinkError, SourceId, Totals};
use kelvin_run::spec::Build;
use kelvin_run::{Environment, RunError, Spec};
use kelvin_store::{NewRun, RunId};
use kelvin_workload::{Stop, Workload};

use super::{CompletedRun, Result, StoreBench, StoreBenchError, prepare};
use crate::error::Doing;
use crate::live::Live;
use crate::open::{self, Opened, Purpose};

/// A database with the data for a tenant's workload.
pub struct PreparedTenant {
    /// The database; open until this is dropped.
    pub opened: Opened,
    /// The workload, inspected.
    pub workload: Arc<dyn Workload>,
    /// The properties of its environment that determine results.
    pub environment: Environment,
    /// Notes for the reader of the result.
    pub notes: Vec<String>,
}

impl PreparedTenant {
    /// The database.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.opened.engine
    }
}

/// Opens a tenant's database that another process has prepared. Creates no data, and does not prompt for a password.
///
/// # Errors
/// When it cannot be used, or data is missing.
pub fn reopen_tenant(spec: &mut Spec, stop: &Stop) -> Result<PreparedTenant> {
    spec.build = Build::Never;
    let opened = open::open(&spec.target, Purpose::Run, |_| Ok(None), &mut |_| ())?;
    let mut notes = Vec::new();
    let workload = prepare::prepare(spec, &opened, &mut Unheard, stop, &mut notes)?;
    let environment = Environment::read(&*opened.engine, &mut *opened.engine.connect()?)
        .doing("reading the version and the settings of the database")?;
    Ok(PreparedTenant { opened, workload, environment, notes })
}

/// A view that ignores everything.
struct Unheard;

impl Sink for Unheard {
    fn event_from(&mut self, _source: SourceId, _event: &Event) -> std::result::Result<(), SinkError> {
        Ok(())
    }
}

impl Live for Unheard {
    fn begin(&mut self, _id: RunId, _info: &NewRun, _spec: &Spec) {}

    fn message(&mut self, _text: &str) {}

    fn end(&mut self) {}
}

impl StoreBench<'_> {
    /// Opens a tenant's database and creates missing data. `spec` is updated with properties that it took from the
    /// database.
    ///
    /// # Errors
    /// When it cannot be used, or the data cannot be created.
    pub fn prepare_tenant(&mut self, spec: &mut Spec) -> Result<PreparedTenant> {
        let opened =
            open::open(&spec.target, Purpose::Run, self.origin.prompt, &mut |text| self.live.message(text))?;
        let mut notes = Vec::new();
        let workload = prepare::prepare(spec, &opened, self.live, self.stop, &mut notes)?;
        let environment = Environment::read(&*opened.engine, &mut *opened.engine.connect()?)
            .doing("reading the version and the settings of the database")?;
        prepare::warn_of_faults(spec, &environment, self.live, &mut notes);
        Ok(PreparedTenant { opened, workload, environment, notes })
    }

    /// The command line that repeats the run.
    pub fn command(&self) -> &str {
        &self.origin.command
    }

    /// Shows a sentence to the user.
    pub fn message(&mut self, text: &str) {
        self.live.message(text);
    }

    /// Stores a run whose events `body` emits, the last of them [`kelvin_measure::Event::Finished`], and judges it.
    /// `spec` describes the load for views. The totals that `body` returns are compared with the stored ones.
    ///
    /// # Errors
    /// When it cannot be stored, or `body` fails.
    pub fn record<R>(
        &mut self,
        info: &NewRun,
        environment: &Environment,
        spec: &Spec,
        body: impl FnOnce(&mut dyn Sink) -> std::result::Result<(R, Totals), RunError>,
    ) -> Result<(CompletedRun, R)> {
        let mut writer = self.begin(info, environment, None, spec)?;
        let id = writer.id();
        let done = body(&mut (&mut writer, &mut *self.live));
        let summed = done.as_ref().map_or(Ok(()), |(_, totals)| writer.set_totals(0, totals));
        drop(writer);
        self.live.end();
        let (outcome, ended) = match done {
            Ok((outcome, _)) => (Some(outcome), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let kept = self.ended(id, ended)?;
        summed.map_err(StoreBenchError::kept)?;
        let outcome = outcome.ok_or_else(|| StoreBenchError::Refused("it ended without a result".into()))?;
        Ok((kept, outcome))
    }
}
