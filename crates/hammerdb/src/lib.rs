//! Runs HammerDB's command-line scripts without HammerDB: a Tcl evaluator ([`tcl`]), scripts in Python
//! ([`run_python`]), HammerDB's settings ([`Settings`]) and commands ([`Session`]), and their translation
//! into commands of Kelvin ([`Step`]).
//!
//! Nothing here connects to a database: a [`Runner`] executes the steps.

mod job;
mod python;
mod session;
mod settings;
mod step;
mod target;
pub mod tcl;
mod tproch;

pub use job::{JobPart, render};
pub use python::run_python;
pub use session::{Runner, Session};
pub use settings::{Section, Settings, System, UnknownKey, is_secret};
pub use step::{Action, Administration, Benchmark, DatabaseObject, KelvinCommand, Step};
pub use tcl::{Fault, HostError, Interpreter, LineEnd, Position};
