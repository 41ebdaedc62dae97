//! vioperf's log: its rows and the result, as JSON.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kelvin_storage::vioperf::{Report, Row};
use serde::Serialize;

/// An entry of the log.
#[derive(Serialize)]
struct Entry<'a> {
    time: jiff::Timestamp,
    #[serde(flatten)]
    row: Option<&'a Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Report>,
}

/// An open log. Each entry is written immediately.
pub(super) struct Log {
    file: File,
    path: PathBuf,
    condensed: bool,
    entries: u64,
}

impl Log {
    /// Creates the file; without a path, a file with a new name.
    pub(super) fn create(path: Option<&Path>, condensed: bool) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true);
        let path = if let Some(path) = path {
            options.create(true).truncate(true);
            path.to_owned()
        } else {
            options.create_new(true);
            let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
            PathBuf::from(format!("results-{now}.json"))
        };
        let file =
            options.open(&path).with_context(|| format!("cannot create the log {}", path.display()))?;
        Ok(Self { file, path, condensed, entries: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn row(&mut self, row: &Row) -> Result<()> {
        self.entry(&Entry { time: jiff::Timestamp::now(), row: Some(row), result: None })
    }

    /// Writes the result, which is the last entry.
    pub(super) fn end(&mut self, report: &Report) -> Result<()> {
        self.entry(&Entry { time: jiff::Timestamp::now(), row: None, result: Some(report) })?;
        if self.condensed { Ok(()) } else { self.write("\n]\n") }
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<()> {
        let text = if self.condensed {
            format!("{}\n", serde_json::to_string(entry)?)
        } else {
            let before = if self.entries == 0 { "[\n" } else { ",\n" };
            format!("{before}{}", serde_json::to_string_pretty(entry)?)
        };
        self.entries += 1;
        self.write(&text)
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let path = self.path.display();
        self.file.write_all(text.as_bytes()).with_context(|| format!("cannot write the log {path}"))
    }
}
