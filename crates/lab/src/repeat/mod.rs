//! Repeats of a run until its metric has the requested precision.
//!
//! [`RepeatPlan`] contains the number of runs, [`run`](run()) makes them on any [`Bench`](crate::Bench), and
//! [`RepeatSummary`] is the result. The summary is computed from the group's plan and its runs alone, so that a
//! stored group always has the same summary.

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
