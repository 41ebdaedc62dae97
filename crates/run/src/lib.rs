//! One run: what to run ([`spec`]), the virtual users and the measured window ([`driver`]), I/O jobs ([`io`]), and the run
//! as a whole ([`run`]). Everything that happens comes out as [`kelvin_measure::Event`]s.

pub mod arrivals;
pub mod control;
pub mod driver;
pub mod environment;
pub mod find_max;
pub mod fleet;
mod heartbeat;
pub mod io;
pub mod observation;
pub mod run;
mod series;
mod similar_name;
pub mod spec;
mod sweep;
mod trial;

pub use environment::Environment;
pub use run::{Run, RunError, RunOutcome};
pub use series::series;
pub use similar_name::nearest;
pub use spec::{Spec, SpecError};
pub use sweep::fit_law;
