//! Studies: a question, a hypothesis that is fixed before the first run, factors with levels, a design, and a folder that
//! holds all of it as plain files.
//!
//! | file | what it holds |
//! |---|---|
//! | `study.toml` | [`Study`]: question, factors, and how it runs; written by the user |
//! | `notebook.md` | the eight phases as text; written by the user, with parts that Kelvin fills ([`notebook`]) |
//! | `lock.json` | [`Lock`]: the hypothesis, fixed before the runs |
//! | `ledger.jsonl` | [`Ledger`]: the events, one per line, each on disk before the next step |
//!
//! [`StudyPlan`] follows from `study.toml` alone; [`State`] from the plan and the ledger; [`execute`] continues from there.

mod axis;
mod design;
mod environment;
mod error;
mod execute;
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
mod study_page;
mod template;

pub use axis::Axis;
pub use design::{Design, DesignKind};
pub use environment::{EnvironmentFacts, facts};
pub use error::StudyError;
pub use execute::{Execution, StudyEnd, StudyEnvironment, execute};
pub use folder::Folder;
pub use fork::fork;
pub use gather::{StoredRunFacts, analysis_input, measured, stored_run_facts};
pub use goal::{Direction, Goal, Hypothesis, Prediction};
pub use ledger::{Attempt, Ledger, LedgerEntry, LedgerEvent, Results};
pub use lock::{Deviation, Lock};
pub use plan::{Estimate, PlannedRun, StudyPlan, Treatment};
pub use power::{Power, pooled_variation};
pub use restart::restarts;
pub use session::{Opening, begin};
pub use share::Share;
pub use spec::Study;
pub use state::{Counted, State};
pub use study_page::study_page_content;
pub use template::{Template, study_toml};
