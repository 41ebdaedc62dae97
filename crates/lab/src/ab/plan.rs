//! What is compared, how often, and by which rules.

use serde::{Deserialize, Serialize};

use crate::repeat;
use kelvin_run::Spec;

/// A comparison. It is in its group, and says with the runs everything that the summary needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AbPlan {
    /// What is compared; the first is what the others are set against.
    pub sides: Vec<Side>,
    /// Whether sides run twice in each block.
    pub control: bool,
    /// Whether only side A does, as in comparisons of earlier versions, whose A followed itself more often than B did.
    #[serde(default = "earlier")]
    pub control_of_a: bool,
    /// Blocks; of the pilot, where an effect is given.
    pub blocks: u32,
    /// The relative effect that is to be found; the number of blocks follows from it and the pilot.
    pub effect: Option<f64>,
    /// The probability with which it is to be found.
    pub power: f64,
    /// Blocks at most.
    pub most: u32,
    /// Whether the comparison ends before its last block when a look on the way is clear enough.
    pub stop_early: bool,
    /// The smallest relative change that matters.
    pub noise: f64,
    /// Decides the order of the runs.
    pub seed: u64,
    /// Void runs that are replaced.
    pub replace: u32,
    /// The figure that is judged; none for the first of the key figures.
    pub figure: Option<String>,
}

/// What a plan that does not say it was made by.
fn earlier() -> bool {
    true
}

/// One of the things compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Side {
    /// "A", "B", …
    pub name: String,
    /// Where it comes from: the file.
    pub source: String,
    /// The specification, as TOML.
    pub spec: String,
}

/// What is run once in each block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treatment {
    /// "A", "A'", "B", "B'", …: the treatment under which its runs stand in their group.
    pub name: String,
    /// The side, by its number.
    pub side: usize,
}

impl AbPlan {
    /// Blocks when nobody says how many: with six pairs a sign-flip test can reach p = 0.03, with five it cannot.
    pub const BLOCKS: u32 = 6;
    /// Blocks below which nothing is tested.
    pub const FEWEST: u32 = 4;
    /// Blocks at most, where their number follows from a pilot and nobody says.
    pub const MOST: u32 = 60;
    /// The probability with which an effect is to be found when nobody says.
    pub const POWER: f64 = kelvin_stats::power::POWER;
    /// The smallest change that matters when nobody says, as criterion has it.
    pub const NOISE: f64 = 0.01;
    /// More sides have no letters, and nobody has the time.
    pub const SIDES: usize = 8;

    /// The comparison of these specifications, from these files, with every rule as nobody asks otherwise.
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
        }
    }

    /// What is run once in each block: A, A', B, B', …
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

    /// What a side over A scatters by in a block, as a part of what a ratio of two single runs does: √((1/a + 1/b)/2), with
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

    /// A third of the runs of so many blocks, and at least one.
    pub fn replacements(&self, blocks: u32) -> u32 {
        (blocks * self.treatments().len() as u32).div_ceil(3)
    }
}
