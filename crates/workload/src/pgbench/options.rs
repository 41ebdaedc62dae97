//! Options of pgbench and script workloads.

use std::collections::BTreeMap;
use std::io::Read;

use kelvin_database::{Error, Result};
use serde::{Deserialize, Serialize};

use super::builtin;

/// Maximum bytes of a script: its text is part of the specification and of every result.
const LONGEST_SCRIPT: u64 = 1 << 20;

/// How statements are sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryMode {
    /// As text that contains the variables' values.
    #[default]
    Simple,
    /// Parsed at each execution, with parameters.
    Extended,
    /// Parsed once per connection, with parameters.
    Prepared,
}

/// How accounts are partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionMethod {
    /// Ranges of account numbers of equal length.
    #[default]
    Range,
    /// A hash of the account number.
    Hash,
}

impl PartitionMethod {
    /// The SQL keyword.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Hash => "hash",
        }
    }
}

/// A script and its weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScriptChoice {
    /// The name of a built-in script, or of the file as given by the user.
    pub name: String,
    /// Its weight among the scripts; with 0 it is never chosen.
    #[serde(default = "one")]
    pub weight: u32,
    /// The content of the file, which is part of the run's specification. `None` for a built-in script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

fn one() -> u32 {
    1
}

impl ScriptChoice {
    /// A built-in script, given as `name` or `name@weight`; the name may be abbreviated.
    pub fn builtin(written: &str) -> Result<Self> {
        let (name, weight) = split_weight(written)?;
        let builtin = builtin::find(name).map_err(Error::usage)?;
        Ok(Self { name: builtin.name.to_owned(), weight, text: None })
    }

    /// Reads a script file, given as `path` or `path@weight`.
    pub fn file(written: &str) -> Result<Self> {
        let (path, weight) = split_weight(written)?;
        let text = read(path).map_err(|error| Error::usage(format!("reading script {path:?}: {error}")))?;
        if text.len() as u64 > LONGEST_SCRIPT {
            return Err(Error::usage(format!("script {path:?} is longer than {LONGEST_SCRIPT} bytes")));
        }
        Ok(Self { name: path.to_owned(), weight, text: Some(text) })
    }
}

/// Reads a file, or standard input for "-". Reads at most one byte more than the limit, so that endless input
/// ends.
fn read(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    let source: Box<dyn Read> =
        if path == "-" { Box::new(std::io::stdin()) } else { Box::new(std::fs::File::open(path)?) };
    source.take(LONGEST_SCRIPT + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Splits "name@3". The weight is the part after the last @.
fn split_weight(written: &str) -> Result<(&str, u32)> {
    let Some((name, weight)) = written.rsplit_once('@') else { return Ok((written, 1)) };
    let weight = weight.parse().map_err(|_| {
        Error::usage(format!("{weight:?} in {written:?} is not a valid weight: write 0 or more"))
    })?;
    Ok((name, weight))
}

/// The options; the defaults are pgbench's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Scale factor: 100,000 accounts, 10 tellers and one branch each. `None` means 1;
    /// [`Pgbench::shape_in`](super::Pgbench::shape_in) returns the scale of an existing database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<u32>,
    /// The scripts; `tpcb-like` if empty.
    pub scripts: Vec<ScriptChoice>,
    /// Variables set before the load (`-D`).
    pub define: BTreeMap<String, String>,
    /// How statements are sent to the server.
    pub query_mode: QueryMode,
    /// Whether each statement is timed separately.
    pub per_statement: bool,
    /// Percentage of each page that the load fills, 10 to 100.
    pub fillfactor: u8,
    /// Foreign keys between the tables.
    pub foreign_keys: bool,
    /// Unlogged tables.
    pub unlogged_tables: bool,
    /// Partitions of the accounts; 0 for a plain table.
    #[serde(skip_serializing_if = "is_default")]
    pub partitions: u32,
    /// How the accounts are partitioned.
    #[serde(skip_serializing_if = "is_default")]
    pub partition_method: PartitionMethod,
    /// VACUUM ANALYZE after the load, and VACUUM of the small tables before a run.
    pub vacuum: bool,
    /// VACUUM ANALYZE of all four tables before a run.
    #[serde(skip_serializing_if = "is_default")]
    pub vacuum_all: bool,
    /// Whether scripts may run shell commands.
    pub allow_shell: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scale: None,
            scripts: Vec::new(),
            define: BTreeMap::new(),
            query_mode: QueryMode::default(),
            per_statement: false,
            fillfactor: 100,
            foreign_keys: false,
            unlogged_tables: false,
            partitions: 0,
            partition_method: PartitionMethod::default(),
            vacuum: true,
            vacuum_all: false,
            allow_shell: false,
        }
    }
}

impl Options {
    /// The scale factor; 1 by default.
    pub(super) fn scale(&self) -> u32 {
        self.scale.unwrap_or(1)
    }
}
