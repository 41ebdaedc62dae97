//! What host and database did beside a run, in every format.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::observed::judged;
use common::{GOOD, Shape};
use kelvin_report::{Report, text};

fn seen(shape: Shape) -> Report {
    common::observed(&tempfile::tempdir().unwrap().path().join("k.db"), shape, Some("base"))
}

fn plain(report: &Report) -> String {
    text::render(report, text::Options::default())
}

#[test]
fn text_has_the_verdict_and_the_findings_first() {
    insta::assert_snapshot!(plain(&judged(seen(GOOD))));
}
