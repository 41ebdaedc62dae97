//! The findings' pages of the user guide.

/// Every page by the id of its finding, as Markdown, in alphabetical order.
pub const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a finding as Markdown.
pub fn page(id: &str) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == id).map(|(_, page)| *page)
}
