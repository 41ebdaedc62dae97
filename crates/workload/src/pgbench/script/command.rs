//! The commands of a script.

use super::sql::Sql;
use crate::pgbench::expression::Expression;

/// A command and its position.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) command: Command,
    /// Line in the script, from 1.
    pub(crate) line: usize,
    /// The start of its text on one line, if the user waits for it: not for a statement that a pipeline only
    /// collects.
    pub(crate) title: Option<String>,
    /// Its index among the workload's kinds, if it is timed.
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
    /// Runs a shell command; the first line of its output is assigned to the variable, if there is one.
    Shell {
        slot: Option<u32>,
        words: Vec<Word>,
    },
    StartPipeline,
    SyncPipeline,
    EndPipeline,
    /// Jumps to the target unless the condition is true.
    Unless {
        condition: Expression,
        target: usize,
    },
    Jump {
        target: usize,
    },
}

/// The time to sleep: a number or a variable, in units of this many microseconds.
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
