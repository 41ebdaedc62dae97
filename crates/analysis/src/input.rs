//! What an analysis starts from: factors, runs with their figures, the goal and the claim. It knows neither stores nor
//! study folders, so that published examples go through the same code as studies.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_diagnose::{Better, NoisePrice};
use serde::Serialize;

/// Everything that is known of a study when it is analysed.
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
    /// What the study is about.
    pub goal: Goal,
    /// What the hypothesis says of it, in terms of factors and levels; none if it is only text.
    pub claim: Option<Claim>,
    /// Figures beside the goal's, by id; what comes of them is exploratory.
    pub secondary: Vec<String>,
    /// Names, units and directions of figures by id.
    pub figures: BTreeMap<String, MetricInfo>,
    /// Of every interval, such as 0.95.
    pub confidence: f64,
    /// In what terms effects are added up.
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
        /// Such as "D=ABC", with the factors as letters in their order.
        generators: Vec<String>,
    },
    /// One factor over a range of numbers.
    Sweep,
}

impl StudyDesign {
    /// In words.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Ab => "comparison of variants",
            Self::Factorial => "full factorial",
            Self::Fraction { .. } => "fractional factorial",
            Self::Sweep => "sweep",
        }
    }
}

/// In what terms effects are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Of logarithms: effects are ratios, as those of most settings are.
    Ratio,
    /// Of the figures themselves.
    Difference,
}

/// What was varied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels; the first is the one that others are compared with.
    pub levels: Vec<Level>,
    /// Whether its levels are numbers of virtual users.
    pub users: bool,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// What it is as a number, for an axis.
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
    /// Whether it repeats its block's run of the same cell, for the difference that is none.
    pub control: bool,
    /// Figures by id; those that are not known are missing.
    pub values: BTreeMap<String, f64>,
    /// Why it does not count.
    pub void: Option<String>,
    /// What limited it, by its verdict.
    pub limit: Option<String>,
    /// Whether its specification lets it count whatever other work on the machine cost it.
    pub accepts_noise: bool,
    /// What that cost; none where it is not known.
    pub noise: Option<NoisePrice>,
}

/// Name, unit and direction of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricInfo {
    /// As a heading has it.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way it is better.
    pub better: Option<Better>,
}

/// What the study is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    /// The one figure that decides, by id.
    pub metric: String,
    /// Which way it is better.
    pub better: Better,
    /// The smallest effect that matters, as a part: 0.01 for 1 %.
    pub smallest: f64,
}

/// Which way a figure is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Up.
    Up,
    /// Down.
    Down,
    /// Nowhere that matters.
    Same,
}

/// What the hypothesis says: going from some levels to others moves the goal's metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Factor and level of each side, by index; a factor that a side does not name is averaged over.
    pub from: Vec<(usize, usize)>,
    /// The other side.
    pub to: Vec<(usize, usize)>,
    /// Which way the goal's metric is to go.
    pub direction: Direction,
    /// By how much at least, as a part, and with [`Direction::Same`] by how much at most; the goal's smallest effect where it
    /// is not said.
    pub least: Option<f64>,
    /// What else must then be seen.
    pub signature: Vec<Prediction>,
}

/// What must be seen if the mechanism is the supposed one.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The figure, by id.
    pub metric: String,
    /// Which way it is to go.
    pub direction: Direction,
    /// By how much at least, as a part; with [`Direction::Same`], by how much at most.
    pub size: Option<f64>,
}

/// What is wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// No factor.
    #[error("the study has no factor; give at least one with two levels")]
    NoFactor,
    /// A factor with one level.
    #[error("factor {0:?} has {1} level(s); a factor needs at least two")]
    FewLevels(String, usize),
    /// Not one factor.
    #[error("a {0} has one factor, but there are {1}")]
    NotOneFactor(&'static str, usize),
    /// A run whose cell does not exist.
    #[error("run {0} is in no cell of the study's factors")]
    NoCell(i64),
    /// A claim about what is not there.
    #[error("the hypothesis names a factor or level that the study does not have")]
    NoSuchLevel,
    /// The sides of the claim are one.
    #[error("the hypothesis compares a set of cells with itself")]
    SameSides,
    /// A confidence that is none.
    #[error("a confidence of {0} is not between 0.5 and 1")]
    Confidence(String),
    /// A smallest effect that is none.
    #[error("the smallest effect that matters, {0}, is not a fraction between 0 and 1")]
    Smallest(String),
    /// Generators of no fraction.
    #[error("invalid fraction: {0}")]
    Fraction(String),
}

impl StudyInput {
    /// Refuses what cannot be analysed.
    ///
    /// # Errors
    /// What is wrong.
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

    /// Each factor's level of a cell: "numa=local huge-pages=on".
    pub fn cell_name(&self, cell: &[usize]) -> String {
        self.levels_named(&cell.iter().copied().enumerate().collect::<Vec<_>>())
    }

    /// Some factors at levels: "numa=local".
    pub(crate) fn levels_named(&self, levels: &[(usize, usize)]) -> String {
        let name = |(factor, level): &(usize, usize)| {
            let factor = &self.factors[*factor];
            format!("{}={}", factor.name, factor.levels[*level].name)
        };
        levels.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// The name of a figure as a heading has it, its id where it has none.
    pub fn figure_name<'a>(&'a self, id: &'a str) -> &'a str {
        self.figures.get(id).map_or(id, |figure| &figure.name)
    }

    /// The goal's figure and the others, each once.
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
