//! Weights over the cells of a fit: the cells that are compared.

use std::collections::{BTreeMap, BTreeSet};

use crate::StudyInput;
use crate::fit::{Fit, less};
use crate::input::StudyDesign;

/// The cells at some levels minus those at others, at the same levels of all factors that neither side names; `None` if
/// no such levels were measured on both sides. In a fraction, whose cells all differ in their levels, the generators
/// have balanced the two sides.
pub(crate) fn between(
    input: &StudyInput,
    fit: &Fit,
    from: &[(usize, usize)],
    to: &[(usize, usize)],
) -> Option<Vec<f64>> {
    let named: BTreeSet<usize> = from.iter().chain(to).map(|(factor, _)| *factor).collect();
    let matches = |cell: &[usize], side: &[(usize, usize)]| side.iter().all(|(f, l)| cell[*f] == *l);
    let rest = |cell: &[usize]| -> Vec<usize> {
        (0..cell.len()).filter(|f| !named.contains(f)).map(|f| cell[f]).collect()
    };
    let keys = |side: &[(usize, usize)]| -> BTreeSet<Vec<usize>> {
        fit.cells.iter().filter(|cell| matches(cell, side)).map(|cell| rest(cell)).collect()
    };
    let both: BTreeSet<_> = keys(from).intersection(&keys(to)).cloned().collect();
    let fraction = matches!(input.design, StudyDesign::Fraction { .. });
    let side = |side: &[(usize, usize)]| {
        fit.mean_of(|cell| matches(cell, side) && (fraction || both.contains(&rest(cell))))
    };
    Some(less(&side(to)?, &side(from)?))
}

/// The difference of differences of factors with two levels, by signs alone: high is 1 and low −1. It is defined also in
/// a fraction, where not every combination was run.
pub(crate) fn signs(fit: &Fit, factors: &[usize]) -> Vec<f64> {
    let scale = 2_f64.powi(factors.len() as i32) / fit.cells.len() as f64;
    let sign =
        |cell: &Vec<usize>| factors.iter().map(|f| if cell[*f] == 0 { -1.0 } else { 1.0 }).product::<f64>();
    fit.cells.iter().map(|cell| sign(cell) * scale).collect()
}

/// Every cell of the full grid that no run of the fit is in.
pub(crate) fn missing(input: &StudyInput, fit: &Fit) -> Vec<Vec<usize>> {
    let all = input.factors.iter().fold(vec![Vec::new()], |found: Vec<Vec<usize>>, factor| {
        let levels = 0..factor.levels.len();
        found
            .into_iter()
            .flat_map(|head| levels.clone().map(move |level| [&head[..], &[level]].concat()))
            .collect()
    });
    all.into_iter().filter(|cell| fit.cells.binary_search(cell).is_err()).collect()
}

/// Values by block and cell, for analyses of complete blocks.
pub(crate) fn by_block(
    observations: &[crate::fit::Observation],
) -> BTreeMap<u32, BTreeMap<Vec<usize>, Vec<f64>>> {
    let mut blocks: BTreeMap<u32, BTreeMap<Vec<usize>, Vec<f64>>> = BTreeMap::new();
    for o in observations {
        blocks.entry(o.block).or_default().entry(o.cell.clone()).or_default().push(o.value);
    }
    blocks
}
