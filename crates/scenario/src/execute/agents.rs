//! Tenants whose load an agent of a fleet puts on: each on one agent, which begins and ends it by the scenario's clock.

use std::fmt;

use kelvin_run::fleet::Fleet;
use kelvin_run::{RunError, Spec};

use super::prepare::PreparedLoad;
use super::{Stage, Turn};

/// The agents of a fleet, as a scenario needs them.
pub trait TenantAgents: fmt::Debug + Send + Sync {
    /// Has an agent work for a turn of a tenant, whose specification this is.
    ///
    /// # Errors
    /// When it does not answer, or works for something else: as text.
    fn take(&self, agent: &str, spec: &Spec) -> Result<Box<dyn TenantAgent>, String>;
}

/// An agent that works for a turn of a tenant: a fleet of one host.
pub trait TenantAgent: Fleet {
    /// The turn is over.
    fn finish(&self);
}

/// The agent of a turn; none of a tenant on this host.
pub(super) fn take(
    stage: &Stage<'_>,
    tenant: usize,
    turn: &Turn,
    load: &PreparedLoad,
) -> Result<Option<Box<dyn TenantAgent>>, RunError> {
    let of = &stage.scenario.tenants[tenant];
    let Some(agent) = &of.host else { return Ok(None) };
    let agents = stage.conditions.agents.as_ref();
    let agents =
        agents.ok_or_else(|| RunError::Start(format!("{agent} does not belong to a known fleet")))?;
    let mut spec = match load {
        PreparedLoad::Database(load) => load.0.clone(),
        PreparedLoad::Io(_) => of.spec_for(turn.lasts),
    };
    spec.accept_noise = stage.scenario.accept_noise;
    agents.take(agent, &spec).map(Some).map_err(RunError::Start)
}
