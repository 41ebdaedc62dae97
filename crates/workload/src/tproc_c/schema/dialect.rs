//! What the description of the tables has to know of an engine.

use std::fmt::Debug;

use kelvin_database::{Result, Session};

use super::Table;
use super::metadata::Build;
use crate::tproc_c::{Options, Profile};

/// One engine's tables, and how they are found in its catalog.
pub(crate) trait SchemaDialect: Debug + Send + Sync {
    /// Statements that create a table with everything that must exist before its rows.
    fn create_table(&self, table: &Table, options: &Options) -> Vec<String>;

    /// Type of a column with a short text that can be a primary key.
    fn key_type(&self) -> &'static str {
        "text"
    }

    /// A query for the names, sorted, of the tables that exist where an unqualified name is looked up.
    /// `names` are quoted names separated by commas.
    fn present_tables(&self, names: &str) -> String;

    /// Names and columns of the indexes that are created after the table.
    fn indexes(&self, table: &Table, profile: Profile) -> Vec<(String, &'static [&'static str])>;

    /// Whether a table has one of these indexes.
    fn has_index(&self, session: &mut dyn Session, table: &str, index: &(String, &[&str])) -> Result<bool>;

    /// A build of HammerDB's, if it can be recognised. Called if all nine tables exist.
    fn hammerdbs_build(&self, _session: &mut dyn Session) -> Result<Option<Build>> {
        Ok(None)
    }
}
