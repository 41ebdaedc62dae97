//! Maintenance of a database around runs.

use crate::{Result, Session};

/// Maintenance of a database, implemented by its engine.
pub trait Home: Send + Sync {
    /// Product and version without the words of its build, such as "PostgreSQL 15.18".
    fn product(&self) -> Result<String>;

    /// A session whose statements may take as long as they need.
    fn unlimited(&self) -> Result<Box<dyn Session>>;

    /// Names of the ordinary tables, partitions and those of the engine itself aside; with their schema where an unqualified
    /// name does not lead to them.
    fn tables(&self) -> Result<Vec<String>>;

    /// The steps, each with its name and its SQL, that free what deleted rows took (`vacuum`) and count what there is for
    /// the planner (`analyze`).
    fn upkeep(&self, vacuum: bool, analyze: bool) -> Vec<(&'static str, &'static str)>;

    /// Vacuums, freezes and analyzes, so that no restored copy has to.
    fn ready_for_a_snapshot(&self) -> Result<()>;

    /// Reads the data into memory, while no session of this process is open. Returns what was read, for the result.
    fn prewarm(&self) -> Result<String>;

    /// Whether files of one version cannot be read by another.
    fn files_are_of_a_version(&self) -> bool;

    /// What a reader has to know who compares this engine's figures with another's.
    fn caution(&self) -> Option<&'static str> {
        None
    }
}
