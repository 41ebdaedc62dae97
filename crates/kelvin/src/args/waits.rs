//! The flags of `kelvin waits` and `kelvin top-sql`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kelvin_run::spec::{Span, TargetName};
use serde::Serialize;

use super::FormatArgs;

/// A server whose sessions are sampled.
#[derive(Debug, Args)]
pub(crate) struct SampledServerArgs {
    /// The server, such as postgres://user@host/database, mysql://user@host/database or sqlserver://user@host/database
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: TargetName,
    /// Samples of the sessions per second, 1 to 100; at most 8 on MySQL and MariaDB
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) sample_rate: u32,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// `kelvin waits`.
#[derive(Debug, Args)]
#[command(
    after_help = "Only observes: nothing is installed, loaded or changed on the server. To see other users' \
    sessions, the role needs pg_monitor on PostgreSQL, PROCESS on MySQL and MariaDB, and VIEW SERVER STATE \
    on SQL Server; unavailable parts are listed.\n\
    \n\
    Examples:\n\
    \x20 kelvin waits --target postgres://dba@db.example/shop\n\
    \x20 kelvin waits --target mysql://dba@db.example/shop --watch 1s\n\
    \x20 kelvin waits --target postgres://dba@db.example/shop --duration 1m --format json"
)]
pub(crate) struct WaitsArgs {
    #[command(flatten)]
    pub(crate) server: SampledServerArgs,
    /// Length of the interval [default: 10s; with --watch until Ctrl-C]
    #[arg(long, short, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Show the waits of each interval of this length, at least 1s: redrawn on a terminal, otherwise one line each,
    /// with --json one record each. Ctrl-C prints the totals and exits
    #[arg(long, value_name = "TIME")]
    pub(crate) watch: Option<Span>,
}

/// What statements are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    /// CPU time; estimated from samples if the server does not report it
    Cpu,
    /// Execution time
    #[default]
    Elapsed,
    /// Pages read that were not in the buffer cache (MySQL and MariaDB: rows examined)
    Reads,
    /// Pages dirtied (MySQL and MariaDB: rows changed)
    Writes,
    /// Executions
    Calls,
}

/// Whose statements are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlansOf {
    /// Statements that the role of --target has run itself
    Own,
    /// All statements; planning may run functions that other roles wrote
    All,
}

/// `kelvin top-sql`.
#[derive(Debug, Args)]
#[command(
    after_help = "Only observes: nothing is installed, loaded or changed on the server. Statements are \
    counted by pg_stat_statements on PostgreSQL, by performance_schema on MySQL and MariaDB, and by the plan \
    cache on SQL Server. Without these, the statements of the sessions are sampled. Literals in statements \
    are not shown.\n\
    \n\
    Examples:\n\
    \x20 kelvin top-sql --target postgres://dba@db.example/shop --by reads\n\
    \x20 kelvin top-sql --target postgres://dba@db.example/shop --plans --save monday.json\n\
    \x20 kelvin top-sql --target postgres://dba@db.example/shop --plans --since monday.json"
)]
pub(crate) struct TopSqlArgs {
    #[command(flatten)]
    pub(crate) server: SampledServerArgs,
    /// Order of the statements
    #[arg(long, value_name = "MEASURE", value_enum, default_value = "elapsed")]
    pub(crate) by: Measure,
    /// Number of statements
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Length of the interval [default: 10s]
    #[arg(long, short, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Show the totals since the server's counters were last reset, instead of an interval
    #[arg(long, conflicts_with = "duration")]
    pub(crate) since_start: bool,
    /// Show the plan of each statement (EXPLAIN without executing it): own (only statements that the role of --target
    /// has run) or all. Planning a statement may execute functions written by other roles
    #[arg(long, value_name = "WHOSE", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "own", hide_possible_values = true)]
    pub(crate) plans: Option<PlansOf>,
    /// Save each plan to files in this directory; implies --plans
    #[arg(long, value_name = "DIR")]
    pub(crate) save_plans: Option<PathBuf>,
    /// Save all statements to this file, for a later comparison with --since
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Show what changed since the statements were saved to this file: new statements, mean times, plans
    #[arg(long, value_name = "FILE")]
    pub(crate) since: Option<PathBuf>,
}

impl TopSqlArgs {
    /// Whose statements are planned, if any.
    pub(crate) fn plans(&self) -> Option<PlansOf> {
        self.plans.or_else(|| self.save_plans.as_ref().map(|_| PlansOf::Own))
    }
}
