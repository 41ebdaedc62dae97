//! `kelvin study analyze`: analyses a study's runs from its folder and its store.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kelvin_analysis::Analysis;
use kelvin_lab::study::StoredRunFacts;
use kelvin_lab::study::notebook::NotebookPart;
use kelvin_lab::study::{Folder, LedgerEntry, State, Study, StudyPlan};
use kelvin_store::Store;

use super::find;
use crate::args::{AnalyzeArgs, Global};
use crate::exit::Code;
use crate::out;

/// Progress is printed if the analysis takes longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Analyses the study, prints the result, and fills the notebook's sections and `next.toml`.
pub(super) fn analyze(args: &AnalyzeArgs, global: &Global) -> Result<Code> {
    let folder = find(&args.study)?;
    let found = AnalyzedStudy::analyze_folder(&folder, global)?;
    if !args.no_write {
        found.write(&folder)?;
    }
    if args.json {
        out::line(&serde_json::to_string(&found.analysis)?)?;
    } else {
        out::write(&kelvin_report::study::text(&found.analysis))?;
    }
    Ok(Code::Success)
}

/// A study with its analysis.
pub(super) struct AnalyzedStudy {
    pub(super) study: Study,
    pub(super) entries: Vec<LedgerEntry>,
    pub(super) analysis: Analysis,
    /// The store of the runs, and their group; `None` if they are unavailable.
    pub(super) store: Option<(Store, i64)>,
}

impl AnalyzedStudy {
    /// Reads and analyses a study. The ledger has every metric. A missing store costs only the columns that it alone has,
    /// and is reported.
    pub(super) fn analyze_folder(folder: &Folder, global: &Global) -> Result<Self> {
        let study = folder.study()?;
        let entries = folder.ledger()?;
        let session = State::from_entries(&StudyPlan::new(&study), &entries).session;
        let store = session.and_then(|session| {
            let path = global.store.clone().unwrap_or(session.store);
            match Store::open_read_only(&path) {
                Ok(store) => Some((store, session.group)),
                Err(error) => {
                    note_progress(
                        global,
                        &format!(
                            "the store of the runs is not used: {error}; --store FILE names another store"
                        ),
                    );
                    None
                }
            }
        });
        let stored = match &store {
            Some((store, group)) => stored_values(store, *group, &entries, global),
            None => BTreeMap::new(),
        };
        let input = kelvin_lab::study::analysis_input(&study, &entries, &stored);
        let analysis = kelvin_analysis::analyze(&input).context("the study cannot be analysed")?;
        Ok(Self { study, entries, analysis, store })
    }

    /// Writes the notebook's sections, and the questions as a file.
    pub(super) fn write(&self, folder: &Folder) -> Result<()> {
        let text = kelvin_report::study::text(&self.analysis);
        folder.note(
            NotebookPart::Analysis,
            &format!("```text\n{}\n```", text.trim_end().replace("```", "'''")),
        )?;
        folder.note(NotebookPart::Next, &kelvin_report::study::next_markdown(&self.analysis))?;
        let path = folder.path().join("next.toml");
        let questions = kelvin_report::study::next_toml(&self.analysis);
        std::fs::write(&path, questions).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The values that the store adds to each run of the ledger.
fn stored_values(
    store: &Store,
    group: i64,
    entries: &[LedgerEntry],
    global: &Global,
) -> BTreeMap<i64, StoredRunFacts> {
    let runs = kelvin_lab::study::measured(entries);
    let (began, mut reported) = (Instant::now(), Instant::now());
    let mut found = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        if began.elapsed() > PATIENCE && reported.elapsed() > PATIENCE {
            reported = Instant::now();
            note_progress(global, &format!("reading run {} of {}", at + 1, runs.len()));
        }
        match kelvin_lab::study::stored_run_facts(store, group, *run) {
            Ok(Some(stored)) => {
                found.insert(run.0, stored);
            }
            Ok(None) => {
                note_progress(
                    global,
                    &format!("run {run} of {} does not belong to this study", store.path().display()),
                );
            }
            Err(error) => {
                note_progress(global, &format!("the store has no readable details of run {run}: {error}"));
            }
        }
    }
    found
}

pub(super) fn note_progress(global: &Global, text: &str) {
    if !global.quiet {
        out::note(&format!("kelvin: {text}"));
    }
}
