//! Sources of the prompt's commands: a terminal with a history, or a file or pipe.

use std::io::{BufRead, Read as _};

use anyhow::{Context, Result, ensure};
use kelvin_hammerdb::is_secret;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};

/// Maximum size in bytes and lines of an unfinished command.
const LONGEST: usize = 1 << 20;
const MOST_LINES: usize = 10_000;

/// Refuses a command that is too long and still unfinished.
pub(super) fn check_length(text: &str) -> Result<()> {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    ensure!(
        text.len() <= LONGEST && lines <= MOST_LINES,
        "a command of more than 1 MiB or {MOST_LINES} lines has no end: a brace, bracket or quotation mark is not closed"
    );
    Ok(())
}

/// Whether a text, however it is quoted, contains the key of a password.
fn names_secret(text: &str) -> bool {
    text.split(|found: char| !found.is_alphanumeric() && found != '_').any(is_secret)
}

/// The result of reading a line.
pub(super) enum Entered {
    /// A line, including its newline.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// The end of the input.
    End,
}

/// A source of lines.
pub(super) enum Lines {
    Terminal(Box<Editor<(), MemHistory>>),
    Input,
}

impl Lines {
    /// Reads standard input. The history is not saved, because commands may contain passwords.
    pub(super) fn new(typed: bool) -> Result<Self> {
        if !typed {
            return Ok(Self::Input);
        }
        let editor = Editor::with_history(Config::default(), MemHistory::new());
        Ok(Self::Terminal(Box::new(editor.context("cannot use the terminal")?)))
    }

    /// Reads the next line of the command that starts with `begun`.
    pub(super) fn next(&mut self, begun: &str) -> Result<Entered> {
        match self {
            Self::Input => {
                let mut line = String::new();
                let read = std::io::stdin().lock().take(LONGEST as u64 + 1).read_line(&mut line);
                let read = read.context("cannot read standard input")?;
                check_length(&line)?;
                Ok(if read == 0 { Entered::End } else { Entered::Line(line) })
            }
            Self::Terminal(editor) => {
                match editor.readline(if begun.is_empty() { "hammerdb>" } else { "        >" }) {
                    Ok(line) => {
                        if !line.trim().is_empty() && !names_secret(begun) && !names_secret(&line) {
                            editor.add_history_entry(&line).context("cannot keep the history")?;
                        }
                        Ok(Entered::Line(format!("{line}\n")))
                    }
                    Err(ReadlineError::Interrupted) => Ok(Entered::Interrupt),
                    Err(ReadlineError::Eof) => Ok(Entered::End),
                    Err(error) => Err(error).context("cannot read from the terminal"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_passwords_are_not_kept() {
        for line in [
            "diset tpcc pg_pass x",
            "diset tpcc {pg_superuserpass} x",
            "diset tpcc \"mysql_pass\" x",
            "set password x",
        ] {
            assert!(names_secret(line), "{line}");
        }
        assert!(!names_secret("diset tpcc pg_count_ware 10"));
    }

    #[test]
    fn a_command_without_an_end_is_refused() {
        assert!(check_length("puts {\n").is_ok());
        assert!(check_length(&"{\n".repeat(MOST_LINES + 1)).is_err());
        assert!(check_length(&"x".repeat(LONGEST + 1)).is_err());
    }
}
