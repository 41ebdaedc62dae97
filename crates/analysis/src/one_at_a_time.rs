//! What changing one factor after another would have concluded, from the same runs: it sees each factor's effect at one
//! level of all others and takes it for the effect everywhere, which an interaction makes wrong. What is said against it is
//! the largest of many contrasts, so that each has to be as rare by chance as all together may be (Bonferroni).

use kelvin_diagnose::Better;
use serde::Serialize;

use crate::StudyInput;
use crate::contrast::missing;
use crate::effect_text::format_effect;
use crate::fit::{Estimate, Fit, less};
use crate::table::best;
use crate::values::Values;
use kelvin_measure::text::signed_percent;

/// One factor at a time against the whole design.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneAtATime {
    /// The cell that it starts from: every factor at its first level.
    pub base: Vec<usize>,
    /// The cell that it ends at: of each factor the level that was best alone.
    pub chosen: Vec<usize>,
    /// The best cell.
    pub best: Vec<usize>,
    /// Each factor's best level alone: its effect there as a part.
    pub steps: Vec<FactorStep>,
    /// By what the chosen cell would differ from the base if the effects multiplied, as a part.
    pub promised: f64,
    /// By what it does, as a part.
    pub found: Estimate,
    /// The best cell against the chosen one, as a part.
    pub lost: Estimate,
    /// What it would have got wrong, in sentences; empty where it would have been right.
    pub wrong: Vec<String>,
}

/// One factor changed alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorStep {
    /// The factor.
    pub factor: usize,
    /// The level that was best.
    pub level: usize,
    /// Its effect from the base, as a part.
    pub effect: Estimate,
}

/// None for one factor, and in a grid with holes.
pub(crate) fn one_at_a_time(input: &StudyInput, values: &Values, fit: &Fit) -> Option<OneAtATime> {
    if input.factors.len() < 2 || !missing(input, fit).is_empty() {
        return None;
    }
    let sign = if input.goal.better == Better::Higher { 1.0 } else { -1.0 };
    let base = vec![0; input.factors.len()];
    let at = |cell: &[usize]| fit.only(cell);
    let compared = |to: &[usize], from: &[usize]| Some(fit.contrast(&less(&at(to)?, &at(from)?)));
    let changed = |factor: usize, level: usize| {
        let mut cell = base.clone();
        cell[factor] = level;
        cell
    };
    let mut chosen = base.clone();
    let mut steps = Vec::new();
    let mut promise = vec![0.0; fit.cells.len()];
    for (factor, of) in input.factors.iter().enumerate() {
        let levels = 1..of.levels.len();
        let alone = levels.filter_map(|level| Some((level, compared(&changed(factor, level), &base)?)));
        let (level, found) = alone.max_by(|a, b| (sign * a.1.value).total_cmp(&(sign * b.1.value)))?;
        if sign * found.value > 0.0 {
            chosen[factor] = level;
            let step = less(&at(&changed(factor, level))?, &at(&base)?);
            promise.iter_mut().zip(step).for_each(|(sum, w)| *sum += w);
        }
        steps.push(FactorStep { factor, level, effect: values.relative(found) });
    }
    let best = fit.cells[best(input, fit)?].clone();
    let promised = values.relative(fit.contrast(&promise)).value;
    let found = values.relative(compared(&chosen, &base)?);
    let lost_raw = compared(&best, &chosen)?;
    let lost = values.relative(lost_raw);
    let mut wrong = Vec::new();
    let name = input.figure_name(&input.goal.metric);
    let chance = (1.0 - input.confidence) / sentences(fit, &steps) as f64;
    if chosen != best && sign * lost_raw.value > 0.0 && beyond(&lost_raw, chance) {
        wrong.push(format!(
            "it would have kept {}, but {} has {} {name}",
            input.cell_name(&chosen),
            input.cell_name(&best),
            format_effect(&lost, input.confidence)
        ));
    }
    let short = fit.contrast(&less(&less(&at(&chosen)?, &at(&base)?), &promise));
    if beyond(&short, chance) && values.relative(short).value.abs() >= input.goal.smallest {
        wrong.push(format!(
            "it would have predicted {} from {} to {}, but the measured effect is {}",
            signed_percent(promised),
            input.cell_name(&base),
            input.cell_name(&chosen),
            format_effect(&found, input.confidence)
        ));
    }
    wrong.extend(steps.iter().filter_map(|step| turned(input, values, fit, step, chance)));
    Some(OneAtATime { base, chosen, best, steps, promised, found, lost, wrong })
}

/// How many sentences might be said: any cell but the chosen one may be the best, the promise is one, and each factor's
/// effect may turn in each of the cells that have its level.
fn sentences(fit: &Fit, steps: &[FactorStep]) -> usize {
    let at = |step: &FactorStep| fit.cells.iter().filter(|cell| cell[step.factor] == step.level).count();
    fit.cells.len() + steps.iter().map(at).sum::<usize>()
}

fn beyond(found: &Estimate, chance: f64) -> bool {
    found.p.is_some_and(|p| p < chance)
}

/// A factor whose effect at the base has the other sign somewhere else, both beyond `chance`.
fn turned(input: &StudyInput, values: &Values, fit: &Fit, step: &FactorStep, chance: f64) -> Option<String> {
    if !beyond(&step.effect, chance) {
        return None;
    }
    let factor = step.factor;
    let opposite = fit.cells.iter().filter(|cell| cell[factor] == step.level).filter_map(|cell| {
        let mut without = cell.clone();
        without[factor] = 0;
        let there = values.relative(fit.contrast(&less(&fit.only(cell)?, &fit.only(&without)?)));
        let other_way = beyond(&there, chance) && (there.value > 0.0) != (step.effect.value > 0.0);
        other_way.then_some((cell, there))
    });
    let (cell, there) = opposite.max_by(|a, b| a.1.value.abs().total_cmp(&b.1.value.abs()))?;
    let others: Vec<(usize, usize)> =
        cell.iter().copied().enumerate().filter(|(f, l)| *f != factor && *l != 0).collect();
    let of = &input.factors[factor];
    Some(format!(
        "it would have concluded that {} {} → {} gives {}; at {} it gives {}",
        of.name,
        of.levels[0].name,
        of.levels[step.level].name,
        signed_percent(step.effect.value),
        input.levels_named(&others),
        format_effect(&there, input.confidence)
    ))
}
