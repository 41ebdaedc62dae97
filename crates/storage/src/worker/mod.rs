//! The measured path: a worker asks what comes next, hands it to an engine, takes back what ended, and counts.

mod flow;
mod shared;

pub use flow::FlowGroups;
pub use shared::{Shared, Spare, UnderWay, WorkerPlan};
