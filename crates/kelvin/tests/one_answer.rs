//! What is said of a run is the same wherever it is said: text, JSON, page, lists, comparisons and the gate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../report/tests/common/mod.rs"]
mod common;
mod support;

#[path = "one_answer/bounds.rs"]
mod bounds;
#[path = "one_answer/forms.rs"]
mod forms;

use std::process::Command;

use common::pgbench::{self, Plan};
use common::{GOOD, Shape};
use kelvin_diagnose::{Evidence, judge};
use kelvin_measure::Event;
use kelvin_measure::event::{KindCounts, LoadPart, Phase, Status, Window};
use kelvin_measure::invariant::Invariant;
use kelvin_report::compare::Run;
use kelvin_report::{RunReport, html, json, text};
use kelvin_store::{GroupKind, GroupSlot, NewGroup, NewRun, RunId, RunState, Store};
use support::{Place, text as words};

/// Runs in a store, each with the state that it must have; none where that depends on the machine.
struct Made {
    place: Place,
    store: Store,
    runs: Vec<(&'static str, RunId, Option<RunState>)>,
}

impl Made {
    fn add(&mut self, name: &'static str, run: RunId, state: impl Into<Option<RunState>>) {
        self.runs.push((name, run, state.into()));
    }

    /// The events of a plan after a change to them, under the description of a run like it.
    fn plan(
        &mut self,
        name: &'static str,
        state: RunState,
        plan: &Plan,
        change: impl FnOnce(&mut Vec<Event>),
    ) {
        let mut events = pgbench::events(plan);
        change(&mut events);
        let open = plan.points[0].1.is_some();
        let info = self.store.load(self.run("closed loop")).unwrap().info;
        let like = NewRun { kinds: pgbench::series(open, plan.timed), ..info };
        let mut writer = self.store.begin_run(&like).unwrap();
        for event in &events {
            writer.consume(event).unwrap();
        }
        let id = writer.id();
        drop(writer);
        self.add(name, id, state);
    }

    fn run(&self, name: &str) -> RunId {
        self.runs.iter().find(|(known, ..)| *known == name).unwrap().1
    }
}

/// The window's own count follows what its seconds say.
fn recount(events: &mut [Event]) {
    let mut sums = std::collections::BTreeMap::new();
    for event in events.iter() {
        if let Event::Second(second) = event
            && second.part == LoadPart::Measured
        {
            *sums.entry(second.point).or_insert(0) += second.kinds[0].committed;
        }
    }
    for event in events {
        if let Event::Window(window) = event {
            window.client_headline = sums.get(&window.point).copied().unwrap_or(0);
        }
    }
}

fn dead(events: &mut [Event], of: u32, seconds: std::ops::Range<i64>) {
    for event in events.iter_mut() {
        if let Event::Second(second) = event
            && second.point == of
            && seconds.contains(&second.second)
        {
            second.kinds.fill(KindCounts::default());
        }
    }
    recount(events);
}

fn ended(events: &mut Vec<Event>, status: Status, error: Option<&str>) {
    events.pop();
    events.push(Event::Finished { status, error: error.map(Into::into) });
}

/// What came before the window of a point closed.
fn open_window(events: &mut Vec<Event>, of: u32, until: i64) {
    events.truncate(
        events
            .iter()
            .position(|e| matches!(e, Event::Phase { point, phase: Phase::Stop, .. } if *point == of))
            .unwrap(),
    );
    events.retain(|e| !matches!(e, Event::Second(second) if second.point == of && second.second >= until));
}

fn windows(events: &mut [Event]) -> impl Iterator<Item = &mut Window> {
    events.iter_mut().filter_map(|event| if let Event::Window(window) = event { Some(window) } else { None })
}

/// Some thirty runs: healthy, with planted faults, cut short, and made by the command itself.
fn made() -> Made {
    use RunState::{Counted, Failed, Partial, Void};
    let place = Place::new();
    let path = place.store();
    let mut made = Made { store: Store::open(&path).unwrap(), place, runs: Vec::new() };
    let (closed, open) = (Plan::closed(&[8]), Plan::rates(8, &[1200.0]));
    let sweep = Plan::closed(&[1, 4, 8, 16]);
    let long = Plan { seconds: 12, ..Plan::closed(&[8]) };
    for (name, plan) in [("closed loop", &closed), ("open loop", &open)] {
        let report = pgbench::stored(&path, plan);
        made.add(name, RunId(report.run), Counted);
    }
    let as_it_is = |_: &mut Vec<Event>| {};
    made.plan("statements timed", Counted, &Plan { timed: true, ..Plan::closed(&[8]) }, as_it_is);
    made.plan("a sweep", Counted, &sweep, as_it_is);
    made.plan("beyond capacity, with unanswered arrivals", Counted, &Plan::rates(8, &[2600.0]), as_it_is);
    made.plan("rates up and down", Counted, &Plan::rates(8, &[600.0, 1200.0, 600.0]), as_it_is);
    let search =
        Plan { concluded: vec![pgbench::found()], ..Plan::rates(8, &[1000.0, 2000.0, 1500.0, 1750.0]) };
    made.plan("a search", Counted, &search, as_it_is);
    made.plan("7 of 12 s dead", Void, &long, |events| dead(events, 0, 3..10));
    made.plan("dead in an open loop", Void, &Plan::rates(8, &[900.0]), |events| dead(events, 0, 2..4));
    made.plan("every transaction fails", Counted, &Plan { failing: true, ..Plan::closed(&[8]) }, as_it_is);
    made.plan("an invariant is broken", Void, &closed, |events| {
        events.insert(
            events.len() - 1,
            Event::Invariant { point: 0, invariant: Invariant::new("counts agree", false, "1, 2") },
        );
    });
    made.plan("an invariant is not judged", Counted, &closed, |events| {
        let invariant = Invariant::not_judged("counts agree", "the window is too short");
        events.insert(events.len() - 1, Event::Invariant { point: 0, invariant });
    });
    made.plan("the self-audit fails", Void, &closed, |events| {
        for event in events {
            if let Event::Audit { lines, .. } = event {
                lines[0].valid = false;
            }
        }
    });
    made.plan("one point of a sweep is broken", Void, &sweep, |events| {
        events.insert(
            events.len() - 1,
            Event::Invariant { point: 1, invariant: Invariant::new("counts agree", false, "1, 2") },
        );
    });
    made.plan("a point of a sweep that is not the best stood still", Counted, &sweep, |events| {
        dead(events, 0, 2..4);
    });
    made.plan("the window counts more than its seconds", Void, &closed, |events| {
        windows(events).for_each(|window| window.client_headline += 5);
    });
    made.plan("interrupted after 1.42 s", Partial, &closed, |events| {
        events.retain(|e| !matches!(e, Event::Second(second) if second.second > 1));
        windows(events).for_each(|window| window.elapsed = 1_420_000_000);
        recount(events);
        ended(events, Status::Interrupted, None);
    });
    made.plan("interrupted before its window", Partial, &closed, |events| {
        open_window(events, 0, 0);
        events.retain(|e| !matches!(e, Event::Phase { phase: Phase::Measure, .. }));
        events.push(Event::Finished { status: Status::Interrupted, error: Some("interrupted".into()) });
    });
    made.plan("an interrupted sweep", Partial, &sweep, |events| ended(events, Status::Interrupted, None));
    made.plan("killed in its window", Partial, &long, |events| open_window(events, 0, 8));
    made.plan("killed between two points", Partial, &sweep, |events| {
        let second = events.iter().position(|e| matches!(e, Event::Phase { point: 1, .. })).unwrap();
        events.truncate(second);
    });
    made.plan("failed in its window", Failed, &long, |events| {
        open_window(events, 0, 5);
        events.push(Event::Finished { status: Status::Failed, error: Some("disk <full>".into()) });
    });
    made.plan("failed after its window", Failed, &closed, |events| {
        ended(events, Status::Failed, Some("every user gave up"));
    });
    made.plan("a broken invariant and an interruption", Partial, &closed, |events| {
        events.insert(
            events.len() - 1,
            Event::Invariant { point: 0, invariant: Invariant::new("counts agree", false, "1, 2") },
        );
        ended(events, Status::Interrupted, None);
    });
    made.plan("nothing was measured", Void, &closed, |events| {
        windows(events).for_each(|window| (window.elapsed, window.client_headline) = (0, 0));
        events.retain(|e| !matches!(e, Event::Second(second) if second.second >= 0));
    });
    made.plan("left out by its study", Void, &closed, as_it_is);
    let group = NewGroup {
        kind: GroupKind::Study,
        name: None,
        created: jiff::Timestamp::UNIX_EPOCH,
        body: serde_json::json!({}),
    };
    let (group, run) = (made.store.begin_group(&group).unwrap(), made.run("left out by its study"));
    made.store.enter_group(group, run, &GroupSlot { place: 0, block: 0, treatment: String::new() }).unwrap();
    made.store.set_void(run, "it has no value of the goal's metric").unwrap();
    for (name, shape, state) in [
        ("TPROC-C", GOOD, Counted),
        ("TPROC-C, broken", Shape { valid: false, ..GOOD }, Void),
        ("TPROC-C, killed", Shape { finished: false, ..GOOD }, Partial),
    ] {
        let report = common::observed(&path, shape, None);
        made.add(name, RunId(report.run), state);
    }
    made.place.write("data", vec![7; 1 << 20]);
    let io = ["run", "io", "--set", "filename=data", "--set", "number_ios=200", "--no-observe", "-q"];
    let job = made.place.write("job.fio", "[reader]\nrw=randread\nbs=4k\nsize=1m\nioengine=psync\n");
    made.place.expect(0, &[&io[..], &["--job", job.to_str().unwrap()]].concat());
    made.place.expect(0, &["run", "tproc-c", "--transactions", "30", "--users", "2", "--no-observe", "-q"]);
    for (index, name) in ["I/O", "SQLite"].into_iter().enumerate() {
        let id = made.store.runs().unwrap().len() as i64 - 1 + index as i64;
        made.add(name, RunId(id), None);
    }
    made
}

/// What a page has between two texts.
fn between<'a>(page: &'a str, from: &str, to: &str) -> Option<&'a str> {
    page.split_once(from)?.1.split_once(to).map(|(found, _)| found)
}

/// One line of words, as one would read it aloud.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Holds the report of a run in its forms against each other; its state.
fn walk(name: &str, report: &RunReport) -> String {
    let rendered = text::render(report, text::Options { all: true, ..Default::default() });
    let shown = flat(&rendered);
    let told: serde_json::Value = serde_json::from_str(&json::render(report).unwrap()).unwrap();
    let page = html::render(report).unwrap();
    let state = told["state"].as_str().unwrap();
    let counted = state == "counted";
    assert_eq!(told["valid"], counted, "{name}");
    let reasons: Vec<&str> =
        told["reasons"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
    assert_eq!(reasons.is_empty(), counted, "{name}: {reasons:?}");
    let head = format!("<strong class=\"state {state}\">");
    assert_eq!(between(&page, &head, "</strong>"), Some(state), "{name}");
    assert_eq!(page.contains("<div class=\"tile good\">"), counted && report.best().is_some(), "{name}");
    for word in ["counted", "void", "partial", "failed"] {
        let of_it = word == state;
        assert_eq!(shown.contains(&format!("UTC, {word} ")), of_it, "{name}: {word} in the text's head");
        let at_the_end = rendered.lines().any(|line| line.starts_with(&format!("{word}:")));
        assert_eq!(at_the_end, of_it, "{name}: {word} at the text's end\n{rendered}");
        if report.best().is_some() {
            let tile = format!("<span class=\"value\">{word}</span>");
            assert_eq!(page.contains(&tile), of_it, "{name}: {word} on the page's tile");
        }
    }
    for reason in &reasons {
        assert!(shown.contains(&flat(reason)), "{name}: no {reason:?} in\n{shown}");
        let marks = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")];
        let escaped = marks.iter().fold((*reason).to_owned(), |text, (mark, code)| text.replace(*mark, code));
        assert!(page.contains(&escaped), "{name}: no {escaped:?} on the page");
    }
    for point in told["points"].as_array().unwrap() {
        let of = point["state"].as_str().unwrap();
        let Some(verdict) = point["verdict"].as_object() else { continue };
        let void = verdict["outcome"]["outcome"] == "void";
        assert!(!void || of != "counted", "{name}: a point without a verdict counts");
        assert!(of != "counted" || !void, "{name}: {of}");
    }
    figures(name, report, &shown, &page);
    state.into()
}

/// Headline and p99 of the best point, in the text and on the page.
fn figures(name: &str, report: &RunReport, shown: &str, page: &str) {
    let Some(best) = report.best() else { return };
    if report.is_io() || best.headline(report.headline_per).is_none() {
        return;
    }
    let tile = between(page, "<div class=\"tile big\"><span class=\"value\">", "</span>").unwrap();
    assert!(
        shown.contains(&format!("{tile} {}", report.headline))
            || report.points.len() > 1 && shown.contains(tile),
        "{name}: {tile} {} is not in\n{shown}",
        report.headline
    );
    let title = between(page, "<title>", "</title>").unwrap();
    assert!(title.contains(&format!("{tile} {}", report.headline)), "{name}: {title}");
}

/// The state and the headline of the list of runs, and the percentile of the key figures, are those of the reports.
#[test]
fn trial_d4_thirty_runs_have_one_state_headline_and_percentile_everywhere() {
    let made = made();
    assert!(made.runs.len() >= 30, "{}", made.runs.len());
    // As the command does when a run ends: of the oldest the list has nothing else.
    for (_, run, _) in made.runs.iter().take(10) {
        let stored = made.store.load(*run).unwrap();
        let judged = judge(&stored, &Evidence::from_run(&stored).unwrap()).unwrap();
        made.store.keep_judgement(*run, &judged.run).unwrap();
    }
    let listed: Vec<serde_json::Value> = made
        .place
        .expect(0, &["runs", "--json"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let table = made.place.expect(0, &["runs"]);
    let mut compared = forms::Compared::default();
    for (name, run, expected) in &made.runs {
        let loaded = Run::load(&made.store, *run, &[]).unwrap();
        let report = &loaded.report;
        let state = walk(name, report);
        if let Some(expected) = expected {
            assert_eq!(state, expected.word(), "{name}: {:?}", report.judgement);
        }
        let line = listed.iter().find(|line| line["id"] == run.0).unwrap();
        assert_eq!(
            (line["state"].as_str(), &line["reasons"]),
            (Some(&*state), &serde_json::json!(report.judgement.reasons)),
            "{name}"
        );
        let row = table.lines().find(|line| line.trim_start().starts_with(&format!("{} ", run.0))).unwrap();
        assert!(row.split_whitespace().any(|word| word == state), "{name}: {row}");
        forms::walk(name, report, row, &mut compared);
        if let Some(best) = report.best().filter(|best| best.closed && best.window_s > 0.0) {
            let point = line["points"].as_array().unwrap().iter().find(|p| p["point"] == best.point).unwrap();
            // That its two counts differ is what makes this one void.
            if *name != "the window counts more than its seconds" {
                // One of the two was written as text and read again: the last bit may differ.
                let (listed, shown) = (point["per_second"].as_f64(), best.headline_per_second);
                let same = match (listed, shown) {
                    (Some(listed), Some(shown)) => (listed - shown).abs() <= shown * 1e-12,
                    (listed, shown) => listed == shown,
                };
                assert!(same, "{name}: {listed:?} and {shown:?}");
            }
            let p99 = loaded.key[&best.point].iter().find(|figure| figure.id == "p99");
            let p99 = p99.and_then(kelvin_diagnose::KeyFigure::bounded);
            if let Some((key, shown)) = p99.zip(best.client_latency().p99_us) {
                let same = (key.value - shown.value / 1e3).abs() < 1e-9 && key.at_least == shown.at_least;
                assert!(same, "{name}: p99 {key:?} ms and {shown:?} µs");
            }
        }
    }
    // Each run has a headline but those that were ended before their window, and those that were watched a verdict.
    let runs = made.runs.len();
    assert!(compared.headlines + 4 >= runs && compared.verdicts >= 3, "{compared:?} of {runs} runs");
    assert!(compared.times > 10 * runs && compared.bounds > 0, "{compared:?} of {runs} runs");
}

/// A run that was begun is kept, and its state has its exit code also where nothing of it was measured.
#[test]
fn trial_d4_a_run_that_failed_before_its_window_has_the_code_of_its_state() {
    let place = Place::new();
    let target = format!("sqlite:{}", place.path("own.db").display());
    place.write("good.sql", "select 1;\n");
    let load = ["--users", "250", "--duration", "1s", "--no-observe"];
    let run = place.command(&[&["run", "script", "good.sql", "--target", &target][..], &load].concat());
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 300; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    limited.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.current_dir(run.get_current_dir().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", words(&output.stderr));
    assert!(words(&output.stderr).contains("open files"), "{}", words(&output.stderr));
    assert_eq!(place.report("last")["state"], "failed");
}

/// A gate on a candidate that does not count writes its files, which say so, and ends with its own code.
#[test]
fn trial_d4_a_gate_on_a_void_candidate_writes_that_it_is_void() {
    let place = Place::new();
    let path = place.store();
    let ids: Vec<String> = [true, false]
        .iter()
        .map(|valid| common::stored(&path, Shape { valid: *valid, ..GOOD }, None).run.to_string())
        .collect();
    let junit = place.path("gate.xml");
    let args =
        ["gate", &ids[1], "--against", &ids[0], "--max-regression", "5%", "--junit", junit.to_str().unwrap()];
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(5), "{}", words(&output.stderr));
    let said = words(&output.stdout);
    assert!(said.contains("void") && said.contains("no run of the candidate 2 counts"), "{said}");
    let written = std::fs::read_to_string(&junit).unwrap();
    assert!(
        written.contains("errors=\"1\"") && written.contains("<error type=\"void\" message=\""),
        "{written}"
    );
    assert!(written.contains("run 2 is left out, void: condition 10 does not hold"), "{written}");
}
