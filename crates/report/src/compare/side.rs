//! The runs of one side, read from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelvin_diagnose::{Evidence, KeyFigure, TenantFigures};
use kelvin_store::{Origin, RunId, Store};

use crate::{Result, RunReport};

/// A run with what a comparison asks of it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its figures.
    pub report: RunReport,
    /// Its key figures by point; of a scenario those of its tenants, by the numbers of their sources.
    pub key: BTreeMap<u32, Vec<KeyFigure>>,
    /// The group that it belongs to and its block there.
    pub block: Option<(i64, u32)>,
    /// Which run of another store it was; none of one that was made with this store.
    pub origin: Option<Origin>,
}

impl Run {
    /// Reads a run with the means of `metrics` beside its key figures.
    ///
    /// # Errors
    /// When there is no such run, or it is damaged.
    pub fn load(store: &Store, id: RunId, metrics: &[String]) -> Result<Self> {
        let stored = store.load(id)?;
        let report = RunReport::of_stored(store, &stored)?;
        let evidence = match &report.evidence {
            Some(evidence) => Arc::clone(evidence),
            None => Arc::new(Evidence::from_run(&stored)?),
        };
        let mut key = BTreeMap::new();
        let one_load = !report.is_scenario();
        for point in report.points.iter().filter(|_| one_load) {
            let figures = kelvin_diagnose::key_figures(&stored, &evidence, point.point, metrics)?;
            key.insert(point.point, figures);
        }
        for point in report.points.iter().filter(|_| !one_load) {
            let tenants = TenantFigures::all(&stored, &evidence, point.point, metrics)?;
            key.extend(tenants.into_iter().map(|one| (one.source_id.0.into(), one.figures)));
        }
        let block = store.membership(id)?.map(|member| (member.group.0, member.slot.block));
        Ok(Self { report, key, block, origin: store.origin(id)? })
    }
}

/// The runs of one side.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    /// What the user called it.
    pub name: String,
    /// Its runs, each once.
    pub runs: Vec<&'a Run>,
    /// What the reader has to know about how they were chosen.
    pub notes: Vec<String>,
}

impl<'a> Side<'a> {
    /// A side of these runs; one that is named twice is no second observation.
    pub fn new(name: impl Into<String>, runs: impl IntoIterator<Item = &'a Run>, notes: Vec<String>) -> Self {
        let mut seen = BTreeSet::new();
        let runs = runs.into_iter().filter(|run| seen.insert(run.report.run)).collect();
        Self { name: name.into(), runs, notes }
    }

    pub(super) fn reports(&self) -> Vec<&'a RunReport> {
        self.runs.iter().map(|run| &run.report).collect()
    }
}
