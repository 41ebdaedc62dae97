//! A fleet: one run whose load comes from many hosts.
//!
//! An [`agent`] on each host drives a range of the run's users, as `kelvin_run::driver::generate` does; the [`controller`]
//! is what a run has as its `kelvin_run::fleet::Fleet`. They speak over NATS ([`bus`]): commands are requests with answers,
//! beats may be lost, and what a load produces is stored by JetStream until the controller has it. `clock` says how
//! simultaneous all that was.

pub mod agent;
mod bus;
mod clock;
pub mod controller;
mod error;
mod keys;
mod message;
pub mod server;
pub mod ssh;
mod subject;

pub use bus::{Bus, Connection};
pub use controller::find_agents;
pub use error::FleetError;
pub use message::{AgentState, Beat};
pub use subject::Name;
