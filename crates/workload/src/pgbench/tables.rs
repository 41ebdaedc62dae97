//! pgbench's tables: their state in a database, and the operations of an engine on them.

use kelvin_database::{Engine, Result, Session};

use super::history::Counter;
use super::options::{Options, PartitionMethod};
use crate::{BuildProgress, Stop};

/// The state of pgbench's tables in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableState {
    Nothing,
    /// The remains of an interrupted build of Kelvin's.
    Unfinished,
    /// Incomplete tables that Kelvin did not create, with a description of what they lack.
    Incomplete(String),
    Complete {
        scale: i64,
    },
}

/// Properties of complete tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// Scale factor.
    pub scale: u32,
    /// Percentage of each page that the load filled.
    pub fillfactor: u8,
    /// Whether there are foreign keys.
    pub foreign_keys: bool,
    /// Whether accounts are an unlogged table.
    pub unlogged_tables: bool,
    /// Partitions of the accounts; 0 for a plain table.
    pub partitions: u32,
    /// How the accounts are partitioned; by range if they are not.
    pub partition_method: PartitionMethod,
}

/// Creates, inspects and drops the tables of one engine.
pub(super) trait Tables: Sync {
    /// Refuses options that the engine does not support.
    fn must_know(&self, options: &Options) -> Result<()>;

    /// Inspects the database.
    fn inspect(&self, session: &mut dyn Session) -> Result<TableState>;

    /// Creates and loads all tables. Recreates those of an unfinished build; refuses any others.
    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()>;

    /// Properties of the complete tables in the database, if there are any.
    fn shape(&self, session: &mut dyn Session) -> Result<Option<Shape>>;

    /// Reclaims the space of replaced rows in the small tables, or with `all` in all four; returns whether
    /// the engine does so.
    fn vacuum(&self, session: &mut dyn Session, all: bool) -> Result<bool>;

    /// The number of rows in the history.
    fn history(&self, counter: &Counter, session: &mut dyn Session) -> Result<u64>;

    /// The server's data cache: the name of its setting and, if known, its bytes.
    fn cache(&self, session: &mut dyn Session) -> Result<(&'static str, Option<u64>)>;
}
