//! Every finding has its page in the user guide and is in its index.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_finding_has_its_page() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
    let index = std::fs::read_to_string(pages.join("README.md")).unwrap();
    let mut ids = BTreeSet::new();
    let all = kelvin_diagnose::known_findings().iter().map(|about| (about.id, about.question));
    let of_jobs = kelvin_diagnose::io_all().iter().map(|about| (about.id, about.question));
    for (id, question) in all.chain(of_jobs) {
        assert!(ids.insert(id), "{id} stands twice in the list");
        let page = kelvin_diagnose::page(id).unwrap_or_else(|| panic!("there is no docs/findings/{id}.md"));
        assert!(page.starts_with(&format!("# {id}\n")), "the page of {id} has its title");
        // What it explains of the figure, or why that is unknown.
        let effect = page.split_once("\n## Effect\n\n").and_then(|(_, rest)| rest.split("\n## ").next());
        let effect = effect.unwrap_or_else(|| panic!("{id} says nothing of its effect"));
        let known = !effect.starts_with("Unknown") || effect.starts_with("Unknown: ");
        assert!(known && effect.trim_end().ends_with('.'), "{id}: {effect}");
        assert!(index.contains(&format!("({id}.md)")), "{id} stands in docs/findings/README.md");
        assert!(question.ends_with('?'), "{id}: {question}");
    }
}
