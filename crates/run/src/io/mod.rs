//! I/O jobs as a workload: the specification contains their text, and their activity is emitted as the events
//! of a run. They are stored, shown, repeated, compared and studied as other runs are.
//!
//! Jobs between two stonewalls run together and form one point of the run. Each direction is a series,
//! separately for each device if there are several. Its times are completion times; with a rate there are
//! also response times.

mod accounting;
mod assigned;
mod describe;
mod on_fleet;
mod run;

pub use assigned::generate;
pub use kelvin_spec::jobfile_text;
pub use on_fleet::FleetIoRun;
pub use run::{IoRun, IoRunOutcome, IoRunWatcher};
