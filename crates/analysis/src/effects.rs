//! Effects and interactions of one metric: the share of the variation that each explains, and its size.

use kelvin_stats::factorial::{self, Analysis, Design, FactorialError};
use kelvin_stats::fractional::Fraction;
use serde::Serialize;

use crate::StudyInput;
use crate::contrast::signs;
use crate::fit::{Estimate, Fit};
use crate::input::{InputError, StudyDesign};
use crate::values::Values;
use kelvin_measure::text::count;

/// An effect or an interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The factors, by index.
    pub factors: Vec<usize>,
    /// Their names: "numa × huge-pages".
    pub name: String,
    /// Sum of squares.
    pub sum_of_squares: f64,
    /// Its share of all variation, from 0 to 1.
    pub share: f64,
    /// Degrees of freedom.
    pub degrees: usize,
    /// F statistic; none without an error estimate.
    pub f: Option<f64>,
    /// The probability of an F this large if there is no effect.
    pub p: Option<f64>,
    /// The same after Holm's correction for all effects that are tested together.
    pub adjusted: Option<f64>,
    /// Contrasts of each factor's first level with the others.
    pub contrasts: Vec<Contrast>,
    /// In a fraction, the other effects that are confounded with it.
    pub aliases: Vec<String>,
}

/// One contrast of an effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// The levels compared with the first ones, in the order of the effect's factors.
    pub levels: Vec<usize>,
    /// Both levels: "off → on"; for an interaction "remote, on".
    pub name: String,
    /// The effect as a fraction; for an interaction, how far the combined effect departs from the product of
    /// the single ones.
    pub estimate: Estimate,
}

/// How the variation of a metric is allocated to effects, blocks and error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Allocation {
    /// Effects, largest share of the variation first.
    pub effects: Vec<Effect>,
    /// The blocks' share; none where it was not separated.
    pub blocks: Option<f64>,
    /// The share of the variation from run to run; none without degrees of freedom.
    pub error: Option<f64>,
    /// Total sum of squares.
    pub total: f64,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The effect's name by its factors.
pub(crate) fn name(input: &StudyInput, factors: &[usize]) -> String {
    factors.iter().map(|f| input.factors[*f].name.as_str()).collect::<Vec<_>>().join(" × ")
}

fn contrast_name(input: &StudyInput, factors: &[usize], levels: &[usize]) -> String {
    let level = |factor: usize, level: usize| input.factors[factor].levels[level].name.as_str();
    if let ([factor], [to]) = (factors, levels) {
        return format!("{} → {}", level(*factor, 0), level(*factor, *to));
    }
    factors.iter().zip(levels).map(|(f, l)| level(*f, *l)).collect::<Vec<_>>().join(", ")
}

/// Allocates the variation. The inner error is the reason why it cannot.
///
/// # Errors
/// When the generators of a fraction are invalid.
pub(crate) fn allocation(
    input: &StudyInput,
    values: &Values,
    fit: &Fit,
) -> Result<Result<Allocation, String>, InputError> {
    match &input.design {
        StudyDesign::Fraction { generators } => fraction(input, values, fit, generators),
        _ => Ok(full(input, values)),
    }
}

fn full(input: &StudyInput, values: &Values) -> Result<Allocation, String> {
    let levels: Vec<usize> = input.factors.iter().map(|factor| factor.levels.len()).collect();
    let found = analysed(input, values, &levels, &|cell| cell.to_vec()).map_err(|error| match error {
        FactorialError::EmptyCells(cells) => format!(
            "{} without a counted run, so effects cannot be separated; run the study again to fill {}",
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
            let estimate = Estimate { value: c.estimate, low: known(c.low), high: known(c.high), p: None };
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
        notes.push("not every block has every cell once, so the shares do not add up to 100 %".to_owned());
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
    input: &StudyInput,
    values: &Values,
    levels: &[usize],
    cell: &dyn Fn(&[usize]) -> Vec<usize>,
) -> Result<Analysis, FactorialError> {
    let observations: Vec<factorial::Observation> = values
        .observations
        .iter()
        .map(|o| factorial::Observation { cell: cell(&o.cell), block: o.block, value: o.value })
        .collect();
    Analysis::from_observations(&Design::new(levels), &observations, input.confidence)
}

/// A fraction is the full factorial of the factors that are not generated. Each of its effects stands for a
/// class of confounded effects of all factors.
fn fraction(
    input: &StudyInput,
    values: &Values,
    fit: &Fit,
    generators: &[String],
) -> Result<Result<Allocation, String>, InputError> {
    let words: Vec<&str> = generators.iter().map(String::as_str).collect();
    let fraction = Fraction::new(input.factors.len(), &words)
        .map_err(|error| InputError::Fraction(error.to_string()))?;
    let base = fraction.base();
    let levels = vec![2; base.len()];
    let found = match analysed(input, values, &levels, &|cell| base.iter().map(|f| cell[*f]).collect()) {
        Ok(found) => found,
        Err(FactorialError::EmptyCells(cells)) => {
            return Ok(Err(format!(
                "{} of the fractional design without a counted run",
                count(cells.len(), "cell")
            )));
        }
        Err(error) => return Ok(Err(error.to_string())),
    };
    let effect = |of: &factorial::Effect| {
        // A class begins with the effect of the fewest factors. The class is named after it because it is the
        // likeliest.
        let class = fraction.aliases_of(&of.factors);
        let (first, others) =
            class.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
        let factors = factors_of(first);
        let turned = first.starts_with('-');
        let estimate = fit.contrast(&signs(fit, &factors));
        let levels = vec![1; factors.len()];
        Effect {
            name: name(input, &factors),
            sum_of_squares: of.sum_of_squares,
            share: of.share,
            degrees: of.degrees,
            f: of.f,
            p: of.p,
            adjusted: None,
            contrasts: vec![Contrast {
                name: contrast_name(input, &factors, &levels),
                levels,
                estimate: values.relative(estimate),
            }],
            aliases: others.iter().map(|word| alias(input, word, turned)).collect(),
            factors,
        }
    };
    Ok(Ok(shared_out(&found, found.effects.iter().map(effect).collect())))
}

/// An effect that is confounded with another: with a minus if its sign is reversed.
fn alias(input: &StudyInput, word: &str, turned: bool) -> String {
    let minus = if word.starts_with('-') == turned { "" } else { "−" };
    format!("{minus}{}", name(input, &factors_of(word)))
}

/// The factors of a word of letters: "ABD" means the first, second and fourth. The letter I is skipped
/// because it stands for no factor.
fn factors_of(word: &str) -> Vec<usize> {
    let place = |letter: char| "ABCDEFGHJKLMNOP".chars().position(|l| l == letter);
    word.chars().filter_map(place).collect()
}
