//! Compares all statements about a stored run: its report in all formats, the lists of runs, its key figures.

#[path = "forms.rs"]
mod forms;

use forms::Compared;
use kelvin_report::compare::Run;
use kelvin_report::{RunReport, html, json, text};
use kelvin_store::{RunId, Store};
use serde_json::Value;

use super::support::Place;

/// What `kelvin runs` prints of a store.
pub(crate) struct Lists {
    lines: Vec<Value>,
    table: String,
    pub(crate) compared: Compared,
}

impl Lists {
    pub(crate) fn read(place: &Place) -> Self {
        let lines = place.expect(0, &["runs", "--json"]);
        let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { lines, table: place.expect(0, &["runs"]), compared: Compared::default() }
    }

    /// Compares the formats of a run with each other and with its lines in the lists.
    pub(crate) fn hold_together(&mut self, name: &str, store: &Store, run: RunId) -> RunReport {
        let loaded = Run::load(store, run, &[]).unwrap();
        let report = &loaded.report;
        let state = one_state(name, report);
        let line = self.lines.iter().find(|line| line["id"] == run.0).unwrap();
        assert_eq!(
            (line["state"].as_str(), &line["reasons"]),
            (Some(&*state), &serde_json::json!(report.judgement.reasons)),
            "{name}"
        );
        let is_row = |line: &&str| line.trim_start().starts_with(&format!("{} ", run.0));
        let row = self.table.lines().find(is_row).unwrap();
        assert!(row.split_whitespace().any(|word| word == state), "{name}: {row}");
        forms::walk(name, report, row, &mut self.compared);
        key_figures(name, &loaded, line);
        loaded.report
    }
}

/// The rate in the list, and the p99 that comparisons use.
fn key_figures(name: &str, loaded: &Run, line: &Value) {
    let Some(best) = loaded.report.best().filter(|best| best.closed && best.window_s > 0.0) else { return };
    let point = line["points"].as_array().unwrap().iter().find(|p| p["point"] == best.point).unwrap();
    // This run is void because its two counts differ.
    if name != "the window counts more than its seconds" {
        // One of the two was converted to text and back, so the last bit may differ.
        let (listed, shown) = (point["per_second"].as_f64(), best.throughput.headline_per_second);
        let same = match (listed, shown) {
            (Some(listed), Some(shown)) => (listed - shown).abs() <= shown * 1e-12,
            (listed, shown) => listed == shown,
        };
        assert!(same, "{name}: {listed:?} and {shown:?}");
    }
    let p99 = loaded.key[&best.point].iter().find(|figure| figure.id == "p99");
    let p99 = p99.and_then(kelvin_diagnose::KeyFigure::bounded);
    if let Some((key, shown)) = p99.zip(best.client_latency().p99_us) {
        let same = (key.value - shown.value / 1e3).abs() < 1e-9 && key.at_least == shown.at_least;
        assert!(same, "{name}: p99 {key:?} ms and {shown:?} µs");
    }
}

/// The part of a page between two texts.
fn between<'a>(page: &'a str, from: &str, to: &str) -> Option<&'a str> {
    page.split_once(from)?.1.split_once(to).map(|(found, _)| found)
}

/// Text as a single line with single blanks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compares the formats of a run's report; returns the state.
fn one_state(name: &str, report: &RunReport) -> String {
    let rendered = text::render(report, text::Options { all: true, ..Default::default() });
    let shown = flat(&rendered);
    let document: Value = serde_json::from_str(&json::render(report).unwrap()).unwrap();
    let page = html::render(report).unwrap();
    let state = document["state"].as_str().unwrap();
    let counted = state == "counted";
    assert_eq!(document["valid"], counted, "{name}");
    let reasons: Vec<&str> =
        document["reasons"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
    assert_eq!(reasons.is_empty(), counted, "{name}: {reasons:?}");
    let head = format!("<strong class=\"state {state}\">");
    assert_eq!(between(&page, &head, "</strong>"), Some(state), "{name}");
    assert_eq!(page.contains("<div class=\"tile good\">"), counted && report.best().is_some(), "{name}");
    for word in ["counted", "void", "partial", "failed"] {
        let of_it = word == state;
        assert_eq!(shown.contains(&format!("UTC, {word} ")), of_it, "{name}: {word} in the text's head");
        let at_the_end = rendered.lines().any(|line| line.starts_with(&format!("{word}:")));
        assert_eq!(at_the_end, of_it, "{name}: {word} at the text's end\n{rendered}");
        if report.best().is_some() {
            let tile = format!("<span class=\"value\">{word}</span>");
            assert_eq!(page.contains(&tile), of_it, "{name}: {word} on the page's tile");
        }
    }
    for reason in &reasons {
        assert!(shown.contains(&flat(reason)), "{name}: no {reason:?} in\n{shown}");
        let marks = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")];
        let escaped = marks.iter().fold((*reason).to_owned(), |text, (mark, code)| text.replace(*mark, code));
        assert!(page.contains(&escaped), "{name}: no {escaped:?} on the page");
    }
    for point in document["points"].as_array().unwrap() {
        let of = point["state"].as_str().unwrap();
        let Some(verdict) = point["verdict"].as_object() else { continue };
        let void = verdict["outcome"]["outcome"] == "void";
        assert!(!void || of != "counted", "{name}: a point without a verdict counts");
        assert!(of != "counted" || !void, "{name}: {of}");
    }
    figures(name, report, &shown, &page);
    state.into()
}

/// Checks headline and p99 of the best point, in text and page.
fn figures(name: &str, report: &RunReport, shown: &str, page: &str) {
    let Some(best) = report.best() else { return };
    if report.is_io() || best.headline(report.headline_per).is_none() {
        return;
    }
    let tile = between(page, "<div class=\"tile big\"><span class=\"value\">", "</span>").unwrap();
    assert!(
        shown.contains(&format!("{tile} {}", report.headline))
            || report.points.len() > 1 && shown.contains(tile),
        "{name}: {tile} {} is not in\n{shown}",
        report.headline
    );
    let title = between(page, "<title>", "</title>").unwrap();
    assert!(title.contains(&format!("{tile} {}", report.headline)), "{name}: {title}");
}
