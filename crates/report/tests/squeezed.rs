//! The results of a squeeze, findings that several points have in common, and both together.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::observed::judged;
use common::{GOOD, Shape};
use kelvin_measure::event::{Elasticity, Squeeze, SqueezeSlice};
use kelvin_measure::observation::UnavailableMetrics;
use kelvin_report::{RunReport, Severity, html, json, text};
use kelvin_store::Judgement;

fn seen(shape: Shape) -> RunReport {
    common::observed(&tempfile::tempdir().unwrap().path().join("k.db"), shape, None)
}

fn plain(report: &RunReport) -> String {
    text::render(report, text::Options::default())
}

fn squeezed() -> RunReport {
    let one = |resource: &str, means: &str, cut, elasticity: f64, verdict: &str| Elasticity {
        resource: resource.into(),
        how: "25 % off the 3.62 CPUs that others left to it; it used 3.55 of them".into(),
        means: means.into(),
        cut,
        pairs: 10,
        elasticity,
        low: elasticity - 0.11,
        high: elasticity + 0.11,
        throughput_ratio: 0.8_f64.powf(elasticity),
        verdict: verdict.into(),
    };
    let slice = |from, resource: Option<&str>| SqueezeSlice {
        from,
        to: from + 3,
        resource: resource.map(str::to_owned),
        bound: resource.map(|_| "3.00 CPUs".into()),
        rate: 812.5,
    };
    let mut report = seen(GOOD);
    report.squeeze = Some(Squeeze {
        cut: 0.2,
        settle: 1,
        resources: vec![
            one("server CPU", "CPU affinity", Some(0.25), 0.96, "limits the throughput"),
            one("server I/O", "", None, -0.02, "does not limit the throughput"),
        ],
        not_cut: vec![UnavailableMetrics {
            what: "client CPU".into(),
            why: "no control groups <are> mounted here".into(),
        }],
        slices: vec![slice(6, None), slice(9, Some("server CPU"))],
    });
    report
}

#[test]
fn a_squeeze_is_a_table_in_every_format() {
    let report = squeezed();
    let shown = plain(&report);
    let from = shown.find("Squeeze:").unwrap();
    let length = shown[from..].find("\n\n").unwrap();
    insta::assert_snapshot!("squeeze", &shown[from..from + length]);
    let page = html::render(&report).unwrap();
    for words in [
        "<h2>Squeeze</h2>",
        "<td>0.96</td><td>0.85 to 1.07</td>",
        "<td class=\"l\">does not limit the throughput</td>",
        "by CPU affinity: 25 % off",
        "Client CPU was not reduced: no control groups &lt;are&gt; mounted here",
        "<summary>2 slices</summary>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let json: serde_json::Value = serde_json::from_str(&json::render(&report).unwrap()).unwrap();
    let one = &json["squeeze"]["resources"][0];
    assert_eq!((&one["elasticity"], &one["means"]), (&0.96.into(), &"CPU affinity".into()));
    assert!(!html::render(&seen(GOOD)).unwrap().contains("<h2>Squeeze</h2>"));
}

#[test]
fn what_points_have_in_common_is_said_once() {
    let mut report = judged(seen(Shape { users: &[1, 2, 4, 8], seconds: 10, ..GOOD }));
    let first = report.findings[1].clone();
    for point in 1..4 {
        let mut again = first.clone();
        (again.point, again.title) = (Some(point), format!("autovacuum worked on point {point}"));
        report.findings.push(again);
    }
    report.findings.sort_by_key(|finding| finding.severity);
    let (best, shown) = (report.best().unwrap().point, plain(&report));
    assert_eq!(shown.matches("amber ").count(), 1, "{shown}");
    let own = if best == 0 {
        "autovacuum worked on public".into()
    } else {
        format!("autovacuum worked on point {best}")
    };
    assert!(shown.contains(&own) && shown.contains("likewise"), "{shown}");
    assert_eq!(shown.matches("red  ").count(), 1, "a finding of one point has that point: {shown}");
    let page = html::render(&report).unwrap();
    let few = "one of all points, and one below the run's precision among the notes";
    assert_eq!(page.matches("<article class=\"finding amber\"").count(), 2, "{few}");
    let json: serde_json::Value = serde_json::from_str(&json::render(&report).unwrap()).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 7, "programs get them all");
}

#[test]
fn all_is_everything() {
    let mut report = judged(seen(GOOD));
    report.points[0].timeline = (0..25).map(|second| (second, format!("note {second} of them"))).collect();
    let shown = plain(&report);
    assert!(shown.contains("  and 15 more: kelvin show --all\n") && !shown.contains("huge pages"), "{shown}");
    let all = text::render(&report, text::Options { all: true, ..Default::default() });
    assert!(all.contains("note 24 of them") && all.contains("note   huge pages are off"), "{all}");
    assert!(!all.contains("--all"), "{all}");
}

#[test]
fn no_green_tile_stands_beside_a_void_verdict() {
    let mut report = judged(seen(GOOD));
    assert!(report.valid, "{:?}", report.judgement);
    let good = "<div class=\"tile good\"><span class=\"value\">counted</span>";
    assert!(html::render(&report).unwrap().contains(good));
    report.judgement = Judgement::from_reasons(vec!["it was not steady".into()]);
    report.valid = false;
    let page = html::render(&report).unwrap();
    assert!(!page.contains("tile good") && page.contains("<span class=\"value\">void</span>"));
    assert!(report.findings.iter().any(|finding| finding.severity == Severity::Red));
}
