//! The same run again and again, until its figure is known as closely as asked.
//!
//! [`Plan`] says how often, [`run`](run()) does it on any [`Bench`](crate::Bench), [`Summary`] says what came of it. The
//! summary is made from the group's plan and its runs alone, so that a stored group has the same summary at any time.

mod execute;
mod noise;
mod plan;
mod row;
mod spread;
mod summary;
mod until;

pub(crate) use execute::{Attempt, Attempts};
pub use execute::{Ended, Progress, Ran, run};
pub use noise::RunNoise;
pub use plan::Plan;
pub(crate) use plan::judged;
pub use row::{Row, Steady, earlier, rows};
pub use spread::Spread;
pub(crate) use spread::{half_width, logarithms};
pub(crate) use summary::named;
pub use summary::{Answer, Dependence, Drift, Missing, Named, RunLine, SteadyState, Summary};
pub use until::Until;
