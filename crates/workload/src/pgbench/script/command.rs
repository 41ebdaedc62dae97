//! What a script consists of.

use super::sql::Sql;
use crate::pgbench::expression::Expression;

/// A command and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) command: Command,
    /// Line in the script, from 1.
    pub(crate) line: usize,
    /// How it begins, on one line, where the user waits for it: not for what a pipeline only collects.
    pub(crate) title: Option<String>,
    /// Its index among the workload's kinds where its time is taken.
    pub(crate) kind: Option<u16>,
}

#[derive(Debug, Clone)]
pub(crate) enum Command {
    Sql(Sql),
    Set {
        slot: u32,
        expression: Expression,
    },
    Sleep(Duration),
    /// Runs a shell command; its first line of output becomes the variable's value when there is one.
    Shell {
        slot: Option<u32>,
        words: Vec<Word>,
    },
    StartPipeline,
    SyncPipeline,
    EndPipeline,
    /// Goes on at the target unless the condition holds.
    Unless {
        condition: Expression,
        target: usize,
    },
    Jump {
        target: usize,
    },
}

/// How long to sleep: a number or a variable, times the unit in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Duration {
    Fixed(std::time::Duration),
    Variable { slot: u32, unit: u64 },
}

/// A word of a shell command.
#[derive(Debug, Clone)]
pub(crate) enum Word {
    Text(String),
    Variable(u32, String),
}
