//! Repeats of one run, until its figure has the requested precision.
//!
//! [`RepeatPlan`] says how often, [`run`](run()) does it on any [`Bench`](crate::Bench), [`RepeatSummary`] has the result. The
//! summary is made from the group's plan and its runs alone, so that a stored group has the same summary at any time.

mod execute;
mod group_run;
mod noise;
mod plan;
mod spread;
mod summary;
mod until;

pub(crate) use execute::{AttemptOutcome, Attempts};
pub use execute::{Ran, RepeatEnd, RepeatEvent, run};
pub use group_run::{GroupRun, Steady, earlier_groups, group_runs};
pub use noise::RunNoise;
pub use plan::RepeatPlan;
pub(crate) use plan::judged;
pub use spread::Spread;
pub(crate) use spread::{half_width, logarithms};
pub(crate) use summary::named;
pub use summary::{
    Dependence, Drift, MissingEvidence, RepeatAnswer, RepeatMetric, RepeatSummary, RunLine, SteadyState,
};
pub use until::Until;
