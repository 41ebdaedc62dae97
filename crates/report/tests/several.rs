//! Several runs: pairs in blocks, the gate, and the history of a branch.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "several/history.rs"]
mod history;
#[path = "several/tenants.rs"]
mod tenants;

use std::collections::BTreeMap;

use common::open::{self, Arrivals};
use common::{GOOD, Shape, stored};
use kelvin_diagnose::{Better, KeyFigure};
use kelvin_report::RunReport;
use kelvin_report::compare::{self, Comparison, ComparisonVerdict, Run, Side};
use kelvin_report::gate::{self, GateResult, Limit};
use kelvin_report::text::Options;
use kelvin_stats::bootstrap::Resampler;
use kelvin_stats::dependence::autoregressive;
use kelvin_store::{RunId, Store};

const SHORT: Shape = Shape { seconds: 5, ramp_up: 0, new_orders: 20, ..GOOD };

fn template() -> RunReport {
    stored(&tempfile::tempdir().unwrap().path().join("k.db"), SHORT, None)
}

fn key(id: &str, better: Option<Better>, value: f64) -> KeyFigure {
    let name = format!("the <{id}>");
    KeyFigure { id: id.into(), name, unit: "ms".into(), better, value: Some(value), at_least: false }
}

/// A run with this NOPM and p99.
fn run(report: &RunReport, number: i64, nopm: f64, p99: f64, block: Option<(i64, u32)>) -> Run {
    let mut report = report.clone();
    report.run = number;
    report.points[0].throughput.headline_per_minute = Some(nopm);
    let figures = vec![
        key("nopm", Some(Better::Higher), nopm),
        key("p99", Some(Better::Lower), p99),
        key("host.run_queue", None, 1.0),
    ];
    Run { report, key: BTreeMap::from([(0, figures)]), block, origin: None }
}

/// Approximately normal noise around 1, with a standard deviation of `cv`.
struct Noise(u64);

impl Noise {
    fn next(&mut self, cv: f64) -> f64 {
        let mut draw = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        };
        // The sum of four is close enough to a normal distribution.
        let sum: f64 = (0..4).map(|_| draw() - 0.5).sum();
        1.0 + cv * sum * 3.0_f64.sqrt()
    }
}

fn compared(a: &[Run], b: &[Run]) -> Comparison {
    let side = |name: &str, runs| Side::new(name, runs, Vec::new());
    compare::compare_sides(&side("branch:main", a), &side("last", b), 0.01).unwrap()
}

#[test]
fn runs_of_one_block_are_paired_and_what_drifts_cancels_out() {
    let report = template();
    let mut noise = Noise(7);
    // The machine gets 5 % slower from block to block; B is 2 % faster.
    let drift = |block: u32| 10_000.0 * 0.95_f64.powi(block as i32);
    let side = |noise: &mut Noise, from: i64, factor: f64, blocked: bool| -> Vec<Run> {
        (0..6)
            .map(|block| {
                let nopm = drift(block) * factor * noise.next(0.002);
                run(&report, from + i64::from(block), nopm, 5.0, blocked.then_some((3, block)))
            })
            .collect()
    };
    let (a, b) = (side(&mut noise, 1, 1.0, true), side(&mut noise, 11, 1.02, true));
    let paired = compared(&a, &b);
    assert_eq!((paired.points[0].paired, paired.points[0].runs), (true, (6, 6)));
    assert_eq!(paired.points[0].verdict, ComparisonVerdict::Changed, "{}", paired.points[0].words);
    assert!(compare::text(&paired).contains("6 pairs of runs, one per block"));
    let (c, d) = (side(&mut noise, 1, 1.0, false), side(&mut noise, 11, 1.02, false));
    let apart = compared(&c, &d);
    assert_eq!((apart.points[0].paired, apart.points[0].verdict), (false, ComparisonVerdict::NoChange));
    assert!(apart.points[0].consecutive && !paired.points[0].consecutive);
    // A block that lost one of its runs is excluded and reported.
    let fewer = compared(&a[..5], &b);
    assert_eq!((fewer.points[0].paired, fewer.points[0].runs), (true, (5, 5)));
    assert!(
        fewer.warnings.iter().any(|w| w.contains("run 16 is left out: its block")),
        "{:?}",
        fewer.warnings
    );
    // Blocks of different groups are unrelated.
    let other: Vec<Run> =
        b.iter().cloned().map(|r| Run { block: r.block.map(|(_, b)| (4, b)), ..r }).collect();
    assert!(!compared(&a, &other).points[0].paired);
}

#[test]
fn a_side_that_was_imported_says_where_it_comes_from() {
    let report = template();
    let mut elsewhere = report.clone();
    for (of, name) in [(&report, "db0"), (&elsewhere, "db1")] {
        assert!(of.recipe.environment["client_host"]["name"].as_str().is_none_or(|known| known != name));
    }
    let mut here = report;
    here.recipe.environment["client_host"]["name"] = "db0".into();
    elsewhere.recipe.environment["client_host"]["name"] = "db1".into();
    let origin = |number| kelvin_store::Origin {
        host: Some("db1".into()),
        store: "kelvin.db".into(),
        number: RunId(number),
    };
    let a = [run(&here, 1, 10_000.0, 5.0, None)];
    let b = [(12, 2), (13, 3)].map(|(number, there)| Run {
        origin: Some(origin(there)),
        ..run(&elsewhere, number, 10_000.0, 5.0, None)
    });
    let warnings = compared(&a, &b).warnings;
    for words in [
        "the load came from different machines: A from db0, B from db1",
        "B was imported: runs 12, 13 are runs 2, 3 in the store kelvin.db on db1",
    ] {
        assert!(warnings.iter().any(|warning| warning == words), "{warnings:?}");
    }
    let same = compared(&a, &[run(&here, 2, 10_000.0, 5.0, None)]).warnings;
    assert!(!same.iter().any(|words| words.contains("machines") || words.contains("imported")), "{same:?}");
}

#[test]
fn a_change_that_does_not_matter_is_within_noise() {
    let report = template();
    let side = |from: i64, nopm: f64| -> Vec<Run> {
        (0..6).map(|i| run(&report, from + i, nopm + i as f64, 5.0 + i as f64 / 100.0, None)).collect()
    };
    let found = compared(&side(1, 10_000.0), &side(11, 10_050.0));
    assert_eq!(found.points[0].verdict, ComparisonVerdict::WithinNoise);
    assert!(found.points[0].words.contains("less than the 1 % that matters"), "{}", found.points[0].words);
    let secondary = &found.points[0].figures[1..];
    assert!(secondary.iter().all(|f| f.exploratory) && !found.points[0].figures[0].exploratory);
    // The p of key figures is not adjusted: the gate uses them one by one.
    assert!(found.points[0].key.iter().all(|f| !f.exploratory));
}

fn limit(measure: Option<&str>, most: f64) -> Limit {
    Limit { measure: measure.map(Into::into), most }
}

/// Base and candidate with these means and this noise.
fn gated(report: &RunReport, noise: &mut Noise, runs: usize, factors: (f64, f64), cv: f64) -> Comparison {
    let mut side = |from: i64, nopm: f64, p99: f64| -> Vec<Run> {
        (0..runs as i64)
            .map(|i| run(report, from + i, nopm * noise.next(cv), p99 * noise.next(cv), None))
            .collect()
    };
    let (a, b) = (side(1, 10_000.0, 5.0), side(101, 10_000.0 * factors.0, 5.0 * factors.1));
    compared(&a, &b)
}

#[test]
fn a_regression_fails_what_is_good_passes_and_too_few_runs_are_neither() {
    let report = template();
    let mut noise = Noise(11);
    let both = [limit(None, 0.03), limit(Some("P99"), 0.05)];
    let mut outcome = |runs, factors, cv, strict| {
        let judged = gate::judge(&gated(&report, &mut noise, runs, factors, cv), &both, strict).unwrap();
        let outcomes: Vec<GateResult> = judged.rows.iter().map(|row| row.outcome).collect();
        (outcomes, judged.fails(), judged.lacks_runs())
    };
    use GateResult::{Blind, NotTestable, Passed, Regressed, Undecided};
    assert_eq!(outcome(6, (1.0, 1.0), 0.003, true), (vec![Passed, Passed], false, false));
    assert_eq!(outcome(6, (0.9, 1.0), 0.003, false), (vec![Regressed, Passed], true, false));
    assert_eq!(outcome(6, (1.1, 1.2), 0.003, false), (vec![Passed, Regressed], true, false));
    assert_eq!(
        outcome(6, (0.5, 0.5), 0.003, false),
        (vec![Regressed, Passed], true, false),
        "less time is better"
    );
    assert_eq!(outcome(12, (0.97, 1.05), 0.008, false), (vec![Undecided, Undecided], false, false));
    assert_eq!(outcome(12, (0.97, 1.05), 0.008, true), (vec![Undecided, Undecided], true, false));
    assert_eq!(outcome(4, (0.97, 1.05), 0.02, true), (vec![Blind, Blind], true, false));
    assert_eq!(outcome(3, (0.5, 2.0), 0.003, true), (vec![NotTestable, NotTestable], false, true));
}

#[test]
fn a_good_candidate_is_failed_by_chance_in_at_most_one_of_forty() {
    let report = template();
    let mut noise = Noise(2026);
    let limits = [limit(Some("nopm"), 0.02), limit(Some("p99"), 0.02)];
    let (mut false_alarms, mut found) = (0, 0);
    for _ in 0..400 {
        // Exactly at the limit, with noise of the same size: the worst case of a candidate that may pass.
        let at_bound = gated(&report, &mut noise, 6, (0.98, 1.02), 0.02);
        false_alarms += u32::from(gate::judge(&at_bound, &limits, false).unwrap().fails());
        let worse = gated(&report, &mut noise, 6, (0.9, 1.0), 0.02);
        found += u32::from(gate::judge(&worse, &limits, false).unwrap().fails());
    }
    // 2.5 % of 400 are 10; three standard errors more are 19. Each of the two measures at the bound has half
    // the error.
    assert!(false_alarms <= 19, "{false_alarms} of 400");
    assert!(found >= 380, "a regression of 10 % was found in {found} of 400");
}

#[test]
fn trial_a6_a_gate_that_could_not_see_does_not_pass_silently() {
    let report = template();
    let found = gated(&report, &mut Noise(5), 6, (1.0, 1.0), 0.03);
    let judged = gate::judge(&found, &[limit(Some("nopm"), 0.03)], false).unwrap();
    let row = &judged.rows[0];
    assert_eq!((row.outcome, judged.outcome), (GateResult::Blind, GateResult::Blind));
    assert!(judged.is_blind() && !judged.fails() && !judged.lacks_runs());
    assert!(row.detectable.unwrap() > 0.03, "{row:?}");
    let text = gate::text(&judged, Options::default());
    let sentence = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        sentence.contains("gate not judged") && sentence.contains("would not have been detected"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(gate::markdown(&judged).starts_with("### ⚠️"), "{}", gate::markdown(&judged));
    assert!(gate::junit(&judged).contains("skipped=\"1\""));
    // If strict, it fails. An interval that rules the regression out passes, whatever the gate could detect.
    assert!(gate::judge(&found, &[limit(Some("nopm"), 0.03)], true).unwrap().fails());
    let wide = gate::judge(&found, &[limit(Some("nopm"), 0.2)], false).unwrap();
    assert_eq!(wide.outcome, GateResult::Passed);
}

/// Runs around this level, with a correlation of `phi` between neighbours.
fn following(
    report: &RunReport,
    random: &mut Resampler,
    phi: f64,
    from: i64,
    step: i64,
    level: f64,
) -> Vec<Run> {
    let logs = autoregressive(6, phi, random);
    let runs = logs.iter().zip(0_i64..).map(|(log, i)| {
        let nopm = level * (0.01 * log).exp();
        run(report, from + step * i, nopm, 5.0 * 1e4 / nopm, None)
    });
    runs.collect()
}

#[test]
fn trial_a4_groups_measured_in_one_go_do_not_change_by_a_level_that_lasts() {
    let report = template();
    let mut random = Resampler::new(44);
    let (mut changed, mut failed, mut undetermined) = (0, 0, None);
    for _ in 0..150 {
        let a = following(&report, &mut random, 0.5, 1, 1, 1e4);
        let b = following(&report, &mut random, 0.5, 101, 1, 1e4);
        let found = compared(&a, &b);
        assert!(found.points[0].consecutive);
        changed += u32::from(found.points[0].verdict == ComparisonVerdict::Changed);
        failed += u32::from(gate::judge(&found, &[limit(None, 0.03)], false).unwrap().fails());
        if found.points[0].verdict == ComparisonVerdict::Undetermined {
            undetermined = Some(found);
        }
    }
    // 5 % of 150 and two standard errors are 12; without the allowance for dependence they were 35 and 13.
    assert!(changed <= 12 && failed <= 4, "{changed} and {failed} of 150");
    let text = compare::text(&undetermined.unwrap());
    assert!(text.contains("verdict: undetermined: NOPM of B") && text.contains("kelvin ab"), "{text}");
    assert!(text.contains("the runs of a side are consecutive"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // If the sides alternate, lasting effects affect both.
    let a = following(&report, &mut random, 0.5, 1, 2, 1e4);
    let b = following(&report, &mut random, 0.5, 2, 2, 1e4);
    assert!(!compared(&a, &b).points[0].consecutive);
}

#[test]
fn trial_a6_no_change_says_which_one_is_ruled_out_and_which_would_be_seen() {
    let report = template();
    let words = |cv: f64| {
        let found = gated(&report, &mut Noise(9), 6, (1.0, 1.0), cv);
        let point = &found.points[0];
        assert_eq!(point.verdict, ComparisonVerdict::NoChange, "{}", point.words);
        assert!(point.ruled_out.unwrap() > 0.0 && point.detectable.unwrap() > 0.0);
        point.words.clone()
    };
    let open = words(0.01);
    assert!(open.contains("is ruled out") && open.contains("with a probability of 90 %"), "{open}");
    assert!(open.starts_with("no change in NOPM shown"), "{open}");
    let shut = words(0.001);
    assert!(shut.starts_with("no change: a change of 1 % or more in NOPM is ruled out"), "{shut}");
}

#[test]
fn trial_a9_several_loads_share_the_error_between_them() {
    // Two loads from one template: the second differs only in its users.
    let mut report = template();
    let mut second = report.points[0].clone();
    (second.point, second.users) = (1, 16);
    report.points.push(second);
    let mut noise = Noise(21);
    let mut side = |from: i64, factor: f64| -> Vec<Run> {
        (0..6)
            .map(|i| {
                let mut made = run(&report, from + 2 * i, 1e4 * noise.next(0.01), 5.0, None);
                made.report.points[1].throughput.headline_per_minute = Some(1e4 * factor * noise.next(0.01));
                made
            })
            .collect()
    };
    let (a, b) = (side(1, 1.0), side(2, 1.05));
    let both = compared(&a, &b);
    assert_eq!((both.points.len(), both.confidence), (2, 0.975));
    let one = |runs: &[Run]| -> Vec<Run> {
        let keep = |run: &Run| {
            let mut run = run.clone();
            run.report.points.truncate(1);
            run
        };
        runs.iter().map(keep).collect()
    };
    let alone = compared(&one(&a), &one(&b));
    let width = |found: &Comparison| {
        let (low, high) = found.points[0].figures[0].interval.unwrap();
        high / low
    };
    assert!(alone.confidence == 0.95 && width(&both) > width(&alone));
    // Holm: the larger of two p is unchanged or increases, the smaller doubles.
    let p = |found: &Comparison, point: usize| found.points[point].figures[0].p.unwrap();
    assert!(p(&both, 0) >= p(&alone, 0) && p(&both, 1) <= 4.0 / 924.0, "{} {}", p(&both, 0), p(&both, 1));
    assert!(compare::text(&both).contains("97.5 % interval"));
}

#[test]
fn measures_that_cannot_be_judged_are_refused() {
    let found = gated(&template(), &mut Noise(1), 4, (1.0, 1.0), 0.01);
    let refused =
        |measure: &str| gate::judge(&found, &[limit(Some(measure), 0.01)], false).unwrap_err().to_string();
    assert!(refused("p42").contains("they have nopm, p99, host.run_queue"), "{}", refused("p42"));
    assert!(refused("host.run_queue").contains("has no better direction"));
}

#[test]
fn junit_is_xml_and_markdown_a_table() {
    let found = {
        let mut found = gated(&template(), &mut Noise(3), 6, (0.9, 1.0), 0.005);
        found.name_a = "branch:a<b>&\"c\" | `x`".into();
        found.warnings.push("run 7 is left out: <b>it</b> & \u{1}more | @someone".into());
        found
    };
    let limits = [limit(Some("nopm"), 0.03), limit(Some("p99"), 0.05)];
    let judged = gate::judge(&found, &limits, false).unwrap();
    let xml = gate::junit(&judged);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let suites = document.root_element();
    assert_eq!((suites.tag_name().name(), suites.attribute("failures")), ("testsuites", Some("1")));
    let cases: Vec<_> = document.descendants().filter(|n| n.has_tag_name("testcase")).collect();
    assert_eq!(cases.len(), 2);
    assert_eq!(cases[0].attribute("name"), Some("nopm at 8 users"));
    let failure = cases[0].children().find(|n| n.has_tag_name("failure")).unwrap();
    assert!(failure.attribute("message").unwrap().contains("the <nopm>: -"), "{xml}");
    let base = document.descendants().find(|n| n.attribute("name") == Some("base")).unwrap();
    assert_eq!(base.attribute("value"), Some("branch:a<b>&\"c\" | `x`"));
    let markdown = gate::markdown(&judged);
    let rows: Vec<&str> = markdown.lines().filter(|l| l.starts_with("| ")).collect();
    assert_eq!(rows.len(), 3, "{markdown}");
    for row in rows {
        assert_eq!(row.replace("\\|", "").matches('|').count(), 9, "{row}");
    }
    assert!(!markdown.contains("<b>") && markdown.contains("\\@someone"), "{markdown}");
    insta::assert_snapshot!(format!("{}\n{markdown}\n{xml}", gate::text(&judged, Options::default())));
    // Skipped: neither passed nor failed.
    let few = gated(&template(), &mut Noise(3), 3, (1.0, 1.0), 0.005);
    let xml = gate::junit(&gate::judge(&few, &limits, false).unwrap());
    let document = roxmltree::Document::parse(&xml).unwrap();
    assert_eq!(document.root_element().attribute("skipped"), Some("2"));
    assert_eq!(document.descendants().filter(|n| n.has_tag_name("skipped")).count(), 2);
}

#[test]
fn other_differences_are_red_and_findings_of_each_side_are_listed() {
    let mut report = template();
    report.findings = common::observed::judged(template()).findings;
    let a = [run(&report, 1, 10_000.0, 5.0, None), run(&template(), 2, 10_010.0, 5.0, None)];
    let mut other = template();
    other.recipe.spec_toml = other.recipe.spec_toml.replace('8', "16").replace("5 s", "60 s");
    let b = [run(&other, 3, 12_000.0, 5.0, None)];
    let found = compared(&a, &b);
    let plain = compare::render(&found, Options::default());
    let coloured = compare::render(&found, Options { colour: true, all: false });
    assert_eq!(found.own[0].runs, [1]);
    assert!(plain.contains("red    A, 1 of 2 runs (1):"), "{plain}");
    let names: Vec<&str> = found.differences.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["spec run.duration", "spec run.users"]);
    assert!(coloured.contains("\x1b[1;31m  spec run.users\x1b[0m"), "{coloured}");
    assert!(!plain.contains('\x1b') && plain.lines().all(|l| l.chars().count() <= 80), "{plain}");
    let page = compare::html(&found).unwrap();
    assert!(page.contains("<tr class=\"matters\"><th scope=\"row\">spec run.users"));
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside} would load something");
    }
}

/// A run with these arrivals.
fn open_loop(store: &Store, arrivals: &Arrivals) -> Run {
    Run::load(store, open::stored(store, arrivals), &[]).unwrap()
}

fn key_of<'a>(run: &'a Run, id: &str) -> &'a KeyFigure {
    run.key[&0].iter().find(|figure| figure.id == id).unwrap()
}

#[test]
fn trial_a1_the_report_and_the_key_figures_have_the_same_percentile_whatever_had_no_answer() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path().join("k.db")).unwrap();
    for (waiting, known) in [(0, true), (1, true), (9, true), (60, false)] {
        let run = open_loop(&store, &Arrivals::rising(1_276, waiting));
        let seen = run.report.points[0].client_latency();
        for (id, in_report) in
            [("mean", seen.mean_us), ("p50", seen.p50_us), ("p95", seen.p95_us), ("p99", seen.p99_us)]
        {
            let (key, us) = (key_of(&run, id).bounded().unwrap(), in_report.unwrap());
            assert!((key.value - us.value / 1e3).abs() < 1e-9 && key.at_least == us.at_least, "{id}");
        }
        let p99 = seen.p99_us.unwrap();
        // For instance the 1,265th of 1,277: 99 % of all; the unanswered come last.
        let rank = (0.99 * (1_276 + waiting) as f64).ceil().min(1_276.0);
        assert!((p99.value / (100.0 * rank) - 1.0).abs() < 0.002, "{waiting} waiting: {p99:?}");
        assert_eq!(!p99.at_least, known, "{waiting} waiting");
        assert_eq!(seen.at_least.contains(&"max_us"), waiting > 0);
    }
}

#[test]
fn trial_a7_the_row_of_all_counts_the_arrivals_that_its_rows_count() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path().join("k.db")).unwrap();
    let times = |n: u64| (1..=n).map(|i| 500 + i).collect::<Vec<u64>>();
    let ended = vec![("read", times(3_000), 0), ("write", times(1_657), 0)];
    // 998 more of each type ended in the window but were scheduled before it.
    let run = open_loop(&store, &Arrivals { ended, left_over: 998, ..Arrivals::rising(0, 0) });
    let point = &run.report.points[0];
    let sum: u64 = point.response.iter().map(kelvin_report::LatencyRow::count).sum();
    assert_eq!((sum, point.response_all.as_ref().unwrap().count()), (4_657, 4_657));
    assert_eq!(point.latency_all.count(), 4_657 + 2 * 998, "service times are of what ended in the window");
}

#[test]
fn trial_a8_an_arrival_that_failed_counts_as_longest_in_its_type_and_in_all() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path().join("k.db")).unwrap();
    let times = |n: u64| (1..=n).map(|i| i * 100).collect::<Vec<u64>>();
    // 2 % of the writes failed: 1 % of all.
    let ended = vec![("read", times(2_000), 0), ("write", times(1_960), 40)];
    let run = open_loop(&store, &Arrivals { ended, ..Arrivals::rising(0, 0) });
    let point = &run.report.points[0];
    let row = |kind: &str| point.response.iter().find(|row| row.kind == kind).unwrap();
    assert!(row("read").at_least.is_empty() && row("read").unanswered_percent == 0.0);
    let write = row("write");
    let p99 = write.p99_us.unwrap();
    assert!(p99.at_least && (p99.value / 196_000.0 - 1.0).abs() < 0.002, "{write:?}");
    assert_eq!((write.failed, write.unanswered_percent), (40, 2.0));
    let all = point.response_all.as_ref().unwrap();
    assert_eq!((all.failed, all.unanswered_percent), (40, 1.0));
    // The 3,960th of 4,000: the longest one that was answered.
    assert!(!all.p99_us.unwrap().at_least && all.max_us.unwrap().at_least, "{all:?}");
    assert!(!key_of(&run, "p99").at_least);
    let text = kelvin_report::text::render(&run.report, Options::default());
    assert!(text.contains("≥ 196."), "{text}");
    assert!(text.replace('\n', " ").contains("count as longer than all others"), "{text}");
}
