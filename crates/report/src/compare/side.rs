//! The runs of one side, read from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelvin_diagnose::{Evidence, KeyFigure, TenantFigures};
use kelvin_store::{Origin, RunId, Store};

use crate::{Result, RunReport};

/// A run with everything that a comparison needs.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its report.
    pub report: RunReport,
    /// Its key figures by point; for a scenario those of its tenants, by the numbers of their sources.
    pub key: BTreeMap<u32, Vec<KeyFigure>>,
    /// Its group, and its block there.
    pub block: Option<(i64, u32)>,
    /// The store and run from which it was imported; none for a run made with this store.
    pub origin: Option<Origin>,
}

impl Run {
    /// Reads a run, with the means of `metrics` in addition to its key figures.
    ///
    /// # Errors
    /// Fails if there is no such run, or if it is damaged.
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
    /// The side's name.
    pub name: String,
    /// Its runs, without duplicates.
    pub runs: Vec<&'a Run>,
    /// Notes on how they were selected.
    pub notes: Vec<String>,
}

impl<'a> Side<'a> {
    /// A side of these runs. Duplicates are removed: they are not additional observations.
    pub fn new(name: impl Into<String>, runs: impl IntoIterator<Item = &'a Run>, notes: Vec<String>) -> Self {
        let mut seen = BTreeSet::new();
        let runs = runs.into_iter().filter(|run| seen.insert(run.report.run)).collect();
        Self { name: name.into(), runs, notes }
    }

    pub(super) fn reports(&self) -> Vec<&'a RunReport> {
        self.runs.iter().map(|run| &run.report).collect()
    }
}
