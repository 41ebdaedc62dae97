//! A study's folder: all data of the study as plain files.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Ledger, LedgerEntry, Lock, Study, StudyError, notebook};

/// A folder that holds a `study.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The file that makes a folder a study.
    pub const STUDY: &'static str = "study.toml";

    /// Opens an existing folder.
    pub fn open(path: &Path) -> Result<Self, StudyError> {
        let is_study = path.file_name().is_some_and(|name| name == Self::STUDY) && path.is_file();
        let folder = if is_study { path.parent().unwrap_or(Path::new("")) } else { path };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !folder.join(Self::STUDY).is_file() {
            return Err(StudyError::Refused(format!(
                "{} is not a study: it contains no {}; `kelvin study new NAME` creates one",
                folder.display(),
                Self::STUDY
            )));
        }
        Ok(Self { path: folder.to_owned() })
    }

    /// Creates the folder with its first two files. Existing files are never overwritten.
    pub fn create(path: &Path, study_toml: &str) -> Result<(Self, Study), StudyError> {
        let folder = Self { path: path.to_owned() };
        if folder.study_path().exists() {
            return Err(StudyError::Refused(format!("{} already contains a study", path.display())));
        }
        // Before anything is written: an invalid file must not get into the folder.
        let study = Study::parse(study_toml, Self::STUDY, path)?;
        std::fs::create_dir_all(path).map_err(failed("make", path))?;
        write_new(&folder.study_path(), study_toml)?;
        write_new(&folder.notebook_path(), &notebook::template(&study))?;
        Ok((folder, study))
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The study file.
    pub fn study_path(&self) -> PathBuf {
        self.path.join(Self::STUDY)
    }

    /// The path of the locked hypothesis.
    pub fn lock_path(&self) -> PathBuf {
        self.path.join("lock.json")
    }

    /// The path of the ledger.
    pub fn ledger_path(&self) -> PathBuf {
        self.path.join("ledger.jsonl")
    }

    /// The path of the notebook.
    pub fn notebook_path(&self) -> PathBuf {
        self.path.join("notebook.md")
    }

    /// The path of the undo journal. The file exists while there are changes to restore.
    pub fn undo_path(&self) -> PathBuf {
        self.path.join("undo.jsonl")
    }

    /// Reads `study.toml`.
    pub fn study(&self) -> Result<Study, StudyError> {
        Study::read(&self.study_path())
    }

    /// Reads `lock.json`; none when the study is not locked.
    pub fn lock(&self) -> Result<Option<Lock>, StudyError> {
        Lock::read(&self.lock_path())
    }

    /// Reads the ledger; empty before the first run.
    pub fn ledger(&self) -> Result<Vec<LedgerEntry>, StudyError> {
        Ledger::read(&self.ledger_path())
    }

    /// Replaces one of Kelvin's parts of the notebook. Nothing is changed if the notebook does not exist, or if the
    /// user removed the part.
    pub fn note(&self, part: notebook::NotebookPart, text: &str) -> Result<(), StudyError> {
        let path = self.notebook_path();
        let Ok(before) = std::fs::read_to_string(&path) else { return Ok(()) };
        let Some(after) = notebook::fill(&before, part, text) else { return Ok(()) };
        if after == before {
            return Ok(());
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.path).map_err(failed("write", &path))?;
        file.write_all(after.as_bytes()).map_err(failed("write", &path))?;
        if let Ok(kept) = std::fs::metadata(&path) {
            // A temporary file is readable only by its owner; the notebook keeps its permissions.
            file.as_file().set_permissions(kept.permissions()).map_err(failed("write", &path))?;
        }
        file.persist(&path).map_err(|error| failed("write", &path)(error.error))?;
        Ok(())
    }
}

pub(super) fn write_new(path: &Path, text: &str) -> Result<(), StudyError> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed("write", path))
}

pub(super) fn failed(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StudyError {
    let path = path.to_owned();
    move |source| StudyError::File { what, path, source }
}
