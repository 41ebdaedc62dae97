//! A small Tcl interpreter: the part of the language that HammerDB's scripts use, with limits on what a
//! script may do.
//!
//! A script can read and write files below given directories and nothing else: `exec`, `socket`, `load` and
//! similar commands are refused. Commands, nesting and strings are limited, so that every script ends.

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

/// Whether text typed line by line is complete: no open bracket, brace or quotation mark.
pub fn is_complete(text: &str) -> bool {
    let backslashes = |text: &str| text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    let continued = text.strip_suffix('\n').is_some_and(|line| backslashes(line) % 2 == 1);
    !continued && !matches!(parse::script(text, 1), Err(fault) if fault.message.ends_with("is never closed"))
}

/// A command made of these words, each quoted so that it is taken literally.
pub(crate) fn command_text(words: &[String]) -> String {
    list::join(words)
}

/// A position in a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The file; `None` for text that is not from a file.
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

/// The error that ended a script, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub struct Fault {
    /// Where.
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// Whether `catch` must not catch it: a limit was reached, or the user interrupted the script.
    pub fatal: bool,
}

impl Fault {
    fn at_position(position: Position, message: &str) -> Self {
        Self { position, message: message.to_owned(), fatal: false }
    }
}
