//! Writing iologs of version 3, as fio does for `write_iolog`.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use kelvin_measure::Nanos;

use crate::{Io, SyncCall};

/// An iolog being written. Times are nanoseconds from the beginning of the job; the log has microseconds.
#[derive(Debug)]
pub struct IologWriter<W: Write> {
    out: W,
    files: Vec<PathBuf>,
    open: Vec<bool>,
}

impl<W: Write> IologWriter<W> {
    /// Begins a log of I/Os on these files, which are numbered by index: writes the first line, and
    /// a line for each file.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or a name contains a blank, which an iolog cannot represent.
    pub fn new(mut out: W, files: Vec<PathBuf>) -> io::Result<Self> {
        for file in &files {
            if file.as_os_str().is_empty() || file.as_os_str().as_bytes().iter().any(u8::is_ascii_whitespace)
            {
                let problem = format!(
                    "{:?} cannot be written to an iolog: names must not contain spaces",
                    file.to_string_lossy()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
        }
        out.write_all(b"fio version 3 iolog\n")?;
        let open = vec![false; files.len()];
        let mut new = Self { out, files, open };
        for file in 0..new.files.len() {
            new.line(0, file, format_args!("add"))?;
        }
        Ok(new)
    }

    fn line(&mut self, at: Nanos, file: usize, action: std::fmt::Arguments<'_>) -> io::Result<()> {
        let name = self.files.get(file).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("the log has no file number {file}"))
        })?;
        write!(self.out, "{} ", at / 1000)?;
        self.out.write_all(name.as_os_str().as_bytes())?;
        writeln!(self.out, " {action}")
    }

    fn open(&mut self, at: Nanos, file: u32) -> io::Result<usize> {
        let file = file as usize;
        if let Some(open) = self.open.get_mut(file).filter(|open| !**open) {
            *open = true;
            self.line(at, file, format_args!("open"))?;
        }
        Ok(file)
    }

    /// Writes an issued I/O. Its file is opened by its first I/O.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn issued(&mut self, at: Nanos, io: &Io) -> io::Result<()> {
        let file = self.open(at, io.target)?;
        self.line(at, file, format_args!("{} {} {}", io.direction.word(), io.offset, io.length))
    }

    /// Writes an issued sync. `sync_file_range` is written as `datasync`, the nearest action of an iolog.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn synced(&mut self, at: Nanos, target: u32, how: SyncCall) -> io::Result<()> {
        let file = self.open(at, target)?;
        let word = match how {
            SyncCall::Fsync => "sync",
            SyncCall::Fdatasync | SyncCall::Range(_) => "datasync",
        };
        // fio interprets a line without numbers as an action on the file.
        self.line(at, file, format_args!("{word} 0 0"))
    }

    /// Closes the files, and returns the flushed output.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn finish(mut self, at: Nanos) -> io::Result<W> {
        for file in 0..self.files.len() {
            if self.open.get(file) == Some(&true) {
                self.line(at, file, format_args!("close"))?;
            }
        }
        self.out.flush()?;
        Ok(self.out)
    }
}
