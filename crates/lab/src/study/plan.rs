//! Every run of a study in order: randomised complete blocks.

use kelvin_measure::Random;
use serde::{Deserialize, Serialize};

use super::{DesignKind, Study};
use crate::conditions::DesignCell;

/// A separate domain of the seeded streams: the order of the runs is independent of the random values of a run.
const ORDER: u64 = 0x0073_7475_6479;

/// Suffix of the base cell's name for its second run.
const CONTROL: &str = " (control)";

/// The specification of a planned run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatment {
    /// Its cell, as an index into [`StudyPlan::cells`].
    pub cell: usize,
    /// Whether it is the base cell's second run in its block.
    pub control: bool,
    /// Its name in the ledger and in the store.
    pub name: String,
}

/// A planned run. Block and treatment identify it, however often it is attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRun {
    /// The block, from 0.
    pub block: u32,
    /// Its treatment, as an index into [`StudyPlan::treatments`].
    pub treatment: usize,
}

/// The runs of a study. The plan follows from `study.toml` alone, the order from its seed.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyPlan {
    /// The cells in the order of the design, the base first.
    pub cells: Vec<DesignCell>,
    /// The treatments of each block: every cell, and the control if there is one.
    pub treatments: Vec<Treatment>,
    /// Every run, in order.
    pub runs: Vec<PlannedRun>,
    /// Maximum number of repeated runs.
    pub replacements: u32,
    /// For a fraction: the sets of confounded effects.
    pub aliases: Vec<Vec<String>>,
    /// The resolution of a fraction.
    pub resolution: Option<usize>,
}

/// Estimated duration of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Seconds of one run, with its conditions and reset.
    pub run_seconds: f64,
    /// Whether it was measured on runs; otherwise it is ramp-up, window and an allowance.
    pub measured: bool,
}

/// Assumed seconds in addition to ramp-up and window, until runs were measured: opening, reset, inspection, storing.
const ALLOWANCE: f64 = 15.0;
/// The same for I/O jobs, which open no database.
const IO_ALLOWANCE: f64 = 1.0;
/// Assumed seconds of a window that ends after a count, because its length is unknown.
const BY_COUNT: f64 = 60.0;

impl StudyPlan {
    /// The runs of a study. Each block has every treatment once, in a separate order that does not change when blocks
    /// are added.
    pub fn of(study: &Study) -> Self {
        let cells = study.cells().to_vec();
        let mut treatments: Vec<Treatment> = cells
            .iter()
            .enumerate()
            .map(|(cell, named)| Treatment { cell, control: false, name: named.name() })
            .collect();
        if study.design.control {
            treatments.push(Treatment {
                cell: 0,
                control: true,
                name: format!("{}{CONTROL}", study.base().name()),
            });
        }
        let mut runs = Vec::new();
        for block in 0..study.design.blocks {
            let mut order: Vec<usize> = (0..treatments.len()).collect();
            Random::part(study.design.seed, ORDER, u64::from(block)).shuffle(&mut order);
            runs.extend(order.into_iter().map(|treatment| PlannedRun { block, treatment }));
        }
        let replacements = study.design.replacements.unwrap_or((runs.len() as u32).div_ceil(5).max(2));
        // The cells came from the same generators, so they are valid.
        let fraction = (study.design.kind == DesignKind::Fractional)
            .then(|| study.design.fraction(&study.axes).ok())
            .flatten();
        Self {
            cells,
            treatments,
            runs,
            replacements,
            aliases: fraction.as_ref().map(kelvin_stats::fractional::Fraction::aliases).unwrap_or_default(),
            resolution: fraction.as_ref().map(kelvin_stats::fractional::Fraction::resolution),
        }
    }

    /// The treatment of a run.
    pub fn treatment(&self, run: PlannedRun) -> &Treatment {
        &self.treatments[run.treatment]
    }

    /// The cell of a run.
    pub fn cell(&self, run: PlannedRun) -> &DesignCell {
        &self.cells[self.treatment(run).cell]
    }

    /// The indexes of the factors that change from the previous run; all of them for the first run.
    pub fn changes(&self, before: Option<PlannedRun>, run: PlannedRun) -> Vec<usize> {
        let now = &self.cell(run).0;
        match before {
            None => (0..now.len()).collect(),
            Some(before) => {
                let old = &self.cell(before).0;
                (0..now.len()).filter(|&factor| old[factor] != now[factor]).collect()
            }
        }
    }

    /// The number of runs that begin by changing a factor that restarts the server. `restarting` states which factors
    /// do.
    pub fn restarts(&self, restarting: &[bool]) -> usize {
        let restarts = |changes: Vec<usize>| {
            changes.iter().any(|&factor| restarting.get(factor).copied().unwrap_or(false))
        };
        let firsts = self.runs.first().map(|&run| self.changes(None, run));
        let others = self.runs.windows(2).map(|two| self.changes(Some(two[0]), two[1]));
        firsts.into_iter().chain(others).filter(|changes| restarts(changes.clone())).count()
    }
}

impl Estimate {
    /// The estimate from the durations of runs in seconds, or from the specification if there are none.
    pub fn of(study: &Study, seconds: &[f64]) -> Self {
        if let Some(run_seconds) = median(seconds) {
            return Self { run_seconds, measured: true };
        }
        let window = study.run.planned().map_or(BY_COUNT, |planned| planned.as_secs_f64());
        Self { run_seconds: window + Self::allowance(study), measured: false }
    }

    /// Assumed seconds of a run in addition to its load, until runs were measured.
    pub fn allowance(study: &Study) -> f64 {
        if study.run.is_io() { IO_ALLOWANCE } else { ALLOWANCE }
    }

    /// Estimated seconds for this number of runs.
    pub fn seconds(&self, runs: usize) -> f64 {
        self.run_seconds * runs as f64
    }
}

fn median(values: &[f64]) -> Option<f64> {
    kelvin_stats::rank::median(values)
}
