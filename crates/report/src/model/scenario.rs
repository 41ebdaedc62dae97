//! A scenario's steps, and the effects of each on the other tenants.

use kelvin_diagnose::interference::{Interference, interference};
use kelvin_diagnose::tenants::{TenantSeries, steps};
use kelvin_measure::event::Step;
use kelvin_store::StoredRun;
use serde::Serialize;

use crate::Result;

/// Results of a scenario beyond those of its tenants.
#[derive(Debug, Clone, Serialize)]
pub struct ScenarioReport {
    /// The executed steps, in order.
    pub steps: Vec<Step>,
    /// The results of each tenant before and after each change of another tenant's load.
    pub interference: Vec<Interference>,
}

impl ScenarioReport {
    /// For a stored run; none if it is not a scenario.
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
