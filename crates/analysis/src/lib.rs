//! The analysis of a study's stored runs: effects, interactions and the variation that is theirs; the verdict on the
//! hypothesis and on what it predicted; and what may be said of the measurement itself. It is a function of its [`StudyInput`]
//! and gives the same answer every time.

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

/// Everything that is concluded from a study's runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The study's name.
    pub name: String,
    /// How its cells were chosen.
    pub design: StudyDesign,
    /// The factors and their levels.
    pub factors: Vec<Factor>,
    /// What it was about.
    pub goal: Goal,
    /// Confidence of every interval.
    pub confidence: f64,
    /// Runs, those that count, void ones, and controls among those that count.
    pub runs: Runs,
    /// The goal's figure.
    pub primary: Metric,
    /// The others: exploratory.
    pub secondary: Vec<Metric>,
    /// One row a cell.
    pub table: Table,
    /// The verdict on the hypothesis.
    pub verdict: HypothesisVerdict,
    /// What it predicted beside.
    pub signature: Vec<SignatureLine>,
    /// What differs between runs of the same; none without controls.
    pub control: Option<Control>,
    /// The answer with and without void runs.
    pub sensitivity: Sensitivity,
    /// What one factor at a time would have concluded; none for one factor.
    pub one_at_a_time: Option<OneAtATime>,
    /// Drift over the order of the runs; none for fewer than five.
    pub drift: Option<Drift>,
    /// Every block.
    pub blocks: Vec<Block>,
    /// The curve of a sweep.
    pub sweep: Option<Sweep>,
    /// The best cell and what limits it, where its runs agree on it.
    pub limit: Option<(Vec<usize>, String)>,
    /// What the reader must know of the whole.
    pub notes: Vec<String>,
    /// What is left open.
    pub next: Vec<Question>,
}

/// Counts of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// All of them.
    pub all: usize,
    /// Those that count, controls left out.
    pub counted: usize,
    /// Void ones.
    pub void: usize,
    /// Controls that count.
    pub controls: usize,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// Its id.
    pub id: String,
    /// As a heading has it.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// In what terms it was analysed.
    pub scale: Scale,
    /// Values.
    pub n: usize,
    /// Blocks with a value.
    pub blocks: usize,
    /// Variation from run to run, standard deviation over mean, as a part; none where nothing was repeated.
    pub variation: Option<f64>,
    /// Degrees of freedom of the error.
    pub freedom: usize,
    /// Effects; none without a complete grid.
    pub allocation: Option<Allocation>,
    /// Why there are no effects.
    pub no_effects: Option<String>,
    /// Means of each factor's levels, and of each pair of factors' levels.
    pub marginals: Vec<Marginal>,
    /// Variants against the first; of a comparison of variants.
    pub pairs: Vec<Pairs>,
}

/// Analyses.
///
/// # Errors
/// When the input contradicts itself. Runs that are missing or void are no error: the analysis says what it cannot say.
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
        None => (None, Some("no counted run has this metric".into())),
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

/// Holm's correction over all effects of these figures together.
fn correct(metrics: &mut [Metric]) {
    let mut effects: Vec<&mut Effect> =
        metrics.iter_mut().filter_map(|m| m.allocation.as_mut()).flat_map(|a| &mut a.effects).collect();
    let known: Vec<f64> = effects.iter().filter_map(|e| e.p).collect();
    let adjusted = holm::adjust(&known);
    for (effect, adjusted) in effects.iter_mut().filter(|e| e.p.is_some()).zip(adjusted) {
        effect.adjusted = Some(adjusted);
    }
}

/// What limits the best cell, where more than half of its runs say the same.
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
