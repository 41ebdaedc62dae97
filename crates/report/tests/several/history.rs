//! The history of a branch.

use kelvin_diagnose::Better;
use kelvin_report::compare::Run;
use kelvin_report::text::Options;
use kelvin_report::{RunReport, history};
use kelvin_store::{GroupId, GroupKind, GroupSlot, NewGroup, RunId, Store};

use crate::SHORT;
use crate::common::open::{self, Arrivals};
use crate::common::{Shape, stored};

struct Branch {
    store: Store,
    _directory: tempfile::TempDir,
    path: std::path::PathBuf,
}

impl Branch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.db");
        Self { store: Store::open(&path).unwrap(), path, _directory: directory }
    }

    fn run(&self, shape: Shape, label: Option<&str>) -> RunId {
        let run = RunId(stored(&self.path, shape, label).run);
        self.store.enter_history(run, "main", "rack 7").unwrap();
        run
    }

    fn load(&self, asked: &history::HistoryQuery) -> Result<history::History, String> {
        let asked = history::HistoryQuery {
            newest: if asked.newest == 0 { 200 } else { asked.newest },
            ..asked.clone()
        };
        history::load(&self.store, &asked, &mut |_, _| {}).map_err(|error| error.to_string())
    }
}

/// Ten entries at one level, then ten at another with a longer ramp-up.
fn stepped() -> Branch {
    let branch = Branch::new();
    for number in 0..20 {
        let shape = Shape { seed: 100 + number, ..SHORT };
        let shape = if number < 10 { shape } else { Shape { new_orders: 30, ramp_up: 1, ..shape } };
        branch.run(shape, (number == 12).then_some("tag <x>"));
    }
    branch
}

#[test]
fn trial_a2_a_change_of_the_level_is_found_with_what_changed_at_it() {
    let branch = stepped();
    let found = branch.load(&history::HistoryQuery::default()).unwrap();
    assert_eq!((found.measure.as_str(), found.entries.len()), ("nopm", 20));
    assert_eq!(found.changes.len(), 1, "{:?}", found.changes);
    let change = &found.changes[0];
    assert_eq!((change.index, change.better), (10, Some(true)));
    assert!((change.ratio() - 1.5).abs() < 0.1 && change.p < 0.001, "{change:?}");
    let names: Vec<&str> = change.changed.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["spec run.ramp-up"]);
    let shown = history::text(&found, Options::default());
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    insta::assert_snapshot!(shown);
    let page = history::html(&found, &|run| (run == 3).then(|| "reports/run-3.html".into())).unwrap();
    assert_eq!(page.matches("<circle").count(), 20);
    assert!(page.contains("<a href=\"reports&#x2f;run-3.html\">3</a>") && page.contains("tag &lt;x&gt;"));
    assert!(page.contains("class=\"change good\"") && page.contains("spec run.ramp-up"));
    for outside in ["src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside} would load something");
    }
    // Ids are matched regardless of case. Unit and direction are those of the measure.
    let p99 =
        branch.load(&history::HistoryQuery { measure: Some("P95".into()), ..Default::default() }).unwrap();
    assert_eq!((p99.unit.as_str(), p99.better), ("ms", Some(Better::Lower)));
    // Both state the assumed noise, and that the point of the p was selected.
    for said in [shown.split_whitespace().collect::<Vec<_>>().join(" "), page] {
        assert!(said.contains("φ = 0.") && said.contains("at the selected change point"), "{said}");
    }
    let newest = branch.load(&history::HistoryQuery { newest: 5, ..Default::default() }).unwrap();
    assert_eq!((newest.entries.len(), newest.changes.len()), (5, 0));
    assert!(newest.notes[0].starts_with("15 older runs"), "{:?}", newest.notes);
    assert!(history::text(&newest, Options::default()).contains("too few to find a change"));
    assert!(history::html(&newest, &|_| None).unwrap().contains("<li>15 older runs"));
}

#[test]
fn the_runs_of_a_group_are_one_entry_without_those_that_are_void() {
    let branch = Branch::new();
    let single = branch.run(SHORT, None);
    let group = NewGroup {
        kind: GroupKind::Repeat,
        name: None,
        created: jiff::Timestamp::from_millisecond(0).unwrap(),
        body: serde_json::json!({}),
    };
    let group: GroupId = branch.store.begin_group(&group).unwrap();
    let mut values = Vec::new();
    for place in 0..4 {
        let shape = Shape { new_orders: 20 + 5 * u64::from(place), seed: 5, ..SHORT };
        let run = branch.run(shape, None);
        let slot = GroupSlot { place, block: place, treatment: String::new() };
        branch.store.enter_group(group, run, &slot).unwrap();
        values.push(
            RunReport::load(&branch.store, run).unwrap().points[0].throughput.headline_per_minute.unwrap(),
        );
    }
    branch.store.set_void(RunId(5), "steal of 12 %").unwrap();
    // Killed while running.
    branch.run(Shape { finished: false, ..SHORT }, None);
    let found = branch.load(&history::HistoryQuery::default()).unwrap();
    let runs: Vec<&[i64]> = found.entries.iter().map(|entry| entry.runs.as_slice()).collect();
    assert_eq!(runs, [&[single.0][..], &[2, 3, 4]]);
    assert_eq!(found.entries[1].group, Some(1));
    assert_eq!((found.entries[1].value, found.entries[1].range), (values[1], (values[0], values[2])));
    assert_eq!(found.notes[0], "run 5 is left out, void: steal of 12 %");
    assert!(found.notes[1].starts_with("run 6 is left out, partial: it was killed"), "{:?}", found.notes);
    insta::assert_snapshot!(serde_json::to_string_pretty(&found).unwrap());
}

#[test]
fn the_key_figures_of_a_run_have_the_ids_that_are_asked_for() {
    let branch = Branch::new();
    let loaded = Run::load(&branch.store, branch.run(SHORT, None), &[]).unwrap();
    let ids: Vec<&str> = loaded.key[&0].iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!((ids[0], &ids[1..]), ("nopm", &kelvin_diagnose::KEY_FIGURES[..]));
}

#[test]
fn what_a_history_does_not_have_is_said() {
    let branch = Branch::new();
    let asked = |branch: Option<&str>, testbed: Option<&str>, measure: Option<&str>| history::HistoryQuery {
        branch: branch.map(Into::into),
        testbed: testbed.map(Into::into),
        measure: measure.map(Into::into),
        ..Default::default()
    };
    assert!(branch.load(&asked(None, None, None)).unwrap_err().contains("no run belongs to a branch yet"));
    branch.run(SHORT, None);
    assert!(branch.load(&asked(Some("x"), None, None)).unwrap_err().contains("existing branches: main"));
    assert!(branch.load(&asked(None, Some("x"), None)).unwrap_err().contains("it has runs on rack 7"));
    assert!(
        branch.load(&asked(None, None, Some("p42"))).unwrap_err().contains("they have nopm, transactions")
    );
    // These runs were not observed.
    assert!(branch.load(&asked(None, None, Some("server-cpu"))).unwrap_err().contains("is not known"));
    let workload = history::HistoryQuery { workload: Some("pgbench".into()), ..Default::default() };
    assert!(branch.load(&workload).unwrap_err().contains("it has runs of tproc-c"));
}

#[test]
fn an_open_loop_is_known_by_its_p99_unless_another_measure_is_named() {
    let branch = Branch::new();
    // Both achieve the requested rate, but the second has ten times the response time.
    for slower in [1, 10] {
        let times = (1..=1_000).map(|i| i * slower).collect();
        let ended = vec![("read", times, 0)];
        let run = open::stored(&branch.store, &Arrivals { ended, ..Arrivals::rising(0, 0) });
        branch.store.enter_history(run, "main", "rack 7").unwrap();
    }
    let found = branch.load(&history::HistoryQuery::default()).unwrap();
    assert_eq!((found.measure.as_str(), found.name.as_str()), ("p99", "response p99"));
    assert_eq!((found.unit.as_str(), found.better), ("ms", Some(Better::Lower)));
    let values: Vec<f64> = found.entries.iter().map(|entry| entry.value).collect();
    assert!((values[0] / 0.99 - 1.0).abs() < 0.01 && (values[1] / 9.9 - 1.0).abs() < 0.01, "{values:?}");
    let asked = history::HistoryQuery { measure: Some("tps".into()), ..Default::default() };
    assert_eq!(branch.load(&asked).unwrap().measure, "tps");
}
