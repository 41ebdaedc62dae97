//! Percentiles that are lower bounds, and failed transactions, in all comparisons of runs; also the end of a run's
//! event stream.

use kelvin_measure::event::{ErrorCount, Window};
use kelvin_measure::{Event, Sink};
use kelvin_store::{GroupId, GroupKind, GroupSlot, NewGroup, NewRun, RunId, Store};
use serde_json::{Value, json};

use super::common::pgbench::{self, Plan};
use super::support::{Place, text as words};

/// Above the capacity of the simulated server: a fifth of the arrivals remain unanswered, and p99 falls among them.
const RATE: f64 = 2600.0;

/// A store with runs of plans whose events were changed. Its first two runs, of a closed and an open loop, provide the
/// description of the others.
struct Runs {
    place: Place,
    store: Store,
}

impl Runs {
    fn new() -> Self {
        let place = Place::new();
        let store = Store::open(place.store()).unwrap();
        for plan in [Plan::closed(&[8]), Plan::rates(8, &[RATE])] {
            pgbench::stored(&place.store(), &plan);
        }
        Self { place, store }
    }

    fn add(&self, plan: &Plan, change: fn(Event) -> Vec<Event>) -> RunId {
        let like = RunId(if plan.points[0].1.is_some() { 2 } else { 1 });
        let mut writer = self.store.begin_run(&self.store.load(like).unwrap().info).unwrap();
        for event in pgbench::events(plan).into_iter().flat_map(change) {
            writer.event(&event).unwrap();
        }
        writer.id()
    }

    fn bounded(&self) -> RunId {
        self.add(&Plan::rates(8, &[RATE]), |event| vec![event])
    }

    /// The same load without refused or unfinished arrivals.
    fn exact(&self) -> RunId {
        self.add(&Plan::rates(8, &[RATE]), |mut event| {
            match &mut event {
                Event::Arrivals(arrivals) => {
                    arrivals.due -= arrivals.refused;
                    (arrivals.refused, arrivals.waiting) = (0, Some(0));
                }
                Event::Window(Window { schedule: Some(schedule), .. }) => {
                    schedule.due -= schedule.refused;
                    (schedule.refused, schedule.waiting) = (0, 0);
                }
                _ => {}
            }
            vec![event]
        })
    }

    /// Five transactions fail permanently in each second, in addition to the successful ones.
    fn failing(&self) -> RunId {
        self.add(&Plan::closed(&[8]), |mut event| {
            let Event::Second(second) = &mut event else { return vec![event] };
            second.kinds[0].failed = 5;
            let errors = ErrorCount {
                point: second.point,
                second: second.second,
                kind: Some(0),
                class: "data".into(),
                code: "22012".into(),
                message: "division by zero".into(),
                retried: false,
                count: 5,
            };
            vec![Event::Errors(errors), event]
        })
    }

    fn group(&self, kind: GroupKind, body: Value, runs: &[(RunId, &str, u32)]) -> GroupId {
        let group = NewGroup { kind, name: None, created: jiff::Timestamp::UNIX_EPOCH, body };
        let group = self.store.begin_group(&group).unwrap();
        for (place, (run, treatment, block)) in runs.iter().enumerate() {
            let slot = GroupSlot { place: place as u32, block: *block, treatment: (*treatment).into() };
            self.store.enter_group(group, *run, &slot).unwrap();
        }
        group
    }
}

fn list(runs: &[RunId]) -> Vec<String> {
    runs.iter().map(|run| run.0.to_string()).collect()
}

#[test]
fn a_gate_passes_nothing_on_a_percentile_that_is_a_bound() {
    let runs = Runs::new();
    let four = |make: &dyn Fn() -> RunId| {
        let ids: Vec<RunId> = (0..4).map(|_| make()).collect();
        format!("{}..{}", ids[0].0, ids[3].0)
    };
    let (exact, first, second) = (four(&|| runs.exact()), four(&|| runs.bounded()), four(&|| runs.bounded()));
    let gate = |base: &str, candidate: &str| {
        let limits = ["--max-regression", "5%", "--measure", "p99", "--json"];
        let output = runs.place.run(&[&["gate", candidate, "--against", base][..], &limits].concat());
        let said = words(&output.stdout);
        let json: Value =
            serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{}", words(&output.stderr)));
        (output.status.code().unwrap(), json)
    };
    // The default measure is the one that a comparison judges, because an open loop's throughput is fixed.
    let limits = ["--max-regression", "5%", "--json"];
    let output = runs.place.run(&[&["gate", &exact[..], "--against", &first][..], &limits].concat());
    let json: Value = serde_json::from_str(&words(&output.stdout)).unwrap();
    assert_eq!(json["rows"][0]["measure"], "p99", "{json}");
    // Lower bounds on both sides: no difference is shown, and none is excluded.
    let (code, judged) = gate(&first, &second);
    assert!(code == 5 || code == 6, "{code}: {judged}");
    assert_ne!(judged["outcome"], "passed", "{judged}");
    // The base is exact, and the candidate is at least as slow: it must not pass either.
    let (code, judged) = gate(&exact, &first);
    assert!(matches!(code, 1 | 5 | 6), "{code}: {judged}");
    assert_ne!(judged["outcome"], "passed", "{judged}");
}

#[test]
fn the_history_marks_an_entry_that_is_a_bound() {
    let runs = Runs::new();
    for run in [runs.exact(), runs.bounded()] {
        runs.store.enter_history(run, "main", "rack").unwrap();
    }
    let shown = runs.place.expect(0, &["history", "main", "-m", "p99"]);
    assert_eq!(shown.matches('≥').count(), 2, "one entry, and what the sign means: {shown}");
    assert!(shown.contains("1 of the entries is only a lower bound (≥)"), "{shown}");
    let json: Value =
        serde_json::from_str(&runs.place.expect(0, &["history", "main", "-m", "p99", "--json"])).unwrap();
    let marks: Vec<_> = json["entries"].as_array().unwrap().iter().map(|entry| &entry["at_least"]).collect();
    assert_eq!(marks, [&json!(false), &json!(true)], "{json}");
}

#[test]
fn repeated_runs_and_sides_with_bounds_are_not_summed_up_as_if_they_were_known() {
    let runs = Runs::new();
    let ids: Vec<RunId> = (0..8).map(|_| runs.bounded()).collect();
    let plan = json!({
        "spec": "", "runs": 8, "most": 8, "precision": 0.02, "until": false, "replace": 3, "figure": "p99",
    });
    let members: Vec<_> = ids.iter().map(|run| (*run, "", 0)).collect();
    let group = runs.group(GroupKind::Repeat, plan, &members).0.to_string();
    let shown = runs.place.expect(0, &["groups", &group]);
    assert!(shown.contains('≥') && shown.contains("statistically sound: no"), "{shown}");
    let json: Value = serde_json::from_str(&runs.place.expect(0, &["groups", &group, "--json"])).unwrap();
    assert_eq!(json["summary"]["runs"][0]["at-least"], true, "{json}");
    assert!(json["summary"]["answer"]["missing"].to_string().contains("bounds"), "{json}");

    let side = |name: &str| json!({ "name": name, "source": format!("{name}.toml"), "spec": "" });
    let plan = json!({
        "sides": [side("A"), side("B")], "control": false, "control-of-a": false, "blocks": 4, "effect": null,
        "power": 0.9, "most": 4, "stop-early": false, "noise": 0.01, "seed": 1, "replace": 0, "figure": "p99",
    });
    let ids: Vec<RunId> = (0..8).map(|_| runs.bounded()).collect();
    let treatments = ids.iter().enumerate().map(|(at, run)| (*run, ["A", "B"][at % 2], at as u32 / 2));
    let group = runs.group(GroupKind::Ab, plan, &treatments.collect::<Vec<_>>()).0.to_string();
    let shown = runs.place.expect(0, &["groups", &group]);
    assert!(shown.contains('≥'), "{shown}");
    assert!(
        !shown.contains("within noise") && !shown.contains("changed:"),
        "bounds on both sides show nothing: {shown}"
    );
}

#[test]
fn a_run_whose_transactions_failed_counts_nowhere_without_a_word() {
    let runs = Runs::new();
    let (bad, good) = (runs.failing(), RunId(1));
    for run in [bad, good] {
        runs.store.enter_history(run, "main", "rack").unwrap();
    }
    let ids = list(&[bad, good]);
    let report = runs.place.report(&ids[0]);
    let failed = report["failed"].as_u64().unwrap();
    assert!(failed > 0 && report["state"] == "counted", "{failed}, {}", report["state"]);
    let shown = runs.place.expect(0, &["show", &ids[0]]);
    assert!(shown.contains("failed"), "{shown}");
    let table = runs.place.expect(0, &["runs"]);
    let row = table.lines().find(|line| line.trim_start().starts_with(&format!("{} ", ids[0]))).unwrap();
    assert!(row.contains("error") || row.contains("failed"), "{row}");
    let compared = runs.place.expect(0, &["compare", &ids[1], &ids[0]]);
    assert!(compared.contains(&format!("run {} had", ids[0])), "{compared}");
    let gate = runs.place.run(&["gate", &ids[0], "--against", &ids[1], "--max-regression", "5%"]);
    assert!(words(&gate.stdout).contains(&format!("run {} had", ids[0])), "{}", words(&gate.stdout));
    let history = runs.place.expect(0, &["history", "main"]);
    let note = format!("run {} counts, but {failed} of its transactions failed permanently", ids[0]);
    assert!(history.split_whitespace().collect::<Vec<_>>().join(" ").contains(&note), "{history}");
}

/// The last event has the run's state, so that readers of the events need not query the store.
#[test]
fn the_events_of_a_run_end_with_its_state() {
    let place = Place::new();
    let target = format!("sqlite:{}", place.path("own.db").display());
    place.write("good.sql", "\\sleep 5 ms\nselect 1;\n");
    place.write("bad.sql", "select * from nothing;\n");
    for script in ["good.sql", "bad.sql"] {
        let load = ["--users", "1", "--transactions", "10", "--no-observe", "--json"];
        let output = place.run(&[&["run", "script", script, "--target", &target][..], &load].concat());
        let (code, said) = (output.status.code().unwrap(), words(&output.stdout));
        let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [.., last, summary] = &events[..] else { panic!("{said}{}", words(&output.stderr)) };
        assert_eq!((&last["event"], &summary["event"]), (&json!("finished"), &json!("summary")), "{said}");
        let report = place.report(&summary["run"].to_string());
        for field in ["state", "reasons", "valid", "failed"] {
            assert_eq!(summary[field], report[field], "{script}: {field}");
        }
        let failed = summary["failed"].as_u64().unwrap() > 0;
        assert_eq!(failed, script == "bad.sql", "{summary}");
        let expected = match summary["state"].as_str().unwrap() {
            "counted" if failed => 3,
            "counted" => 0,
            "void" => 1,
            "failed" => 4,
            other => panic!("{other}"),
        };
        assert_eq!(code, expected, "{summary}");
        if summary["point"].is_number() {
            assert_eq!(summary["figures"][0]["id"], "tps", "{summary}");
        }
    }
}

/// The first run of A was interrupted and its second is complete: the differences are known, and not empty.
#[test]
fn trial_d9_second_runs_of_a_side_show_differences_too() {
    let runs = Runs::new();
    let of = |users: u32| {
        let info = runs.store.load(RunId(1)).unwrap().info;
        let like = NewRun { spec_toml: format!("[load]\nusers = {users}\n"), ..info };
        let mut writer = runs.store.begin_run(&like).unwrap();
        for event in pgbench::events(&Plan::closed(&[8])) {
            writer.event(&event).unwrap();
        }
        writer.id()
    };
    let side = |name: &str| json!({ "name": name, "source": format!("{name}.toml"), "spec": "" });
    let plan = json!({
        "sides": [side("A"), side("B")], "control": true, "control-of-a": false, "blocks": 4, "effect": null,
        "power": 0.9, "most": 4, "stop-early": false, "noise": 0.01, "seed": 1, "replace": 0, "figure": "tps",
    });
    let members = [(of(4), "A'", 0), (of(8), "B", 0), (of(8), "B'", 0)];
    let group = runs.group(GroupKind::Ab, plan, &members).0.to_string();
    let shown = runs.place.expect(0, &["groups", &group]);
    assert!(shown.contains("load.users") && !shown.contains("no recorded difference"), "{shown}");
}
