//! Effects and interactions of one figure: how much of its variation is whose, and what each comes to.

use kelvin_stats::factorial::{self, Analysis, Design, FactorialError};
use kelvin_stats::fractional::Fraction;
use serde::Serialize;

use super::Input;
use super::contrast::signs;
use super::fit::{Estimate, Fit};
use super::input::{InputError, Kind};
use super::values::Values;
use super::words::count;

/// An effect or an interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The factors, by index.
    pub factors: Vec<usize>,
    /// Their names: "numa × huge-pages".
    pub name: String,
    /// Sum of squares.
    pub sum_of_squares: f64,
    /// Its share of all variation, of 1.
    pub share: f64,
    /// Degrees of freedom.
    pub degrees: usize,
    /// F statistic; none without an error.
    pub f: Option<f64>,
    /// The probability of an F as large when there is no effect.
    pub p: Option<f64>,
    /// The same after Holm's correction for all effects that are looked at beside it.
    pub adjusted: Option<f64>,
    /// From each factor's first level to others.
    pub contrasts: Vec<Contrast>,
    /// In a fraction, the other effects that cannot be told from it.
    pub aliases: Vec<String>,
}

/// One contrast of an effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// The levels that it goes to, in the order of the effect's factors.
    pub levels: Vec<usize>,
    /// From what to what: "off → on"; of an interaction "remote, on".
    pub name: String,
    /// The effect as a part; of an interaction, by what the effects together differ from their product.
    pub estimate: Estimate,
}

/// Where all variation of a figure went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Allocation {
    /// Effects, those of most variation first.
    pub effects: Vec<Effect>,
    /// The blocks' share; none where it is not taken apart.
    pub blocks: Option<f64>,
    /// What is left: from run to run.
    pub error: Option<f64>,
    /// Total sum of squares.
    pub total: f64,
    /// What the reader must know of it.
    pub notes: Vec<String>,
}

/// The effect's name by its factors.
pub(crate) fn name(input: &Input, factors: &[usize]) -> String {
    factors.iter().map(|f| input.factors[*f].name.as_str()).collect::<Vec<_>>().join(" × ")
}

fn contrast_name(input: &Input, factors: &[usize], levels: &[usize]) -> String {
    let level = |factor: usize, level: usize| input.factors[factor].levels[level].name.as_str();
    if let ([factor], [to]) = (factors, levels) {
        return format!("{} → {}", level(*factor, 0), level(*factor, *to));
    }
    factors.iter().zip(levels).map(|(f, l)| level(*f, *l)).collect::<Vec<_>>().join(", ")
}

/// Shares the variation out; says why where it cannot.
///
/// # Errors
/// When the generators of a fraction are wrong.
pub(crate) fn allocation(
    input: &Input,
    values: &Values,
    fit: &Fit,
) -> Result<Result<Allocation, String>, InputError> {
    match &input.design {
        Kind::Fraction { generators } => fraction(input, values, fit, generators),
        _ => Ok(full(input, values)),
    }
}

fn full(input: &Input, values: &Values) -> Result<Allocation, String> {
    let levels: Vec<usize> = input.factors.iter().map(|factor| factor.levels.len()).collect();
    let found = analysed(input, values, &levels, &|cell| cell.to_vec()).map_err(|error| match error {
        FactorialError::EmptyCells(cells) => format!(
            "{} without a run that counts, so that effects cannot be told apart; run the study again to fill {}",
            count(cells.len(), "cell"),
            if cells.len() == 1 { "it" } else { "them" }
        ),
        other => other.to_string(),
    })?;
    let effect = |of: &factorial::Effect| {
        let contrasts = of.contrasts.iter().filter(|c| c.levels.iter().all(|(from, _)| *from == 0));
        let contrast = |c: &factorial::Contrast| {
            let levels: Vec<usize> = c.levels.iter().map(|(_, to)| *to).collect();
            let known = |end: f64| Some(end).filter(|end| end.is_finite());
            let estimate =
                Estimate { value: c.estimate, low: known(c.low), high: known(c.high), p: None };
            Contrast {
                name: contrast_name(input, &of.factors, &levels),
                levels,
                estimate: values.relative(estimate),
            }
        };
        Effect {
            name: name(input, &of.factors),
            sum_of_squares: of.sum_of_squares,
            share: of.share,
            degrees: of.degrees,
            f: of.f,
            p: of.p,
            adjusted: None,
            contrasts: contrasts.map(contrast).collect(),
            aliases: Vec::new(),
            factors: of.factors.clone(),
        }
    };
    Ok(shared_out(&found, found.effects.iter().map(effect).collect()))
}

fn shared_out(found: &Analysis, mut effects: Vec<Effect>) -> Allocation {
    effects.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.factors.cmp(&b.factors)));
    let mut notes = Vec::new();
    if !found.balanced {
        notes.push(
            "not every block has every cell once, so that the shares do not add up to 100 %".to_owned(),
        );
    }
    Allocation {
        effects,
        blocks: found.blocks.map(|blocks| blocks.share),
        error: (found.error.degrees > 0).then_some(found.error.share),
        total: found.total.sum_of_squares,
        notes,
    }
}

fn analysed(
    input: &Input,
    values: &Values,
    levels: &[usize],
    cell: &dyn Fn(&[usize]) -> Vec<usize>,
) -> Result<Analysis, FactorialError> {
    let observations: Vec<factorial::Observation> = values
        .observations
        .iter()
        .map(|o| factorial::Observation { cell: cell(&o.cell), block: o.block, value: o.value })
        .collect();
    Analysis::of(&Design::new(levels), &observations, input.confidence)
}

/// A fraction is the full factorial of the factors that are not generated, each of whose effects stands for a class of
/// effects of all factors.
fn fraction(
    input: &Input,
    values: &Values,
    fit: &Fit,
    generators: &[String],
) -> Result<Result<Allocation, String>, InputError> {
    let words: Vec<&str> = generators.iter().map(String::as_str).collect();
    let fraction = Fraction::new(input.factors.len(), &words)
        .map_err(|error| InputError::Fraction(error.to_string()))?;
    let generated: Vec<usize> = generators.iter().filter_map(|g| factors_of(g.split('=').next()?).pop()).collect();
    let base: Vec<usize> = (0..input.factors.len()).filter(|f| !generated.contains(f)).collect();
    let levels = vec![2; base.len()];
    let found = match analysed(input, values, &levels, &|cell| base.iter().map(|f| cell[*f]).collect()) {
        Ok(found) => found,
        Err(FactorialError::EmptyCells(cells)) => {
            return Ok(Err(format!("{} of the fraction without a run that counts", count(cells.len(), "cell"))));
        }
        Err(error) => return Ok(Err(error.to_string())),
    };
    let classes: Vec<Vec<Vec<usize>>> = fraction
        .aliases()
        .iter()
        .map(|class| class.iter().map(|word| factors_of(word)).collect())
        .collect();
    let effect = |of: &factorial::Effect| {
        let own: Vec<usize> = of.factors.iter().map(|f| base[*f]).collect();
        let mut class = classes.iter().find(|class| class.contains(&own)).cloned().unwrap_or_else(|| vec![own]);
        class.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        let factors = class.remove(0);
        let estimate = values.relative(fit.contrast(&signs(fit, &factors)));
        let levels = vec![1; factors.len()];
        Effect {
            name: name(input, &factors),
            sum_of_squares: of.sum_of_squares,
            share: of.share,
            degrees: of.degrees,
            f: of.f,
            p: of.p,
            adjusted: None,
            contrasts: vec![Contrast { name: contrast_name(input, &factors, &levels), levels, estimate }],
            aliases: class.iter().map(|factors| name(input, factors)).collect(),
            factors,
        }
    };
    Ok(Ok(shared_out(&found, found.effects.iter().map(effect).collect())))
}

/// The factors of a word of letters: "ABD" are the first, second and fourth.
fn factors_of(word: &str) -> Vec<usize> {
    let letters = word.chars().filter(char::is_ascii_alphabetic);
    let mut factors: Vec<usize> =
        letters.map(|letter| (letter.to_ascii_uppercase() as u8 - b'A') as usize).collect();
    factors.sort_unstable();
    factors
}
