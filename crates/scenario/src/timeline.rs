//! When the steps are planned, and whether they can be done in their order.

use std::time::Duration;

use kelvin_run::spec::{Span, Work};
use serde::Serialize;

use crate::step::{Action, Step};
use crate::tenant::Tenant;

/// A step with its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedStep {
    /// Its number, from 1.
    pub number: usize,
    /// Seconds since the clock began; none before, where data are made.
    pub at: Option<f64>,
    /// Whether it may be later: something before it takes as long as it takes.
    pub at_least: bool,
    /// What it does.
    pub text: String,
}

/// The steps with their times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// In their order.
    pub steps: Vec<PlannedStep>,
    /// Seconds from the clock's beginning to the end of the last step.
    pub seconds: f64,
    /// Whether it may take longer.
    pub at_least: bool,
}

/// Where a tenant is in the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TenantState {
    /// Not started, or ended.
    Idle,
    /// At work until a step stops it.
    Running,
    /// At work until then at the latest, as far as it is planned; none where nobody knows.
    EndsBy(Option<Duration>),
}

/// What is wrong with a step: its place in the file and why.
pub(crate) type Impossible = (usize, String);

impl Timeline {
    /// Goes through the steps.
    pub(crate) fn plan(tenants: &[Tenant], planned: &[Step]) -> Result<Self, Impossible> {
        let mut walk = Walk {
            tenants,
            places: vec![TenantState::Idle; tenants.len()],
            started: vec![false; tenants.len()],
            at: None,
            at_least: false,
        };
        let mut steps = Vec::with_capacity(planned.len());
        for (number, step) in (1..).zip(planned) {
            let text = step.text(tenants);
            if matches!(step.action, Action::Start { .. }) {
                walk.at.get_or_insert(Duration::ZERO);
            }
            let at = walk.at.map(|at| at.as_secs_f64());
            steps.push(PlannedStep { number, at, at_least: walk.at_least, text });
            walk.step(step).map_err(|why| (step.place, why))?;
        }
        if let Some(idle) = walk.started.iter().position(|started| !started) {
            return Err((0, format!("no step starts the tenant {}", tenants[idle].name)));
        }
        let seconds = walk.at.unwrap_or_default().as_secs_f64();
        if seconds == 0.0 && !walk.at_least {
            return Err((
                0,
                "the scenario ends immediately: add a wait, or a wait-for, after the start".into(),
            ));
        }
        Ok(Self { steps, seconds, at_least: walk.at_least })
    }
}

struct Walk<'a> {
    tenants: &'a [Tenant],
    places: Vec<TenantState>,
    started: Vec<bool>,
    at: Option<Duration>,
    at_least: bool,
}

impl Walk<'_> {
    fn now(&self) -> Duration {
        self.at.unwrap_or_default()
    }

    fn wait(&mut self, span: Duration) {
        self.at = self.at.map(|at| at + span);
    }

    fn name(&self, tenant: usize) -> &str {
        &self.tenants[tenant].name
    }

    /// Whether it is certainly over.
    fn is_idle(&self, tenant: usize) -> bool {
        match self.places[tenant] {
            TenantState::Idle => true,
            TenantState::EndsBy(Some(end)) => !self.at_least && end <= self.now(),
            TenantState::Running | TenantState::EndsBy(None) => false,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Prepare(_) | Action::Fill(_) if self.at.is_some() => {
                Err("prepare and fill must come before the first start: they would be an unmeasured load"
                    .into())
            }
            Action::Prepare(_) | Action::Mark(_) => Ok(()),
            Action::Fill(tenants) => match tenants.iter().find(|&&one| !self.tenants[one].spec.is_io()) {
                Some(&one) => Err(format!("fill is for I/O jobs; {} is prepared (prepare)", self.name(one))),
                None => Ok(()),
            },
            Action::Start { tenants, lasts, stagger } => self.start(tenants, *lasts, *stagger),
            Action::Stop(tenants) => {
                self.each_at_work(tenants, "stop")?;
                for &tenant in tenants {
                    self.places[tenant] = TenantState::Idle;
                }
                Ok(())
            }
            Action::Rate(tenants, _) => {
                self.each_at_work(tenants, "set")?;
                let has_rate = |spec: &kelvin_run::Spec| match &spec.work {
                    Work::Io(io) => io.asked().is_some(),
                    _ => spec.is_open_loop(),
                };
                self.each(tenants, has_rate, |name| {
                    format!("the rate of {name} cannot be set: it has none (a load with a rate, jobs with rate_iops)")
                })
            }
            Action::Users(tenants, _) => {
                self.each_at_work(tenants, "set")?;
                self.each(
                    tenants,
                    |spec| !spec.is_io() && !spec.is_open_loop(),
                    |name| {
                        format!("the users of {name} cannot be set: it is not a closed loop on a database")
                    },
                )
            }
            Action::Wait(span) => {
                self.wait(span.duration());
                Ok(())
            }
            Action::WaitFor { tenants, .. } => self.wait_for(tenants),
            Action::Run { .. } => {
                self.at_least |= self.at.is_some();
                Ok(())
            }
        }
    }

    fn each(
        &self,
        tenants: &[usize],
        holds: impl Fn(&kelvin_run::Spec) -> bool,
        why: impl Fn(&str) -> String,
    ) -> Result<(), String> {
        let found = tenants.iter().find(|&&tenant| !holds(&self.tenants[tenant].spec));
        found.map_or(Ok(()), |&tenant| Err(why(self.name(tenant))))
    }

    fn each_at_work(&self, tenants: &[usize], verb: &str) -> Result<(), String> {
        match tenants.iter().find(|&&tenant| self.places[tenant] == TenantState::Idle) {
            Some(&tenant) => Err(format!("{verb}: {} is not running here", self.name(tenant))),
            None => Ok(()),
        }
    }

    fn start(&mut self, tenants: &[usize], lasts: Option<Span>, stagger: Span) -> Result<(), String> {
        let apart = gap(stagger, tenants.len());
        for (number, &tenant) in (0_u32..).zip(tenants) {
            if !self.is_idle(tenant) {
                let name = self.name(tenant);
                return Err(format!(
                    "start: {name} may still be running here; stop it or wait for it (wait-for)"
                ));
            }
            let one = &self.tenants[tenant];
            let ends = lasts.or_else(|| one.lasts());
            let begins = self.now() + apart * number;
            self.places[tenant] = match ends {
                Some(span) => TenantState::EndsBy(Some(begins + span.duration())),
                None if one.ends_by_itself() => TenantState::EndsBy(None),
                None => TenantState::Running,
            };
            self.started[tenant] = true;
        }
        self.wait(apart * (tenants.len() as u32).saturating_sub(1));
        Ok(())
    }

    fn wait_for(&mut self, tenants: &[usize]) -> Result<(), String> {
        for &tenant in tenants {
            match self.places[tenant] {
                TenantState::Idle if !self.started[tenant] => {
                    return Err(format!("wait-for: {} was not started", self.name(tenant)));
                }
                TenantState::Idle => {}
                TenantState::Running => {
                    return Err(format!(
                        "wait-for: {} does not end without a stop; start it with for, or stop it",
                        self.name(tenant)
                    ));
                }
                TenantState::EndsBy(Some(end)) => self.at = self.at.map(|at| at.max(end)),
                TenantState::EndsBy(None) => self.at_least = true,
            }
            self.places[tenant] = TenantState::Idle;
        }
        Ok(())
    }
}

/// The time between two of so many that begin evenly over a span.
pub(crate) fn gap(stagger: Span, count: usize) -> Duration {
    stagger.duration().checked_div((count as u32).saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
