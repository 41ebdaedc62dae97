//! The input of an analysis: factors, runs with their metrics, the goal and the claim. It is independent of
//! stores and study folders, so that published examples run through the same code as studies.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_diagnose::{Better, NoisePrice};
use serde::Serialize;

/// Everything known about a study when it is analysed.
#[derive(Debug, Clone)]
pub struct StudyInput {
    /// The study's name.
    pub name: String,
    /// How its cells were chosen.
    pub design: StudyDesign,
    /// What was varied.
    pub factors: Vec<Factor>,
    /// Every run, void ones and controls included, in any order.
    pub runs: Vec<Run>,
    /// The goal of the study.
    pub goal: Goal,
    /// The hypothesis in terms of factors and levels; none if it is only text.
    pub claim: Option<Claim>,
    /// Metrics other than the goal's, by id; their results are exploratory.
    pub secondary: Vec<String>,
    /// Names, units and directions of metrics by id.
    pub figures: BTreeMap<String, MetricInfo>,
    /// Confidence of every interval, such as 0.95.
    pub confidence: f64,
    /// The scale on which effects are added up.
    pub scale: Scale,
}

/// How the cells of a study were chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum StudyDesign {
    /// Two or more variants, one factor.
    Ab,
    /// Every combination of levels.
    Factorial,
    /// A part of the combinations of factors with two levels.
    Fraction {
        /// Generators such as "D=ABC", with the factors as letters in their order.
        generators: Vec<String>,
    },
    /// One factor over a range of numbers.
    Sweep,
}

impl StudyDesign {
    /// The design as text.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Ab => "comparison of variants",
            Self::Factorial => "full factorial",
            Self::Fraction { .. } => "fractional factorial",
            Self::Sweep => "sweep",
        }
    }
}

/// The scale on which effects are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Logarithms: effects are ratios, as the effects of most settings are.
    Ratio,
    /// The values themselves: effects are differences.
    Difference,
}

/// What was varied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels; the others are compared with the first.
    pub levels: Vec<Level>,
    /// Whether the levels are numbers of virtual users.
    pub users: bool,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// The level as a number, for an axis; none if it is not numeric.
    pub number: Option<f64>,
}

/// A run of the study.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its number in the store.
    pub run: i64,
    /// Its order in time, from 0.
    pub place: u32,
    /// Its block, from 0.
    pub block: u32,
    /// The index of each factor's level, in the order of the factors.
    pub cell: Vec<usize>,
    /// Whether it is a control: it repeats a run of the same cell in its block.
    pub control: bool,
    /// Metrics by id; unknown ones are missing.
    pub values: BTreeMap<String, f64>,
    /// Why it is void; none if it counts.
    pub void: Option<String>,
    /// The resource that limited it, according to its verdict.
    pub limit: Option<String>,
    /// Whether its specification lets it count regardless of the CPU time that other processes took.
    pub accepts_noise: bool,
    /// What other processes cost it; none where that is unknown.
    pub noise: Option<NoisePrice>,
}

/// Name, unit and direction of a metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricInfo {
    /// Its name in headings.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether higher or lower is better; none where neither is.
    pub better: Option<Better>,
}

/// The goal of the study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    /// The id of the metric that decides.
    pub metric: String,
    /// Whether higher or lower is better.
    pub better: Better,
    /// The smallest effect that matters, as a fraction: 0.01 for 1 %.
    pub smallest: f64,
}

/// The expected direction of a metric's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Up.
    Up,
    /// Down.
    Down,
    /// No change that matters.
    Same,
}

/// The hypothesis: going from some levels to others changes the goal's metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Factor and level of the first side, by index; the result is averaged over factors that are not listed.
    pub from: Vec<(usize, usize)>,
    /// The other side, in the same form.
    pub to: Vec<(usize, usize)>,
    /// The expected direction of the goal's metric.
    pub direction: Direction,
    /// The minimum size of the change, as a fraction; with [`Direction::Same`] the maximum. The default is
    /// the goal's smallest effect.
    pub least: Option<f64>,
    /// Other changes that must then be observed.
    pub signature: Vec<Prediction>,
}

/// A change that must be observed if the supposed mechanism is right.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The id of the metric.
    pub metric: String,
    /// Its expected direction.
    pub direction: Direction,
    /// The minimum size of the change, as a fraction; with [`Direction::Same`] the maximum.
    pub size: Option<f64>,
}

/// Why an input is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// There is no factor.
    #[error("the study has no factor; give at least one with two levels")]
    NoFactor,
    /// A factor has fewer than two levels.
    #[error("factor {0:?} has {1} level(s); a factor needs at least two")]
    FewLevels(String, usize),
    /// The design needs exactly one factor.
    #[error("a {0} has one factor, but there are {1}")]
    NotOneFactor(&'static str, usize),
    /// The cell of a run does not exist.
    #[error("run {0} is in no cell of the study's factors")]
    NoCell(i64),
    /// The claim names a factor or level that does not exist.
    #[error("the hypothesis names a factor or level that the study does not have")]
    NoSuchLevel,
    /// Both sides of the claim are the same.
    #[error("the hypothesis compares a set of cells with itself")]
    SameSides,
    /// The confidence is out of range.
    #[error("a confidence of {0} is not between 0.5 and 1")]
    Confidence(String),
    /// The smallest effect is out of range.
    #[error("the smallest effect that matters, {0}, is not a fraction between 0 and 1")]
    Smallest(String),
    /// The generators do not define a fraction.
    #[error("invalid fraction: {0}")]
    Fraction(String),
}

impl StudyInput {
    /// Refuses an input that cannot be analysed.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), InputError> {
        if self.factors.is_empty() {
            return Err(InputError::NoFactor);
        }
        if let Some(factor) = self.factors.iter().find(|factor| factor.levels.len() < 2) {
            return Err(InputError::FewLevels(factor.name.clone(), factor.levels.len()));
        }
        let count = self.factors.len();
        match self.design {
            StudyDesign::Ab | StudyDesign::Sweep if count != 1 => {
                return Err(InputError::NotOneFactor(self.design.describe(), count));
            }
            _ => {}
        }
        let exists = |at: &(usize, usize)| self.factors.get(at.0).is_some_and(|f| at.1 < f.levels.len());
        for run in &self.runs {
            if run.cell.len() != count || !run.cell.iter().copied().enumerate().all(|at| exists(&at)) {
                return Err(InputError::NoCell(run.run));
            }
        }
        if let Some(claim) = &self.claim {
            if !claim.from.iter().chain(&claim.to).all(exists) || claim.from.is_empty() || claim.to.is_empty()
            {
                return Err(InputError::NoSuchLevel);
            }
            if sorted(&claim.from) == sorted(&claim.to) {
                return Err(InputError::SameSides);
            }
        }
        if !(self.confidence >= 0.5 && self.confidence < 1.0) {
            return Err(InputError::Confidence(self.confidence.to_string()));
        }
        if !(self.goal.smallest > 0.0 && self.goal.smallest < 1.0) {
            return Err(InputError::Smallest(self.goal.smallest.to_string()));
        }
        Ok(())
    }

    /// A cell as text, each factor with its level: "numa=local huge-pages=on".
    pub fn cell_name(&self, cell: &[usize]) -> String {
        self.levels_named(&cell.iter().copied().enumerate().collect::<Vec<_>>())
    }

    /// Factors with their levels as text: "numa=local".
    pub(crate) fn levels_named(&self, levels: &[(usize, usize)]) -> String {
        let name = |(factor, level): &(usize, usize)| {
            let factor = &self.factors[*factor];
            format!("{}={}", factor.name, factor.levels[*level].name)
        };
        levels.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// The name of a metric for headings; its id where it has no name.
    pub fn figure_name<'a>(&'a self, id: &'a str) -> &'a str {
        self.figures.get(id).map_or(id, |figure| &figure.name)
    }

    /// The ids of the goal's metric and the others, without duplicates.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let mut seen = BTreeSet::from([self.goal.metric.clone()]);
        let mut metrics = vec![self.goal.metric.clone()];
        metrics.extend(self.secondary.iter().filter(|id| seen.insert((*id).clone())).cloned());
        metrics
    }
}

fn sorted(levels: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut levels = levels.to_vec();
    levels.sort_unstable();
    levels
}
