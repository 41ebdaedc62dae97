//! `kelvin study analyze` and `report` on a folder with a complete ledger, without a server or runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_lab::study::{Attempt, LedgerEntry, LedgerEvent, Results, Study, StudyPlan};
use kelvin_store::RunId;
use support::Place;

/// All planned runs of the template's study: the second user adds 30 % of throughput, and the times rise by half or more.
fn ledger(folder: &Path) {
    let study = Study::read(&folder.join("study.toml")).unwrap();
    let plan = StudyPlan::new(&study);
    let mut lines = String::new();
    for (place, &run) in plan.runs.iter().enumerate() {
        let treatment = plan.treatment(run);
        let two = f64::from(u8::from(treatment.cell == 1));
        let wobble = 1.0 + 0.002 * f64::from((place as u32 * 7) % 5);
        let figure = |id: &str, better, value: f64| KeyFigure {
            id: id.into(),
            name: id.into(),
            unit: String::new(),
            better: Some(better),
            value: Some(value * wobble),
            at_least: false,
        };
        let figures = vec![
            figure("nopm", Better::Higher, 40_000.0 * (1.0 + 0.3 * two)),
            figure("mean", Better::Lower, 1.0 + 0.6 * two),
        ];
        let attempt = Attempt { place: place as u32, block: run.block, treatment: treatment.name.clone() };
        let results = Results { run: RunId(place as i64 + 1), seconds: 25.0, figures };
        let entry = LedgerEntry {
            at: jiff::Timestamp::UNIX_EPOCH,
            event: LedgerEvent::Measured { attempt, results },
        };
        lines.push_str(&format!("{}\n", serde_json::to_string(&entry).unwrap()));
    }
    std::fs::write(folder.join("ledger.jsonl"), lines).unwrap();
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let place = Place::new();
    place.expect(0, &["study", "new", "users"]);
    let folder = place.path("users");
    ledger(&folder);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();

    let first = place.expect(0, &["study", "analyze", "users"]);
    assert!(first.contains("refuted: +") && first.contains("lies beyond ± 5 %"), "{first}");
    assert!(first.contains("statistically sound? yes"), "{first}");
    let (questions, notebook) = (read("next.toml"), read("notebook.md"));
    assert!(notebook.contains("lies beyond ± 5 %") && !notebook.contains("no analysis yet"), "{notebook}");
    assert_eq!(place.expect(0, &["study", "analyze", "users"]), first);
    assert_eq!((read("next.toml"), read("notebook.md")), (questions, notebook));

    let json = place.expect(0, &["study", "analyze", "users", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["verdict"]["answer"], &json["runs"]["controls"]), (&"refuted".into(), &6.into()));

    place.expect(0, &["study", "report", "users"]);
    let pages = (read("report.html"), read("report.md"));
    assert!(pages.0.contains("Statistically sound?") && pages.1.contains("## 7 Conclusion"));
    place.expect(0, &["study", "report", "users"]);
    assert_eq!((read("report.html"), read("report.md")), pages);
    assert_eq!(place.expect(0, &["study", "report", "users", "-o", "-"]), pages.1);
}

/// The finished study in `examples/` survived a kill and a crash of its server: every cell of every block was measured, and
/// its page is what these runs give.
#[test]
fn the_finished_example_is_complete_and_agrees_with_its_runs() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/commit-buffers-huge-pages");
    let place = Place::new();
    let folder = place.path("commit-buffers-huge-pages");
    std::fs::create_dir(&folder).unwrap();
    for name in ["study.toml", "lock.json", "ledger.jsonl", "notebook.md"] {
        std::fs::copy(example.join(name), folder.join(name)).unwrap();
    }
    let study = Study::read(&folder.join("study.toml")).unwrap();
    let plan = StudyPlan::new(&study);
    let mut planned: Vec<(u32, String)> =
        plan.runs.iter().map(|&run| (run.block, plan.treatment(run).name.clone())).collect();
    let lines = std::fs::read_to_string(folder.join("ledger.jsonl")).unwrap();
    let entries: Vec<LedgerEntry> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut measured: Vec<(u32, String)> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            LedgerEvent::Measured { attempt, .. } => Some((attempt.block, attempt.treatment.clone())),
            _ => None,
        })
        .collect();
    planned.sort();
    measured.sort();
    assert_eq!(measured, planned);
    let sessions = entries.iter().filter(|entry| matches!(entry.event, LedgerEvent::Session { .. })).count();
    assert!(sessions > 1, "it was killed, and went on");

    place.expect(0, &["study", "report", "commit-buffers-huge-pages"]);
    let written = |folder: &Path| std::fs::read_to_string(folder.join("report.md")).unwrap();
    assert_eq!(written(&folder), written(&example));
}

#[test]
fn a_failed_analysis_prints_the_reason_and_exits_with_2() {
    let place = Place::new();
    let fails = |args: &[&str], words: &str| {
        let output = place.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    };
    fails(&["study", "analyze", "nowhere"], "is not a study");
    place.expect(0, &["study", "new", "users"]);
    let text = place.expect(0, &["study", "analyze", "users"]);
    assert!(text.contains("nothing has been run yet"), "{text}");
    fails(&["study", "report", "users", "--with-runs"], "--store FILE");
    place.write("users/ledger.jsonl", "{\"at\":\"never\"}\n");
    fails(&["study", "analyze", "users"], "line 1 is not a valid ledger entry");
    fails(&["study", "report", "users"], "line 1 is not a valid ledger entry");
}
