//! The summary of repeated runs, and its statistical validity.

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_stats::dependence::{effective_count, independence};
use kelvin_stats::trend::trend;
use serde::Serialize;

use super::spread::{logarithms, needed};
use super::{GroupRun, RepeatPlan, RunNoise, Spread, Steady};

/// A trend of the runs is one when chance makes one as steep in fewer than one of twenty series.
const CHANCE: f64 = 0.05;

/// Figures beside the judged one, which scatter less where the machine's own speed changes: the server's CPU for a
/// transaction, or the process's where the database is embedded; and instructions, which know no clock rate.
const BESIDE: [&[&str]; 2] = [&["server-cpu", "cpu"], &["server-instructions"]];

/// What repeated runs came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatSummary {
    /// The figure that is judged.
    pub figure: RepeatMetric,
    /// Every run in its order.
    pub runs: Vec<RunLine>,
    /// Runs that count.
    pub counted: usize,
    /// Runs that do not.
    pub void: usize,
    /// The figure over the runs that count; none when there are none.
    pub spread: Option<Spread>,
    /// Figures beside it, by what the machine's speed does to them.
    pub beside: Vec<(RepeatMetric, Spread)>,
    /// Whether the figure drifts over the runs; none for fewer than five.
    pub drift: Option<Drift>,
    /// Whether runs depend on the ones before them; none for fewer than four, or equal ones.
    pub dependence: Option<Dependence>,
    /// Whether the windows kept their level.
    pub steady: SteadyState,
    /// What foreign CPU cost the runs that count; none where that is not known.
    pub noise: Option<RunNoise>,
    /// Transactions that failed for good in runs that count.
    pub failed: u64,
    /// The answer.
    pub answer: RepeatAnswer,
}

/// A figure without its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatMetric {
    /// By which it is asked for.
    pub id: String,
    /// As a heading has it.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way it is better.
    pub better: Option<Better>,
}

impl From<&KeyFigure> for RepeatMetric {
    fn from(figure: &KeyFigure) -> Self {
        let KeyFigure { id, name, unit, better, .. } = figure.clone();
        Self { id, name, unit, better }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunLine {
    /// Its number.
    pub run: i64,
    /// Its order, from 1.
    pub order: u32,
    /// The figure; none where it is not known.
    pub value: Option<f64>,
    /// Whether it is this or more: a percentile that lies among arrivals without an answer.
    pub at_least: bool,
    /// The figures beside it, in the order of [`RepeatSummary::beside`].
    pub beside: Vec<Option<f64>>,
    /// Why it does not count.
    pub void: Option<String>,
}

/// A trend over the order of the runs: the slope of a line fitted by least squares ([`kelvin_stats::trend`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Drift {
    /// Change of the line from the first run to the last, as a share of the mean.
    pub change: f64,
    /// How often chance makes one as steep.
    pub p: f64,
    /// Whether it is more than chance and larger than the precision asked for: less cannot move the mean by more.
    pub matters: bool,
}

/// Whether runs depend on the ones before them ([`kelvin_stats::dependence`], [`kelvin_stats::autoregression`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dependence {
    /// Lag-1 autocorrelation.
    pub lag1: f64,
    /// Von Neumann's ratio; 2 where neighbours are independent.
    pub von_neumann: f64,
    /// How often chance alone makes von Neumann's ratio as small: of all orders of these values.
    pub p: f64,
    /// The correlation of neighbours that the interval allows for, given the prior, earlier groups and these runs.
    pub phi: f64,
    /// Independent runs that know the mean as well, at that correlation.
    pub worth: f64,
    /// Earlier groups of the same specification that it was learned from.
    pub earlier: usize,
}

/// What the finding `not-steady` says of the runs that count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SteadyState {
    /// Runs that kept their level.
    pub steady: usize,
    /// Runs that did not, with how.
    pub not_steady: Vec<(i64, String)>,
    /// Runs whose window was too short for a decision.
    pub unknown: usize,
}

/// Is it statistically correct?
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatAnswer {
    /// Yes or no.
    pub correct: bool,
    /// Runs that are still needed; none when more runs alone would not help, or it takes more than a thousand.
    pub more: Option<u32>,
    /// What is missing.
    pub missing: Vec<MissingEvidence>,
    /// The half-width that was asked for, as a share of the mean.
    pub precision: f64,
}

/// Why the answer is no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingEvidence {
    /// There are fewer than six runs, or fewer than planned.
    Runs,
    /// The interval is wider than asked.
    Precision,
    /// The figure drifts.
    NoDrift,
    /// More runs were void than may be replaced.
    Valid,
    /// Runs do not have the figure, or it is not above 0.
    Figure,
    /// The figure of some runs is known from below only, and so is the mean.
    Bounds,
}

impl RepeatSummary {
    /// Of the runs of a group.
    pub fn of(plan: &RepeatPlan, rows: &[GroupRun]) -> Self {
        let id = plan.figure.as_deref();
        let counted: Vec<&GroupRun> = rows.iter().filter(|row| row.counts()).collect();
        let values = known(rows, id);
        let belief = plan.belief();
        let spread = Spread::of(&values, &belief, plan.confidence());
        let of_all = |id: &str| -> Option<(RepeatMetric, Spread)> {
            let values: Vec<f64> = counted.iter().map(|row| row.value(Some(id))).collect::<Option<_>>()?;
            Some((
                counted.first()?.figure(Some(id))?.into(),
                Spread::of(&values, &belief, plan.confidence())?,
            ))
        };
        let beside: Vec<(RepeatMetric, Spread)> =
            BESIDE.iter().filter_map(|ids| ids.iter().find_map(|id| of_all(id))).collect();
        let runs = rows.iter().map(|row| RunLine {
            run: row.run.0,
            order: row.slot.place + 1,
            value: row.bounded(id).map(|value| value.value),
            at_least: row.bounded(id).is_some_and(|value| value.at_least),
            beside: beside.iter().map(|(named, _)| row.value(Some(&named.id))).collect(),
            void: row.void.clone(),
        });
        let drift = trend(&values).map(|found| Drift {
            change: found.change,
            p: found.p,
            matters: found.p < CHANCE && found.change.abs() > plan.precision,
        });
        let dependence = logarithms(&values).and_then(|logs| {
            let found = independence(&logs)?;
            let phi = plan.belief().updated_with(&logs).phi();
            Some(Dependence {
                lag1: found.lag1,
                von_neumann: found.von_neumann,
                p: found.p_von_neumann,
                phi,
                worth: effective_count(logs.len(), phi),
                earlier: plan.earlier.len(),
            })
        });
        let void = rows.len() - counted.len();
        let mut summary = Self {
            figure: named(rows, id),
            runs: runs.collect(),
            counted: counted.len(),
            void,
            spread,
            beside,
            drift,
            dependence,
            steady: SteadyState::of(&counted),
            noise: RunNoise::of(rows),
            failed: counted.iter().map(|row| row.failed).sum(),
            answer: RepeatAnswer {
                correct: false,
                more: None,
                missing: Vec::new(),
                precision: plan.precision,
            },
        };
        summary.judge(plan, &values);
        summary
    }

    fn judge(&mut self, plan: &RepeatPlan, values: &[f64]) {
        let bounds = self.runs.iter().any(|run| run.void.is_none() && run.at_least);
        let missing = &mut self.answer.missing;
        let enough = RepeatPlan::FEWEST.max(plan.runs);
        let have = self.counted as u32;
        let half_width = self.spread.as_ref().and_then(|spread| spread.half_width);
        let close = half_width.is_some_and(|half_width| half_width <= plan.precision);
        for (lacks, what) in [
            (have < enough, MissingEvidence::Runs),
            (values.len() < self.counted || have >= 2 && half_width.is_none(), MissingEvidence::Figure),
            (bounds, MissingEvidence::Bounds),
            (have >= 2 && half_width.is_some() && !close, MissingEvidence::Precision),
            (self.drift.is_some_and(|drift| drift.matters), MissingEvidence::NoDrift),
            (self.void as u32 > plan.replace, MissingEvidence::Valid),
        ] {
            if lacks {
                missing.push(what);
            }
        }
        self.answer.correct = missing.is_empty();
        let curable =
            missing.iter().all(|what| matches!(what, MissingEvidence::Runs | MissingEvidence::Precision));
        if !missing.is_empty() && curable {
            let for_precision = if close || have < 2 {
                Some(0)
            } else {
                needed(values, &plan.belief(), plan.precision, plan.confidence())
            };
            // What fewer than six runs say of the scatter is not enough to give up.
            let for_precision = for_precision.or((have < enough).then_some(0));
            self.answer.more = for_precision.map(|n| n.max(enough).max(have + 1) - have);
        }
    }
}

impl SteadyState {
    fn of(rows: &[&GroupRun]) -> Self {
        let mut found = Self::default();
        for row in rows {
            match &row.steady {
                Steady::Yes => found.steady += 1,
                Steady::No(how) => found.not_steady.push((row.run.0, how.clone())),
                Steady::Unknown => found.unknown += 1,
            }
        }
        found
    }
}

/// The values of the runs that count and have the figure, in their order; of one that is known from below only, its bound.
pub(crate) fn known(rows: &[GroupRun], id: Option<&str>) -> Vec<f64> {
    let counted = rows.iter().filter(|row| row.counts());
    counted.filter_map(|row| row.bounded(id)).map(|value| value.value).collect()
}

/// The figure as the first run that knows it has it.
pub(crate) fn named(rows: &[GroupRun], id: Option<&str>) -> RepeatMetric {
    rows.iter().find_map(|row| row.figure(id)).map_or_else(
        || RepeatMetric {
            id: id.unwrap_or_default().to_owned(),
            name: id.unwrap_or("figure").to_owned(),
            unit: String::new(),
            better: None,
        },
        RepeatMetric::from,
    )
}

#[cfg(test)]
mod tests;
