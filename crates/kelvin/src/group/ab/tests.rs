use kelvin_lab::ab::order;
use kelvin_lab::repeat::{GroupRun, Steady};
use kelvin_lab::simulated::figure;
use kelvin_run::Spec;
use kelvin_run::spec::WorkloadName;
use kelvin_store::GroupSlot;

use super::*;

pub(crate) fn plan(files: &[&str]) -> AbPlan {
    let spec = Spec::new(WorkloadName::Pgbench);
    let sides: Vec<(String, Spec)> = files.iter().map(|file| ((*file).to_owned(), spec.clone())).collect();
    let plan = AbPlan::new(&sides);
    AbPlan { replace: plan.replacements(plan.blocks), ..plan }
}

/// Runs in the order of the plan, with a level per block, a little noise, and an effect of B.
pub(crate) fn rows(plan: &AbPlan, blocks: u32, effect: f64) -> Vec<GroupRun> {
    let treatments = plan.treatments();
    let mut rows = Vec::new();
    for block in 0..blocks {
        for index in order::order(plan.seed, plan.sides.len(), plan.control, block) {
            let treatment = treatments[index].name.clone();
            let which = usize::from(treatment.as_bytes()[0]) + 2 * treatment.len();
            let noise = [0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1][(block as usize * 3 + which) % 7];
            let planted = if treatment.starts_with('B') { 1.0 + effect } else { 1.0 };
            let value = f64::from(12_000 + 140 * block) * planted * (1.0 + noise / 100.0);
            rows.push(GroupRun {
                run: RunId(rows.len() as i64 + 21),
                slot: GroupSlot { place: rows.len() as u32, block, treatment },
                void: None,
                figures: vec![
                    figure("tps", value),
                    figure("p95", 4e4 / value),
                    figure("server-cpu", 2.4e6 / value),
                ],
                steady: Steady::Unknown,
                noise: None,
                failed: 0,
            });
        }
    }
    rows
}

fn difference(intended: bool, what: &str, a: &str, b: &str) -> Difference {
    Difference { side: "B".into(), intended, what: what.into(), a: a.into(), b: b.into() }
}

#[test]
fn a_change_is_reported_with_its_evidence() {
    let plan = plan(&["a.toml", "b.toml"]);
    let mut all = rows(&plan, 6, -0.05);
    let mut void = all[4].clone();
    void.run = RunId(99);
    void.void = Some("void: Another machine's guests took 9.1 % of this one's processors".into());
    all.insert(4, void);
    let differs = [
        difference(true, "load.users", "\"4\"", "\"8\""),
        difference(false, "database.settings.shared_buffers", "128MB (file)", "256MB (file)"),
    ];
    insta::assert_snapshot!(
        "ab_changed",
        page(
            &plan,
            &AbSummary::from_runs(&plan, &all),
            &differs,
            "auto: every run starts with the same data",
            false
        )
    );
}

#[test]
fn what_is_not_shown_is_not_claimed() {
    let mut text = String::new();
    let mut add = |plan: &AbPlan, rows: &[GroupRun]| {
        text.push_str(&page(plan, &AbSummary::from_runs(plan, rows), &[], "none: …", false));
    };
    let two = plan(&["a.toml", "b.toml"]);
    add(&two, &rows(&two, 6, 0.0));
    add(&two, &rows(&two, 3, -0.05));
    add(&AbPlan { noise: 0.1, ..two.clone() }, &rows(&two, 6, -0.05));
    let early = AbPlan { blocks: 20, stop_early: true, ..two.clone() };
    add(&early, &rows(&early, 10, -0.05));
    let planned = AbPlan { effect: Some(0.03), control: false, ..two };
    add(&planned, &rows(&planned, 6, -0.05));
    let three = AbPlan { control: false, ..plan(&["a.toml", "b.toml", "c.toml"]) };
    add(&three, &rows(&three, 6, 0.04));
    add(&three, &[]);
    insta::assert_snapshot!("ab_others", text);
}

#[test]
fn each_event_is_one_line() {
    let plan = AbPlan { effect: Some(0.03), power: 0.9, ..plan(&["a.toml", "b.toml"]) };
    let row = &rows(&plan, 1, 0.0)[0];
    let planning = Planning { pilot: 6, sd: 0.021, freedom: 10, needed: Some(14), blocks: 14 };
    let short = Planning { needed: Some(140), blocks: 60, ..planning.clone() };
    let left = std::time::Duration::from_mins(5);
    let look = InterimLook { blocks: 10, nominal: 0.0031 };
    let lines: Vec<String> = [
        AbEvent::Ran { row, blocks: 6, pilot: true, left },
        AbEvent::Failed { error: "no server".into() },
        AbEvent::Planned { planning: &planning, left },
        AbEvent::Planned { planning: &short, left },
        AbEvent::Looks(&[look, InterimLook { blocks: 20, nominal: 0.049 }]),
        AbEvent::Looked { look, ends: false },
        AbEvent::Looked { look, ends: true },
    ]
    .iter()
    .map(|progress| describe_progress(progress, &plan))
    .collect();
    insta::assert_snapshot!("ab_events", lines.join("\n"));
}

#[test]
fn trial_d9_if_a_side_has_no_run_differences_are_unknown() {
    let two = plan(&["a.toml", "b.toml"]);
    let only_a: Vec<GroupRun> =
        rows(&two, 1, 0.0).into_iter().filter(|row| row.slot.treatment.starts_with('A')).collect();
    let of = |rows: &[GroupRun]| page(&two, &AbSummary::from_runs(&two, rows), &[], "none: …", false);
    let shown = of(&only_a);
    assert!(shown.contains("B has no run: the differences between the sides are not known"), "{shown}");
    assert!(!shown.contains("no recorded difference"), "{shown}");
    assert!(of(&rows(&two, 1, 0.0)).contains("no recorded difference"), "both ran");
}

#[test]
fn trial_d5_accepted_noise_is_reported_if_its_cost_is_unknown() {
    let of = |accept_noise: bool| {
        let spec = Spec { accept_noise, ..Spec::new(WorkloadName::Pgbench) };
        let plan = AbPlan::new(&[("a.toml".to_owned(), spec.clone()), ("b.toml".to_owned(), spec)]);
        page(&plan, &AbSummary::from_runs(&plan, &rows(&plan, 4, 0.0)), &[], "none: …", false)
    };
    assert!(of(true).contains("noise    accepted (--accept-noise)"), "{}", of(true));
    assert!(!of(false).contains("accept-noise"));
}
