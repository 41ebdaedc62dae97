//! The study file, `study.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::source::Source;
use super::{Axis, Design, Goal, Hypothesis, StudyError, metric};
use crate::bench;
use crate::conditions::DesignCell;
use crate::factor::{self, Factor};
use kelvin_run::spec::{Spec, SpecFile};

/// A study: its question, its factors, and how it runs. Apart from the machine, the file contains everything that
/// determines the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Its name, which is also the name of its group of runs.
    pub name: String,
    /// The question in a sentence.
    pub question: String,
    /// The study that it continues, by the name it had when forked.
    pub parent: Option<String>,
    /// The scope of the answer, in the author's words: machine, versions, isolation, exclusions.
    pub universe: BTreeMap<String, String>,
    /// The goal.
    pub goal: Goal,
    /// The hypothesis.
    pub hypothesis: Hypothesis,
    /// The factors as axes, in the order of the file.
    pub axes: Vec<Axis>,
    /// The same factors with the changes for each level.
    pub factors: Vec<Factor>,
    /// How the factors are combined and how often.
    pub design: Design,
    /// Additional metrics that are stored for every run; they are exploratory.
    pub metrics: Vec<String>,
    /// The specification that every run is a variation of, including its reset.
    pub run: Spec,
    cells: Vec<DesignCell>,
}

/// The file in its written form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    name: Spanned<String>,
    question: Spanned<String>,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    universe: BTreeMap<String, String>,
    goal: Spanned<Goal>,
    hypothesis: Spanned<Hypothesis>,
    #[serde(default, rename = "factor")]
    factors: Vec<Spanned<Factor>>,
    design: Spanned<Design>,
    #[serde(default)]
    metrics: Vec<Spanned<String>>,
    run: Spanned<toml::Value>,
}

/// The same text, parsed again to locate wrong values within the run.
#[derive(Deserialize)]
struct Inline {
    #[serde(rename = "run")]
    _run: SpecFile,
}

/// Longer files are refused; see [`Spec::read`].
const LONGEST_FILE: u64 = 16 << 20;
/// Maximum number of additional metrics.
const MOST_METRICS: usize = 64;
/// Maximum length of a name, which is used in tables and file names.
const LONGEST_NAME: usize = 80;

impl Study {
    /// Reads a file. A run in a separate file is looked up relative to it.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let failed = |source| StudyError::File { what: "read", path: path.into(), source };
        let shown = path.display().to_string();
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > LONGEST_FILE {
            let message = format!("{length} bytes are too many for a study ({LONGEST_FILE} allowed)");
            return Err(StudyError::Parse { path: shown, message });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Self::parse(&text, &shown, path.parent().unwrap_or(Path::new(".")))
    }

    /// Parses the text of a file. `name` is used in errors; a run in a separate file is read from `directory`.
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Self, StudyError> {
        let source = Source { name, text };
        let written: Written = toml::from_str(text).map_err(|error| source.refuse_all(error))?;
        let run = read_run(&written.run, source, directory)?;
        let at = |span: std::ops::Range<usize>| move |why: String| source.refuse(span, why);

        proper_name(written.name.get_ref()).map_err(at(written.name.span()))?;
        if written.question.get_ref().trim().is_empty() {
            return Err(source.refuse(written.question.span(), "a study needs a question"));
        }
        let mut axes: Vec<Axis> = Vec::with_capacity(written.factors.len());
        let mut factors: Vec<Factor> = Vec::with_capacity(written.factors.len());
        let first_factor = written.factors.first().map(Spanned::span);
        for one in written.factors {
            let span = one.span();
            axes.push(Axis::of(one.get_ref()).map_err(at(span.clone()))?);
            factors.push(one.into_inner());
            // Together with the previous ones, so that the location is that of the factor in conflict.
            factor::check(&factors).map_err(|error| source.refuse(span, error))?;
        }
        let cells = written.design.get_ref().cells(&axes).map_err(at(written.design.span()))?;
        if let Some(first) = first_factor {
            factor::check_factors(&factors, &run).map_err(|error| source.refuse(first, error))?;
        }
        let (goal_span, hypothesis_span) = (written.goal.span(), written.hypothesis.span());
        let (goal, hypothesis) = (written.goal.into_inner(), written.hypothesis.into_inner());
        metric::known(&run, &goal.metric).map_err(at(goal_span))?;
        expects(&hypothesis, &axes, &goal, &run).map_err(at(hypothesis_span))?;

        let mut metrics: BTreeSet<&str> = BTreeSet::new();
        for one in &written.metrics {
            metric::known(&run, one.get_ref()).map_err(at(one.span()))?;
            if !metrics.insert(one.get_ref()) {
                return Err(
                    source.refuse(one.span(), format!("the metric \"{}\" is given twice", one.get_ref()))
                );
            }
            if metrics.len() > MOST_METRICS {
                return Err(source.refuse(one.span(), format!("there are more than {MOST_METRICS} metrics")));
            }
        }
        Ok(Self {
            name: written.name.into_inner(),
            question: written.question.into_inner(),
            parent: written.parent,
            universe: written.universe,
            goal,
            hypothesis,
            axes,
            factors,
            design: written.design.into_inner(),
            metrics: written.metrics.into_iter().map(Spanned::into_inner).collect(),
            run,
            cells,
        })
    }

    /// The cells in the order of the design, the base first.
    pub fn cells(&self) -> &[DesignCell] {
        &self.cells
    }

    /// The cell that the others are compared with: the first level of each factor, or the first cell of a fraction
    /// that does not contain it.
    pub fn base(&self) -> &DesignCell {
        // A design has at least two cells.
        &self.cells[0]
    }

    /// Observed metrics whose mean is stored for every run: those of the goal, the predictions and the file's list,
    /// without duplicates and without the key figures, which every run has anyway.
    pub fn observed(&self) -> Vec<String> {
        let predicted = self.hypothesis.predicts.iter().map(|one| &one.metric);
        let asked = [&self.goal.metric].into_iter().chain(predicted).chain(&self.metrics);
        let mut observed = Vec::new();
        for id in asked.filter(|id| !metric::is_key_figure(&self.run, id)) {
            if !observed.contains(id) {
                observed.push(id.clone());
            }
        }
        observed
    }
}

/// The run: a table in the file, or a separate file next to it.
fn read_run(run: &Spanned<toml::Value>, source: Source<'_>, directory: &Path) -> Result<Spec, StudyError> {
    let refuse = |why: String| source.refuse(run.span(), why);
    let spec = match run.get_ref() {
        toml::Value::String(file) => {
            Spec::read(&directory.join(file)).map_err(|error| refuse(error.to_string()))?
        }
        toml::Value::Table(table) => {
            let _: Inline = toml::from_str(source.text).map_err(|error| source.refuse_all(error))?;
            let text = toml::to_string(table).map_err(|error| refuse(error.to_string()))?;
            Spec::parse_in(&text, "[run]", directory).map_err(|error| refuse(error.to_string()))?
        }
        _ => {
            return Err(refuse(
                "the run must be a table [run], or the name of a file that --print-spec wrote".into(),
            ));
        }
    };
    bench::suits(&spec).map_err(refuse)?;
    Ok(spec)
}

fn proper_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!("a study's name must be one line of 1 to {LONGEST_NAME} characters"));
    }
    Ok(())
}

/// Refuses a hypothesis that runs could not refute.
fn expects(hypothesis: &Hypothesis, axes: &[Axis], goal: &Goal, run: &Spec) -> Result<(), String> {
    let Hypothesis { factor, from, to, predicts, .. } = hypothesis;
    let Some(axis) = axes.iter().find(|axis| axis.name == *factor) else {
        let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        return Err(format!(
            "the hypothesis is about \"{factor}\", which is not one of the factors ({})",
            names.join(", ")
        ));
    };
    for level in [from, to] {
        if !axis.levels.contains(level) {
            return Err(format!(
                "\"{level}\" is not a level of \"{factor}\", which has {}",
                axis.levels.join(", ")
            ));
        }
    }
    if from == to {
        return Err(format!("the hypothesis changes \"{factor}\" from \"{from}\" to the same level"));
    }
    let mut seen = BTreeSet::new();
    for prediction in predicts {
        metric::known(run, &prediction.metric)?;
        if !seen.insert(&prediction.metric) {
            return Err(format!("the hypothesis predicts \"{}\" twice", prediction.metric));
        }
    }
    if !seen.contains(&goal.metric) {
        return Err(format!(
            "the hypothesis does not predict \"{}\", the goal's metric; without a prediction it cannot be \
             refuted: predicts = [{{ metric = \"{}\", direction = \"{}\", by = \"{}\" }}]",
            goal.metric,
            goal.metric,
            match goal.direction {
                kelvin_diagnose::Better::Higher => "higher",
                kelvin_diagnose::Better::Lower => "lower",
            },
            goal.smallest_effect
        ));
    }
    if predicts.len() > MOST_METRICS {
        return Err(format!("the hypothesis predicts more than {MOST_METRICS} metrics"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
