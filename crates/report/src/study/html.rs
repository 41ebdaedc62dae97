//! The page as one self-contained HTML file without scripts.

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use super::grid::{self, Grid};
use super::markdown::{capital, goal, locked};
use super::text::is_words;
use kelvin_analysis::StudyPageContent;
use kelvin_analysis::notes::PHASES;

use super::{plot, sentences};
use crate::Result;
use crate::html::STYLE;
use kelvin_measure::text::significant;

const TEMPLATE: &str = include_str!("page.html");
const OWN_STYLE: &str = include_str!("page.css");

/// A table with the properties of its columns and rows for the template.
#[derive(Serialize)]
struct TableView {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Whether the column holds text.
    words: Vec<bool>,
    /// The highlighted row.
    best: Option<usize>,
}

impl TableView {
    fn of(grid: Grid) -> Self {
        let last = grid.head.len().saturating_sub(1);
        let last_words = is_words(&grid);
        let words = (0..grid.head.len()).map(|at| at < grid.words || (at == last && last_words)).collect();
        Self { head: grid.head, rows: grid.rows, words, best: None }
    }
}

/// The whole page as a file.
///
/// # Errors
/// Fails if the template fails, which is a bug in it.
pub fn render(of: &StudyPageContent) -> Result<String> {
    let mut environment = Environment::new();
    environment.add_filter("significant", |v: f64| significant(v));
    environment.add_filter("capital", |text: String| capital(&text));
    environment.add_filter("percent", |part: f64| format!("{:.1}", part * 100.0));
    environment.add_template("study.html", TEMPLATE)?;
    crate::html::add_frame(&mut environment)?;
    let found = &of.analysis;
    let safe = Value::from_safe_string;
    let shown = |grid: Grid| (!grid.rows.is_empty()).then(|| Value::from(Serde(TableView::of(grid))));
    let mut cells = TableView::of(grid::cells(found));
    cells.best = found.table.best;
    let (secondary, looked) = grid::secondary(found);
    let interactions: Vec<(String, Value)> =
        plot::interactions(found).into_iter().map(|(title, svg)| (title, safe(svg))).collect();
    let notes: Vec<Vec<(bool, String)>> =
        of.notes.iter().map(|paragraphs| paragraphs.iter().map(|text| block(text)).collect()).collect();
    let page = environment.get_template("study.html")?.render(context! {
        policy => crate::html::policy(&[], None),
        of => Value::from(Serde(of)),
        found => Value::from(Serde(found)),
        phases => PHASES,
        notes => Value::from(Serde(notes)),
        goal => goal(found),
        locked => locked(of),
        answer => found.verdict.answer.word(),
        correct => sentences::correct(found),
        precision => sentences::precision(found),
        signature_words => sentences::signature(found),
        signature => shown(grid::signature(found)),
        cells => (!found.table.rows.is_empty()).then(|| Value::from(Serde(cells))),
        cells_caption => grid::cells_caption(found),
        effects => grid::effects(found, &found.primary).and_then(shown),
        scale => grid::scale_words(&found.primary),
        shares => Value::from(Serde(grid::shares(&found.primary))),
        pairs => shown(grid::pairs(found)),
        steps => grid::steps(found).and_then(shown),
        one_at_a_time => sentences::one_at_a_time(found),
        secondary => shown(secondary),
        looked,
        control => sentences::control(found),
        sensitivity => sentences::sensitivity(found),
        drift => sentences::drift(found),
        blocks => shown(grid::blocks(found)),
        keep => sentences::keep(found),
        sweep => grid::sweep(found).and_then(shown),
        law => grid::scaling_model(found).and_then(shown),
        main_effects => safe(if found.sweep.is_some() { plot::sweep(found) } else { plot::main_effects(found) }),
        interactions,
        order => safe(plot::order(found)),
        best_value => found.table.best.and_then(|at| Some(significant(found.table.rows[at].value?.value))),
        style => safe(format!("{STYLE}\n{OWN_STYLE}")),
    })?;
    Ok(page)
}

/// Whether a paragraph of the notebook is a code block, and its text.
fn block(text: &str) -> (bool, String) {
    if !text.starts_with("```") {
        return (false, text.to_owned());
    }
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    (true, lines.collect::<Vec<_>>().join("\n"))
}
