//! Standard output, which may be a pipe whose reader has seen enough (`kelvin show | head`).

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes text; a reader that has gone away is no error.
pub(crate) fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes text and a line end.
pub(crate) fn line(text: &str) -> Result<()> {
    write(&format!("{text}\n"))
}
