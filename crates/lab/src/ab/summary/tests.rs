use kelvin_store::{GroupSlot, RunId};

use super::*;
use crate::ab::order::order;
use crate::repeat::Steady;
use crate::simulated::figure;
use crate::simulated::studies::plan;
use kelvin_run::Spec;
use kelvin_run::spec::WorkloadName;

/// Runs in the order of the plan; `of` returns the value of a treatment in a block.
fn rows(plan: &AbPlan, blocks: u32, of: impl Fn(u32, &str) -> f64) -> Vec<GroupRun> {
    let treatments = plan.treatments();
    let mut rows = Vec::new();
    for block in 0..blocks {
        for index in order(plan.seed, plan.sides.len(), plan.control, block) {
            let treatment = treatments[index].name.clone();
            let value = of(block, &treatment);
            rows.push(GroupRun {
                run: RunId(rows.len() as i64 + 1),
                slot: GroupSlot { place: rows.len() as u32, block, treatment },
                void: None,
                figures: vec![figure("tps", value), figure("p50", 9.0 / value), figure("p99", 30.0 / value)],
                steady: Steady::Unknown,
                noise: None,
                failed: 0,
            });
        }
    }
    rows
}

/// The level of the block, a little noise, and an effect of B.
fn value(effect: f64) -> impl Fn(u32, &str) -> f64 {
    move |block, treatment| {
        let which = usize::from(treatment.as_bytes()[0]) + 2 * treatment.len();
        let noise = [0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1][(block as usize * 3 + which) % 7];
        let planted = if treatment.starts_with('B') { 1.0 + effect } else { 1.0 };
        f64::from(900 + 40 * block) * planted * (1.0 + noise / 100.0)
    }
}

#[test]
fn a_difference_beyond_noise_and_floor_is_a_change() {
    let plan = plan();
    let summary = AbSummary::of(&plan, &rows(&plan, 6, value(-0.05)));
    let found = &summary.comparisons[0];
    assert_eq!(found.verdict, ChangeVerdict::Changed);
    assert!(found.low < 0.95 && 0.95 < found.high && found.high < 1.0, "{found:?}");
    // 2 of 2⁶ sign patterns are as far from 1.
    assert_eq!(found.p, 2.0 / 64.0);
    assert!(found.p_of_t < 1e-6, "{found:?}");
    assert_eq!(found.noise, plan.noise);
    let control = summary.control.unwrap();
    assert!(control.low < 1.0 && 1.0 < control.high && control.floor < 0.01, "{control:?}");
    assert_eq!((summary.complete, summary.is_complete(), summary.void.len()), (6, true, 0));
    assert!(summary.detectable.unwrap() < 0.02);
    // Both other metrics agree, each with p doubled because there are two.
    let others: Vec<(&str, f64)> =
        summary.exploratory.iter().map(|e| (e.figure.id.as_str(), e.adjusted)).collect();
    assert_eq!(others, [("p50", 4.0 / 64.0), ("p99", 4.0 / 64.0)]);
}

#[test]
fn what_is_below_the_control_s_floor_is_within_noise_and_nothing_is_no_change() {
    let plan = plan();
    let verdict = |rows: &[GroupRun]| AbSummary::of(&plan, rows).comparisons[0].verdict;
    assert_eq!(verdict(&rows(&plan, 6, value(0.006))), ChangeVerdict::WithinNoise);
    assert_eq!(verdict(&rows(&plan, 6, value(0.0))), ChangeVerdict::NoChange);
    assert_eq!(verdict(&rows(&plan, 3, value(-0.05))), ChangeVerdict::NotTestable);
    // A and A' differ by 8 %, in alternating directions: an effect of 3 % cannot be resolved, although B is that much
    // below their mean in every block.
    let torn = |block: u32, treatment: &str| {
        let apart = if block.is_multiple_of(2) { 1.04 } else { 1.0 / 1.04 };
        match treatment {
            "A" => 1000.0 * apart,
            "A'" => 1000.0 / apart,
            _ => 970.0 + f64::from(block % 3),
        }
    };
    let summary = AbSummary::of(&plan, &rows(&plan, 6, torn));
    assert_eq!(summary.comparisons[0].verdict, ChangeVerdict::WithinNoise);
    assert!(summary.comparisons[0].noise > 0.04, "{:?}", summary.comparisons);
    assert!(AbSummary::of(&plan, &[]).comparisons.is_empty());
}

#[test]
fn a_block_that_lacks_a_run_is_shown_and_not_counted() {
    let plan = plan();
    let mut all = rows(&plan, 6, value(-0.05));
    all[4].void = Some("steal".into());
    let summary = AbSummary::of(&plan, &all);
    assert_eq!((summary.complete, summary.blocks.len(), summary.is_complete()), (5, 6, false));
    let line = &summary.blocks[1];
    assert_eq!(line.values.iter().filter(|value| value.is_none()).count(), 1);
    assert_eq!(line.ratios, [None]);
    assert_eq!((summary.void[0].run, summary.void[0].why.as_str()), (5, "steal"));
}

#[test]
fn three_sides_share_the_error_between_them() {
    let spec = Spec::new(WorkloadName::TprocC);
    let sides = ["a.toml", "b.toml", "c.toml"].map(|file| (file.to_owned(), spec.clone()));
    let plan = AbPlan { control: false, ..AbPlan::of(&sides) };
    let summary = AbSummary::of(&plan, &rows(&plan, 6, value(-0.05)));
    let verdicts: Vec<(&str, ChangeVerdict)> =
        summary.comparisons.iter().map(|one| (one.side.as_str(), one.verdict)).collect();
    assert_eq!(verdicts, [("B", ChangeVerdict::Changed), ("C", ChangeVerdict::NoChange)]);
    assert!(summary.comparisons.iter().all(|one| (one.confidence - 0.975).abs() < 1e-12));
    assert!(summary.control.is_none() && summary.exploratory.len() == 4);
}

#[test]
fn trial_d5_noise_costs_blocks_as_far_as_the_scatter_goes_with_it() {
    let price = |estimate: f64| kelvin_diagnose::NoisePrice {
        low: 0.0,
        estimate,
        high: 1.5 * estimate,
        accepted: true,
    };
    // Other processes took a different share of each run, up to 20 %.
    let taken = |place: usize| f64::from((place * 7 % 11) as u32) * 0.02;
    let plan = plan();
    let noisy = |lost: bool| {
        let mut rows = rows(&plan, 12, value(-0.05));
        for (place, row) in rows.iter_mut().enumerate() {
            row.noise = Some(price(taken(place)));
            if lost {
                let kept = row.figures[0].value.unwrap() * (1.0 - taken(place));
                row.figures[0].value = Some(kept);
            }
        }
        AbSummary::of(&plan, &rows).noise.unwrap()
    };
    let dear = noisy(true);
    assert!((dear.runs.high - 0.3).abs() < 1e-9 && dear.runs.accepted && dear.runs.runs == 48, "{dear:?}");
    assert!(dear.explained.unwrap() > 0.9 && dear.more_blocks.unwrap() > 100, "{dear:?}");
    let cheap = noisy(false);
    assert!(cheap.explained.unwrap() < 0.2 && cheap.more_blocks.unwrap() <= 3, "{cheap:?}");
    assert_eq!(AbSummary::of(&plan, &rows(&plan, 6, value(0.0))).noise, None);
}

#[test]
fn trial_a3_a_comparison_of_an_earlier_version_reads_as_it_was_made() {
    // Its plan does not state that only A ran twice, since that was the only option.
    let mut stored = serde_json::to_value(plan()).unwrap();
    stored.as_object_mut().unwrap().remove("control-of-a");
    let plan: AbPlan = serde_json::from_value(stored).unwrap();
    let names: Vec<String> = plan.treatments().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["A", "A'", "B"]);
    let all = rows(&super::AbPlan { control_of_a: false, ..plan.clone() }, 6, value(-0.05));
    let all: Vec<GroupRun> = all.into_iter().filter(|row| row.slot.treatment != "B'").collect();
    let summary = AbSummary::of(&plan, &all);
    assert_eq!((summary.complete, summary.comparisons[0].verdict), (6, ChangeVerdict::Changed));
    // A'/A scatters by √2 times a run's scatter, and B over the mean of both by √(3/2).
    let control = summary.control.unwrap();
    let width = half_width(control.low, control.high).ln_1p();
    assert!((control.floor.ln_1p() / width - 0.75_f64.sqrt()).abs() < 1e-9, "{control:?}");
    // The order in which they ran.
    let ran: Vec<&str> = all[..3].iter().map(|row| row.slot.treatment.as_str()).collect();
    assert_eq!(summary.blocks[0].order, ran);
}
