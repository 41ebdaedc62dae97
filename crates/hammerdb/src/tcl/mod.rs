//! A small Tcl: what HammerDB's scripts use of the language, with limits on what a script may do.
//!
//! A script reads and writes files below the directories that it is given, and nothing else: `exec`, `socket`, `load` and
//! the like are refused by name. Loops, depth and text have bounds, so that a script always ends.

mod commands;
mod control;
mod expression;
mod files;
mod interpreter;
mod list;
mod parse;
mod strings;

use std::fmt;
use std::path::PathBuf;

pub use interpreter::{Host, HostError, Interpreter, LineEnd};

/// Whether a text that is typed line by line has no bracket, brace or quotation mark left open.
pub fn is_complete(text: &str) -> bool {
    let backslashes = |text: &str| text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    let continued = text.strip_suffix('\n').is_some_and(|line| backslashes(line) % 2 == 1);
    !continued && !matches!(parse::script(text, 1), Err(fault) if fault.message.ends_with("is never closed"))
}

/// A command of these words, each as it is.
pub(crate) fn command_text(words: &[String]) -> String {
    list::from(words)
}

/// A place in a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The file; absent for text from elsewhere.
    pub file: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: u32,
}

impl Position {
    fn line(line: u32) -> Self {
        Self { file: None, line }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}:{}", file.display(), self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

/// Why a script ended: what is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub struct Fault {
    /// Where.
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// Whether a `catch` of the script must not hide it: a bound that was reached, or an interrupt.
    pub fatal: bool,
}

impl Fault {
    fn at(position: Position, message: &str) -> Self {
        Self { position, message: message.to_owned(), fatal: false }
    }
}
