//! Every format of the same runs, as a person or a program sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{GOOD, Shape, stored};
use kelvin_report::{Report, compare, csv, html, json, text};

fn report(shape: Shape) -> Report {
    stored(&tempfile::tempdir().unwrap().path().join("k.db"), shape, Some("base"))
}

fn bad() -> Report {
    report(Shape { errors: true, valid: false, ..GOOD })
}

#[test]
fn text_of_a_good_run() {
    insta::assert_snapshot!(text::render(&report(GOOD), text::Options::default()));
}

#[test]
fn text_of_a_run_that_is_not_valid() {
    insta::assert_snapshot!(text::render(&bad(), text::Options::default()));
}

#[test]
fn text_of_several_points() {
    let shape = Shape { users: &[1, 2, 4], seconds: 5, ..GOOD };
    insta::assert_snapshot!(text::render(&report(shape), text::Options::default()));
}

#[test]
fn text_of_a_killed_run() {
    insta::assert_snapshot!(text::render(
        &report(Shape { finished: false, ..GOOD }),
        text::Options::default()
    ));
}

#[test]
fn text_keeps_to_80_columns_and_colour_adds_nothing_but_colour() {
    for shape in [GOOD, Shape { errors: true, valid: false, new_orders: 900, ..GOOD }] {
        let report = report(shape);
        let plain = text::render(&report, text::Options::default());
        for line in plain.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let coloured = text::render(&report, text::Options { colour: true });
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some(at) = rest.find("\x1b[") {
            stripped.push_str(&rest[..at]);
            rest = &rest[at..][rest[at..].find('m').unwrap() + 1..];
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
        assert!(coloured.contains("\x1b["));
    }
}

#[test]
fn csv_series_and_summary() {
    let report = report(Shape { seconds: 3, ramp_up: 1, ..GOOD });
    insta::assert_snapshot!(format!("{}\n{}", csv::series(&report), csv::summary(&report)).replace('\r', ""));
}

#[test]
fn json_has_its_schema() {
    let mut report = report(Shape { seconds: 2, ramp_up: 1, ..GOOD });
    report.points[0].distributions.truncate(1);
    report.points[0].distributions[0].points.truncate(3);
    insta::assert_snapshot!(json::render(&report).unwrap());
}

#[test]
fn one_run_each_is_not_testable() {
    let a = report(GOOD);
    let mut b = report(Shape { seed: 2, errors: true, users: &[16], ..GOOD });
    b.run = 2;
    let found = compare::compare(&[&a], &[&b]).unwrap();
    assert_eq!(found.points[0].verdict, compare::Verdict::NotTestable);
    insta::assert_snapshot!(compare::text(&found));
}

#[test]
fn several_runs_get_an_interval_and_a_verdict() {
    let runs = |orders: u64, seed: u64| -> Vec<Report> {
        (0..6).map(|i| report(Shape { new_orders: orders, seed: seed + i, seconds: 5, ..GOOD })).collect()
    };
    let (a, b, c) = (runs(200, 1), runs(220, 50), runs(200, 90));
    let refs = |side: &'static Vec<Report>| side.iter().collect::<Vec<_>>();
    let (a, b, c) = (Box::leak(Box::new(a)), Box::leak(Box::new(b)), Box::leak(Box::new(c)));
    let numbered = |side: &mut Vec<Report>, from: i64| {
        side.iter_mut().zip(from..).for_each(|(report, number)| report.run = number);
    };
    numbered(a, 1);
    numbered(b, 11);
    numbered(c, 21);
    let (a, b, c) = (refs(a), refs(b), refs(c));
    let verdict = |x: &[&Report], y: &[&Report]| compare::compare(x, y).unwrap().points[0].verdict;
    assert_eq!(verdict(&a, &b), compare::Verdict::Higher);
    assert_eq!(verdict(&b, &a), compare::Verdict::Lower);
    assert_eq!(verdict(&a, &c), compare::Verdict::NoDifferenceShown);
    assert_eq!(verdict(&a[..3], &b), compare::Verdict::NotTestable);
    // The same run again adds nothing, and no run can stand on both sides.
    assert_eq!(verdict(&[a[0]; 6], &b), compare::Verdict::NotTestable);
    assert!(compare::compare(&a, &a[..1]).unwrap_err().to_string().contains("both sides"));
    let mut other = a[0].clone();
    other.run = 99;
    other.workload = "pgbench".into();
    assert!(compare::compare(&[a[0]], &[&other]).unwrap_err().to_string().contains("pgbench"));
}

#[test]
fn html_is_self_contained_and_escapes_everything() {
    let report = bad();
    let page = html::render(&report).unwrap();
    assert!(
        !page.contains("</script><script>alert") && !page.contains("<b>unexpectedly"),
        "text became markup"
    );
    assert!(page.contains("\\u003c/script>\\u003cscript>alert"));
    assert!(page.contains("&lt;not&gt; a TPC result &amp; never"));
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside} would load something");
    }
    assert!(page.contains("Not a valid TPROC-C run"));
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(data["points"][0]["t"].as_array().unwrap().len(), 23);
}
