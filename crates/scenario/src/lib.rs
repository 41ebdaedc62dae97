//! A scenario: several loads, each of a tenant on its target, that start, change and stop on one timeline with one clock.
//!
//! [`Scenario`] is its file, read and checked as a whole before anything starts. [`Timeline`] says when its steps are planned.
//! [`execute`] runs it.

mod document;
mod error;
pub mod execute;
mod expectation;
mod parameter;
pub mod prove;
mod scenario;
mod step;
mod tenant;
mod timeline;

pub use error::ScenarioError;
pub use expectation::{Expectation, ExpectationResult};
pub use parameter::Parameter;
pub use scenario::{Scenario, is_scenario};
pub use step::{Action, Step};
pub use tenant::Tenant;
pub use timeline::{PlannedStep, Timeline};
