//! Two or more specifications in turn, in blocks, until their ratio is known.
//!
//! Every block runs each side twice (once without the control), in an order of its own ([`order`]), so that what drifts over
//! the hours, comes round, or lasts from one run to the next meets all sides alike. What the two runs of one side differ by
//! is the control: as the sides are compared by the means of two runs, half of the interval's width there is the floor below
//! which no effect is told from nothing. The control costs nothing: B over A scatters by 1 of a run's own scatter in a block
//! of four runs, where it scatters by √2 in one of two.
//!
//! [`Plan`] says how many blocks, or from which effect and power their number follows after a pilot; [`run`](run())
//! makes them on any [`Bench`](crate::Bench); [`Summary`] is made from the plan and the runs alone.

mod blocks;
mod course;
mod execute;
mod noise;
pub mod order;
mod plan;
mod summary;

pub use course::{Course, Look, Planning};
pub use execute::{Progress, run};
pub use noise::AbNoise;
pub use plan::{Plan, Side, Treatment};
pub use summary::{BlockLine, Compared, Control, Explored, Summary, VoidRun, word};
