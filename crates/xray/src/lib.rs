//! X-Ray's scenarios, run without X-Ray: a scenario folder is read as it is ([`read`]), converted to tenants and steps
//! ([`convert()`]), and written in Kelvin's own format ([`render()`]).
//!
//! Nothing here starts anything. What needs a hypervisor is bound to a command of the user or refused, with its line,
//! before anything starts.

mod background;
mod binding;
mod claim;
mod cluster;
mod conversion;
mod convert;
mod expect;
mod fault;
mod job;
mod nodes;
mod render;
mod result;
mod scenario;
mod size;
mod step;
mod target;
mod template;
mod yaml;

pub use claim::Claim;
pub use conversion::{Conversion, ConvertedAction, ConvertedStep, Expectation, Tenant};
pub use convert::{Settings, convert};
pub use fault::{Fault, Faults, Location};
pub use job::ReadText;
pub use render::{claim_lines, render, size};
pub use result::{Aggregate, Band, ResultLine, ResultMeasure, ResultSubject};
pub use scenario::{Group, Scenario, Workload, parse, read};
pub use step::{Phase, Step};
pub use target::Assignment;
pub use template::{Value, Variable};
