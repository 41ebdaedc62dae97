//! The result of a comparison.

use kelvin_diagnose::{KEY_FIGURES, QUERY_FIGURES};
use kelvin_measure::Bounded;
use kelvin_stats::compare::{self, ChangeVerdict, ComparedSamples, MeasuredChange, compare_bounds};
use kelvin_stats::holm;
use kelvin_stats::student::{Ratio, paired_p, paired_ratio};
use serde::Serialize;

use super::blocks::{Block, bounds, complete, sides, values};
use super::interim::{AbProgress, clear, detectable};
use super::noise::AbNoise;
use super::{AbPlan, Treatment};
use crate::repeat::{GroupRun, RepeatMetric, half_width, named};

/// Additional metrics. Where the database runs decides which of the CPU metrics are known.
const BESIDE: [&str; 11] = [
    "nopm",
    "tps",
    "iops",
    "bandwidth",
    "p50",
    "p95",
    "p99",
    "server-cpu",
    "cpu",
    "server-instructions",
    "wal",
];

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AbSummary {
    /// The metric that is judged.
    pub figure: RepeatMetric,
    /// Names of the treatments in each block.
    pub treatments: Vec<String>,
    /// Every block that was started.
    pub blocks: Vec<BlockLine>,
    /// Number of blocks in which every run counts.
    pub complete: u32,
    /// Void runs.
    pub void: Vec<VoidRun>,
    /// Whether more runs were void than may be replaced.
    pub too_many_void: bool,
    /// The planned number of blocks, and its reason.
    pub course: AbProgress,
    /// Whether an interim analysis ended it before its last block.
    pub stopped_early: bool,
    /// The difference of each side from itself; none without a control, or with fewer than two blocks.
    pub control: Option<Control>,
    /// Each side compared with A.
    pub comparisons: Vec<Compared>,
    /// Other metrics; their p is adjusted for their number.
    pub exploratory: Vec<Explored>,
    /// The smallest relative effect that this number of blocks calls changed with the requested power; none
    /// if there are too few blocks.
    pub detectable: Option<f64>,
    /// The cost of foreign CPU use; none where it is unknown.
    pub noise: Option<AbNoise>,
    /// Transactions that failed after all retries in counted runs.
    pub failed: u64,
}

/// A block.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BlockLine {
    /// Its number, from 1.
    pub block: u32,
    /// The treatments in the order in which they ran.
    pub order: Vec<String>,
    /// The metric by treatment; none where no run counts.
    pub values: Vec<Option<f64>>,
    /// Which values are only lower bounds: a percentile that falls among unanswered arrivals.
    pub at_least: Vec<bool>,
    /// The runs by treatment.
    pub runs: Vec<Option<i64>>,
    /// The ratio of each side to A; none unless the block is complete.
    pub ratios: Vec<Option<f64>>,
}

/// A void run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VoidRun {
    /// The run.
    pub run: i64,
    /// Its treatment.
    pub treatment: String,
    /// Its block, from 1.
    pub block: u32,
    /// The reason.
    pub why: String,
}

/// The second run of each side compared with the first, by geometric means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Control {
    /// The ratio.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Half the width of the interval that a side over A would have if both were the same: smaller effects
    /// are not distinguished from zero.
    pub floor: f64,
}

/// A side compared with A.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Compared {
    /// "B", "C", …
    pub side: String,
    /// The ratio of the side to A.
    pub ratio: f64,
    /// Lower end of its interval; 0 if values of A are only lower bounds.
    pub low: f64,
    /// Upper end; infinite (in JSON null) if values of the side are only lower bounds.
    pub high: f64,
    /// Confidence of the interval: 95 %, or more with several sides or interim analyses.
    pub confidence: f64,
    /// The exact p of flipping the blocks' signs, which corresponds to the random draw of their orders.
    pub p: f64,
    /// The p of the t test, which decides interim analyses and the interval.
    pub p_of_t: f64,
    /// Hodges and Lehmann's estimate of the ratio.
    pub hodges_lehmann: f64,
    /// Relative changes up to this are noise: the smallest change that matters, or the control's floor.
    pub noise: f64,
    /// The verdict.
    #[serde(serialize_with = "as_word")]
    pub verdict: ChangeVerdict,
}

/// Another metric of a side compared with A.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Explored {
    /// "B", "C", …
    pub side: String,
    /// The metric.
    pub figure: RepeatMetric,
    /// Its geometric mean over the blocks for A.
    pub a: f64,
    /// The same for the side.
    pub b: f64,
    /// The ratio of the side to A.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The exact sign-flip p.
    pub p: f64,
    /// The same, adjusted for the number of metrics and sides (Holm).
    pub adjusted: f64,
}

/// The verdict as a word.
pub fn word(verdict: ChangeVerdict) -> &'static str {
    match verdict {
        ChangeVerdict::NotTestable => "not-testable",
        ChangeVerdict::NoChange => "no-change",
        ChangeVerdict::Undetermined => "undetermined",
        ChangeVerdict::WithinNoise => "within-noise",
        ChangeVerdict::Changed => "changed",
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn as_word<S: serde::Serializer>(verdict: &ChangeVerdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(*verdict))
}

impl AbSummary {
    /// The summary of a group's runs.
    pub fn of(plan: &AbPlan, rows: &[GroupRun]) -> Self {
        let found = complete(plan, rows);
        let course = AbProgress::of(plan, &found);
        let blocks = found.len() as u32;
        let alpha = course.alpha(plan, blocks);
        let look = course.interim_look(blocks).filter(|_| blocks < course.blocks);
        let of_figure = values(&found, plan.figure.as_deref()).unwrap_or_default();
        let control = control(plan, &of_figure);
        let floor = control.map_or(plan.noise, |control| control.floor.max(plan.noise));
        let comparisons = (1..plan.sides.len()).filter_map(|side| {
            let (a, b) = sides(plan, &of_figure, side)?;
            let (of_a, of_b) = bounds(plan, &found, plan.figure.as_deref(), side);
            let pairs = ComparedSamples::Paired { a: &a, b: &b };
            let change = compare_bounds(pairs, (&of_a, &of_b), floor, 1.0 - alpha)?;
            // The t test does not apply to lower bounds.
            let bound = of_a.contains(&true) || of_b.contains(&true);
            let p_of_t = if bound { change.p } else { paired_p(&a, &b)? };
            Some(Compared::of(&plan.sides[side].name, &change, p_of_t, floor, 1.0 - alpha))
        });
        let void: Vec<VoidRun> = rows.iter().filter_map(VoidRun::of).collect();
        Self {
            figure: named(rows, plan.figure.as_deref()),
            treatments: plan.treatments().into_iter().map(|one| one.name).collect(),
            blocks: lines(plan, rows),
            complete: blocks,
            too_many_void: void.len() as u32 > plan.replace,
            void,
            stopped_early: look.is_some_and(|look| clear(plan, &found, look.nominal)),
            control,
            comparisons: comparisons.collect(),
            exploratory: explore(plan, &found),
            detectable: detectable(plan, &found, alpha, floor),
            noise: AbNoise::of(plan, rows, &found),
            failed: rows.iter().filter(|row| row.counts()).map(|row| row.failed).sum(),
            course,
        }
    }

    /// Whether every planned block has run.
    pub fn is_complete(&self) -> bool {
        self.stopped_early || self.complete >= self.course.blocks
    }

    /// The geometric means of the judged metric over the complete blocks, for A and for the first other side;
    /// none without a comparison.
    pub fn compared_means(&self) -> Option<(f64, f64)> {
        let ratio = self.comparisons.first()?.ratio;
        let of_a = |line: &BlockLine| -> Vec<f64> {
            let each = self.treatments.iter().zip(&line.values);
            each.filter(|(name, _)| name.starts_with('A')).filter_map(|(_, value)| *value).collect()
        };
        let complete = self.blocks.iter().filter(|line| line.ratios.iter().all(Option::is_some));
        let mean = geometric_mean(&complete.flat_map(of_a).collect::<Vec<_>>());
        mean.is_finite().then_some((mean, mean * ratio))
    }
}

impl Compared {
    fn of(side: &str, change: &MeasuredChange, p_of_t: f64, noise: f64, confidence: f64) -> Self {
        let Ratio { ratio, low, high } = change.ratio;
        let compare::MeasuredChange { p, hodges_lehmann, verdict, .. } = change;
        Self {
            side: side.to_owned(),
            ratio,
            low,
            high,
            confidence,
            p: *p,
            p_of_t,
            hodges_lehmann: *hodges_lehmann,
            noise,
            verdict: *verdict,
        }
    }
}

impl VoidRun {
    fn of(row: &GroupRun) -> Option<Self> {
        let why = row.void.clone()?;
        Some(Self { run: row.run.0, treatment: row.slot.treatment.clone(), block: row.slot.block + 1, why })
    }
}

/// NaN if there are no values.
fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

fn control(plan: &AbPlan, values: &[Vec<f64>]) -> Option<Control> {
    let treatments = plan.treatments();
    // Each second run, with the first run of its side.
    let twice: Vec<usize> =
        (1..treatments.len()).filter(|i| treatments[*i].side == treatments[i - 1].side).collect();
    let mean = |of: &dyn Fn(usize) -> usize| -> Option<Vec<f64>> {
        let columns: Vec<&Vec<f64>> = twice.iter().map(|i| values.get(of(*i))).collect::<Option<_>>()?;
        let block =
            |b: usize| columns.iter().map(|column| column[b].ln()).sum::<f64>() / columns.len() as f64;
        Some((0..columns.first()?.len()).map(|b| block(b).exp()).collect())
    };
    let Ratio { ratio, low, high } = paired_ratio(&mean(&|i| i - 1)?, &mean(&|i| i)?, 0.95)?;
    // A mean of m ratios of two single runs, compared with one of means.
    let scale = plan.share_of_scatter() * (twice.len() as f64).sqrt();
    Some(Control { ratio, low, high, floor: (half_width(low, high).ln_1p() * scale).exp_m1() })
}

fn lines(plan: &AbPlan, rows: &[GroupRun]) -> Vec<BlockLine> {
    let treatments = plan.treatments();
    let last = rows.iter().map(|row| row.slot.block).max();
    let line = |block: u32| {
        let of = |one: &Treatment| {
            let here =
                |row: &&GroupRun| row.slot.block == block && row.slot.treatment == one.name && row.counts();
            rows.iter().find(here)
        };
        let runs: Vec<Option<&GroupRun>> = treatments.iter().map(of).collect();
        let bounded: Vec<Option<Bounded>> =
            runs.iter().map(|run| run.and_then(|run| run.bounded(plan.figure.as_deref()))).collect();
        let values: Vec<Option<f64>> = bounded.iter().map(|value| Some((*value)?.value)).collect();
        let each: Option<Vec<Vec<f64>>> =
            values.iter().map(|value| value.filter(|value| *value > 0.0).map(|value| vec![value])).collect();
        let ratio = |side: usize| {
            let (a, b) = sides(plan, each.as_ref()?, side)?;
            Some(b.first()? / a.first()?)
        };
        let mut order: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.slot.block == block) {
            // A run that was repeated because it was void is listed where it ran last.
            order.retain(|name| *name != row.slot.treatment);
            order.push(&row.slot.treatment);
        }
        BlockLine {
            block: block + 1,
            order: order.into_iter().map(str::to_owned).collect(),
            ratios: (1..plan.sides.len()).map(ratio).collect(),
            runs: runs.iter().map(|run| run.map(|run| run.run.0)).collect(),
            at_least: bounded.iter().map(|value| value.is_some_and(|value| value.at_least)).collect(),
            values,
        }
    };
    last.map_or_else(Vec::new, |last| (0..=last).map(line).collect())
}

/// Every other metric that all blocks have.
fn explore(plan: &AbPlan, blocks: &[Block<'_>]) -> Vec<Explored> {
    let Some(first) = blocks.first().and_then(|block| block.runs.first()) else { return Vec::new() };
    let judged = first.figure(plan.figure.as_deref()).map(|figure| figure.id.clone());
    let mut found = Vec::new();
    let of_queries = QUERY_FIGURES.iter().filter(|id| !KEY_FIGURES.contains(id));
    for id in BESIDE.iter().chain(of_queries).filter(|id| judged.as_deref() != Some(**id)) {
        let (Some(values), Some(figure)) = (values(blocks, Some(id)), first.figure(Some(id))) else {
            continue;
        };
        for side in 1..plan.sides.len() {
            let Some((a, b)) = sides(plan, &values, side) else { continue };
            let (of_a, of_b) = bounds(plan, blocks, Some(id), side);
            let pairs = ComparedSamples::Paired { a: &a, b: &b };
            let Some(change) = compare_bounds(pairs, (&of_a, &of_b), 0.0, 0.95) else { continue };
            found.push(Explored {
                side: plan.sides[side].name.clone(),
                figure: figure.into(),
                a: geometric_mean(&a),
                b: geometric_mean(&b),
                ratio: change.ratio.ratio,
                low: change.ratio.low,
                high: change.ratio.high,
                p: change.p,
                adjusted: f64::NAN,
            });
        }
    }
    let adjusted = holm::adjust(&found.iter().map(|one| one.p).collect::<Vec<_>>());
    for (one, adjusted) in found.iter_mut().zip(adjusted) {
        one.adjusted = adjusted;
    }
    found
}

#[cfg(test)]
mod tests;
