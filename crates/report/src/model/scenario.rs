//! A scenario's steps, and what each did to the tenants that it was not about.

use kelvin_diagnose::interference::{Interference, interference};
use kelvin_diagnose::tenants::{TenantSeries, steps};
use kelvin_measure::event::Step;
use kelvin_store::StoredRun;
use serde::Serialize;

use crate::Result;

/// What a run of a scenario has beside the figures of its tenants.
#[derive(Debug, Clone, Serialize)]
pub struct ScenarioReport {
    /// The steps that were done, in their order.
    pub steps: Vec<Step>,
    /// Each tenant before and after each change of another's load.
    pub interference: Vec<Interference>,
}

impl ScenarioReport {
    /// Of a stored run; none of one that is no scenario.
    pub(crate) fn of(run: &StoredRun) -> Result<Option<Self>> {
        let steps = steps(run)?;
        if steps.is_empty() {
            return Ok(None);
        }
        let tenants = TenantSeries::all(run)?;
        let interference = interference(&tenants, &steps);
        Ok(Some(Self { steps, interference }))
    }
}
