//! A group of runs as one self-contained HTML file, or as a page of the server: first the answer and its
//! chart, then the text that is printed when the group ends, and its runs.

mod plot;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use crate::Result;
use crate::html::Frame;
use kelvin_measure::text::{bounded, significant};

const TEMPLATE: &str = include_str!("page.html");

/// A group and its joint result.
#[derive(Debug, Clone, Serialize)]
pub struct GroupPage {
    /// Its number.
    pub group: i64,
    /// The kind of the group, such as "A/B comparison".
    pub kind: &'static str,
    /// The group's name.
    pub name: Option<String>,
    /// Workload and target.
    pub what: String,
    /// Start time, UTC.
    pub began: String,
    /// The results: one per comparison, or a single one if nothing is compared.
    pub answers: Vec<Answer>,
    /// The metric of the answer, as name and unit; none if no run has a value.
    pub figure: Option<(String, String)>,
    /// The ratios of the blocks, by side compared with A; empty if nothing is compared.
    pub ratios: Vec<Ratios>,
    /// Its runs, in the order in which they were made.
    pub runs: Vec<GroupPageRun>,
    /// The text that is printed when the group ends.
    pub text: String,
}

/// An answer.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    /// "changed", "no-change", "within-noise", "not-testable" or "undetermined"; empty if it is not a
    /// comparison.
    pub class: &'static str,
    /// The verdict, as a sentence.
    pub sentence: String,
    /// Names and values.
    pub figures: Vec<(String, String)>,
}

/// The ratios of a side to A, by block.
#[derive(Debug, Clone, Serialize)]
pub struct Ratios {
    /// "B", "C", …
    pub side: String,
    /// Number of the block, and its ratio; none for an incomplete block.
    pub blocks: Vec<(u32, Option<f64>)>,
    /// The ratio over all blocks.
    pub ratio: f64,
    /// Lower end of its interval; 0 if unknown.
    pub low: f64,
    /// Upper end of its interval; infinite if unknown.
    pub high: f64,
    /// The interval's confidence as text, such as "95 %".
    pub confidence: String,
}

/// A run of the group.
#[derive(Debug, Clone, Serialize)]
pub struct GroupPageRun {
    /// Its number.
    pub run: i64,
    /// Its block, from 1.
    pub block: u32,
    /// Its treatment; empty if there is only one.
    pub treatment: String,
    /// Its value.
    pub value: Option<f64>,
    /// Whether the value is only a lower bound.
    pub at_least: bool,
    /// Its state, and why it does not count; none if it counts.
    pub void: Option<String>,
}

/// The page as a self-contained file.
///
/// # Errors
/// Fails if the template fails, which is a bug in it.
pub fn render(group: &GroupPage) -> Result<String> {
    page(group, &|_| None, &|_, _| None, None)
}

/// The page with a server's frame around it. `link` returns the address of a run's page, `compare` that of
/// the comparison of two treatments.
///
/// # Errors
/// As [`render`].
pub fn page(
    group: &GroupPage,
    link: &dyn Fn(i64) -> Option<String>,
    compare: &dyn Fn(&str, &str) -> Option<String>,
    frame: Option<&Frame>,
) -> Result<String> {
    let mut environment = Environment::new();
    crate::html::add_frame(&mut environment)?;
    environment.add_template("page.html", TEMPLATE)?;
    let void = group.runs.iter().filter(|run| run.void.is_some()).count();
    let value = |run: &GroupPageRun| {
        let value = run.value.map(|value| kelvin_measure::Bounded { value, at_least: run.at_least });
        bounded(value, |value| value.map_or_else(|| "–".into(), significant))
    };
    let runs: Vec<_> = group.runs.iter().map(|run| (run, value(run), link(run.run))).collect();
    let treatments = plot::treatments(group);
    let against: Vec<_> = treatments
        .iter()
        .skip(1)
        .filter_map(|other| Some((other, compare(treatments.first()?, other)?)))
        .collect();
    let svg = |svg: Option<String>| svg.map(Value::from_safe_string);
    Ok(environment.get_template("page.html")?.render(context! {
        frame => crate::html::frame_value(frame),
        policy => crate::html::policy(&[], frame),
        group => Value::from(Serde(group)),
        void,
        runs => Value::from(Serde(runs)),
        against => Value::from(Serde(against)),
        several => treatments.len() > 1,
        base => treatments.first(),
        ratios => svg(plot::ratios(group)),
        values => svg(plot::values(group)),
        version => env!("CARGO_PKG_VERSION"),
        style => Value::from_safe_string(crate::html::STYLE.to_owned()),
    })?)
}
