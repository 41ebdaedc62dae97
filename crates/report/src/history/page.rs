//! The trend as one self-contained HTML file.

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};

use super::{History, plot, text};
use crate::Result;
use crate::compare::chance;
use crate::html::Frame;
use kelvin_measure::text::significant;

const TEMPLATE: &str = include_str!("page.html");

/// The page. `link` returns the address of a run's page, relative to this one; `None` if it has no page.
///
/// # Errors
/// Fails if the template fails, which is a bug in it.
pub fn render(history: &History, link: &dyn Fn(i64) -> Option<String>) -> Result<String> {
    page(history, link, None)
}

/// The page with a server's frame around it.
///
/// # Errors
/// As [`render`].
pub fn page(
    history: &History,
    link: &dyn Fn(i64) -> Option<String>,
    frame: Option<&Frame>,
) -> Result<String> {
    let mut environment = Environment::new();
    crate::html::add_frame(&mut environment)?;
    environment.add_filter("significant", |value: f64| significant(value));
    environment.add_template("page.html", TEMPLATE)?;
    let entries: Vec<_> = history
        .entries
        .iter()
        .map(|entry| {
            let runs: Vec<(i64, Option<String>)> = entry.runs.iter().map(|run| (*run, link(*run))).collect();
            (entry, runs, entry.started.strftime("%Y-%m-%d %H:%M").to_string())
        })
        .collect();
    let changes: Vec<_> = history
        .changes
        .iter()
        .map(|change| {
            let at = history.entries.get(change.index).map_or_else(String::new, super::HistoryEntry::name);
            let class = match change.better {
                Some(true) => "good",
                Some(false) => "red",
                None => "note",
            };
            let facts: Vec<(String, String)> = change
                .changed
                .iter()
                .map(|d| {
                    let words = crate::compare::Difference::describe_values;
                    (d.name.clone(), format!("{} → {}", words(&d.a), words(&d.b)))
                })
                .collect();
            (class, change.index, at, change.describe(), change.before, change.after, chance(change.p), facts)
        })
        .collect();
    Ok(environment.get_template("page.html")?.render(context! {
        frame => crate::html::frame_value(frame),
        policy => crate::html::policy(&[], frame),
        title => history.title(),
        history => Value::from(Serde(history)),
        entries => Value::from(Serde(entries)),
        changes => Value::from(Serde(changes)),
        verdict => text::verdict(history),
        assumption => text::assumption(history),
        version => env!("CARGO_PKG_VERSION"),
        plot => Value::from_safe_string(plot::svg(history)),
        style => Value::from_safe_string(crate::html::STYLE.to_owned()),
    })?)
}
