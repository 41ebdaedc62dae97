use std::cell::RefCell;

use super::*;
use crate::Planned;
use crate::ab::AbSummary;
use crate::simulated::studies::plan;
use crate::simulated::{Simulated, Simulation};
use kelvin_run::spec::WorkloadName;

fn specs() -> Vec<Spec> {
    vec![Spec::new(WorkloadName::TprocC); 3]
}

fn describe(progress: &AbEvent<'_>) -> String {
    match progress {
        AbEvent::Ran { row, blocks, pilot, left } => {
            format!(
                "{} of {blocks}{}, {} s",
                row.slot.block + 1,
                if *pilot { "?" } else { "" },
                left.as_secs()
            )
        }
        AbEvent::Failed { error } => error.clone(),
        AbEvent::Planned { planning, left } => format!("{} blocks, {} s", planning.blocks, left.as_secs()),
        AbEvent::Looks(looks) => format!("looks: {}", looks.len()),
        AbEvent::Looked { look, ends } => format!("look at {}: {ends}", look.blocks),
    }
}

#[test]
fn every_block_has_every_side_twice_with_one_seed() {
    let seen = RefCell::new(Vec::new());
    let mut bench = Simulated::new(|planned: &Planned<'_>| {
        seen.borrow_mut().push((planned.slot.block, planned.slot.treatment.clone(), planned.spec.load.seed));
        Ok(Simulation::new(100.0))
    });
    let ran = run(&plan(), &specs(), GroupId(1), &mut bench, &describe).unwrap();
    assert!(matches!(ran.ended, RepeatEnd::Done));
    assert_eq!(bench.messages.first().map(String::as_str), Some("1 of 6, 230 s"));
    drop(bench);
    let seen = seen.into_inner();
    assert_eq!(seen.len(), 24);
    for (number, block) in seen.chunks(4).enumerate() {
        let mut names: Vec<&str> = block.iter().map(|(_, name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["A", "A'", "B", "B'"]);
        assert!(block.iter().all(|(of, _, seed)| *of == number as u32 && *seed == 1 + number as u64));
    }
}

#[test]
fn a_void_run_is_replaced_within_its_block_until_the_budget_is_used_up() {
    let mut plan = plan();
    plan.replace = 1;
    let of = |void: &'static [u32]| {
        let mut bench = Simulated::new(move |planned: &Planned<'_>| {
            let run = Simulation::new(100.0 + f64::from(planned.slot.place % 3));
            Ok(if void.contains(&planned.slot.place) { run.void("steal") } else { run })
        });
        run(&plan, &specs(), GroupId(1), &mut bench, &describe).unwrap()
    };
    let ran = of(&[4]);
    assert!(matches!(ran.ended, RepeatEnd::Done));
    assert_eq!((ran.rows[4].slot.block, ran.rows[5].slot.block), (1, 1));
    assert_eq!(ran.rows[4].slot.treatment, ran.rows[5].slot.treatment);
    let summary = AbSummary::from_runs(&plan, &ran.rows);
    assert_eq!((summary.complete, summary.void.len(), summary.too_many_void), (6, 1, false));

    let ran = of(&[4, 10]);
    assert!(matches!(ran.ended, RepeatEnd::TooManyVoid));
    let summary = AbSummary::from_runs(&plan, &ran.rows);
    assert!(summary.too_many_void && summary.complete == 2 && !summary.is_complete());
}

#[test]
fn a_pilot_says_how_many_blocks_there_are() {
    let plan = AbPlan { effect: Some(0.03), ..plan() };
    let mut bench = Simulated::new(|planned: &Planned<'_>| {
        // ± 5 %, unrelated to the sides.
        let noise = if (planned.slot.place * planned.slot.place) % 5 < 2 { 1.05 } else { 0.95 };
        Ok(Simulation::new(100.0 * noise))
    });
    let ran = run(&plan, &specs(), GroupId(1), &mut bench, &describe).unwrap();
    let summary = AbSummary::from_runs(&plan, &ran.rows);
    let planning = summary.course.planning.clone().unwrap();
    assert!(planning.blocks > 12 && summary.complete == planning.blocks, "{planning:?}");
    assert!(planning.pilot > 6, "planned again at the planned end: {planning:?}");
    assert_eq!(ran.rows.len(), 4 * planning.blocks as usize);
    let planned = bench.messages.iter().filter(|text| text.contains("blocks")).count();
    assert!(planned >= 1, "{:?}", bench.messages);
    assert_eq!(bench.messages[0], "1 of 6?, 230 s");
}

#[test]
fn a_clear_difference_ends_it_at_a_look_and_no_other_does() {
    let plan = AbPlan { blocks: 20, stop_early: true, ..plan() };
    let of = |slower: f64| {
        let mut bench = Simulated::new(move |planned: &Planned<'_>| {
            let noise = 1.0 + 0.01 * f64::from((planned.slot.place * 7) % 5) - 0.02;
            let planted = if planned.slot.treatment.starts_with('B') { 1.0 - slower } else { 1.0 };
            Ok(Simulation::new(100.0 * noise * planted))
        });
        let ran = run(&plan, &specs(), GroupId(1), &mut bench, &describe).unwrap();
        (AbSummary::from_runs(&plan, &ran.rows), bench.messages)
    };
    let (clear, messages) = of(0.1);
    assert!(clear.stopped_early && clear.is_complete() && clear.complete == 10);
    assert!(clear.comparisons[0].confidence > 0.99, "{:?}", clear.comparisons);
    assert_eq!((messages[0].as_str(), messages.last().unwrap().as_str()), ("looks: 3", "look at 10: true"));
    let (none, _) = of(0.0);
    assert!(!none.stopped_early && none.complete == 20);
}
