//! The file of an undo journal.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::ReversibleChange;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("the undo journal {path} {doing}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A running process uses it.
    #[error("the undo journal {path} is in use by a kelvin process that is still running{}; end it first", of_process(*.pid))]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process, if known.
        pid: Option<u32>,
    },
    /// It contains changes of a process that was killed.
    #[error("the undo journal {path} contains {count} changes that were never reverted; revert them first")]
    NotUndone {
        /// The file.
        path: PathBuf,
        /// Their number.
        count: usize,
    },
    /// It is not a journal, or another user could have written it.
    #[error("{path} cannot be trusted as an undo journal: {why}")]
    NotBelieved {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

fn of_process(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}

/// A change that has not been undone yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Its number in the journal.
    pub number: u64,
    /// The change.
    pub change: ReversibleChange,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Entry {
    Head { kelvin_undo_journal: u32, pid: u32, inode: u64 },
    About { number: u64, about_to: ReversibleChange },
    Undone { undone: u64 },
}

const VERSION: u32 = 1;

/// Maximum length in bytes. Journals are short: one line per factor and level change.
const LONGEST: u64 = 64 << 20;

/// An undo journal that this process owns until this is dropped.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    pending: Vec<Pending>,
    next: u64,
}

impl Journal {
    /// Starts a journal without pending changes: a new file, or an old one whose changes were all undone.
    pub fn begin(path: &Path) -> Result<Self, JournalError> {
        let mut journal = Self::open(path, true)?;
        if !journal.pending.is_empty() {
            return Err(JournalError::NotUndone { path: path.into(), count: journal.pending.len() });
        }
        journal.file.set_len(0).map_err(|source| journal.failed("cannot be truncated", source))?;
        let inode =
            journal.file.metadata().map_err(|source| journal.failed("cannot be examined", source))?.ino();
        let head = Entry::Head { kelvin_undo_journal: VERSION, pid: std::process::id(), inode };
        journal.write(&head)?;
        // The directory entry has to be on disk, too.
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| journal.failed("cannot be synced to disk", source))?;
        Ok(journal)
    }

    /// Opens the journal of a process that no longer exists; `None` if there is no file.
    pub fn open_left_over(path: &Path) -> Result<Option<Self>, JournalError> {
        if !path.try_exists().unwrap_or(true) {
            return Ok(None);
        }
        Self::open(path, false).map(Some)
    }

    /// The path of its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The changes that have not been undone yet, in the order in which they were made.
    pub fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// Records a change that is about to be made; it is on disk when this returns. Returns its number.
    pub fn about_to(&mut self, change: ReversibleChange) -> Result<u64, JournalError> {
        let number = self.next;
        let entry = Entry::About { number, about_to: change };
        self.write(&entry)?;
        self.next += 1;
        if let Entry::About { about_to: change, .. } = entry {
            self.pending.push(Pending { number, change });
        }
        Ok(number)
    }

    /// Records that a change was undone.
    pub fn undone(&mut self, number: u64) -> Result<(), JournalError> {
        self.write(&Entry::Undone { undone: number })?;
        self.pending.retain(|pending| pending.number != number);
        Ok(())
    }

    /// Removes the file when no changes are pending.
    pub fn end(self) -> Result<(), JournalError> {
        if !self.pending.is_empty() {
            return Err(JournalError::NotUndone { path: self.path, count: self.pending.len() });
        }
        std::fs::remove_file(&self.path).map_err(|source| self.failed("cannot be removed", source))
    }

    fn open(path: &Path, make: bool) -> Result<Self, JournalError> {
        let failed = |source| JournalError::File { path: path.into(), doing: "cannot be opened", source };
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(make).truncate(false).mode(0o600).custom_flags(no_link);
        let file = options.open(path).map_err(failed)?;
        let mut journal = Self { path: path.into(), file, pending: Vec::new(), next: 1 };
        match rustix::fs::flock(&journal.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let pid = journal.read_text().ok().and_then(|text| owner(&text));
                return Err(JournalError::InUse { path: path.into(), pid });
            }
            Err(error) => return Err(failed(error.into())),
        }
        let metadata = journal.file.metadata().map_err(failed)?;
        // Its owner removed the file between the two steps. An entry written to it would be lost.
        if !std::fs::symlink_metadata(path).is_ok_and(|named| named.ino() == metadata.ino()) {
            return Err(JournalError::InUse { path: path.into(), pid: None });
        }
        let doubt = |why: String| JournalError::NotBelieved { path: path.into(), why };
        if !metadata.is_file() {
            return Err(doubt("it is not a regular file".into()));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            return Err(doubt("it belongs to another user, or others can write to it".into()));
        }
        if metadata.len() > LONGEST {
            return Err(doubt(format!("{} bytes are too many", metadata.len())));
        }
        let text = journal.read_text().map_err(failed)?;
        let inode;
        (journal.pending, journal.next, inode) = read(&text).map_err(doubt)?;
        // The commands in a journal are executed. A journal that was copied or unpacked from an archive has another
        // inode than the one recorded in it, and its author cannot predict the inode.
        if !journal.pending.is_empty() && inode != Some(metadata.ino()) {
            return Err(doubt(
                "it was copied here from elsewhere; read it, revert the changes that it lists by hand, and \
                remove it"
                    .into(),
            ));
        }
        Ok(journal)
    }

    fn read_text(&mut self) -> std::io::Result<String> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(LONGEST).read_to_string(&mut text)?;
        Ok(text)
    }

    /// The entry is on disk when this returns. An incomplete line, left by a kill, is terminated first.
    fn write(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let line =
            serde_json::to_string(entry).map_err(|error| self.failed("cannot be written", error.into()))?;
        let written = (|| {
            let end = self.file.seek(SeekFrom::End(0))?;
            let torn = end > 0 && {
                let mut last = [0];
                self.file.seek(SeekFrom::End(-1))?;
                self.file.read_exact(&mut last)?;
                last != *b"\n"
            };
            let line = format!("{}{line}\n", if torn { "\n" } else { "" });
            self.file.write_all(line.as_bytes())?;
            self.file.sync_data()
        })();
        written.map_err(|source| self.failed("cannot be written", source))
    }

    fn failed(&self, doing: &'static str, source: std::io::Error) -> JournalError {
        JournalError::File { path: self.path.clone(), doing, source }
    }
}

fn owner(text: &str) -> Option<u32> {
    match serde_json::from_str(text.lines().next()?).ok()? {
        Entry::Head { pid, .. } => Some(pid),
        _ => None,
    }
}

/// The changes that have not been undone yet, the next number, and the inode of the file when it was written. A line
/// without a line end is incomplete because of a kill; its change was not made.
fn read(text: &str) -> Result<(Vec<Pending>, u64, Option<u64>), String> {
    let mut found: Vec<Pending> = Vec::new();
    let mut undone = BTreeSet::new();
    let mut next = 1;
    let mut written_into = None;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut torn = None;
    for (index, line) in whole.split('\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let entry: Entry = match serde_json::from_str(line) {
            Ok(entry) => entry,
            // An incomplete line that the next entry terminated. A kill leaves at most one.
            Err(error) if error.is_eof() && torn.is_none() => {
                torn = Some(index);
                continue;
            }
            // For untagged enums the parser only reports that no variant matches. For an incomplete line it reports
            // the end of the file first.
            Err(_) if serde_json::from_str::<serde_json::Value>(line).is_err() && torn.is_none() => {
                torn = Some(index);
                continue;
            }
            Err(error) => return Err(format!("line {}: {error}", index + 1)),
        };
        match entry {
            Entry::Head { kelvin_undo_journal: VERSION, inode, .. } => written_into = Some(inode),
            Entry::Head { kelvin_undo_journal: version, .. } => {
                return Err(format!("its version {version} is not supported by this version of kelvin"));
            }
            Entry::About { number, about_to: change } => {
                next = next.max(number.saturating_add(1));
                found.push(Pending { number, change });
            }
            Entry::Undone { undone: number } => {
                undone.insert(number);
            }
        }
    }
    found.retain(|pending| !undone.contains(&pending.number));
    Ok((found, next, written_into))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn command(undo: &str) -> ReversibleChange {
        ReversibleChange::Command { undo: undo.into() }
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("undo.journal");
        (directory, path)
    }

    #[test]
    fn what_was_not_undone_is_found_after_the_process_is_gone() {
        let (_directory, path) = place();
        let mut journal = Journal::begin(&path).unwrap();
        let first = journal.about_to(command("first")).unwrap();
        journal.about_to(command("second")).unwrap();
        journal.undone(first).unwrap();
        let error = Journal::open_left_over(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        drop(journal);
        let mut left = Journal::open_left_over(&path).unwrap().unwrap();
        assert_eq!(left.pending().len(), 1);
        assert_eq!(left.pending()[0].change, command("second"));
        left.undone(2).unwrap();
        drop(left);
        let mut again = Journal::begin(&path).unwrap();
        assert_eq!(again.about_to(command("third")).unwrap(), 3);
        assert!(again.end().is_err(), "a change is left");
    }

    #[test]
    fn a_journal_with_changes_is_not_begun_anew() {
        let (_directory, path) = place();
        Journal::begin(&path).unwrap().about_to(command("x")).unwrap();
        assert!(matches!(Journal::begin(&path).unwrap_err(), JournalError::NotUndone { count: 1, .. }));
        let mut left = Journal::open_left_over(&path).unwrap().unwrap();
        left.undone(1).unwrap();
        left.end().unwrap();
        assert!(Journal::open_left_over(&path).unwrap().is_none());
    }

    #[test]
    fn a_torn_last_line_was_not_done_and_others_go_on_after_it() {
        let (_directory, path) = place();
        Journal::begin(&path).unwrap().about_to(command("x")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for cut in 1..30 {
            let torn = format!("{text}{}", &text.lines().nth(1).unwrap()[..cut]);
            std::fs::write(&path, torn).unwrap();
            let mut left = Journal::open_left_over(&path).unwrap().unwrap();
            assert_eq!(left.pending().len(), 1, "{cut}");
            left.undone(1).unwrap();
            drop(left);
            assert_eq!(Journal::open_left_over(&path).unwrap().unwrap().pending(), [], "{cut}");
        }
    }

    #[test]
    fn a_file_that_others_could_have_written_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let (directory, path) = place();
        drop(Journal::begin(&path).unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
        assert!(matches!(Journal::open_left_over(&path).unwrap_err(), JournalError::NotBelieved { .. }));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Journal::begin(&link).unwrap_err(), JournalError::File { .. }));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        for text in [
            "[1]\n",
            "{\"kelvin_undo_journal\":9,\"pid\":1,\"inode\":1}\n",
            "{\"number\":1,\"about_to\":{\"change\":\"fly\"}}\n",
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(
                matches!(Journal::open_left_over(&path).unwrap_err(), JournalError::NotBelieved { .. }),
                "{text}"
            );
        }
    }

    #[test]
    fn a_journal_that_came_from_elsewhere_is_not_believed() {
        let (directory, path) = place();
        Journal::begin(&path).unwrap().about_to(command("rm -rf /")).unwrap();
        let copy = directory.path().join("copy");
        std::fs::copy(&path, &copy).unwrap();
        let error = Journal::open_left_over(&copy).unwrap_err().to_string();
        assert!(error.contains("copied here from elsewhere"), "{error}");
        assert!(Journal::begin(&copy).is_err());
        assert_eq!(Journal::open_left_over(&path).unwrap().unwrap().pending().len(), 1);
        let headless = "{\"number\":1,\"about_to\":{\"change\":\"command\",\"undo\":\"true\"}}\n";
        std::fs::write(&path, headless).unwrap();
        assert!(matches!(Journal::open_left_over(&path).unwrap_err(), JournalError::NotBelieved { .. }));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
            let _ = read(&text);
        }
    }
}
