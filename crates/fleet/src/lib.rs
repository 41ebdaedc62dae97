//! A fleet: the hosts that generate the load of one run.
//!
//! An [`agent`] on each host drives a range of the run's users, using `kelvin_run::driver::generate`. The
//! [`controller`] implements `kelvin_run::fleet::Fleet` for the run. They communicate over NATS ([`bus`]):
//! commands are requests with answers, beats may be lost, and results are stored by JetStream until the
//! controller has read them. `clock` determines how simultaneous everything was.

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
