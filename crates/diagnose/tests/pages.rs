//! Every finding has its page in the user guide and stands in its index.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_finding_has_its_page() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
    let index = std::fs::read_to_string(pages.join("README.md")).unwrap();
    let mut ids = BTreeSet::new();
    for about in kelvin_diagnose::all() {
        assert!(ids.insert(about.id), "{} stands twice in the list", about.id);
        let page = std::fs::read_to_string(pages.join(format!("{}.md", about.id)));
        let page = page.unwrap_or_else(|error| panic!("docs/findings/{}.md: {error}", about.id));
        assert!(page.starts_with(&format!("# {}\n", about.id)), "the page of {} has its title", about.id);
        assert!(
            index.contains(&format!("({}.md)", about.id)),
            "{} stands in docs/findings/README.md",
            about.id
        );
        assert!(about.question.ends_with('?'), "{}: {}", about.id, about.question);
    }
}
