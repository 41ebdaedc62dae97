//! Names of several runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::new_run;
use kelvin_measure::event::{Phase, Status};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::{Event, Sink};
use kelvin_store::{GroupId, GroupKind, GroupSlot, NewGroup, RunId, Store};

struct Place {
    store: Store,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { store: Store::open(directory.path().join("k.db")).unwrap(), _directory: directory }
    }

    fn run(&self, label: Option<&str>, status: Status) -> RunId {
        let mut writer = self.store.begin_run(&new_run(label)).unwrap();
        writer.event(&Event::Finished { status, error: None }).unwrap();
        writer.id()
    }

    fn good(&self) -> RunId {
        self.run(None, Status::Complete)
    }

    fn invalid(&self) -> RunId {
        let mut writer = self.store.begin_run(&new_run(None)).unwrap();
        let invariant = Invariant::new("counts", false, "1 and 2");
        writer
            .event(&Event::Phase { point: 0, phase: Phase::Measure, at: 1, users: 1, planned: None })
            .unwrap();
        writer.event(&Event::Invariant { point: 0, invariant }).unwrap();
        writer.event(&Event::Finished { status: Status::Complete, error: None }).unwrap();
        writer.id()
    }

    fn group(&self, treatments: &[&str]) -> (GroupId, Vec<RunId>) {
        let group = NewGroup {
            kind: GroupKind::Ab,
            name: None,
            created: jiff::Timestamp::from_millisecond(0).unwrap(),
            body: serde_json::json!({}),
        };
        let id = self.store.begin_group(&group).unwrap();
        let enter = |(place, treatment): (usize, &&str)| {
            let run = self.good();
            let (place, treatment) = (place as u32, (*treatment).to_owned());
            self.store.enter_group(id, run, &GroupSlot { place, block: place / 2, treatment }).unwrap();
            run
        };
        (id, treatments.iter().enumerate().map(enter).collect())
    }

    #[track_caller]
    fn runs(&self, name: &str) -> Vec<i64> {
        self.store.select(name).unwrap().runs.iter().map(|run| run.0).collect()
    }

    #[track_caller]
    fn refused(&self, name: &str) -> String {
        self.store.select(name).unwrap_err().to_string()
    }
}

#[test]
fn one_run_is_taken_as_it_is_and_several_without_those_that_do_not_count() {
    let place = Place::new();
    for label in [Some("base"), None, Some("base")] {
        place.run(label, Status::Complete);
    }
    place.run(Some("base"), Status::Interrupted);
    place.invalid();
    assert_eq!(place.runs("last"), [5]);
    assert_eq!(place.runs("last-3"), [2]);
    assert_eq!(place.runs("base"), [4], "a label by itself is the newest run of it");
    assert_eq!(place.runs("3,1, 3"), [3, 1]);
    let label = place.store.select("label:base").unwrap();
    assert_eq!(label.runs, [RunId(1), RunId(3)]);
    assert_eq!(label.notes.len(), 1);
    assert!(
        label.notes[0].starts_with("run 4 is left out, partial: it was interrupted"),
        "{:?}",
        label.notes
    );
    let range = place.store.select("2..17").unwrap();
    assert_eq!(range.runs, [RunId(2), RunId(3)]);
    assert!(
        range.notes[1].contains("run 5 is left out, void: check failed: counts (1 and 2)"),
        "{:?}",
        range.notes
    );
    assert_eq!(place.store.select_without("1..3", &[RunId(2)]).unwrap().runs, [RunId(1), RunId(3)]);
    // Nothing that counts is an error that says why.
    assert!(place.refused("4..5").contains("run 4 is left out"), "{}", place.refused("4..5"));
}

#[test]
fn a_group_is_its_members_that_count() {
    let place = Place::new();
    let (id, runs) = place.group(&["B", "A", "A", "B"]);
    place.store.set_void(runs[3], "steal of 12 %").unwrap();
    assert_eq!(place.runs("group:1"), [1, 2, 3]);
    assert_eq!(place.runs("group:1/A"), [2, 3]);
    let selection = place.store.select("group:1/B").unwrap();
    assert_eq!(
        (selection.runs, selection.notes),
        (vec![runs[0]], vec!["run 4 is left out, void: steal of 12 %".into()])
    );
    let single = place.store.select("4").unwrap();
    assert_eq!(
        (single.runs, single.notes),
        (vec![runs[3]], Vec::new()),
        "it is taken, and shown with its state"
    );
    assert!(place.refused("group:1/C").contains("group 1 has no treatment \"C\": A, B"));
    assert!(place.refused("group:7").contains("there is no group 7; the groups are 1 (ab)"));
    assert_eq!(id, GroupId(1));
}

#[test]
fn a_branch_is_its_newest_runs_on_one_testbed() {
    let place = Place::new();
    assert!(place.refused("branch:main").contains("no run is on a branch yet"));
    for number in 0..10 {
        let run = if number == 8 { place.run(None, Status::Failed) } else { place.good() };
        place.store.enter_history(run, "main", "rack 7").unwrap();
    }
    let other = place.good();
    place.store.enter_history(other, "feature/x", "rack 7").unwrap();
    assert_eq!(place.runs("branch:main"), [4, 5, 6, 7, 8, 10], "six that count");
    assert_eq!(place.runs("branch:main~2"), [8, 10]);
    assert_eq!(place.runs("branch:main~99").len(), 9);
    assert_eq!(place.runs("branch:feature/x@rack 7"), [11]);
    assert_eq!(place.runs("branch:main~1,branch:feature/x"), [10, 11]);
    let without = place.store.select_without("branch:main~3", &[RunId(10)]).unwrap();
    assert_eq!(
        without.runs,
        [RunId(6), RunId(7), RunId(8)],
        "as many as asked for, without those of the other side"
    );
    assert!(place.refused("branch:dev").contains("there is no branch \"dev\"; there are feature/x, main"));
    assert!(
        place.refused("branch:main@x").contains("has no run on the testbed \"x\"; it has runs on rack 7")
    );
    // Two machines are no repetitions of each other.
    let elsewhere = place.good();
    place.store.enter_history(elsewhere, "main", "rack 8").unwrap();
    let refused = place.refused("branch:main");
    assert!(refused.contains("branch:main@rack 7 or branch:main@rack 8"), "{refused}");
    assert_eq!(place.runs("branch:main@rack 8"), [12]);
    assert_eq!(place.runs("branch:main~1"), [12], "the newest alone is of one testbed");
}

#[test]
fn what_cannot_be_read_is_refused_with_what_to_write() {
    let place = Place::new();
    place.good();
    for (name, help) in [
        ("", "a name is missing"),
        ("1,,2", "a name is missing"),
        ("3..1", "write the lower number first"),
        ("1..", "such as 12..17"),
        ("..", "such as 12..17"),
        ("99999999999999999999..99999999999999999999", "such as 12..17"),
        ("label:", "label:base"),
        ("label:none", "matches no run"),
        ("group:x", "group:4"),
        ("group:1/", "group:1/B"),
        ("branch:", "is empty"),
        ("branch:a~0", "branch:main~20"),
        ("branch:a~x", "branch:main~20"),
        ("branch:a@b@c", "is a separator"),
        ("7..9", "matches no run"),
    ] {
        let refused = place.refused(name);
        assert!(refused.contains(help), "{name:?}: {refused}");
    }
    assert!(place.refused("2").contains("no run \"2\""));
}

#[test]
fn a_label_that_would_read_as_several_runs_is_refused() {
    let place = Place::new();
    for label in ["1..3", "a,b", "group:1", "branch:main", "label:x", "last", "7", ""] {
        assert!(place.store.begin_run(&new_run(Some(label))).is_err(), "{label}");
    }
    assert!(place.store.begin_run(&new_run(Some("v1.2: base"))).is_ok());
}
