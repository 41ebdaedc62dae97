//! The table for a run of user scripts: only the scripts, nothing about pgbench's tables.

use std::collections::BTreeMap;

use kelvin_workload::pgbench::{Options, QueryMode, ScriptChoice};
use serde::{Deserialize, Serialize};

/// The user's scripts. Their text is stored here, so that the file alone repeats the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScriptOptions {
    /// How statements are sent to the server.
    pub query_mode: QueryMode,
    /// Whether each statement is timed separately.
    pub per_statement: bool,
    /// Whether scripts may run shell commands.
    pub allow_shell: bool,
    /// Variables set before the load (`-D`).
    pub define: BTreeMap<String, String>,
    /// The scripts with their texts and weights.
    pub scripts: Vec<ScriptChoice>,
}

impl From<ScriptOptions> for Options {
    fn from(script: ScriptOptions) -> Self {
        let ScriptOptions { query_mode, per_statement, allow_shell, define, scripts } = script;
        Self { query_mode, per_statement, allow_shell, define, scripts, ..Self::default() }
    }
}
