//! `kelvin study report`: renders a study as one page.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kelvin_report::RunReport;
use kelvin_report::study;

use super::analyze::{AnalyzedStudy, note_progress};
use super::find;
use crate::args::{Global, StudyReportArgs};
use crate::exit::Code;
use crate::out;

/// The folder with the pages of the runs, beside the study's page.
const PAGES: &str = "runs";

/// Renders the page and writes it.
pub(super) fn report(args: &StudyReportArgs, global: &Global) -> Result<Code> {
    let folder = find(&args.study)?;
    let found = AnalyzedStudy::analyze_folder(&folder, global)?;
    found.write(&folder)?;
    if args.with_runs {
        pages(&found, folder.path(), global)?;
    }
    let notebook = std::fs::read_to_string(folder.notebook_path()).unwrap_or_default();
    let page = |run: i64| {
        let name = format!("{PAGES}/run-{run}.html");
        folder.path().join(&name).is_file().then_some(name)
    };
    let lock = folder.lock()?;
    let AnalyzedStudy { study, entries, analysis, .. } = found;
    let dossier =
        kelvin_lab::study::study_page_content(&study, lock.as_ref(), &entries, &notebook, analysis, &page);
    match &args.output {
        Some(file) if file == Path::new("-") => out::write(&study::markdown(&dossier))?,
        Some(file) if file.extension().is_some_and(|ending| ending == "md") => {
            out::file(file, &study::markdown(&dossier), global.quiet)?;
        }
        Some(file) => out::file(file, &study::html(&dossier)?, global.quiet)?,
        None => {
            out::file(&folder.path().join("report.html"), &study::html(&dossier)?, global.quiet)?;
            out::file(&folder.path().join("report.md"), &study::markdown(&dossier), global.quiet)?;
        }
    }
    Ok(Code::Success)
}

/// Writes a page for each run that the store has.
fn pages(found: &AnalyzedStudy, folder: &Path, global: &Global) -> Result<()> {
    let (store, group) =
        found.store.as_ref().context("the pages of the runs need their store; give it with --store FILE")?;
    let directory = folder.join(PAGES);
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    for run in kelvin_lab::study::measured(&found.entries) {
        if store.membership(run)?.is_none_or(|member| member.group.0 != *group) {
            note_progress(
                global,
                &format!("run {run} of {} does not belong to this study", store.path().display()),
            );
            continue;
        }
        let html = kelvin_report::html::render(&RunReport::load(store, run)?)?;
        let file: PathBuf = directory.join(format!("run-{run}.html"));
        out::file(&file, &html, true)?;
    }
    note_progress(global, &format!("wrote the pages of the runs to {}", directory.display()));
    Ok(())
}
