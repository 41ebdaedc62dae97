//! A group of runs as one HTML file that needs nothing else, or as a server shows it: the answer and the chart that it rests
//! on first, then everything that is printed when the group ends, and its runs.

mod plot;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use crate::Result;
use crate::html::Frame;
use kelvin_measure::text::{bounded, significant};

const TEMPLATE: &str = include_str!("page.html");

/// A group and what its runs say together.
#[derive(Debug, Clone, Serialize)]
pub struct GroupPage {
    /// Its number.
    pub group: i64,
    /// What its runs are to each other, such as "A/B comparison".
    pub kind: &'static str,
    /// The user's name for it.
    pub name: Option<String>,
    /// What was run on what.
    pub what: String,
    /// When it began, UTC.
    pub began: String,
    /// What the runs say, a sentence each comparison; one where nothing is compared.
    pub answers: Vec<Answer>,
    /// What the answer is of: name and unit; none where no run has a figure.
    pub figure: Option<(String, String)>,
    /// The ratios of the blocks by the side that is set against A; empty where nothing is compared.
    pub ratios: Vec<Ratios>,
    /// Its runs in the order in which they were made.
    pub runs: Vec<GroupPageRun>,
    /// What is printed when the group ends.
    pub text: String,
}

/// An answer.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    /// "changed", "no-change", "within-noise", "not-testable", "undetermined"; empty where it is no comparison.
    pub class: &'static str,
    /// The verdict, in a sentence.
    pub sentence: String,
    /// Figures: each with its name.
    pub figures: Vec<(String, String)>,
}

/// A side against A, by block.
#[derive(Debug, Clone, Serialize)]
pub struct Ratios {
    /// "B", "C", …
    pub side: String,
    /// Number of the block, and the ratio; none of a block that is not complete.
    pub blocks: Vec<(u32, Option<f64>)>,
    /// The ratio over all blocks, with both ends of its interval.
    pub ratio: f64,
    /// The lower end; 0 where it is not known.
    pub low: f64,
    /// The upper end; infinite where it is not known.
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
    /// Its treatment; empty where there is only one.
    pub treatment: String,
    /// The figure.
    pub value: Option<f64>,
    /// Whether it is known from below only.
    pub at_least: bool,
    /// Its state and why it does not count; none when it does.
    pub void: Option<String>,
}

/// The page as a file.
///
/// # Errors
/// When the template fails, which is a mistake in it.
pub fn render(group: &GroupPage) -> Result<String> {
    page(group, &|_| None, &|_, _| None, None)
}

/// The same page as a server shows it: `link` gives the address of a run's page, `compare` that of the comparison of two
/// treatments.
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
