//! Studies: a question, a hypothesis that is fixed before the first run, factors with levels, a design, and a folder that
//! holds all of it as plain files.
//!
//! | file | what it holds |
//! |---|---|
//! | `study.toml` | [`Study`]: what is asked, what is varied, how it is run; written by a person |
//! | `notebook.md` | the eight phases in words; a person's, with parts that Kelvin fills in ([`notebook`]) |
//! | `lock.json` | [`Lock`]: the hypothesis as it was before the runs |
//! | `ledger.jsonl` | [`Ledger`]: what happened, a line an event, each on the disk before the next thing begins |
//!
//! [`Plan`] follows from `study.toml` alone; [`State`] from the plan and the ledger; [`execute`] goes on from there.

mod axis;
mod design;
mod dossier;
mod error;
mod execute;
mod facts;
mod folder;
mod fork;
mod gather;
mod goal;
mod ledger;
mod lock;
mod metric;
pub mod notebook;
mod plan;
mod power;
mod progress;
mod restart;
mod session;
mod share;
mod source;
mod spec;
mod state;
mod template;

pub use axis::Axis;
pub use design::{Design, DesignKind};
pub use dossier::dossier;
pub use error::StudyError;
pub use execute::{Ended, Execution, Surroundings, execute};
pub use facts::{Facts, facts};
pub use folder::Folder;
pub use fork::fork;
pub use gather::{Stored, gather, measured, stored};
pub use goal::{Direction, Goal, Hypothesis, Prediction};
pub use ledger::{Attempt, Entry, Event, Ledger, Results};
pub use lock::{Deviation, Lock};
pub use plan::{Estimate, Plan, PlannedRun, Treatment};
pub use power::{Power, pooled_variation};
pub use progress::duration;
pub use restart::restarts;
pub use session::{Opening, begin};
pub use share::Share;
pub use spec::Study;
pub use state::{Counted, State};
pub use template::{Template, study_toml};
