//! The conclusions that changing one factor at a time would have drawn from the same runs. That method sees
//! the effect of each factor at one level of all others and takes it for the effect everywhere, which is
//! wrong if factors interact. Objections to it are selected from many contrasts, so each contrast is tested
//! at the level of all divided by their number (Bonferroni).

use kelvin_diagnose::Better;
use serde::Serialize;

use crate::StudyInput;
use crate::contrast::missing;
use crate::effect_text::format_effect;
use crate::fit::{Estimate, Fit, less};
use crate::table::best;
use crate::values::Values;
use kelvin_measure::text::signed_percent;

/// One factor at a time, compared with the whole design.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneAtATime {
    /// The starting cell: every factor at its first level.
    pub base: Vec<usize>,
    /// The final cell: each factor at the level that was best alone.
    pub chosen: Vec<usize>,
    /// The best cell.
    pub best: Vec<usize>,
    /// The best level of each factor alone, with its effect.
    pub steps: Vec<FactorStep>,
    /// The change from the base to the chosen cell if the effects multiplied, as a fraction.
    pub promised: f64,
    /// The measured change from the base to the chosen cell, as a fraction.
    pub found: Estimate,
    /// The best cell compared with the chosen one, as a fraction.
    pub lost: Estimate,
    /// Its wrong conclusions, one sentence each; empty if there are none.
    pub wrong: Vec<String>,
}

/// One factor changed alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorStep {
    /// The factor.
    pub factor: usize,
    /// The level that was best.
    pub level: usize,
    /// Its effect from the base, as a fraction.
    pub effect: Estimate,
}

/// The conclusions; none for one factor, or for a grid with holes.
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

/// The number of contrasts that could give a sentence. Any cell other than the chosen one may be the best,
/// the promise is one, and the effect of each factor may be reversed in each cell with its level.
fn sentences(fit: &Fit, steps: &[FactorStep]) -> usize {
    let at = |step: &FactorStep| fit.cells.iter().filter(|cell| cell[step.factor] == step.level).count();
    fit.cells.len() + steps.iter().map(at).sum::<usize>()
}

fn beyond(found: &Estimate, chance: f64) -> bool {
    found.p.is_some_and(|p| p < chance)
}

/// A sentence about a factor whose effect has the opposite sign in another cell, both effects significant at
/// `chance`.
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
