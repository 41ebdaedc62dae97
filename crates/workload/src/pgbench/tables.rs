//! pgbench's tables: what is in a database, and what an engine does with them.

use kelvin_database::{Engine, Result, Session};

use super::history::Counter;
use super::options::{Options, PartitionMethod};
use crate::{BuildProgress, Stop};

/// What is in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableState {
    Nothing,
    /// What a build of ours left when it was interrupted.
    Unfinished,
    /// Tables that are not ours to touch, and what they lack.
    Incomplete(String),
    Complete {
        scale: i64,
    },
}

/// How complete tables were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// Scale factor.
    pub scale: u32,
    /// Per cent of each page that the load filled.
    pub fillfactor: u8,
    /// Whether there are foreign keys.
    pub foreign_keys: bool,
    /// Whether no write-ahead log protects the accounts.
    pub unlogged_tables: bool,
    /// Partitions of the accounts; 0 for a plain table.
    pub partitions: u32,
    /// How the accounts are divided among them; by ranges where there are none.
    pub partition_method: PartitionMethod,
}

/// How one engine makes, finds and drops them.
pub(super) trait Tables: Sync {
    /// Refuses options that the engine has no words for.
    fn must_know(&self, options: &Options) -> Result<()>;

    /// Inspects the database.
    fn inspect(&self, session: &mut dyn Session) -> Result<TableState>;

    /// Makes and loads everything. What an earlier build left unfinished is made anew; anybody else's data is refused.
    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()>;

    /// How the complete tables that are in the database were made, if there are any.
    fn shape(&self, session: &mut dyn Session) -> Result<Option<Shape>>;

    /// Frees what replaced rows of the small tables took, or of all four; whether there was anything to do.
    fn vacuum(&self, session: &mut dyn Session, all: bool) -> Result<bool>;

    /// The number of rows in the history.
    fn history(&self, counter: &Counter, session: &mut dyn Session) -> Result<u64>;

    /// The server's cache of data: the name of its setting, and bytes where they are known.
    fn cache(&self, session: &mut dyn Session) -> Result<(&'static str, Option<u64>)>;
}
