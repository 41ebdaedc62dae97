//! The one SQLite file that holds every run: its spec, environment, events, seconds and histograms.
//!
//! A run is written while it is in progress ([`Store::begin_run`], [`RunWriter::consume`]), in one transaction per second,
//! so that a killed process loses its last one or two seconds. A stored run is read as a whole ([`Store::load`]) and
//! returns the events that the live view received ([`StoredRun::events`]); every report is made from these alone.
//!
//! | table | holds |
//! |---|---|
//! | `run` | one row per run: what was run, with what, on what |
//! | `event` | every other event, as JSON, in its order |
//! | `second` | counts and latency histogram per point, second, part and transaction type |
//! | `total` | the collector's own sums, to check the seconds against |
//! | `reading` | values of the observers' metrics, as bytes |
//! | `waits` | what the database's sessions were doing |
//! | `baseline` | what a host could do before a load, as JSON |
//! | `run_group`, `member` | runs that belong together, and where each stands |
//! | `history` | branch and testbed of a run |
//! | `judgement` | whether a run that has ended counts, with the reasons, as JSON |
//! | `origin` | which run of which other store an imported run was |
//! | `export` | in an exported file: who made it, and the digest of everything else |
//!
//! The views `window`, `error`, `audit`, `series`, `arrivals`, `metric`, `wait_group`, `wait`, `row_wait` and
//! `occurrence` spread JSON into columns for the `sqlite3` shell.

mod baseline;
mod blob;
mod committer;
mod error;
mod file_identity;
mod group;
mod judgement;
mod point_statistics;
mod points;
mod resume;
mod run;
mod run_names;
mod schema;
mod select;
mod state;
mod store;
mod stored;
mod tenant_summary;
mod transfer;
mod values;
mod writer;
mod writer_process;

pub use baseline::StoredBaseline;
pub use error::{Error, Result};
pub use group::{GroupId, GroupKind, GroupMember, GroupSlot, NewGroup, StoredGroup};
pub use point_statistics::{MOST_STRETCHES, PointStatistics, SecondRow, SourceStatistics};
pub use points::{ErrorGroup, PhaseSpan, Point};
pub use run::{NewRun, PointSummary, RunId, RunSummary, TenantSummary};
pub use run_names::history_name;
pub use schema::{APPLICATION_ID, VERSION};
pub use select::Selection;
pub use state::{Judgement, Liveness, RunState, broken_condition, broken_invariant, failed_audit};
pub use store::{SHARE_NOTE, Store};
pub use stored::{Follower, StoredRun};
pub use transfer::{Exporter, ImportSource, ImportSummary, ImportedGroup, ImportedRun, Origin};
pub use writer::RunWriter;
