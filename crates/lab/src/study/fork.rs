//! Forking a study: the same file with a new name and a link to the original, unlocked and without runs.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::folder::failed;
use super::{Folder, Study, StudyError};

/// The positions of the edits in the text.
#[derive(Deserialize)]
struct Places {
    name: Spanned<String>,
    parent: Option<Spanned<String>>,
    run: toml::Value,
}

/// Copies a study's file, comments included, into a new folder under a new name. A run in a file with a relative path
/// is copied with it.
pub fn fork(from: &Folder, to: &Path, name: &str) -> Result<(Folder, Study), StudyError> {
    let parent = from.study()?;
    let path = from.study_path();
    let text = std::fs::read_to_string(&path).map_err(failed("read", &path))?;
    let wrong = |error: toml::de::Error| StudyError::Parse {
        path: path.display().to_string(),
        message: kelvin_measure::redact(error.to_string().trim_end()),
    };
    let places: Places = toml::from_str(&text).map_err(wrong)?;

    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let link = quoted(&format!("{} ({})", parent.name, absolute(from.path()).display()));
    let mut edits = vec![(places.name.span(), quoted(name))];
    if let Some(old) = &places.parent {
        edits.push((old.span(), link));
    } else {
        let end = places.name.span().end;
        edits.push((end..end, format!("\nparent = {link}")));
    }
    // From the end, so that earlier positions stay valid; of two edits at the same position, the later one first.
    edits.sort_by_key(|(span, _)| std::cmp::Reverse((span.start, span.end)));
    let mut forked = text.clone();
    for (span, new) in edits {
        forked.replace_range(span, &new);
    }

    if to.join(Folder::STUDY).exists() {
        return Err(StudyError::Refused(format!("{} already contains a study", to.display())));
    }
    if let toml::Value::String(file) = &places.run
        && Path::new(file).is_relative()
    {
        copy_run(&from.path().join(file), &to.join(file))?;
    }
    Folder::create(to, &forked)
}

fn copy_run(from: &Path, to: &Path) -> Result<(), StudyError> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(failed("make", folder))?;
    }
    if to.exists() {
        return Ok(());
    }
    std::fs::copy(from, to).map(drop).map_err(failed("write", to))
}

fn absolute(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
