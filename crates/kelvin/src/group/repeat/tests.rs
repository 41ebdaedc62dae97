use kelvin_lab::repeat::{GroupRun, Steady};
use kelvin_lab::simulated::figure;
use kelvin_run::Spec;
use kelvin_run::spec::{ResetMethod, StartingData, WorkloadName};
use kelvin_store::{GroupSlot, RunId};

use super::*;

fn rows(values: &[f64]) -> Vec<GroupRun> {
    let row = |(place, value): (usize, &f64)| GroupRun {
        run: RunId(place as i64 + 11),
        slot: GroupSlot { place: place as u32, block: place as u32, treatment: String::new() },
        void: None,
        figures: vec![figure("tps", *value), figure("server-cpu", 2.4e6 / value), figure("p99", 3.0)],
        steady: Steady::Yes,
        noise: None,
        failed: 0,
    };
    values.iter().enumerate().map(row).collect()
}

const VALUES: [f64; 8] = [12_034.0, 12_101.0, 11_987.5, 12_080.0, 11_921.0, 12_011.0, 12_067.0, 11_950.0];

#[test]
fn a_yes_has_everything_that_makes_it_one() {
    let plan = RepeatPlan::fixed(&Spec::new(WorkloadName::Pgbench), 6);
    let mut all = rows(&VALUES[..7]);
    all[2].void = Some(
        "void: Another machine's guests took 9.1 % of this one's processors while it was measured".into(),
    );
    insta::assert_snapshot!(
        "repeats_yes",
        page(&plan, &RepeatSummary::from_runs(&plan, &all), "template: every run starts with the same data")
    );
}

#[test]
fn a_negative_answer_names_what_is_missing() {
    let spec = Spec::new(WorkloadName::Pgbench);
    let mut text = String::new();
    let unreset = stored::describe_resets(&[(String::new(), Some(StartingData::Left))], HOW_TO_RESET);
    let few = RepeatPlan::fixed(&spec, 3);
    text.push_str(&page(&few, &RepeatSummary::from_runs(&few, &rows(&VALUES[..3])), &unreset));
    let until = RepeatPlan::until(&spec, 6, 30, 0.004);
    text.push_str(&page(&until, &RepeatSummary::from_runs(&until, &rows(&VALUES)), &unreset));
    let mut drifting = rows(&[12_000.0, 11_700.0, 11_350.0, 11_020.0, 10_650.0, 10_400.0]);
    drifting[1].steady = Steady::No("Throughput fell by 12 % within the window".into());
    drifting[3].failed = 4;
    drifting[5].steady = Steady::Unknown;
    let fixed = RepeatPlan { replace: 0, ..RepeatPlan::fixed(&spec, 6) };
    text.push_str(&page(&fixed, &RepeatSummary::from_runs(&fixed, &drifting), &unreset));
    drifting[0].void = Some("partial: it was interrupted".into());
    text.push_str(&page(&fixed, &RepeatSummary::from_runs(&fixed, &drifting[..2]), &unreset));
    insta::assert_snapshot!("repeats_no", text);
}

#[test]
fn the_list_has_a_short_answer() {
    let plan = RepeatPlan::fixed(&Spec::new(WorkloadName::Pgbench), 6);
    let short = |values: &[f64]| summary_line(&RepeatSummary::from_runs(&plan, &rows(values)));
    let words = [short(&VALUES), short(&VALUES[..4]), short(&[]), short(&[1.0; 1])];
    assert_eq!(words, ["yes, ± 0.76 %", "no, 2 more, ± 1.26 %", "no, 6 more", "no, 5 more"]);
}

#[test]
fn shares_read_well() {
    assert_eq!([0.01, 0.0085, 0.123, 2.99].map(trimmed_percent), ["1 %", "0.85 %", "12 %", "299 %"]);
    assert_eq!([0.031, -0.031, 0.0].map(change), ["+3.1 %", "-3.1 %", "+0 %"]);
    assert_eq!((describe_p(0.0004), describe_p(0.03125)), ("p < 0.001".into(), "p = 0.031".into()));
}

#[test]
fn a_group_shows_whether_its_runs_began_from_the_same_data() {
    let side = |name: &str, how| (name.to_owned(), how);
    let words = |sides: &[(String, Option<StartingData>)]| stored::describe_resets(sides, "WRITE THIS");
    let auto = Some(StartingData::Reset(ResetMethod::Auto));
    assert_eq!(words(&[side("A", auto), side("B", auto)]), "auto: every run starts with the same data");
    let none = words(&[side("", Some(StartingData::Left))]);
    assert!(none.starts_with("none: ") && none.contains("WRITE THIS"), "{none}");
    let mixed = words(&[side("A", auto), side("B", Some(StartingData::Left)), side("A'", auto)]);
    assert!(mixed.contains("(A: auto, B: none, A': auto)") && mixed.contains("WRITE THIS"), "{mixed}");
    assert!(words(&[side("", Some(StartingData::Made))]).contains("builds its data"));
    assert!(words(&[side("", None)]).starts_with("not known"));
    assert_eq!(words(&[]), "no runs");
}
