//! A log file that grows while the jobs run.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::{Error, Result};

enum Sink {
    Plain(File),
    Compressed(ZlibEncoder<File>),
}

/// A separate file, created at the first row.
pub(super) struct LogFile {
    path: PathBuf,
    compressed: bool,
    sink: Option<Sink>,
}

impl LogFile {
    /// At `path`, to which `.fz` is added for a compressed one.
    pub(super) fn new(mut path: PathBuf, compressed: bool) -> Self {
        if compressed {
            path.as_mut_os_string().push(".fz");
        }
        Self { path, compressed, sink: None }
    }

    /// Creates it, empty, so that a job without I/O has its files, too, and an invalid path is detected immediately.
    pub(super) fn create(&mut self) -> Result<()> {
        if let Some(parent) = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent)
                .map_err(Error::system(format!("cannot create the directory {}", parent.display())))?;
        }
        let file = File::create(&self.path)
            .map_err(Error::system(format!("cannot create the log {}", self.path.display())))?;
        self.sink = Some(if self.compressed {
            Sink::Compressed(ZlibEncoder::new(file, Compression::default()))
        } else {
            Sink::Plain(file)
        });
        Ok(())
    }

    /// Adds rows and passes them to the kernel, so that a kill loses none of them.
    pub(super) fn add(&mut self, rows: &[u8]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if self.sink.is_none() {
            self.create()?;
        }
        let written = match &mut self.sink {
            Some(Sink::Plain(file)) => file.write_all(rows),
            // A flush ends on a byte, so that a reader can decode everything before it.
            Some(Sink::Compressed(encoder)) => encoder.write_all(rows).and_then(|()| encoder.flush()),
            None => Ok(()),
        };
        written.map_err(Error::system(format!("cannot write the log {}", self.path.display())))
    }

    /// Closes the file. Returns its path.
    pub(super) fn finish(self) -> Result<PathBuf> {
        if let Some(Sink::Compressed(encoder)) = self.sink {
            encoder
                .finish()
                .map_err(Error::system(format!("cannot write the log {}", self.path.display())))?;
        }
        Ok(self.path)
    }
}

/// Concatenates several files into one and removes them. Compressed ones can be read as one, too.
pub(super) fn join(path: &Path, parts: &[PathBuf]) -> Result<()> {
    let Some((first, others)) = parts.split_first() else { return Ok(()) };
    let joined = || -> std::io::Result<()> {
        std::fs::rename(first, path)?;
        let mut whole = OpenOptions::new().append(true).open(path)?;
        for part in others {
            std::io::copy(&mut File::open(part)?, &mut whole)?;
            std::fs::remove_file(part)?;
        }
        Ok(())
    };
    joined().map_err(Error::system(format!("cannot combine the logs of its workers into {}", path.display())))
}
