//! The cells of a study: from factors and levels to treatments.

use kelvin_stats::fractional::Fraction;
use serde::{Deserialize, Serialize};

use super::{Axis, Share};
use crate::conditions::{DesignCell, FactorSetting};

/// How the factors are combined, and how many blocks run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Design {
    /// The kind of combination.
    pub kind: DesignKind,
    /// Generators of a fraction: how later factors follow from earlier ones, such as "D=ABC", where A, B, C… are the
    /// factors in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<String>,
    /// The number of runs of every cell: one in each block, in an order drawn for the block.
    #[serde(default = "six")]
    pub blocks: u32,
    /// Seed for the order of the runs.
    #[serde(default = "one")]
    pub seed: u64,
    /// Whether each block runs the base cell a second time: the difference shows which effects cannot be resolved.
    #[serde(default)]
    pub control: bool,
    /// Maximum number of void or failed runs that are repeated. The default is a fifth of all runs, but at least two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacements: Option<u32>,
    /// The assumed variation from run to run (standard deviation ÷ mean), until it can be estimated from runs.
    #[serde(default = "two_percent")]
    pub assumed_cv: Share,
}

fn six() -> u32 {
    6
}

fn one() -> u64 {
    1
}

fn two_percent() -> Share {
    Share::TWO_PERCENT
}

/// The combinations of levels that are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DesignKind {
    /// One factor at two levels.
    Ab,
    /// Every level of each factor with every level of all others.
    Factorial,
    /// A part of a full factorial of two-level factors, chosen by generators.
    Fractional,
    /// One factor at several levels.
    Sweep,
}

impl DesignKind {
    /// Its name in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ab => "ab",
            Self::Factorial => "factorial",
            Self::Fractional => "fractional",
            Self::Sweep => "sweep",
        }
    }
}

/// Maximum number of factors: more are not manageable, and generators have no letters for them.
pub(super) const MOST_FACTORS: usize = 16;
/// Maximum number of cells of a design.
const MOST_CELLS: usize = 1024;
/// Maximum number of runs of a study: a week at a minute each.
const MOST_RUNS: u64 = 10_000;
/// Maximum number of blocks.
const MOST_BLOCKS: u32 = 1000;

impl Design {
    /// The cells in the order of the design, the base first; the levels of the last factor change fastest.
    ///
    /// # Errors
    /// When the factors do not fit the kind, the generators are invalid, or there are too many cells.
    pub(super) fn cells(&self, axes: &[Axis]) -> Result<Vec<DesignCell>, String> {
        self.fits(axes)?;
        let combinations = match self.kind {
            DesignKind::Fractional => fraction_cells(&self.fraction(axes)?),
            DesignKind::Ab | DesignKind::Factorial | DesignKind::Sweep => combinations(axes),
        };
        let cells: Vec<DesignCell> = combinations.into_iter().map(|levels| cell(axes, &levels)).collect();
        let a_block = cells.len() as u64 + u64::from(self.control);
        let runs = a_block * u64::from(self.blocks);
        if runs > MOST_RUNS {
            return Err(format!(
                "{} cells in {} blocks are {runs} runs, and a study may have at most {MOST_RUNS}; use fewer \
                 blocks, levels or factors, or a fraction",
                cells.len(),
                self.blocks
            ));
        }
        Ok(cells)
    }

    fn fits(&self, axes: &[Axis]) -> Result<(), String> {
        let kind = self.kind.as_str();
        if axes.is_empty() {
            return Err("there is no [[factor]]: a study needs at least one".into());
        }
        if axes.len() > MOST_FACTORS {
            return Err(format!("{} factors are too many; at most {MOST_FACTORS} are allowed", axes.len()));
        }
        if !(1..=MOST_BLOCKS).contains(&self.blocks) {
            return Err(format!("{} blocks are outside the range 1 to {MOST_BLOCKS}", self.blocks));
        }
        if self.kind != DesignKind::Fractional && !self.generators.is_empty() {
            return Err(format!("generators require a \"fractional\" design; this one is \"{kind}\""));
        }
        let of_two = |axis: &Axis| axis.levels.len() == 2;
        let many_levels = axes.iter().find(|axis| !of_two(axis));
        match (self.kind, many_levels) {
            (DesignKind::Ab, many) if axes.len() != 1 || many.is_some() => {
                Err("design \"ab\" has one factor with two levels; use \"factorial\" for more factors, \
                     \"sweep\" for more levels"
                    .into())
            }
            (DesignKind::Sweep, _) if axes.len() != 1 => {
                Err("design \"sweep\" has one factor; use \"factorial\" for more".into())
            }
            (DesignKind::Fractional, Some(axis)) => Err(format!(
                "design \"fractional\" needs factors with two levels; \"{}\" has {}",
                axis.name,
                axis.levels.len()
            )),
            (DesignKind::Ab | DesignKind::Sweep | DesignKind::Fractional, _) => Ok(()),
            (DesignKind::Factorial, _) => {
                let cells = axes.iter().map(|axis| axis.levels.len()).try_fold(1_usize, usize::checked_mul);
                if cells.is_none_or(|cells| cells > MOST_CELLS) {
                    return Err(format!(
                        "the levels make more than {MOST_CELLS} cells; use fewer levels or factors, or a \
                        fraction"
                    ));
                }
                Ok(())
            }
        }
    }

    /// The fraction that the generators define.
    pub(super) fn fraction(&self, axes: &[Axis]) -> Result<Fraction, String> {
        if self.generators.is_empty() {
            return Err(
                "a \"fractional\" design needs generators, such as [\"D=ABC\"]; without generators, use \
                        \"factorial\""
                    .into(),
            );
        }
        let generators: Vec<&str> = self.generators.iter().map(String::as_str).collect();
        Fraction::new(axes.len(), &generators).map_err(|error| format!("generators: {error}"))
    }
}

/// Every combination of level indexes; that of the last factor changes fastest.
fn combinations(axes: &[Axis]) -> Vec<Vec<usize>> {
    let levels: Vec<usize> = axes.iter().map(|axis| axis.levels.len()).collect();
    let mut all = vec![Vec::new()];
    for count in levels {
        all = all
            .into_iter()
            .flat_map(|before: Vec<usize>| {
                (0..count).map(move |level| before.iter().copied().chain([level]).collect())
            })
            .collect();
    }
    all
}

/// The combinations of a fraction; -1 is the first level.
fn fraction_cells(fraction: &Fraction) -> Vec<Vec<usize>> {
    let mut cells: Vec<Vec<usize>> = fraction
        .runs()
        .into_iter()
        .map(|run| run.into_iter().map(|sign| usize::from(sign > 0)).collect())
        .collect();
    cells.sort();
    cells
}

fn cell(axes: &[Axis], levels: &[usize]) -> DesignCell {
    let setting = |(axis, &level): (&Axis, &usize)| FactorSetting {
        factor: axis.name.clone(),
        level: axis.levels[level].clone(),
    };
    DesignCell(axes.iter().zip(levels).map(setting).collect())
}
