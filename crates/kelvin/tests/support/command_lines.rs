//! The command lines of the documents, as a reader would type them.

#![allow(dead_code, reason = "one test reads them, one runs them")]

use std::path::{Path, PathBuf};

/// The beginnings of lines that are commands and not output.
const TYPED: [&str; 10] = [
    "kelvin ",
    "./target/release/kelvin ",
    "$EDITOR ",
    "fio ",
    "ssh ",
    "for ",
    "export ",
    "dd ",
    "truncate ",
    "fallocate ",
];

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects all files below a folder whose names end with `end`.
pub(crate) fn files(folder: &Path, end: &str, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, end, into);
        } else if path.to_str().unwrap().ends_with(end) {
            into.push(path);
        }
    }
}

/// Every document with its text, in the order of the paths.
pub(crate) fn documents() -> Vec<(PathBuf, String)> {
    let mut found = vec![repository().join("README.md"), repository().join("ARCHITECTURE.md")];
    files(&repository().join("docs"), ".md", &mut found);
    found.sort();
    let read = |path: PathBuf| std::fs::read_to_string(&path).map(|text| (path, text)).unwrap();
    found.into_iter().map(read).collect()
}

/// The commands in a document's indented and fenced blocks. A continued line or a loop is one command.
pub(crate) fn shell_lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut fenced, mut before) = (false, String::new());
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if !fenced && !line.starts_with("    ") {
            continue;
        }
        let line = std::mem::take(&mut before) + line.trim().trim_start_matches("$ ");
        if let Some(start) = line.strip_suffix('\\') {
            start.clone_into(&mut before);
        } else if line.starts_with("for ") && !line.ends_with("done") {
            before = line + "\n";
        } else if TYPED.iter().any(|start| line.starts_with(start)) {
            found.push(line);
        }
    }
    found
}
