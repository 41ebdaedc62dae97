//! The statements about a run are the same everywhere: text, JSON, page, lists, comparisons and the gate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../report/tests/common/mod.rs"]
mod common;
mod support;

#[path = "one_answer/bounds.rs"]
mod bounds;
#[path = "one_answer/walk.rs"]
mod walk;

use std::process::Command;

use common::pgbench::{self, Plan};
use common::{GOOD, Shape};
use kelvin_diagnose::{Evidence, judge};
use kelvin_measure::event::{KindCounts, LoadPart, Phase, Status, Window};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::{Event, Sink};
use kelvin_store::RunState::{Counted, Failed, Partial, Void};
use kelvin_store::{GroupKind, GroupSlot, NewGroup, NewRun, RunId, RunState, Store};
use support::{Place, text as words};
use walk::Lists;

/// Runs in a store, each with its expected state; `None` if the state depends on the machine.
struct Made {
    place: Place,
    store: Store,
    runs: Vec<(&'static str, RunId, Option<RunState>)>,
}

impl Made {
    fn add(&mut self, name: &'static str, run: RunId, state: impl Into<Option<RunState>>) {
        self.runs.push((name, run, state.into()));
    }

    /// Stores the events of a plan after a change, with the description of a similar run.
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
            writer.event(event).unwrap();
        }
        let id = writer.id();
        drop(writer);
        self.add(name, id, state);
    }

    fn run(&self, name: &str) -> RunId {
        self.runs.iter().find(|(known, ..)| *known == name).unwrap().1
    }
}

/// Sets the window's count to the sum of its seconds.
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

fn finish(events: &mut Vec<Event>, status: Status, error: Option<&str>) {
    events.pop();
    events.push(Event::Finished { status, error: error.map(Into::into) });
}

/// Keeps only the events before the window of a point closed.
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
fn make_runs() -> Made {
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
    let search = Plan {
        concluded: vec![pgbench::search_result()],
        ..Plan::rates(8, &[1000.0, 2000.0, 1500.0, 1750.0])
    };
    made.plan("a search", Counted, &search, as_it_is);
    made.plan("7 of 12 s dead", Void, &long, |events| dead(events, 0, 3..10));
    made.plan("dead in an open loop", Void, &Plan::rates(8, &[900.0]), |events| dead(events, 0, 2..4));
    made.plan("every transaction fails", Counted, &Plan { failing: true, ..Plan::closed(&[8]) }, as_it_is);
    made.judged(&closed, &sweep);
    made.cut_short(&closed, &sweep, &long);
    made.left_out(&closed);
    for (name, shape, state) in [
        ("TPROC-C", GOOD, Counted),
        ("TPROC-C, broken", Shape { valid: false, ..GOOD }, Void),
        ("TPROC-C, killed", Shape { finished: false, ..GOOD }, Partial),
    ] {
        let report = common::observed(&path, shape, None);
        made.add(name, RunId(report.run), state);
    }
    made.by_the_command();
    made
}

impl Made {
    /// Runs that are void or partial because of a check.
    fn judged(&mut self, closed: &Plan, sweep: &Plan) {
        self.plan("an invariant is broken", Void, closed, |events| {
            events.insert(
                events.len() - 1,
                Event::Invariant { point: 0, invariant: Invariant::new("counts agree", false, "1, 2") },
            );
        });
        self.plan("an invariant is not judged", Counted, closed, |events| {
            let invariant = Invariant::not_judged("counts agree", "the window is too short");
            events.insert(events.len() - 1, Event::Invariant { point: 0, invariant });
        });
        self.plan("the self-audit fails", Void, closed, |events| {
            for event in events {
                if let Event::Audit { lines, .. } = event {
                    lines[0].valid = false;
                }
            }
        });
        self.plan("one point of a sweep is broken", Void, sweep, |events| {
            events.insert(
                events.len() - 1,
                Event::Invariant { point: 1, invariant: Invariant::new("counts agree", false, "1, 2") },
            );
        });
        self.plan("a point of a sweep that is not the best stood still", Counted, sweep, |events| {
            dead(events, 0, 2..4);
        });
        self.plan("the window counts more than its seconds", Void, closed, |events| {
            windows(events).for_each(|window| window.client_headline += 5);
        });
    }

    /// Runs that ended early.
    fn cut_short(&mut self, closed: &Plan, sweep: &Plan, long: &Plan) {
        self.plan("interrupted after 1.42 s", Partial, closed, |events| {
            events.retain(|e| !matches!(e, Event::Second(second) if second.second > 1));
            windows(events).for_each(|window| window.elapsed = 1_420_000_000);
            recount(events);
            finish(events, Status::Interrupted, None);
        });
        self.plan("interrupted before its window", Partial, closed, |events| {
            open_window(events, 0, 0);
            events.retain(|e| !matches!(e, Event::Phase { phase: Phase::Measure, .. }));
            events.push(Event::Finished { status: Status::Interrupted, error: Some("interrupted".into()) });
        });
        self.plan("an interrupted sweep", Partial, sweep, |events| finish(events, Status::Interrupted, None));
        self.plan("killed in its window", Partial, long, |events| open_window(events, 0, 8));
        self.plan("killed between two points", Partial, sweep, |events| {
            let second = events.iter().position(|e| matches!(e, Event::Phase { point: 1, .. })).unwrap();
            events.truncate(second);
        });
        self.plan("failed in its window", Failed, long, |events| {
            open_window(events, 0, 5);
            events.push(Event::Finished { status: Status::Failed, error: Some("disk <full>".into()) });
        });
        self.plan("failed after its window", Failed, closed, |events| {
            finish(events, Status::Failed, Some("every user gave up"));
        });
        self.plan("a broken invariant and an interruption", Partial, closed, |events| {
            events.insert(
                events.len() - 1,
                Event::Invariant { point: 0, invariant: Invariant::new("counts agree", false, "1, 2") },
            );
            finish(events, Status::Interrupted, None);
        });
        self.plan("nothing was measured", Void, closed, |events| {
            windows(events).for_each(|window| (window.elapsed, window.client_headline) = (0, 0));
            events.retain(|e| !matches!(e, Event::Second(second) if second.second >= 0));
        });
    }

    /// A run that its study excludes.
    fn left_out(&mut self, closed: &Plan) {
        self.plan("left out by its study", Void, closed, |_| {});
        let group = NewGroup {
            kind: GroupKind::Study,
            name: None,
            created: jiff::Timestamp::UNIX_EPOCH,
            body: serde_json::json!({}),
        };
        let (group, run) = (self.store.begin_group(&group).unwrap(), self.run("left out by its study"));
        self.store
            .enter_group(group, run, &GroupSlot { place: 0, block: 0, treatment: String::new() })
            .unwrap();
        self.store.set_void(run, "it has no value of the goal's metric").unwrap();
    }

    /// Runs that the command makes itself.
    fn by_the_command(&mut self) {
        self.place.write("data", vec![7; 1 << 20]);
        let io = ["run", "io", "--set", "filename=data", "--set", "number_ios=200", "--no-observe", "-q"];
        let job = self.place.write("job.fio", "[reader]\nrw=randread\nbs=4k\nsize=1m\nioengine=psync\n");
        self.place.expect(0, &[&io[..], &["--job", job.to_str().unwrap()]].concat());
        self.place
            .expect(0, &["run", "tproc-c", "--transactions", "30", "--users", "2", "--no-observe", "-q"]);
        for (index, name) in ["I/O", "SQLite"].into_iter().enumerate() {
            let id = self.store.runs().unwrap().len() as i64 - 1 + index as i64;
            self.add(name, RunId(id), None);
        }
    }
}

/// The list of runs has the state and headline of the reports, and the key figures have their percentile.
#[test]
fn trial_d4_thirty_runs_have_one_state_headline_and_percentile_everywhere() {
    let made = make_runs();
    assert!(made.runs.len() >= 30, "{}", made.runs.len());
    // Stored as at the end of a run by the command. The oldest runs have nothing else for the list.
    for (_, run, _) in made.runs.iter().take(10) {
        let stored = made.store.load(*run).unwrap();
        let judged = judge(&stored, &Evidence::from_run(&stored).unwrap()).unwrap();
        made.store.keep_judgement(*run, &judged.run).unwrap();
    }
    let mut lists = Lists::read(&made.place);
    for (name, run, expected) in &made.runs {
        let report = lists.hold_together(name, &made.store, *run);
        if let Some(expected) = expected {
            assert_eq!(report.judgement.state, *expected, "{name}: {:?}", report.judgement);
        }
    }
    let compared = lists.compared;
    // Each run has a headline except those that ended before their window, and each observed run has a verdict.
    let runs = made.runs.len();
    assert!(compared.headlines + 4 >= runs && compared.verdicts >= 3, "{compared:?} of {runs} runs");
    assert!(compared.times > 10 * runs && compared.bounds > 0, "{compared:?} of {runs} runs");
}

/// A run that began is stored. Its state determines the exit code, even if nothing was measured.
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

/// A gate on a candidate that does not count writes its files, which report that, and ends with a separate exit code.
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
    assert!(said.contains("void") && said.contains("candidate: 2: no counted run"), "{said}");
    let written = std::fs::read_to_string(&junit).unwrap();
    assert!(
        written.contains("errors=\"1\"") && written.contains("<error type=\"void\" message=\""),
        "{written}"
    );
    assert!(written.contains("run 2 is left out, void: condition 10 does not hold"), "{written}");
}
