//! How often comparisons are wrong, counted on recorded noise: false alarms where nothing was changed, and changes that
//! were planted and not found; beside them what people conclude from the means of three runs.

use std::cell::RefCell;

use kelvin_stats::bootstrap::Resampler;
use kelvin_stats::compare::Verdict;
use kelvin_store::GroupId;

use super::{Noise, Simulated, Simulation};
use crate::ab::{self, Plan, Summary};
use crate::spec::WorkloadName;
use crate::{BenchError, Planned, Spec};

/// What studies came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counted {
    /// How many there were.
    pub studies: u32,
    /// Those that said "changed", in the direction of what was planted where something was.
    pub changed: u32,
    /// Those of which the control's two halves differ.
    pub control_differs: u32,
    /// Blocks of each.
    pub blocks: Vec<u32>,
    /// Blocks that the pilot of each said are needed, also where that was more than could be run.
    pub needed: Vec<u32>,
    /// What three runs of A, and after them three of B, on the same noise would have said: that their means differ by
    /// more than 1 %.
    pub means_of_three: u32,
}

/// The plan of an A/B comparison with nothing decided.
pub fn plan() -> Plan {
    let spec = Spec::new(WorkloadName::TprocC);
    Plan::of(&[("a.toml".into(), spec.clone()), ("b.toml".into(), spec)])
}

/// Runs `studies` comparisons by this plan in which B takes `slower` longer (0.03 is 3 %; 0 is A against itself), each on
/// noise and with an order of its own.
///
/// # Errors
/// When a comparison could not be made, which a simulated bench gives no reason for.
pub fn count(
    plan: &Plan,
    noise: &Noise,
    slower: f64,
    studies: u32,
    seed: u64,
) -> Result<Counted, BenchError> {
    let specs: Vec<Spec> = plan.sides.iter().map(|_| Spec::new(WorkloadName::TprocC)).collect();
    let longest = plan.treatments().len() * plan.blocks.max(plan.most) as usize;
    let mut counted = Counted { studies, ..Counted::default() };
    let mut random = Resampler::new(seed);
    for study in 0..studies {
        let drawn = noise.draw(&mut random, longest + 6);
        let plan = Plan { seed: seed.wrapping_add(u64::from(study) << 20), ..plan.clone() };
        let places = RefCell::new(drawn.iter());
        let mut bench = Simulated::new(|planned: &Planned<'_>| {
            let noise = places.borrow_mut().next().copied().unwrap_or(1.0);
            let planted = if planned.slot.treatment == "B" { 1.0 / (1.0 + slower) } else { 1.0 };
            Ok(Simulation::of(1000.0 * noise * planted))
        });
        let ran = ab::run(&plan, &specs, GroupId(1), &mut bench, &|_| String::new())?;
        let summary = Summary::of(&plan, &ran.rows);
        let found = summary.comparisons.first();
        let right = |ratio: f64| slower == 0.0 || ratio < 1.0;
        counted.changed +=
            u32::from(found.is_some_and(|one| one.verdict == Verdict::Changed && right(one.ratio)));
        let control = summary.control.is_some_and(|control| control.low > 1.0 || control.high < 1.0);
        counted.control_differs += u32::from(control);
        counted.blocks.push(summary.complete);
        let needed = summary.course.planning.and_then(|planning| planning.needed);
        counted.needed.extend(needed);
        counted.means_of_three += u32::from(three_differ(&drawn, slower, right));
    }
    Ok(counted)
}

fn three_differ(drawn: &[f64], slower: f64, right: impl Fn(f64) -> bool) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (Some(a), Some(b)) = (drawn.get(..3), drawn.get(3..6)) else { return false };
    let ratio = mean(b) / (1.0 + slower) / mean(a);
    (ratio - 1.0).abs() > 0.01 && right(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = include_str!("../../../../bench/lab/noise.csv");

    /// 5 % of so many studies, and two standard errors.
    fn bound(studies: u32) -> u32 {
        let studies = f64::from(studies);
        (0.05 * studies + 2.0 * (0.05 * 0.95 * studies).sqrt()) as u32
    }

    #[test]
    fn nothing_changed_is_called_changed_in_five_of_a_hundred_studies_at_most() {
        let noise = Noise::parse(RECORD).unwrap();
        let early = Plan { stop_early: true, blocks: 20, ..plan() };
        let planned = Plan { effect: Some(0.03), ..plan() };
        let simple = [(plan(), 200), (Plan { control: false, ..plan() }, 200)];
        for (plan, studies) in simple.into_iter().chain([(early, 60), (planned, 60)]) {
            let counted = count(&plan, &noise, 0.0, studies, 11).unwrap();
            assert!(counted.changed <= bound(studies), "{plan:?}: {} of {studies}", counted.changed);
            assert!(counted.means_of_three > studies / 2, "means of three are no worse");
        }
    }

    #[test]
    fn three_per_cent_are_found_as_often_as_the_plan_says() {
        let noise = Noise::parse(RECORD).unwrap();
        let plan = Plan { effect: Some(0.03), power: 0.9, most: 400, ..plan() };
        let counted = count(&plan, &noise, 0.03, 60, 5).unwrap();
        assert!(counted.changed >= 54, "{} of 60 in {:?} blocks", counted.changed, counted.blocks);
    }
}
