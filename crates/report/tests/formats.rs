//! Every format of the same runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "formats/sources.rs"]
mod sources;

use common::pgbench::{self, Plan};
use common::{GOOD, Shape, stored};
use kelvin_report::{RunReport, compare, csv, html, json, text};

fn report(shape: Shape) -> RunReport {
    stored(&tempfile::tempdir().unwrap().path().join("k.db"), shape, Some("base"))
}

fn bad() -> RunReport {
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
fn every_run_ends_on_one_screen() {
    let users = [1, 2, 4, 8];
    let search =
        Plan { concluded: vec![pgbench::found()], ..Plan::rates(8, &[1000.0, 2000.0, 1500.0, 1750.0]) };
    let law = Plan { concluded: vec![pgbench::fitted(&users)], ..Plan::closed(&users) };
    let runs = [
        ("good", report(GOOD)),
        ("void", bad()),
        ("killed", report(Shape { finished: false, ..GOOD })),
        ("points", report(Shape { users: &[1, 2, 4], seconds: 5, ..GOOD })),
        ("open loop", of(&Plan::rates(8, &[2800.0]))),
        ("search", of(&search)),
        ("law", of(&law)),
    ];
    let mut seen = String::new();
    for (name, report) in &runs {
        let shown = text::brief(report, text::Options::default());
        assert!(shown.lines().count() <= 20, "{name}\n{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{name}\n{shown}");
        assert!(!shown.contains('\x1b'), "{name}");
        seen.push_str(&format!("## {name}\n{shown}\n"));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn markdown_and_pgbenchs_lines() {
    let report = of(&Plan::closed(&[4]));
    insta::assert_snapshot!(format!(
        "{}\n{}",
        kelvin_report::markdown::render(&report, false),
        kelvin_report::pgbench::render(&report)
    ));
}

fn of(plan: &Plan) -> RunReport {
    pgbench::stored(&tempfile::tempdir().unwrap().path().join("k.db"), plan)
}

fn plain(report: &RunReport) -> String {
    text::render(report, text::Options::default())
}

#[test]
fn text_of_an_open_loop() {
    insta::assert_snapshot!(plain(&of(&Plan::rates(8, &[1200.0]))));
}

#[test]
fn text_of_rates_up_and_down_past_what_the_server_can_do() {
    insta::assert_snapshot!(plain(&of(&Plan::rates(8, &[900.0, 1800.0, 2700.0, 1800.0, 900.0]))));
}

#[test]
fn text_of_a_sweep_with_its_model() {
    let users = [1, 2, 4, 8];
    insta::assert_snapshot!(plain(&of(&Plan {
        concluded: vec![pgbench::fitted(&users)],
        ..Plan::closed(&users)
    })));
}

#[test]
fn runs_that_differ_in_their_users_are_shown_as_a_sweep() {
    let users = [1, 2, 4, 8];
    let runs = || -> Vec<RunReport> {
        let run = |(id, users)| {
            let mut report = of(&Plan::closed(&[users]));
            report.run = id;
            report
        };
        (3..).zip(users).map(run).collect()
    };
    let law = of(&Plan { concluded: vec![pgbench::fitted(&users)], ..Plan::closed(&users) }).scalability;
    let fitted = text::sweep(runs(), Ok(law.unwrap()), text::Options::default());
    insta::assert_snapshot!(fitted);
    let table = fitted.split("\nUniversal").next().unwrap();
    let not_fitted = text::sweep(runs(), Err("two points are too few".into()), text::Options::default());
    assert_eq!(not_fitted, format!("{table}two points are too few\n"));
}

#[test]
fn text_of_a_search_for_the_highest_rate() {
    let plan =
        Plan { concluded: vec![pgbench::found()], ..Plan::rates(8, &[1000.0, 2000.0, 1500.0, 1750.0]) };
    insta::assert_snapshot!(plain(&of(&plan)));
}

#[test]
fn statements_as_text_and_csv() {
    let report = of(&Plan { timed: true, ..Plan::closed(&[4]) });
    insta::assert_snapshot!(format!("{}\n{}", plain(&report), csv::statements(&report)).replace('\r', ""));
}

#[test]
fn csv_of_an_open_loop() {
    let report = of(&Plan { seconds: 2, ..Plan::rates(8, &[2700.0]) });
    insta::assert_snapshot!(format!("{}\n{}", csv::series(&report), csv::summary(&report)).replace('\r', ""));
}

#[test]
fn a_transaction_counts_once_whatever_else_is_kept_of_it() {
    let closed = of(&Plan::closed(&[4]));
    let timed = of(&Plan { timed: true, ..Plan::closed(&[4]) });
    let open = of(&Plan { timed: true, ..Plan::rates(8, &[500.0]) });
    for report in [&closed, &timed, &open] {
        let p = &report.points[0];
        assert!(report.valid, "{:?}", report.judgement);
        assert_eq!(p.latency.len(), 1);
        assert_eq!(report.kinds.len(), 1);
        assert_eq!(p.latency_all.count(), p.throughput.headline_count);
        assert_eq!(p.throughput.transactions_per_second, p.throughput.headline_per_second);
        assert_eq!(
            p.throughput.headline_per_minute.unwrap(),
            p.throughput.headline_per_second.unwrap() * 60.0
        );
        let counted: u64 = p
            .seconds
            .iter()
            .filter(|s| s.part == kelvin_measure::event::LoadPart::Measured)
            .map(|s| s.good[0])
            .sum();
        assert_eq!((counted, p.seconds[0].good.len()), (p.throughput.headline_count, 1));
    }
    assert!(closed.points[0].response.is_empty() && closed.points[0].statements.is_empty());
    let p = &open.points[0];
    let p50 = |rows: &[kelvin_report::LatencyRow]| rows[0].p50_us.unwrap().value;
    assert!(p50(&p.response) > p50(&p.latency), "a response time holds the wait");
    assert_eq!(p.response[0].count(), p.throughput.headline_count);
    let group = &p.statements[0];
    assert_eq!(group.statements.len(), 5);
    let shares: f64 = group.statements.iter().map(|s| s.share_percent.unwrap()).sum();
    assert!(
        (shares - group.sum_percent.unwrap()).abs() < 1e-9 && shares > 90.0 && shares < 100.0,
        "{shares}"
    );
}

#[test]
fn what_was_refused_is_never_silent() {
    let report = of(&Plan::rates(8, &[2800.0]));
    let schedule = report.points[0].schedule.as_ref().unwrap();
    assert!(schedule.overloaded && schedule.refused > 0 && schedule.achieved_ratio.unwrap() < 0.9);
    for page in [plain(&report).replace('\n', " "), html::render(&report).unwrap()] {
        assert!(page.contains("atabase did not keep up"), "{page}");
    }
    let json: serde_json::Value = serde_json::from_str(&json::render(&report).unwrap()).unwrap();
    let point = &json["points"][0];
    assert_eq!(point["schedule"]["refused"], schedule.refused);
    assert!(point["seconds"][3]["open"]["waiting"].as_u64().unwrap() > 0);
    // About 40 % were refused or waited: the median is known, p95 is only a lower bound.
    let all = &point["response_all"];
    assert!(all["p50_us"].is_number() && all["unanswered_percent"].as_f64().unwrap() > 10.0, "{all}");
    let bounds = serde_json::json!(["mean_us", "p95_us", "p99_us", "p999_us", "max_us"]);
    assert_eq!((&all["at_least"], &point["response"][0]["at_least"]), (&bounds, &bounds));
    assert_eq!(all["p99_us"], all["max_us"], "it is not below the longest that was answered");
    assert_eq!(
        point["latency_all"]["at_least"],
        serde_json::json!([]),
        "service times are of what was served"
    );
    for page in [plain(&report).replace('\n', " "), html::render(&report).unwrap()] {
        assert!(page.contains("≥ ") && page.contains("so many arrivals were not answered"), "{page}");
    }
    let summary = csv::summary(&report);
    let row = summary.lines().find(|l| l.contains(",response,")).unwrap();
    assert!(row.ends_with(",mean_us p95_us p99_us p999_us max_us"), "{row}");
    let mut other = report.clone();
    other.run = 99;
    let found = compare::compare(&[&report], &[&other]).unwrap();
    let p99 = &found.points[0].figures[0];
    assert_eq!((&p99.a_at_least[..], &p99.b_at_least[..]), (&[true][..], &[true][..]), "{p99:?}");
    assert!(point["schedule"]["shortfall"].as_str().unwrap().contains("refused"));
}

#[test]
fn open_loops_are_judged_by_their_response_time_and_not_against_closed_ones() {
    let (mut a, mut b) = (of(&Plan::rates(8, &[600.0, 1200.0])), of(&Plan::rates(8, &[600.0, 1500.0])));
    (a.run, b.run) = (1, 2);
    let found = compare::compare(&[&a], &[&b]).unwrap();
    assert_eq!(found.points.len(), 1, "only the rate that both have");
    assert_eq!(found.points[0].asked_per_second, (Some(600.0), Some(600.0)));
    assert_eq!(found.points[0].figures[0].name, "response p99");
    insta::assert_snapshot!(compare::text(&found));
    let mut closed = of(&Plan::closed(&[8]));
    closed.run = 3;
    assert!(compare::compare(&[&a], &[&closed]).unwrap_err().to_string().contains("a closed loop"));
}

#[test]
fn the_legs_of_a_mirrored_ramp_are_compared_each_with_its_own() {
    let rates = [600.0, 1500.0, 2000.0, 1500.0, 600.0];
    let (mut a, mut b) = (of(&Plan::rates(8, &rates)), of(&Plan::rates(8, &rates)));
    (a.run, b.run) = (1, 2);
    let found = compare::compare(&[&a], &[&b]).unwrap();
    let named: Vec<_> =
        found.points.iter().map(|p| (p.asked_per_second.0.unwrap() as u32, p.occurrence)).collect();
    assert_eq!(named, [(600, Some(1)), (600, Some(2)), (1500, Some(1)), (1500, Some(2)), (2000, None)]);
    for (compared, point) in found.points.iter().zip([0, 4, 1, 3, 2]) {
        let (shown, own) =
            (compared.figures[1].a.unwrap(), a.points[point].throughput.headline_per_second.unwrap());
        assert!((shown / own - 1.0).abs() < 1e-9, "{shown} {own}: not a mean of both legs");
    }
    let shown = compare::text(&found);
    assert!(
        shown.contains("\n1,500/s requested, 2nd ") && shown.contains("\n2,000/s requested  "),
        "{shown}"
    );
    // If the sides have no users in common, the rate alone is the load.
    let mut c = of(&Plan::rates(16, &[600.0, 2000.0]));
    c.run = 3;
    let found = compare::compare(&[&a], &[&c]).unwrap();
    assert_eq!(found.points.iter().map(|p| p.users).collect::<Vec<_>>(), [(8, 16), (8, 16)]);
    // The first leg of a mirrored ramp is compared with a ramp that only increases.
    let mut up = of(&Plan::rates(8, &[600.0, 1500.0]));
    up.run = 4;
    let found = compare::compare(&[&a], &[&up]).unwrap();
    assert_eq!(found.points.iter().map(|p| p.occurrence).collect::<Vec<_>>(), [Some(1), Some(1)]);
}

#[test]
fn json_has_what_a_sweep_and_a_search_found() {
    let users = [1, 2, 4];
    let sweep = of(&Plan { concluded: vec![pgbench::fitted(&users)], ..Plan::closed(&users) });
    let json: serde_json::Value = serde_json::from_str(&json::render(&sweep).unwrap()).unwrap();
    assert_eq!((&json["headline_per"], &json["scalability"]["peak_users"]), (&"second".into(), &25.0.into()));
    let search = of(&Plan { concluded: vec![pgbench::found()], ..Plan::rates(8, &[1000.0]) });
    let json: serde_json::Value = serde_json::from_str(&json::render(&search).unwrap()).unwrap();
    assert_eq!(json["maximum_rate"]["trials"][1]["holds"], false);
    let plan =
        Plan { concluded: vec![pgbench::found()], ..Plan::rates(8, &[1000.0, 2000.0, 1500.0, 1750.0]) };
    assert_eq!(of(&plan).best().unwrap().asked_per_second(), Some(1500.0), "not the highest, which failed");
}

#[test]
fn the_headline_of_a_search_is_the_rate_found_and_not_one_that_held_once() {
    let kelvin_measure::Event::MaximumRate(mut found) = pgbench::found() else { unreachable!() };
    // 1,750 failed, but holds when repeated: it is unstable, and 1,500 remains the result.
    let again = kelvin_measure::event::RateTrial { point: 4, holds: true, ..found.trials[3].clone() };
    found.trials.push(again);
    let report = of(&Plan {
        concluded: vec![kelvin_measure::Event::MaximumRate(found)],
        ..Plan::rates(8, &[1000.0, 2000.0, 1500.0, 1750.0, 1750.0])
    });
    assert_eq!(report.best().unwrap().asked_per_second(), Some(1500.0));
    let page = html::render(&report).unwrap();
    let card = page.split("tile big").nth(1).unwrap().split("</div>").next().unwrap();
    assert!(card.contains("at the highest sustained rate"), "{card}");
    let shown: f64 =
        card.split("value\">").nth(1).unwrap().split('<').next().unwrap().replace(',', "").parse().unwrap();
    assert!((shown - 1500.0).abs() < 20.0, "{card}");
}

#[test]
fn text_keeps_to_80_columns_and_colour_adds_nothing_but_colour() {
    let users = [1, 2, 4];
    let mut reports = vec![
        of(&Plan { timed: true, ..Plan::rates(8, &[1200.0, 2700.0]) }),
        of(&Plan { concluded: vec![pgbench::fitted(&users), pgbench::found()], ..Plan::closed(&users) }),
    ];
    for shape in [GOOD, Shape { errors: true, valid: false, new_orders: 900, ..GOOD }] {
        reports.push(report(shape));
    }
    for report in reports {
        let plain = text::render(&report, text::Options::default());
        for line in plain.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let coloured = text::render(&report, text::Options { colour: true, ..Default::default() });
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
fn a_series_shows_its_best_point_and_says_where_the_others_are() {
    let steps: Vec<f64> = (1..=13).map(|i| f64::from(i) * 150.0).collect();
    let series = plain(&of(&Plan::rates(8, &steps)));
    assert!(series.lines().count() < 80, "{series}");
    assert_eq!(series.matches("schedule: ").count(), 1);
    assert!(series.contains("the best point, 1,950/s requested from 8 virtual users:"), "{series}");
    assert!(series.contains("details of the 12 other points: see the HTML and JSON reports"), "{series}");
    assert!(
        series.contains("open loop") && series.contains("response time: from the transaction's"),
        "{series}"
    );
    let few = plain(&of(&Plan::rates(8, &steps[..3])));
    assert_eq!((few.matches("schedule: ").count(), few.matches("response time: from").count()), (3, 1));
    assert!(few.contains("\n300/s requested from 8 virtual users:\n"), "{few}");
    // The table of an overloaded point shows the waiting arrivals.
    let table = plain(&of(&Plan::rates(8, &[900.0, 2800.0])));
    let row = table.lines().find(|l| l.contains("  2,800  ")).unwrap();
    assert_eq!(row.split_whitespace().rev().nth(1), Some("400"), "{row}");
}

#[test]
fn trial_a9_a_short_window_and_a_generator_that_never_waited_say_so() {
    let short = of(&Plan { seconds: 4, ..Plan::closed(&[4]) });
    assert!(short.points[0].within_run.is_none());
    for page in [plain(&short), html::render(&short).unwrap()] {
        assert!(page.to_lowercase().contains("window too short to estimate the precision"), "{page}");
        assert!(
            page.replace('\n', " ").contains("publish up to a second late and which include all its work"),
            "{page}"
        );
    }
    // Fifteen seconds are too few to estimate their dependence.
    let few = of(&Plan { seconds: 15, ..Plan::closed(&[4]) });
    assert!(few.points[0].within_run.is_none() && plain(&few).contains("too short"));
    let long = of(&Plan { seconds: 20, ..Plan::closed(&[4]) });
    assert!(long.points[0].within_run.is_some() && !plain(&long).contains("too short"));
    // Nothing started, so no user was known to be idle.
    let failing = plain(&of(&Plan { failing: true, ..Plan::rates(8, &[500.0]) })).replace('\n', " ");
    assert!(failing.contains("lateness: no user was idle") && !failing.contains("over 0 arrivals"));
    let mut noted = short.clone();
    noted.points[0].timeline = vec![(1, "user 3 lost its connection".into())];
    assert!(html::render(&noted).unwrap().contains(">1 timeline note<"));
}

#[test]
fn the_axis_of_time_is_that_of_the_window() {
    let page = html::render(&of(&Plan { seconds: 1, ..Plan::closed(&[4]) })).unwrap();
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        (&data["points"][0]["end"], &data["points"][0]["t"]),
        (&1.0.into(), &serde_json::json!([-2, -1, 0]))
    );
}

#[test]
fn a_run_in_which_nothing_commits_has_its_report() {
    let plans = [
        Plan { failing: true, ..Plan::closed(&[4]) },
        Plan { failing: true, seconds: 0, ..Plan::closed(&[4]) },
        Plan { failing: true, timed: true, ..Plan::closed(&[1, 2, 4]) },
        Plan { failing: true, seconds: 1, ..Plan::rates(8, &[1000.0]) },
        Plan { failing: true, ..Plan::rates(8, &[0.0, 1000.0, 2800.0, 1000.0]) },
    ];
    for plan in plans {
        let report = of(&plan);
        assert_eq!(report.best().unwrap().throughput.headline_count, 0);
        let page = html::render(&report).unwrap();
        assert!(page.contains("division by zero") && !page.contains("NaN"), "{page}");
        let shown = plain(&report);
        assert!(shown.contains("22012") && !shown.contains("NaN") && !shown.contains("inf"), "{shown}");
        let json: serde_json::Value = serde_json::from_str(&json::render(&report).unwrap()).unwrap();
        assert_eq!(json["points"][0]["headline_count"], 0);
        assert!(!csv::series(&report).contains("NaN") && !csv::summary(&report).contains("NaN"));
        assert!(!csv::statements(&report).contains("NaN"));
        let mut other = report.clone();
        other.run = 99;
        // No transaction was committed, so there is no ratio; the message must say so.
        let refused = compare::compare(&[&report], &[&other]).unwrap_err().to_string();
        assert!(refused.contains("no transaction committed"), "{refused}");
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
    assert_eq!(found.points[0].verdict, compare::ComparisonVerdict::NotTestable);
    insta::assert_snapshot!(compare::text(&found));
}

#[test]
fn several_runs_get_an_interval_and_a_verdict() {
    let runs = |orders: u64, seed: u64| -> Vec<RunReport> {
        (0..6).map(|i| report(Shape { new_orders: orders, seed: seed + i, seconds: 5, ..GOOD })).collect()
    };
    let (a, b, c) = (runs(200, 1), runs(220, 50), runs(200, 90));
    let refs = |side: &'static Vec<RunReport>| side.iter().collect::<Vec<_>>();
    let (a, b, c) = (Box::leak(Box::new(a)), Box::leak(Box::new(b)), Box::leak(Box::new(c)));
    let numbered = |side: &mut Vec<RunReport>, from: i64| {
        side.iter_mut().zip(from..).for_each(|(report, number)| report.run = number);
    };
    numbered(a, 1);
    numbered(b, 11);
    numbered(c, 21);
    let (a, b, c) = (refs(a), refs(b), refs(c));
    let verdict = |x: &[&RunReport], y: &[&RunReport]| compare::compare(x, y).unwrap().points[0].verdict;
    assert_eq!(verdict(&a, &b), compare::ComparisonVerdict::Changed);
    assert_eq!(verdict(&b, &a), compare::ComparisonVerdict::Changed);
    assert_eq!(verdict(&a, &c), compare::ComparisonVerdict::NoChange);
    let shown = |x: &[&RunReport], y: &[&RunReport]| compare::text(&compare::compare(x, y).unwrap());
    let (better, worse) =
        (shown(&a, &b).replace("\n         ", " "), shown(&b, &a).replace("\n         ", " "));
    assert!(
        better.contains("changed, for the better: NOPM of B is") && better.contains("higher"),
        "{better}"
    );
    assert!(worse.contains("changed, for the worse: NOPM of B is") && worse.contains("lower"), "{worse}");
    insta::assert_snapshot!(shown(&a, &b));
    assert_eq!(verdict(&a[..3], &b), compare::ComparisonVerdict::NotTestable);
    // The same run twice is not a second observation, and no run can be on both sides.
    assert_eq!(verdict(&[a[0]; 6], &b), compare::ComparisonVerdict::NotTestable);
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
    assert!(page.contains("<strong>Void.</strong>"));
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(data["points"][0]["t"].as_array().unwrap().len(), 23);
}
