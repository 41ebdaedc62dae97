//! Standard output, which may be a pipe whose reader has seen enough (`kelvin show | head`).

use std::io::{ErrorKind, Write};
use std::path::Path;

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

/// Writes a file and says so.
pub(crate) fn file(path: &Path, text: &str, quiet: bool) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    if !quiet {
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// Writes words in lines of at most `width` columns: the first one begins at `first`, those after at `rest`.
pub(crate) fn wrapped(text: &mut String, words: &str, first: usize, rest: usize, width: usize) {
    let mut column = first;
    text.push_str(&" ".repeat(first));
    // Runs of blanks are columns and stay.
    for (index, word) in words.split_inclusive(' ').enumerate() {
        let length = word.trim_end().chars().count();
        if index > 0 && column + length > width && length > 0 {
            while text.ends_with(' ') {
                text.pop();
            }
            text.push('\n');
            text.push_str(&" ".repeat(rest));
            column = rest;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    while text.ends_with(' ') {
        text.pop();
    }
    text.push('\n');
}
