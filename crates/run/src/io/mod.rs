//! I/O jobs as a workload like any other: their text is in the specification, what they do comes out as the events of
//! a run, and so they are stored, shown, repeated, compared and studied as every run is.
//!
//! Jobs between two stonewalls run together and are one point of the run. Each direction is a series, for each device apart
//! when there are several; its times are completion times, and with a rate there are response times beside them.

mod accounting;
mod assigned;
mod describe;
mod on_fleet;
mod run;

pub use assigned::generate;
pub use kelvin_spec::jobfile_text;
pub use on_fleet::FleetIoRun;
pub use run::{IoRun, IoRunOutcome, IoRunWatcher};
