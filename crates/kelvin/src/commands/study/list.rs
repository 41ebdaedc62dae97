//! `kelvin study list`.

use anyhow::Result;
use kelvin_lab::study::Folder;
use kelvin_measure::text::cut;
use serde::Serialize;

use super::page::{WIDTH, table};
use super::{StudyStatus, registry};
use crate::args::ListArgs;
use crate::exit::Code;
use crate::out;

/// A study in the list.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// "planned", "running or stopped", "complete", …; or why it cannot be read.
    state: String,
    runs: usize,
    done: usize,
    void: usize,
    locked: bool,
    deviations: usize,
    folder: String,
}

/// Lists the known studies, and those in the folders that the user named.
pub(super) fn list(args: &ListArgs) -> Result<Code> {
    let mut folders = registry::known_folders()?;
    for path in &args.folders {
        match Folder::open(path) {
            Ok(folder) => folders.push(folder),
            Err(error) => {
                let within = studies_below(path);
                if within.is_empty() {
                    return Err(error.into());
                }
                folders.extend(within);
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    folders.retain(|folder| {
        seen.insert(folder.path().canonicalize().unwrap_or_else(|_| folder.path().to_owned()))
    });
    let lines: Vec<Line> = folders.into_iter().map(line).collect();
    if args.json {
        for line in &lines {
            out::line(&serde_json::to_string(line)?)?;
        }
    } else {
        out::write(&render(&lines))?;
    }
    Ok(Code::Success)
}

/// The studies one level below a folder, sorted by name.
fn studies_below(path: &std::path::Path) -> Vec<Folder> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<Folder> = entries.filter_map(|entry| Folder::open(&entry.path()).ok()).collect();
    folders.sort_by(|a, b| a.path().cmp(b.path()));
    folders
}

fn line(folder: Folder) -> Line {
    let shown = folder.path().display().to_string();
    let last = folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match StudyStatus::read(folder) {
        Ok(situation) => Line {
            name: situation.study.name.clone(),
            state: situation.label().into(),
            runs: situation.plan.runs.len(),
            done: situation.state.counted_runs(),
            void: situation.state.void.len(),
            locked: situation.lock.is_some(),
            deviations: situation.changed.len() + situation.state.deviations.len(),
            folder: shown,
        },
        Err(_) => Line {
            name: last,
            state: "cannot be read".into(),
            runs: 0,
            done: 0,
            void: 0,
            locked: false,
            deviations: 0,
            folder: shown,
        },
    }
}

fn render(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "no known studies; kelvin study new NAME creates one\n".into();
    }
    let mut rows = vec![["study", "state", "runs", "void", "lock", "folder"].map(str::to_owned).to_vec()];
    for line in lines {
        rows.push(vec![
            cut(&line.name, 24),
            line.state.clone(),
            format!("{}/{}", line.done, line.runs),
            line.void.to_string(),
            match (line.locked, line.deviations) {
                (false, _) => "–".into(),
                (true, 0) => "locked".into(),
                (true, deviations) => format!("locked, {deviations} dev."),
            },
            cut(&line.folder, WIDTH),
        ]);
    }
    let mut text = String::new();
    table(&mut text, &rows, |column| ![2, 3].contains(&column));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_reads_well() {
        let line = |name: &str, state: &str, done, locked, deviations| Line {
            name: name.into(),
            state: state.into(),
            runs: 54,
            done,
            void: usize::from(done > 9),
            locked,
            deviations,
            folder: format!("/home/me/studies/{name}"),
        };
        let lines = [
            line("buffers", "complete", 54, true, 0),
            line("commit-and-huge-pages", "under way", 23, true, 2),
            line("users", "planned", 0, false, 0),
        ];
        insta::assert_snapshot!(render(&lines));
        assert!(render(&[]).contains("study new"));
    }
}
