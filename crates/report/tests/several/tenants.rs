//! Tenants of scenarios in lists, comparisons, gates and histories.

use kelvin_report::compare::{self, Comparison, ComparisonVerdict, Run, Side};
use kelvin_report::gate::{self, GateResult, Limit};
use kelvin_report::history;
use kelvin_store::{RunId, Store};

use crate::common::scenario::stored_with;

/// Runs with this many more transactions per second of the first tenant; the second tenant has the name
/// `dss`.
fn runs(path: &std::path::Path, more: [u64; 4], dss: &str) -> Vec<Run> {
    let ids = more.map(|more| RunId(stored_with(path, more, dss).run));
    let store = Store::open(path).unwrap();
    ids.map(|id| Run::load(&store, id, &[]).unwrap()).into()
}

fn compared(a: &[Run], b: &[Run]) -> Comparison {
    compare::compare_sides(&Side::new("a", a, Vec::new()), &Side::new("b", b, Vec::new()), 0.01).unwrap()
}

#[test]
fn tenants_are_compared_with_those_of_the_same_name_and_never_added_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("k.db");
    let (a, b) = (runs(&path, [0, 2, 1, 3], "dss"), runs(&path, [31, 30, 33, 32], "dss"));
    let found = compared(&a, &b);
    let tenants: Vec<_> = found.points.iter().map(|point| point.tenant.as_deref().unwrap()).collect();
    assert_eq!((tenants, found.headline.as_str()), (vec!["dss", "oltp"], "throughput"));
    let [dss, oltp] = found.points.as_slice() else { panic!("{found:?}") };
    // For the second: 4,000 per second, in the 20 s in which its load was on.
    let (value, verdict) = (dss.figures[0].a.unwrap(), dss.verdict);
    assert!((value - 4000.0).abs() < 1e-6 && verdict != ComparisonVerdict::Changed, "{dss:?}");
    assert_eq!((oltp.verdict, oltp.users), (ComparisonVerdict::Changed, (4, 4)), "{oltp:?}");
    let ratio = oltp.figures[0].ratio.unwrap();
    assert!((ratio - (76.0 + 15.75) / (76.0 + 0.75)).abs() < 0.01, "{ratio}");
    assert!(oltp.figures.iter().any(|figure| figure.name == "New-Order p95"), "{oltp:?}");
    let text = compare::text(&found);
    assert!(text.contains("tenant oltp") && text.contains("tenant dss"), "{text}");

    // The gate fails because of the tenant that became slower, not because of the other; a missing one cannot
    // be judged.
    let limits = [Limit { measure: None, most: 0.03 }];
    let outcomes = |gate: &gate::Gate| -> Vec<(String, GateResult)> {
        gate.rows.iter().map(|row| (row.load.clone(), row.outcome)).collect()
    };
    let judged = gate::judge(&compared(&b, &a), &limits, false).unwrap();
    let of = outcomes(&judged);
    assert!(judged.fails() && of.contains(&("tenant oltp".into(), GateResult::Regressed)), "{of:?}");
    assert!(!of.contains(&("tenant dss".into(), GateResult::Regressed)), "{of:?}");
    let other = runs(&path, [1, 3, 0, 2], "backup");
    let renamed = compared(&a, &other);
    assert_eq!(renamed.points.len(), 1);
    assert!(renamed.warnings.iter().any(|one| one.contains("tenant dss is not compared: only A has it")));
    let judged = gate::judge(&renamed, &limits, false).unwrap();
    assert!(judged.lacks_runs(), "{judged:?}");
    assert!(outcomes(&judged).contains(&("tenant backup".into(), GateResult::NotTestable)));
}

#[test]
fn lists_and_histories_have_the_figures_of_the_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("k.db");
    let report = stored_with(&path, 0, "dss");
    let store = Store::open(&path).unwrap();
    let summary = store.runs().unwrap().remove(0);
    assert!(summary.best().is_none() && report.points[0].throughput.headline_per_second.is_none());
    let listed: Vec<(&str, Option<f64>)> =
        summary.tenants.iter().map(|tenant| (tenant.name.as_str(), tenant.per_second)).collect();
    let sources = &report.points[0].sources;
    let reported: Vec<(&str, Option<f64>)> =
        sources.iter().map(|one| (one.name.as_str(), one.throughput.transactions_per_second)).collect();
    assert_eq!(listed, reported);
    assert_eq!(listed[1], ("dss", Some(4000.0)), "while its load was on");

    for more in [0, 1, 2] {
        let run = RunId(stored_with(&path, more, "dss").run);
        store.enter_history(run, "main", "rack 7").unwrap();
    }
    let asked = history::HistoryQuery { newest: 200, ..Default::default() };
    let found = history::load_each(&store, &asked, &mut |_, _| {}).unwrap();
    let of: Vec<_> = found.iter().map(|one| (one.tenant.as_deref(), one.entries.len())).collect();
    assert_eq!(of, [(Some("oltp"), 3), (Some("dss"), 3)]);
    assert!(found.iter().all(|one| one.measure == "throughput"));
    assert!((found[1].entries[0].value - 4000.0).abs() < 1e-6);
    let only = history::HistoryQuery { tenant: Some("backup".into()), ..asked };
    let refused = history::load_each(&store, &only, &mut |_, _| {}).unwrap_err().to_string();
    assert!(refused.contains("no run of this branch has a tenant \"backup\""), "{refused}");
}
