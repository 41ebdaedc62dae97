//! Two or more specifications in turn, in blocks, until their ratio is known.
//!
//! Every block holds each side once, in an order of its own ([`order`]), so that what drifts over the hours meets all
//! sides alike; and, unless that is left out, side A a second time: the control. What A differs from itself by is the
//! floor below which no effect is told from nothing. The second run of A is not lost to the comparison, because each
//! block's A is the geometric mean of both: B over that scatters by √(3/2) of a run where B over one run scatters by √2,
//! so that the control costs an eighth more runs for the same interval, and not a half.
//!
//! [`Plan`] says how many blocks, or from which effect and power their number follows after a pilot; [`run`](run())
//! makes them on any [`Bench`](crate::Bench); [`Summary`] is made from the plan and the runs alone.

mod blocks;
mod course;
mod execute;
pub mod order;
mod plan;
mod summary;

pub use course::{Course, Look, Planning};
pub use execute::{Progress, run};
pub use plan::{Plan, Side, Treatment};
pub use summary::{BlockLine, Compared, Control, Explored, Summary, VoidRun, word};
