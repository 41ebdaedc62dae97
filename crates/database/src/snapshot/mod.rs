//! Snapshots: the content of a database, kept so that it can be restored before each run.
//!
//! There are four ways to keep one, each a [`SnapshotStore`]: the file (SQLite), a database beside the one it
//! is of (PostgreSQL), the data directory of a managed server, and a dump. All hold to the same rules: what is being saved carries another name until it is complete, so that
//! nothing unfinished can be taken for a snapshot; what is being restored takes the old content's place in one
//! step where the way allows it; and nobody else's session is ended.

pub(crate) mod background;
pub(crate) mod data_directory;
pub(crate) mod directory;
pub(crate) mod dump;
pub(crate) mod files;
pub(crate) mod info;
mod methods;
pub(crate) mod program;
pub(crate) mod sessions;

pub(crate) use files::clones;
pub use info::{Contents, Seal, SnapshotInfo, SnapshotMethod, new_name};
pub use methods::SnapshotMethods;

use crate::{Error, ErrorClass, Result};

/// Room that is to be left on the disk beside a copy.
const MARGIN: u64 = 64 << 20;

/// How long-running work reports progress and is asked to end early.
pub struct SnapshotJob<'a> {
    /// Hears what is being done, how much of it is done, and how much there is (in megabytes).
    pub progress: &'a mut dyn FnMut(&str, u64, u64),
    /// Whether somebody asked to stop.
    pub stop: &'a dyn Fn() -> bool,
}

impl SnapshotJob<'_> {
    pub(crate) fn go_on(&self, state: &str) -> Result<()> {
        if (self.stop)() { Err(stopped(state)) } else { Ok(()) }
    }
}

/// What a restore did, for whoever reads the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreResult {
    /// How it was copied, such as "file copy" or "clone of the file (reflink)".
    pub how: String,
    /// Bytes that were restored.
    pub bytes: u64,
}

/// Keeps snapshots of one database in one way.
pub trait SnapshotStore {
    /// The way.
    fn way(&self) -> SnapshotMethod;

    /// The complete snapshots, by name.
    ///
    /// # Errors
    /// When they cannot be looked for. One whose description is damaged is left out.
    fn list(&self) -> Result<Vec<SnapshotInfo>>;

    /// Keeps the database as it is now under `name`; a snapshot of that name must not exist. When this fails or is
    /// killed, no snapshot was made and the database is as it was.
    ///
    /// # Errors
    /// Other sessions in the database, no space, no permission, an interruption.
    fn save(&self, name: &str, contents: &Contents, job: &mut SnapshotJob<'_>) -> Result<SnapshotInfo>;

    /// Brings the snapshot's content back. An error's words say in which state the database is.
    ///
    /// # Errors
    /// As [`SnapshotStore::save`], and a snapshot that is not what it was when it was saved.
    fn restore(&self, about: &SnapshotInfo, job: &mut SnapshotJob<'_>) -> Result<RestoreResult>;

    /// Removes the snapshot.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&self, about: &SnapshotInfo) -> Result<()>;
}

/// Refuses a name that could lead out of a directory or cannot be typed.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) || !name.chars().all(plain) {
        return Err(Error::usage(format!("{name:?} is not a valid name for a snapshot")).with_help(
            "use up to 64 letters, digits, '-', '_' and '.', beginning with a letter or a digit",
        ));
    }
    Ok(())
}

pub(crate) fn exists_already(name: &str) -> Error {
    Error::usage(format!("a snapshot {name:?} already exists"))
        .with_help(format!("choose another name, or remove it first: kelvin snapshot drop {name}"))
}

pub(crate) fn stopped(state: &str) -> Error {
    Error::new(ErrorClass::Timeout, format!("interrupted; {state}"))
}

/// Refuses a copy that would not fit, before it is begun.
pub(crate) fn must_fit(needed: u64, free: Option<u64>, place: &str) -> Result<()> {
    match free {
        Some(free) if free < needed.saturating_add(MARGIN) => Err(Error::new(
            ErrorClass::DiskFull,
            format!(
                "a copy of {:.0} MB does not fit: {:.0} MB are free {place}",
                needed as f64 / 1e6,
                free as f64 / 1e6
            ),
        )
        .with_help("free disk space; `kelvin snapshot list` shows the sizes of the snapshots")),
        _ => Ok(()),
    }
}

/// Text as SQL.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for good in ["a", "tproc-c-0123abcd", "before_upgrade.2"] {
            check_name(good).unwrap();
        }
        for bad in ["", ".", "..", "../x", "a/b", "-x", "a b", "é", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_copy_that_does_not_fit_is_refused_with_figures() {
        must_fit(100, None, "there").unwrap();
        must_fit(100, Some(MARGIN + 100), "there").unwrap();
        let error = must_fit(3_000_000_000, Some(1_000_000_000), "in /x").unwrap_err();
        assert_eq!(error.class(), ErrorClass::DiskFull);
        assert_eq!(error.message(), "a copy of 3000 MB does not fit: 1000 MB are free in /x");
    }
}
