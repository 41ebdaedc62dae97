use kelvin_store::{GroupSlot, RunId};

use super::*;
use crate::ab::blocks::complete;
use crate::repeat::{GroupRun, Steady};
use crate::simulated::figure;
use crate::simulated::studies;

/// A plan with a control of A alone.
fn plan() -> AbPlan {
    AbPlan { control_of_a: true, ..studies::plan() }
}

/// Complete blocks of A, A' and B with these values.
fn rows(blocks: &[[f64; 3]]) -> Vec<GroupRun> {
    let row = |block: usize, place: usize, value: f64| GroupRun {
        run: RunId((3 * block + place) as i64),
        slot: GroupSlot {
            place: (3 * block + place) as u32,
            block: block as u32,
            treatment: ["A", "A'", "B"][place].into(),
        },
        void: None,
        figures: vec![figure("tps", value)],
        steady: Steady::Unknown,
        noise: None,
        failed: 0,
    };
    let of = |(block, values): (usize, &[f64; 3])| {
        values.iter().enumerate().map(move |(place, value)| row(block, place, *value)).collect::<Vec<_>>()
    };
    blocks.iter().enumerate().flat_map(of).collect()
}

#[test]
fn the_scatter_knows_neither_sides_nor_blocks() {
    // Block effects of any size, an effect of B of any size, and no deviations: no scatter at all.
    let exact: Vec<[f64; 3]> =
        [1.0, 5.0, 3.0, 2.0].iter().map(|level| [*level, *level, 0.7 * level]).collect();
    let rows_exact = rows(&exact);
    let (sd, freedom) = scatter(&plan(), &complete(&plan(), &rows_exact)).unwrap();
    assert!(sd < 1e-12, "{sd}");
    assert_eq!(freedom, 6);
    // Two blocks, deviations of the logarithms +d and −d of A and A' against each other: residuals d, −d, 0 and the
    // opposite, 4d² over (3 − 1)(2 − 1) = 2 degrees of freedom: σ² = 2d², and √2σ = 2d.
    let d = 0.01_f64;
    let off = rows(&[[d.exp(), (-d).exp(), 1.0], [(-d).exp(), d.exp(), 1.0]]);
    let (sd, freedom) = scatter(&plan(), &complete(&plan(), &off)).unwrap();
    assert!((sd - 2.0 * d).abs() < 1e-12, "{sd}");
    assert_eq!(freedom, 2);
}

#[test]
fn the_planned_number_grows_with_the_scatter_and_stays_within_its_bounds() {
    let plan = AbPlan { effect: Some(0.03), power: 0.8, ..plan() };
    // Scatter 3 %, effect 3 %, power 0.8: with 10 degrees of freedom of the pilot (2.228 + 0.879)²·(0.03/0.02956)² = 9.9,
    // with 5 (2.571 + 0.920)²·1.03 = 12.6; if the scatter were known, 7.85 pairs by the normal distribution and 11 by t.
    let single = AbPlan { control: false, ..plan.clone() };
    assert_eq!(needed(&single, 0.03, 10, 0.03), Some(11));
    assert_eq!(needed(&single, 0.03, 5, 0.03), Some(13));
    assert!(needed(&single, 0.06, 10, 0.03) > Some(38));
    assert_eq!(needed(&single, 0.0, 10, 0.03), Some(AbPlan::FEWEST));
    // Two runs of each side scatter √½ times as much as one run of each, but their control's floor has to be
    // exceeded, too.
    let twice = needed(&AbPlan { control_of_a: false, ..plan.clone() }, 0.03, 10, 0.03);
    assert!(twice > Some(5) && twice < Some(10), "{twice:?}");
    // Close to the noise of 1 % the estimate's way beyond it decides: power 0.95, 5 degrees of freedom:
    // (2.015·0.03/(0.011929 − 0.00995))² = 933 where (4.586·0.03/0.011929)² = 134.
    let close = needed(&AbPlan { power: 0.95, ..single }, 0.03, 5, 0.012).unwrap();
    assert!((930..=940).contains(&close), "{close}");
    let quiet = rows(&[[1.0, 1.0001, 0.97]; 6]);
    let course = AbProgress::of(&plan, &complete(&plan, &quiet));
    assert_eq!((course.blocks, course.planning.clone().unwrap().pilot), (6, 6));
    // While the pilot runs, the number of blocks is unknown.
    let early = AbProgress::of(&plan, &complete(&plan, &quiet[..9]));
    assert_eq!((early.blocks, early.planning), (6, None));
    let wild: Vec<[f64; 3]> = (0_u32..6)
        .map(|block| if block.is_multiple_of(2) { [1.0, 2.0, 3.0] } else { [3.0, 1.0, 2.0] })
        .collect();
    let course = AbProgress::of(&plan, &complete(&plan, &rows(&wild)));
    assert_eq!(course.blocks, AbPlan::MOST);
    assert!(course.planning.unwrap().needed > Some(AbPlan::MOST));
}

#[test]
fn looks_spend_the_error_that_there_is() {
    let plan = AbPlan { blocks: 20, stop_early: true, ..plan() };
    let course = AbProgress::of(&plan, &[]);
    let at: Vec<u32> = course.looks.iter().map(|look| look.blocks).collect();
    assert_eq!(at, [10, 15, 20]);
    let nominal: Vec<f64> = course.looks.iter().map(|look| look.nominal).collect();
    assert!(nominal[0] < nominal[1] && nominal[1] < nominal[2] && nominal[2] < 0.05, "{nominal:?}");
    assert_eq!(course.alpha(&plan, 17), nominal[1]);
    assert_eq!(course.alpha(&plan, 3), nominal[0]);
    // Every planned interim analysis has an interval, even with eight sides and a thousand blocks.
    let mut many = AbPlan { blocks: 1000, ..plan.clone() };
    many.sides = vec![plan.sides[0].clone(); AbPlan::SIDES];
    let first = AbProgress::of(&many, &[]).looks[0].nominal;
    assert!(first > 1e-9 && first < 0.05 / 7.0, "{first}");
    let until_clear = AbPlan { blocks: AbPlan::UNTIL_CLEAR, ..plan.clone() };
    let at: Vec<u32> = AbProgress::of(&until_clear, &[]).looks.iter().map(|look| look.blocks).collect();
    assert_eq!(at, [6, 9, 12]);
    // Six blocks leave no room for an interim analysis before the last.
    let few = AbPlan { blocks: 6, ..plan };
    assert_eq!(AbProgress::of(&few, &[]).looks, []);
    assert_eq!(AbProgress::of(&few, &[]).alpha(&few, 6), 0.05);
}
