//! The findings' pages and the terms of the user guide.

/// Every page by the id of its finding, as Markdown, in alphabetical order.
pub const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The user guide's table of terms, as Markdown.
const TERMS: &str = include_str!("../../../docs/terms.md");

/// Every term with its meaning, in alphabetical order. A row of several terms is one for each.
pub fn terms() -> Vec<(&'static str, &'static str)> {
    let rows =
        TERMS.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = rows.filter(|(term, _)| *term != "term");
    rows.flat_map(|(terms, meaning)| terms.split(", ").map(move |term| (term, meaning))).collect()
}

/// The page of a finding as Markdown.
pub fn page(id: &str) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == id).map(|(_, page)| *page)
}
