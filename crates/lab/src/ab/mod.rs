//! Two or more specifications in alternation, in blocks, until their ratio is known.
//!
//! Every block runs each side twice (once without the control), in a separate order ([`order`]), so that drift over the
//! hours, periodic disturbances, and effects that last from one run to the next affect all sides alike. The difference
//! between the two runs of one side is the control: as the sides are compared by the means of two runs, half of the
//! interval's width there is the floor below which no effect is distinguished from zero. The control costs nothing: B
//! over A scatters by 1 of a run's own scatter in a block of four runs, where it scatters by √2 in one of two.
//!
//! [`AbPlan`] has the number of blocks, or the effect and power from which their number follows after a pilot;
//! [`run`](run()) makes them on any [`Bench`](crate::Bench); [`AbSummary`] is computed from the plan and the runs
//! alone.

mod blocks;
mod execute;
mod interim;
mod noise;
pub mod order;
mod plan;
mod summary;

pub use execute::{AbEvent, run};
pub use interim::{AbProgress, InterimLook, Planning};
pub use noise::AbNoise;
pub use plan::{AbPlan, AdviceOrigin, Side, Treatment};
pub use summary::{AbSummary, BlockLine, Compared, Control, Explored, VoidRun, verdict_label};
