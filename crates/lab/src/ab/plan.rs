//! The sides of a comparison, the number of blocks, and the rules.

use serde::{Deserialize, Serialize};

use crate::repeat;
use kelvin_run::Spec;

/// The advice that a comparison was made for. It is stored with the comparison's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AdviceOrigin {
    /// The run that the advice is for.
    pub run: i64,
    /// The finding.
    pub finding: String,
    /// The change in one line.
    pub title: String,
    /// The maximum gain in throughput according to its bound, as a fraction; none where that is unknown.
    pub bound: Option<f64>,
    /// The previously accepted changes, which both sides have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
}

/// A comparison. It is stored in its group and contains, with the runs, everything that the summary needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AbPlan {
    /// The sides; the first is the one with which the others are compared.
    pub sides: Vec<Side>,
    /// Whether sides run twice in each block.
    pub control: bool,
    /// Whether only side A runs twice, as in comparisons of earlier versions. There A followed itself more
    /// often than B did.
    #[serde(default = "earlier")]
    pub control_of_a: bool,
    /// Number of blocks; that of the pilot if an effect is given.
    pub blocks: u32,
    /// The relative effect to detect; the number of blocks follows from it and the pilot.
    pub effect: Option<f64>,
    /// The probability of detecting it.
    pub power: f64,
    /// Maximum number of blocks.
    pub most: u32,
    /// Whether the comparison ends before its last block if an interim analysis is clear enough.
    pub stop_early: bool,
    /// The smallest relative change that matters.
    pub noise: f64,
    /// Seed for the order of the runs.
    pub seed: u64,
    /// Maximum number of void runs that are replaced.
    pub replace: u32,
    /// The metric that is judged; `None` for the first of the key metrics.
    pub figure: Option<String>,
    /// The advice that it tests; none for a comparison of the user's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<AdviceOrigin>,
}

/// The version of a plan that does not state one.
fn earlier() -> bool {
    true
}

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Side {
    /// "A", "B", …
    pub name: String,
    /// Its source: the path of the file.
    pub source: String,
    /// The specification, as TOML.
    pub spec: String,
}

/// A treatment, which runs once in each block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treatment {
    /// "A", "A'", "B", "B'", …: the name of the treatment in the group of its runs.
    pub name: String,
    /// The side, by its number.
    pub side: usize,
}

impl AbPlan {
    /// The default number of blocks: with six pairs a sign-flip test can reach p = 0.03, with five it cannot.
    pub const BLOCKS: u32 = 6;
    /// The maximum number of blocks of a comparison that continues until it is clear. It is chosen so that
    /// the first interim analysis is after the default number.
    pub const UNTIL_CLEAR: u32 = 2 * Self::BLOCKS;
    /// The minimum number of blocks for a test.
    pub const FEWEST: u32 = 4;
    /// The default maximum number of blocks, where the number follows from a pilot.
    pub const MOST: u32 = 60;
    /// The default probability of detecting the effect.
    pub const POWER: f64 = kelvin_stats::power::POWER;
    /// The default smallest change that matters, as in criterion.
    pub const NOISE: f64 = 0.01;
    /// The maximum number of sides: more would take too long, and there are no letters for them.
    pub const SIDES: usize = 8;

    /// The comparison of these specifications, from these files, with the defaults of all rules.
    pub fn of(sides: &[(String, Spec)]) -> Self {
        let letters = ('A'..='Z').map(String::from);
        Self {
            sides: sides
                .iter()
                .zip(letters)
                .map(|((source, spec), name)| Side { name, source: source.clone(), spec: spec.to_toml() })
                .collect(),
            control: true,
            control_of_a: false,
            blocks: Self::BLOCKS,
            effect: None,
            power: Self::POWER,
            most: Self::MOST,
            stop_early: false,
            noise: Self::NOISE,
            seed: sides.first().map_or(1, |(_, spec)| spec.load.seed),
            replace: 0,
            figure: sides.first().and_then(|(_, spec)| repeat::judged(spec)),
            advice: None,
        }
    }

    /// The treatments of each block: A, A', B, B', …
    pub fn treatments(&self) -> Vec<Treatment> {
        let mut treatments = Vec::new();
        for (side, of) in self.sides.iter().enumerate() {
            treatments.push(Treatment { name: of.name.clone(), side });
            if self.control && (side == 0 || !self.control_of_a) {
                treatments.push(Treatment { name: format!("{}'", of.name), side });
            }
        }
        treatments
    }

    /// The scatter of a side over A in a block, relative to that of a ratio of two single runs: √((1/a + 1/b)/2), with
    /// a and b runs of them.
    pub(crate) fn share_of_scatter(&self) -> f64 {
        let runs =
            |side: usize| self.treatments().iter().filter(|one| one.side == side).count().max(1) as f64;
        (0.5 / runs(0) + 0.5 / runs(1)).sqrt()
    }

    /// The chance of a false alarm that each side's comparison with A may have, so that all together have 5 %
    /// (Bonferroni).
    pub(crate) fn alpha(&self) -> f64 {
        0.05 / self.sides.len().saturating_sub(1).max(1) as f64
    }

    /// One third of the runs of so many blocks, but at least one.
    pub fn replacements(&self, blocks: u32) -> u32 {
        (blocks * self.treatments().len() as u32).div_ceil(3)
    }
}
