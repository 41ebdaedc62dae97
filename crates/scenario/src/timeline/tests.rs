//! Timelines in which anything may follow anything.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::{Scenario, ScenarioError};

/// The text of a tenant's table by its kind.
fn tenant(number: usize, kind: usize, copies: &str) -> String {
    let script = "workload = \"script\"\ntarget = \"sqlite:x.db\"\nscript = { scripts = [{ name = \"a\", text = \"select 1\" }] }";
    let job = |more: &str| {
        format!("workload = \"io\"\nio = {{ job = \"[j]\\nioengine=null\\nsize=1m\\nfilename=f\\n{more}\" }}")
    };
    let load = match kind {
        0 => format!("{script}\nload = {{ users = 2, rate = 10 }}"),
        1 => format!("{script}\nload = {{ users = 3 }}"),
        2 => job(""),
        3 => job("rate_iops=10\\n"),
        4 => job("runtime=2s\\ntime_based=1\\n"),
        _ => job("runtime=2s\\ntime_based=1\\nrate_iops=10\\n"),
    };
    format!("[tenants.t{number}]\n{copies}\n{load}\n")
}

/// Names of tenants that are there, of copies that may be there, and of some that are not.
fn names() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        8 => (0..3_usize).prop_map(|number| format!("\"t{number}\"")),
        2 => Just("\"t0-1\"".to_owned()),
        1 => Just("\"${each}\"".to_owned()),
        1 => Just("\"t${round}\"".to_owned()),
        1 => Just("\"x\"".to_owned()),
    ];
    prop_oneof![
        4 => name.clone(),
        3 => prop::collection::vec(name, 0..4).prop_map(|names| format!("[{}]", names.join(", "))),
    ]
}

fn span() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "0s",
        "1ms",
        "500ms",
        "1s",
        "3s",
        "30d",
        "31d",
        "-1s",
        "1",
        "",
        "${each}",
        "${round}s",
    ])
}

/// A span that is most often one.
fn usual_span() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => prop::sample::select(vec!["1s", "2s", "5s", "500ms"]), 1 => span()]
}

fn number() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => prop::sample::select(vec!["1", "2", "20"]),
        1 => prop::sample::select(vec!["0", "-1", "nan", "inf", "1e308", "4294967296", "9223372036854775807", "[1, 2]", "\"${each}\""]),
    ]
}

fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        (names(), prop::option::of(usual_span()), prop::option::of(usual_span())).prop_map(
            |(names, lasts, apart)| {
                let lasts = lasts.map_or_else(String::new, |lasts| format!(", for = \"{lasts}\""));
                let apart = apart.map_or_else(String::new, |apart| format!(", stagger = \"{apart}\""));
                format!("{{ start = {names}{lasts}{apart} }}")
            }
        ),
        names().prop_map(|names| format!("{{ stop = {names} }}")),
        (names(), number()).prop_map(|(names, rate)| format!("{{ set = {names}, rate = {rate} }}")),
        (names(), number()).prop_map(|(names, users)| format!("{{ set = {names}, users = {users} }}")),
        usual_span().prop_map(|span| format!("{{ wait = \"{span}\" }}")),
        names().prop_map(|names| format!("{{ wait-for = {names} }}")),
        (names(), span()).prop_map(|(names, span)| format!("{{ wait-for = {names}, timeout = \"{span}\" }}")),
        (prop::sample::select(vec!["prepare", "fill"]), names())
            .prop_map(|(verb, names)| format!("{{ {verb} = {names} }}")),
        Just("{ mark = \"a\" }".to_owned()),
        Just("{ run = \"true\" }".to_owned()),
        prop::sample::select(vec![
            "{}",
            "1",
            "{ mark = 1 }",
            "{ mark = \"a\", wait = \"1s\" }",
            "{ wait = \"1s\", for = \"1s\" }"
        ])
        .prop_map(str::to_owned),
    ]
}

fn step() -> impl Strategy<Value = String> {
    leaf().prop_recursive(8, 24, 3, |inner| {
        let rounds = prop_oneof![
            8 => prop::sample::select(vec!["repeat = 2", "repeat = 3", "for-each = [\"t0\", \"t1\"]"]),
            1 => prop::sample::select(vec!["repeat = 0", "repeat = -1", "repeat = 1000", "repeat = 1001", "for-each = []",
                "for-each = [1, {}, [\"t0\"]]", "for-each = 1", "repeat = 2, for-each = [1]"]),
        ];
        (rounds, prop::collection::vec(inner, 0..3))
            .prop_map(|(rounds, steps)| format!("{{ {rounds}, steps = [{}] }}", steps.join(", ")))
    })
}

/// A file: often one that begins with every tenant's start and ends with a wait.
fn file() -> impl Strategy<Value = String> {
    let copies = prop::sample::select(vec![
        "",
        "",
        "",
        "copies = 2",
        "for-each = [1, \"b\", 2.5]",
        "copies = 0",
        "for-each = []",
    ]);
    let tenants = prop::collection::vec((0..6_usize, copies), 1..4);
    let begins =
        prop::sample::select(vec!["", "start", "start", "start, stagger = \"3s\"", "start, for = \"2s\""]);
    (tenants, begins, prop::collection::vec(step(), 0..5)).prop_map(|(tenants, begins, mut steps)| {
        if let Some(more) = begins.strip_prefix("start") {
            let names: Vec<String> = (0..tenants.len()).map(|number| format!("\"t{number}\"")).collect();
            steps.insert(0, format!("{{ start = [{}]{more} }}", names.join(", ")));
            steps.push("{ wait = \"1s\" }".to_owned());
        }
        let tenants: String =
            (0..).zip(tenants).map(|(number, (kind, copies))| tenant(number, kind, copies)).collect();
        format!("scenario = \"any\"\nsteps = [\n{}\n]\n{tenants}", steps.join(",\n"))
    })
}

/// What must be true of every plan, whatever the steps are.
fn holds(scenario: &Scenario) -> Result<(), TestCaseError> {
    let planned = &scenario.timeline.steps;
    prop_assert_eq!(planned.len(), scenario.steps.len());
    let mut begun = false;
    let mut last = 0.0;
    // Of each tenant: whether a start of it was not yet followed by a stop or a wait for it, and when it ends by itself.
    let mut started = vec![false; scenario.tenants.len()];
    let mut on: Vec<Option<f64>> = vec![None; scenario.tenants.len()];
    for (index, (step, plan)) in scenario.steps.iter().zip(planned).enumerate() {
        prop_assert_eq!(plan.number, index + 1);
        prop_assert!(!plan.text.is_empty());
        let has_none = matches!(step.action, Action::Wait(_) | Action::Run { .. } | Action::Mark(_));
        prop_assert_eq!(step.action.tenants().is_empty(), has_none);
        begun |= matches!(step.action, Action::Start { .. });
        prop_assert_eq!(plan.at.is_some(), begun, "{:?}", plan);
        let at = plan.at.unwrap_or_default();
        prop_assert!(at.is_finite() && at >= last, "{:?} after {}", plan, last);
        last = at;
        for (number, &tenant) in (0_u32..).zip(step.action.tenants()) {
            let one = &scenario.tenants[tenant];
            match &step.action {
                Action::Prepare(_) | Action::Fill(_) => prop_assert!(!begun),
                Action::Start { tenants, lasts, stagger } => {
                    prop_assert!(
                        on[tenant].is_none_or(|end| end <= at),
                        "{} is at work in {:?}",
                        one.name,
                        plan
                    );
                    let begins = at + (gap(*stagger, tenants.len()) * number).as_secs_f64();
                    let lasts = lasts
                        .or_else(|| one.lasts())
                        .map_or(f64::INFINITY, |lasts| lasts.duration().as_secs_f64());
                    (started[tenant], on[tenant]) = (true, Some(begins + lasts));
                }
                Action::Stop(_) => {
                    prop_assert!(on[tenant].is_some(), "{} is stopped twice in {:?}", one.name, plan);
                    on[tenant] = None;
                }
                Action::Rate(_, rate) => {
                    prop_assert!(on[tenant].is_some() && rate.is_finite() && *rate > 0.0);
                }
                Action::Users(_, users) => {
                    prop_assert!(on[tenant].is_some() && *users > 0 && one.users >= *users);
                }
                Action::WaitFor { .. } => {
                    prop_assert!(started[tenant]);
                    prop_assert!(
                        on[tenant].is_none_or(f64::is_finite),
                        "{} never ends: {:?}",
                        one.name,
                        plan
                    );
                    on[tenant] = None;
                }
                Action::Wait(_) | Action::Run { .. } | Action::Mark(_) => {}
            }
        }
    }
    prop_assert!(started.iter().all(|started| *started));
    prop_assert!(
        scenario.timeline.seconds >= last && (scenario.timeline.seconds > 0.0 || scenario.timeline.at_least)
    );
    Ok(())
}

/// What is wrong with the file as a whole has no line.
fn has_place(error: &ScenarioError, text: &str) -> bool {
    let numbers = error.place.strip_prefix("x.toml:").and_then(|place| place.split_once(':'));
    let numbers = numbers.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
    let whole = ["no step starts the tenant", "ends immediately"];
    numbers.map_or_else(
        || error.place == "x.toml" && whole.iter().any(|whole| error.message.contains(whole)),
        |(line, column): (usize, usize)| {
            let line = text.lines().nth(line.wrapping_sub(1));
            line.is_some_and(|line| (1..=line.chars().count() + 1).contains(&column))
        },
    )
}

#[test]
fn any_file_has_a_plan_that_holds_or_an_error_with_its_place() {
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 2000, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let plans = std::cell::Cell::new(0);
    let result = runner.run(&file(), |text| {
        let began = std::time::Instant::now();
        match Scenario::parse(&text, "x.toml", Path::new(""), &[]) {
            Ok(scenario) => {
                plans.set(plans.get() + 1);
                holds(&scenario)?;
            }
            Err(error) => prop_assert!(!error.message.is_empty() && has_place(&error, &text), "{}", error),
        }
        prop_assert!(began.elapsed().as_secs() < 10);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(plans.get() >= 100, "only {} of 2000 files have a plan", plans.get());
}

/// Rounds within rounds end although no step is in them.
#[test]
fn rounds_without_a_step_are_refused() {
    let mut steps = "{ mark = \"never\" }".to_owned();
    for rounds in ["for-each = []", "repeat = 1000", "repeat = 1000", "repeat = 1000", "repeat = 1000"] {
        steps = format!("{{ {rounds}, steps = [{steps}] }}");
    }
    let text = format!("scenario = \"any\"\nsteps = [{steps}]\n{}", tenant(0, 0, ""));
    let error = Scenario::parse(&text, "x.toml", Path::new(""), &[]).unwrap_err().to_string();
    assert!(error.contains("x.toml:2:") && error.contains("0 rounds are out of range"), "{error}");
}
