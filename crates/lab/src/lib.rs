//! Plans and runs: what to run ([`spec`]), the virtual users and the measured window ([`driver`]), and the
//! run as a whole ([`run`]). Everything that happens comes out as [`kelvin_measure::Event`]s.

pub mod ab;
pub mod analysis;
pub mod arrivals;
pub mod bench;
pub mod conditions;
pub mod driver;
pub mod environment;
pub mod factor;
pub mod find_max;
mod heartbeat;
pub mod io;
mod nearest;
pub mod observation;
pub mod repeat;
pub mod reset;
pub mod run;
mod series;
pub mod simulated;
pub mod spec;
pub mod squeeze;
pub mod study;
mod sweep;
mod trial;
pub mod undo;

pub use bench::{Bench, BenchError, Measured, Planned};
pub use environment::Environment;
pub use nearest::nearest;
pub use run::{Outcome, Run, RunError, Sink, SinkError};
pub use series::series;
pub use spec::{Spec, SpecError};
