//! Scripts in pgbench's language, compiled to a list of commands with jumps.

mod command;
mod meta;
mod parser;
mod scanner;
mod sql;

use std::fmt;

pub(crate) use command::{Command, Duration, Step, Word};
pub(crate) use sql::{Sql, SqlPart, Store};

use super::variables::Slots;

/// A compiled script.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Its name in results: that of the built-in script or of the file.
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// Whether it uses pipelines, which the simple query mode does not support.
    pub(crate) pipelines: bool,
}

impl Script {
    /// Compiles `text`; `name` is used in errors. Shell commands are refused unless `allow_shell`.
    pub(crate) fn parse(
        name: &str,
        text: &str,
        allow_shell: bool,
        slots: &mut Slots,
    ) -> Result<Self, ScriptError> {
        parser::parse(name, text, allow_shell, slots)
    }
}

/// An error in a script and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ScriptError {
    /// The script.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The error message.
    pub message: String,
    /// The text of that line.
    pub source_line: String,
}

impl ScriptError {
    fn new(file: &str, text: &str, at: usize, message: impl Into<String>) -> Self {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        Self {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: text[start..at].chars().count() + 1,
            message: message.into(),
            source_line: text[start..end].trim_end_matches('\r').to_owned(),
        }
    }

    /// The line, and a caret below the column.
    pub fn caret(&self) -> String {
        // Tabs are kept, so that the caret is below the character in a terminal.
        let indent: String = self
            .source_line
            .chars()
            .take(self.column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        format!("{}\n{indent}^", self.source_line)
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}\n{}", self.file, self.line, self.column, self.message, self.caret())
    }
}

impl From<ScriptError> for kelvin_database::Error {
    fn from(error: ScriptError) -> Self {
        let place = format!("{}:{}:{}: {}", error.file, error.line, error.column, error.message);
        Self::usage(place).with_help(error.caret())
    }
}

#[cfg(test)]
mod tests;
