//! A run: its specification ([`spec`]), the virtual users and the measured window ([`driver`]), I/O jobs
//! ([`io`]), and the run as a whole ([`run`]). Everything that happens is emitted as a
//! [`kelvin_measure::Event`].

pub mod control;
pub mod driver;
pub mod environment;
mod error;
mod heartbeat;
pub mod io;
pub mod observation;
pub mod run;
mod series;
mod sweep;
mod trial;

pub use driver::fleet;
pub use environment::Environment;
pub use error::RunError;
pub use kelvin_spec::{self as spec, Spec, SpecError, find_max, nearest};
pub use kelvin_users::arrivals;
pub use run::{Run, RunOutcome};
pub use series::series;
pub use sweep::fit_law;
