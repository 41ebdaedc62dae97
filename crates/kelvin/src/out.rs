//! Standard output, which may be a pipe whose reader has closed it (`kelvin show | head`).

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use kelvin_live::terminal_size;
pub(crate) use kelvin_live::{note, overwrite};
use kelvin_measure::text::{hanging, plain, printable_lines};

/// Writes text to standard output; a closed pipe is not an error.
pub(crate) fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes text and a newline to standard output.
pub(crate) fn line(text: &str) -> Result<()> {
    write(&format!("{text}\n"))
}

/// Writes a file that only its owner can read, and reports it unless `quiet`.
pub(crate) fn file(path: &Path, text: &str, quiet: bool) -> Result<()> {
    private(path, text)?;
    if !quiet {
        note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Writes a file that only its owner can read: results name hosts, users and statements.
pub(crate) fn private(path: &Path, text: &str) -> Result<()> {
    let open = || File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = open().and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Creates a directory that only its owner can enter; an existing one is not changed.
pub(crate) fn directory(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot create {}", path.display()))
}

/// Writes a line to standard error, red on a terminal.
pub(crate) fn warning(text: &str) {
    use std::io::IsTerminal;
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = std::io::stderr().is_terminal() && !plain;
    let (on, off) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    let _ = writeln!(std::io::stderr(), "{on}{}{off}", printable_lines(text));
}

/// Width of the terminal in columns, limited to 80 to 120; 100 if there is no terminal.
pub(crate) fn width() -> usize {
    width_within(80, 120)
}

/// The same with other limits.
pub(crate) fn width_within(least: usize, most: usize) -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let real = || terminal_size(std::io::stdout()).map(|(columns, _)| columns);
    asked.or_else(real).filter(|columns| *columns > 0).unwrap_or(100).clamp(least, most)
}

/// Appends words, without their markup, in lines of at most `width` columns. The first line starts at column
/// `first`, the others at column `rest`.
pub(crate) fn wrapped(text: &mut String, words: &str, first: usize, rest: usize, width: usize) {
    for line in hanging(&" ".repeat(first), &plain(words), rest, width) {
        text.push_str(&line);
        text.push('\n');
    }
}
