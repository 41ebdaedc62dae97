//! The complete output of the study commands.

use std::path::Path;

use kelvin_diagnose::KeyFigure;
use kelvin_lab::study::{
    Attempt, Deviation, EnvironmentFacts, Folder, LedgerEntry, LedgerEvent, Lock, Results, State, Study,
    StudyPlan, Template, study_toml,
};
use kelvin_store::RunId;

use super::{StudyStatus, plan, show};

fn study(text: &str) -> Study {
    Study::parse(text, "study.toml", Path::new(".")).unwrap()
}

/// An existing folder; the output shows a fixed name for it.
fn situation(text: &str, happened: impl Fn(&StudyPlan) -> Vec<LedgerEvent>, lock: bool) -> (String, String) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("buffers");
    let (folder, _) = Folder::create(&path, text).unwrap();
    if lock {
        let mut lock = Lock::new(&study(&text.replace("blocks = 6", "blocks = 4")), "0.1.0", 0).unwrap();
        lock.at = "2026-11-21T20:10:00Z".parse().unwrap();
        lock.write(&folder.lock_path()).unwrap();
    }
    let at = "2026-11-21T20:20:00Z".parse().unwrap();
    let entries = |plan: &StudyPlan| {
        happened(plan).into_iter().map(|event| LedgerEntry { at, event }).collect::<Vec<_>>()
    };
    let situation =
        StudyStatus::with_state(folder, |plan| State::from_entries(plan, &entries(plan))).unwrap();
    let shown = |text: String| text.replace(&place.path().display().to_string(), "/studies");
    let pages = (shown(plan::render(&situation, None)), shown(show::render(&situation)));
    for line in pages.0.lines().chain(pages.1.lines()) {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    pages
}

fn example() -> String {
    study_toml(Template::Factorial, "buffers")
}

fn nothing(_: &StudyPlan) -> Vec<LedgerEvent> {
    Vec::new()
}

/// One and a half blocks, with a void run, a failed run, and a reboot between them.
fn a_while(plan: &StudyPlan) -> Vec<LedgerEvent> {
    let facts = |kernel: &str| EnvironmentFacts::from([("kernel".to_owned(), kernel.to_owned())]);
    let session = |kernel: &str| LedgerEvent::Session {
        store: "/home/me/.local/share/kelvin/kelvin.db".into(),
        group: 3,
        lock: None,
        facts: facts(kernel),
    };
    let mut events = vec![session("6.1.0-25")];
    for (place, &run) in plan.runs.iter().take(14).enumerate() {
        let attempt =
            Attempt { place: place as u32, block: run.block, treatment: plan.treatment(run).name.clone() };
        events.push(LedgerEvent::Started { attempt: attempt.clone() });
        let value = 30_000.0 + 911.0 * run.treatment as f64 + 37.0 * place as f64;
        let figure = KeyFigure {
            id: "nopm".into(),
            name: "NOPM".into(),
            unit: "per minute".into(),
            better: None,
            value: Some(value),
            at_least: false,
        };
        let results = Results { run: RunId(place as i64 + 40), seconds: 171.5, figures: vec![figure] };
        events.push(match place {
            5 => LedgerEvent::Void {
                attempt,
                results,
                why: vec!["a checkpoint fell into the measured window (checkpoint-in-window)".into()],
            },
            11 => {
                LedgerEvent::Failed { attempt, why: "cannot connect to the server: it is starting up".into() }
            }
            _ => LedgerEvent::Measured { attempt, results },
        });
    }
    events.push(session("6.1.0-26"));
    events.push(LedgerEvent::Deviation(Deviation {
        of: "environment".into(),
        key: "kernel".into(),
        from: Some("6.1.0-25".into()),
        to: Some("6.1.0-26".into()),
    }));
    events
}

#[test]
fn a_plan_before_anything_was_run() {
    insta::assert_snapshot!(situation(&example(), nothing, false).0);
}

#[test]
fn a_plan_under_way_and_what_is_shown_of_it() {
    let (plan, show) = situation(&example(), a_while, true);
    insta::assert_snapshot!("plan_under_way", plan);
    insta::assert_snapshot!("show_under_way", show);
}

#[test]
fn a_fraction_shows_its_aliases() {
    let mut more = String::new();
    for (name, key) in [("f3", "vm.swappiness"), ("f4", "vm.dirty_ratio"), ("f5", "vm.overcommit_ratio")] {
        more.push_str(&format!("[[factor]]\nname = \"{name}\"\nlevels = [10, 60]\nkernel = \"{key}\"\n\n"));
    }
    let design = "kind = \"fractional\"\ngenerators = [\"D=AB\", \"E=AC\", \"F=BC\"]";
    let text =
        example().replace("kind = \"factorial\"", design).replace("[design]", &format!("{more}[design]"));
    insta::assert_snapshot!(situation(&text.replace("blocks = 6", "blocks = 2"), nothing, false).0);
}
