//! The analysis of a study's stored runs: effects, interactions and their shares of the variation; the
//! verdict on the hypothesis and its predictions; and the quality of the measurement. It is a function of its
//! [`StudyInput`] and gives the same answer every time.

mod contrast;
mod control;
pub mod effect_text;
mod effects;
mod fit;
mod input;
mod marginal;
mod next;
pub mod notes;
mod one_at_a_time;
mod order;
mod pairs;
mod sensitivity;
mod study_page;
mod sweep;
mod table;
mod values;
mod verdict;

#[cfg(test)]
mod tests;

use kelvin_stats::holm;
use serde::Serialize;

pub use control::Control;
pub use effects::{Allocation, Contrast, Effect};
pub use fit::Estimate;
pub use input::{
    Claim, Direction, Factor, Goal, InputError, Level, MetricInfo, Prediction, Run, Scale, StudyDesign,
    StudyInput,
};
pub use marginal::Marginal;
pub use next::{Open, Question};
pub use one_at_a_time::{FactorStep, OneAtATime};
pub use order::{Block, Drift};
pub use pairs::Pairs;
pub use sensitivity::Sensitivity;
pub use study_page::{FailedRun, Member, StudyPageContent};
pub use sweep::{ScalabilityModel, Sweep};
pub use table::{BESIDE, IPC, Row, Table};
pub use verdict::{HypothesisAnswer, HypothesisVerdict, PredictionResult, SignatureLine};

use fit::Fit;
use values::{Counting, Values};

/// The result of an analysis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The study's name.
    pub name: String,
    /// How its cells were chosen.
    pub design: StudyDesign,
    /// The factors and their levels.
    pub factors: Vec<Factor>,
    /// The goal of the study.
    pub goal: Goal,
    /// Confidence of every interval.
    pub confidence: f64,
    /// Counts of runs.
    pub runs: Runs,
    /// The goal's metric.
    pub primary: Metric,
    /// The other metrics; their results are exploratory.
    pub secondary: Vec<Metric>,
    /// One row per cell.
    pub table: Table,
    /// The verdict on the hypothesis.
    pub verdict: HypothesisVerdict,
    /// The results of its predictions.
    pub signature: Vec<SignatureLine>,
    /// The difference between runs of the same cell; none without controls.
    pub control: Option<Control>,
    /// The verdict with and without void runs.
    pub sensitivity: Sensitivity,
    /// The conclusions of changing one factor at a time; none for one factor.
    pub one_at_a_time: Option<OneAtATime>,
    /// Drift over the order of the runs; none for fewer than five runs.
    pub drift: Option<Drift>,
    /// Every block with a counted run.
    pub blocks: Vec<Block>,
    /// The curve of a sweep.
    pub sweep: Option<Sweep>,
    /// The best cell and its limit, where more than half of its runs agree on the limit.
    pub limit: Option<(Vec<usize>, String)>,
    /// Notes on the whole analysis for the reader.
    pub notes: Vec<String>,
    /// Open questions.
    pub next: Vec<Question>,
}

/// Counts of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// All of them.
    pub all: usize,
    /// Counted runs, without controls.
    pub counted: usize,
    /// Void runs.
    pub void: usize,
    /// Counted controls.
    pub controls: usize,
}

/// The analysis of one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// Its id.
    pub id: String,
    /// Its name in headings.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The scale of the analysis.
    pub scale: Scale,
    /// The number of values.
    pub n: usize,
    /// Blocks with a value.
    pub blocks: usize,
    /// Variation from run to run, as standard deviation over mean; none where nothing was repeated.
    pub variation: Option<f64>,
    /// Degrees of freedom of the error.
    pub freedom: usize,
    /// Effects; none without a complete grid.
    pub allocation: Option<Allocation>,
    /// Why there are no effects.
    pub no_effects: Option<String>,
    /// Means at each level of each factor, and at each pair of levels of two factors.
    pub marginals: Vec<Marginal>,
    /// Variants compared with the first; only in a comparison of variants.
    pub pairs: Vec<Pairs>,
}

/// Analyses a study.
///
/// # Errors
/// When the input is inconsistent. Missing or void runs are no error: the analysis states what cannot be concluded.
pub fn analyze(input: &StudyInput) -> Result<Analysis, InputError> {
    input.check()?;
    let values = Values::of(input, &input.goal.metric, Counting::Valid);
    let fit = values.fit(input.confidence);
    let mut primary = metric(input, &input.goal.metric)?;
    let mut secondary =
        input.metrics().iter().skip(1).map(|id| metric(input, id)).collect::<Result<Vec<_>, _>>()?;
    correct(std::slice::from_mut(&mut primary));
    correct(&mut secondary);
    let verdict = verdict::verdict(input, Counting::Valid);
    let count = |test: &dyn Fn(&Run) -> bool| input.runs.iter().filter(|run| test(run)).count();
    let table = table::table(input, &values, fit.as_ref());
    let fit = fit.as_ref();
    let sweeping = fit.filter(|_| input.design == StudyDesign::Sweep);
    let mut found = Analysis {
        name: input.name.clone(),
        design: input.design.clone(),
        factors: input.factors.clone(),
        goal: input.goal.clone(),
        confidence: input.confidence,
        runs: Runs {
            all: input.runs.len(),
            counted: count(&|run| run.void.is_none() && !run.control),
            void: count(&|run| run.void.is_some()),
            controls: count(&|run| run.void.is_none() && run.control),
        },
        signature: verdict::signature(input),
        control: control::control(input, &input.goal.metric),
        sensitivity: sensitivity::sensitivity(input, &verdict),
        one_at_a_time: fit.and_then(|fit| one_at_a_time::one_at_a_time(input, &values, fit)),
        drift: fit.and_then(|fit| order::drift(&values, fit)),
        blocks: fit.map(|fit| order::blocks(&values, fit)).unwrap_or_default(),
        sweep: sweeping.and_then(|fit| sweep::sweep(input, &values, fit)),
        limit: limit(input, &table),
        notes: notes(input, fit),
        primary,
        secondary,
        table,
        verdict,
        next: Vec::new(),
    };
    found.next = next::questions(input, &found);
    Ok(found)
}

fn metric(input: &StudyInput, id: &str) -> Result<Metric, InputError> {
    let values = Values::of(input, id, Counting::Valid);
    let fit = values.fit(input.confidence);
    let figure = input.figures.get(id);
    let (allocation, no_effects) = match &fit {
        Some(fit) => match effects::allocation(input, &values, fit)? {
            Ok(found) => (Some(found), None),
            Err(why) => (None, Some(why)),
        },
        None => (None, Some("no counted run has this figure".into())),
    };
    Ok(Metric {
        id: id.into(),
        name: input.figure_name(id).into(),
        unit: figure.map(|figure| figure.unit.clone()).unwrap_or_default(),
        scale: values.scale,
        n: values.observations.len(),
        blocks: fit.as_ref().map_or(0, |fit| fit.blocks.len()),
        variation: fit.as_ref().and_then(|fit| values.variation(fit)),
        freedom: fit.as_ref().map_or(0, |fit| fit.freedom),
        allocation,
        no_effects,
        marginals: fit.as_ref().map(|fit| marginal::marginals(input, &values, fit)).unwrap_or_default(),
        pairs: if input.design == StudyDesign::Ab { pairs::pairs(input, id) } else { Vec::new() },
    })
}

/// Holm's correction over all effects of these metrics together.
fn correct(metrics: &mut [Metric]) {
    let mut effects: Vec<&mut Effect> =
        metrics.iter_mut().filter_map(|m| m.allocation.as_mut()).flat_map(|a| &mut a.effects).collect();
    let known: Vec<f64> = effects.iter().filter_map(|e| e.p).collect();
    let adjusted = holm::adjust(&known);
    for (effect, adjusted) in effects.iter_mut().filter(|e| e.p.is_some()).zip(adjusted) {
        effect.adjusted = Some(adjusted);
    }
}

/// The limit of the best cell, if more than half of its runs have it.
fn limit(input: &StudyInput, table: &Table) -> Option<(Vec<usize>, String)> {
    let cell = &table.rows.get(table.best?)?.cell;
    let runs: Vec<&Run> =
        input.runs.iter().filter(|r| r.void.is_none() && !r.control && r.cell == *cell).collect();
    let mut said: Vec<&str> = runs.iter().filter_map(|run| run.limit.as_deref()).collect();
    said.sort_unstable();
    let most = said.chunk_by(|a, b| a == b).max_by_key(|same| same.len())?;
    (2 * most.len() > runs.len()).then(|| (cell.clone(), most[0].to_owned()))
}

fn notes(input: &StudyInput, fit: Option<&Fit>) -> Vec<String> {
    let accepting = input.runs.iter().filter(|run| run.void.is_none() && run.accepts_noise);
    let prices: Vec<_> = accepting.map(|run| run.noise).collect();
    let mut notes = Vec::from_iter(kelvin_diagnose::describe_accepted_noise(&prices));
    let Some(fit) = fit else {
        if input.runs.is_empty() {
            notes.push("nothing has been run yet".into());
        } else if input.runs.iter().all(|run| run.void.is_some()) {
            notes.push("every run is void: no conclusion is possible".into());
        } else {
            notes.push("no effect can be estimated from the counted runs".into());
        }
        return notes;
    };
    if fit.freedom == 0 {
        notes.push(
            "nothing was repeated: without an error estimate there is no interval and no test; a second \
            block gives one"
                .into(),
        );
    }
    notes.extend(verdict::exception(input));
    let holes = if matches!(input.design, StudyDesign::Fraction { .. }) {
        Vec::new()
    } else {
        contrast::missing(input, fit)
    };
    if !holes.is_empty() {
        let names: Vec<String> = holes.iter().map(|cell| input.cell_name(cell)).collect();
        notes.push(format!("no counted run: {}", names.join("; ")));
    }
    let uneven = fit.counts.iter().any(|count| *count != fit.blocks.len());
    if uneven && holes.is_empty() {
        notes.push(
            "not every block has every cell once; cells and blocks were separated by least squares".into(),
        );
    }
    notes
}
