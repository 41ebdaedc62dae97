//! The summary of repeated runs, and its statistical validity.

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_stats::dependence::{effective_count, independence};
use kelvin_stats::trend::trend;
use serde::Serialize;

use super::spread::{logarithms, needed};
use super::{GroupRun, RepeatPlan, RunNoise, Spread, Steady};

/// Significance level of a trend: by chance, fewer than one in twenty series has a trend this steep.
const CHANCE: f64 = 0.05;

/// Additional metrics, which scatter less when the machine's speed varies: the server's CPU time per transaction, or
/// that of the process if the database is embedded; and instructions, which are independent of the clock rate. For
/// query workloads the geometric mean comes first, as it weights all queries equally.
const BESIDE: [&[&str]; 3] = [&["geometric-mean"], &["server-cpu", "cpu"], &["server-instructions"]];

/// Summary of repeated runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatSummary {
    /// The metric that is judged.
    pub figure: RepeatMetric,
    /// Every run in its order.
    pub runs: Vec<RunLine>,
    /// Runs that count.
    pub counted: usize,
    /// Void runs.
    pub void: usize,
    /// The metric over the runs that count; `None` when there are none.
    pub spread: Option<Spread>,
    /// Additional metrics, ordered by how the machine's speed affects them.
    pub beside: Vec<(RepeatMetric, Spread)>,
    /// The drift of the metric over the runs; `None` for fewer than five.
    pub drift: Option<Drift>,
    /// The dependence between consecutive runs; none for fewer than four runs, or if all values are equal.
    pub dependence: Option<Dependence>,
    /// Whether the metric was steady within the windows.
    pub steady: SteadyState,
    /// Effect of foreign CPU use on the runs that count; `None` where it is unknown.
    pub noise: Option<RunNoise>,
    /// Transactions that failed after all retries in counted runs.
    pub failed: u64,
    /// The answer.
    pub answer: RepeatAnswer,
}

/// A metric without its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatMetric {
    /// The identifier by which it is selected.
    pub id: String,
    /// Its name in headings.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The direction in which it is better.
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
    /// The value; `None` where it is unknown.
    pub value: Option<f64>,
    /// Whether this is a lower bound: a percentile that falls among unanswered arrivals.
    pub at_least: bool,
    /// The additional metrics, in the order of [`RepeatSummary::beside`].
    pub beside: Vec<Option<f64>>,
    /// Why it is void; none if it counts.
    pub void: Option<String>,
}

/// A trend over the order of the runs: the slope of a line fitted by least squares ([`kelvin_stats::trend`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Drift {
    /// Change of the line from the first run to the last, as a share of the mean.
    pub change: f64,
    /// The probability of a trend this steep by chance.
    pub p: f64,
    /// Whether it is significant and larger than the requested precision. A smaller drift cannot move the mean by
    /// more.
    pub matters: bool,
}

/// Whether runs depend on the ones before them ([`kelvin_stats::dependence`], [`kelvin_stats::autoregression`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dependence {
    /// Lag-1 autocorrelation.
    pub lag1: f64,
    /// Von Neumann's ratio; 2 if adjacent runs are independent.
    pub von_neumann: f64,
    /// The probability of a von Neumann ratio this small by chance, over all orders of these values.
    pub p: f64,
    /// The correlation of adjacent runs that the interval allows for, from the prior, earlier groups and these runs.
    pub phi: f64,
    /// The number of independent runs that would give the same precision, at that correlation.
    pub worth: f64,
    /// Number of earlier groups of the same specification that the estimate uses.
    pub earlier: usize,
}

/// Results of the finding `not-steady` for the counted runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SteadyState {
    /// Runs that were steady.
    pub steady: usize,
    /// Runs that were not steady, with the finding.
    pub not_steady: Vec<(i64, String)>,
    /// Runs whose window was too short for a decision.
    pub unknown: usize,
}

/// Whether the result is statistically sound.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatAnswer {
    /// Yes or no.
    pub correct: bool,
    /// Additional runs needed; none when runs alone would not help, or more than a thousand are needed.
    pub more: Option<u32>,
    /// Missing evidence.
    pub missing: Vec<MissingEvidence>,
    /// The requested half-width, as a share of the mean.
    pub precision: f64,
}

/// Why the answer is no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingEvidence {
    /// There are fewer than six runs, or fewer than planned.
    Runs,
    /// The interval is wider than requested.
    Precision,
    /// The metric drifts.
    NoDrift,
    /// More runs were void than may be replaced.
    Valid,
    /// Runs lack the metric, or it is not above 0.
    Figure,
    /// For some runs only a lower bound of the metric is known, and so for the mean.
    Bounds,
}

impl RepeatSummary {
    /// The summary of a group's runs.
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
        let first = |ids: &&[&str]| ids.iter().find_map(|id| of_all(id));
        let beside: Vec<(RepeatMetric, Spread)> =
            BESIDE.iter().filter(|ids| !ids.iter().any(|one| id == Some(*one))).filter_map(first).collect();
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
            // Fewer than six runs are too few to conclude from their scatter that the precision is out of reach.
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

/// The metric of the counted runs that have it, in their order. A lower bound is included as a value.
pub(crate) fn known(rows: &[GroupRun], id: Option<&str>) -> Vec<f64> {
    let counted = rows.iter().filter(|row| row.counts());
    counted.filter_map(|row| row.bounded(id)).map(|value| value.value).collect()
}

/// The metric as described by the first run that has it.
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
