//! Where the prompt's commands come from: a person at a terminal, with a history, or a file or a pipe.

use std::io::BufRead;

use anyhow::{Context, Result};
use kelvin_hammerdb::is_secret;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};

/// What was entered.
pub(super) enum Entered {
    /// A line, with its end.
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
    /// The lines of standard input. The history ends with the session: commands may hold passwords.
    pub(super) fn new(typed: bool) -> Result<Self> {
        if !typed {
            return Ok(Self::Input);
        }
        let editor = Editor::with_history(Config::default(), MemHistory::new());
        Ok(Self::Terminal(Box::new(editor.context("cannot use the terminal")?)))
    }

    /// The next line; `continued` says whether it belongs to a command that was begun.
    pub(super) fn next(&mut self, continued: bool) -> Result<Entered> {
        match self {
            Self::Input => {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                let read = read.context("cannot read standard input")?;
                Ok(if read == 0 { Entered::End } else { Entered::Line(line) })
            }
            Self::Terminal(editor) => {
                match editor.readline(if continued { "        >" } else { "hammerdb>" }) {
                    Ok(line) => {
                        if !line.trim().is_empty() && !line.split_whitespace().any(is_secret) {
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
