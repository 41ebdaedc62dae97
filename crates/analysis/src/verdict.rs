//! The verdict on the hypothesis by its goal, and on its predictions.

use serde::Serialize;

use kelvin_stats::power::{self, POWER};
use kelvin_stats::student;

use crate::contrast::between;
use crate::effect_text::format_effect;
use crate::fit::{Estimate, Fit};
use crate::input::{Claim, Direction, Prediction, StudyDesign};
use crate::values::{Counting, Values};
use crate::{StudyInput, control};
use kelvin_measure::text::{count, plain_percent};

/// Minimum number of runs per side for a conclusion, and the degrees of freedom of four pairs.
const FLOOR: usize = 4;
const FREEDOM: usize = 3;
/// The maximum number of additional blocks that is still suggested.
const MOST_BLOCKS: u32 = 500;

/// The verdict on the hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HypothesisAnswer {
    /// The effect is there, in the claimed direction and of the claimed size.
    Supported,
    /// An effect of the claimed size is excluded.
    Refuted,
    /// Neither.
    Inconclusive,
    /// The hypothesis makes no claim that measurements could decide.
    NotTestable,
}

impl HypothesisAnswer {
    /// The answer as text.
    pub fn word(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Refuted => "refuted",
            Self::Inconclusive => "inconclusive",
            Self::NotTestable => "not testable",
        }
    }
}

/// The verdict on the hypothesis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HypothesisVerdict {
    /// The answer.
    pub answer: HypothesisAnswer,
    /// The claim, as text.
    pub claim: Option<String>,
    /// The effect on the goal's metric, as a fraction.
    pub effect: Option<Estimate>,
    /// The smallest effect that counts here, as a fraction: the claimed size or the smallest that matters, or
    /// the A/A floor where that is larger.
    pub least: f64,
    /// Whether the whole interval lies within ± the smallest effect that matters: equivalent.
    pub equivalent: bool,
    /// The answer in a sentence.
    pub sentence: String,
    /// Additional blocks that would decide it; none where it is decided, or where no reasonable number would.
    pub more_blocks: Option<u32>,
}

/// The result of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictionResult {
    /// As predicted.
    Matched,
    /// The change has the opposite direction, or is too small.
    NotMatched,
    /// The interval allows both.
    NotShown,
    /// The metric is unknown, or nothing was repeated.
    NotKnown,
}

impl PredictionResult {
    /// The result as text.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::NotMatched => "not matched",
            Self::NotShown => "not decided",
            Self::NotKnown => "not known",
        }
    }
}

/// A predicted metric and its measured effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignatureLine {
    /// The id of the metric.
    pub metric: String,
    /// Its name in headings.
    pub name: String,
    /// The prediction, as text.
    pub predicted: String,
    /// The measured effect, as a fraction.
    pub found: Option<Estimate>,
    /// Whether it matches the prediction.
    pub matched: PredictionResult,
}

/// Judges the claim by the goal's metric.
pub(crate) fn verdict(input: &StudyInput, counting: Counting) -> HypothesisVerdict {
    let smallest = input.goal.smallest;
    let none = |answer, sentence: String| HypothesisVerdict {
        answer,
        claim: input.claim.as_ref().map(|claim| describe_claim(input, claim)),
        effect: None,
        least: smallest,
        equivalent: false,
        sentence,
        more_blocks: None,
    };
    let Some(claim) = &input.claim else {
        return none(
            HypothesisAnswer::NotTestable,
            "not testable: the hypothesis does not state which factor and levels change the goal's figure; \
            the effects below were not predicted"
                .into(),
        );
    };
    let values = Values::of(input, &input.goal.metric, counting);
    let Some(fit) = values.fit(input.confidence) else {
        let why = if values.observations.is_empty() {
            "no counted run has the goal's figure"
        } else {
            "no block has two cells, so cells and blocks cannot be separated"
        };
        return none(HypothesisAnswer::Inconclusive, format!("inconclusive: {why}"));
    };
    let Some(weights) = between(input, &fit, &claim.from, &claim.to) else {
        return none(
            HypothesisAnswer::Inconclusive,
            "inconclusive: one side of the hypothesis has no counted run".into(),
        );
    };
    let floor = control::floor(input, &input.goal.metric).unwrap_or(0.0);
    let claimed = claim.least.unwrap_or(smallest);
    let least = claimed.max(floor);
    let margin = if claim.direction == Direction::Same { claimed } else { smallest };
    let found = values.relative(fit.contrast(&weights));
    let shown = format_effect(&found, input.confidence);
    let toward = if claim.direction == Direction::Down { found.negated() } else { found };
    let sides = runs_a_side(&fit, &weights);
    let testable = fit.freedom >= FREEDOM && sides >= FLOOR;
    let more = || {
        let deviation = values.part(fit.deviation_in_block(&weights)?);
        let bounds = if claim.direction == Direction::Same { [-claimed, claimed] } else { [0.0, claimed] };
        let have = fit.blocks.len() as u32;
        let more = more_blocks(deviation, have, &toward, bounds, input.confidence)?;
        // The floor decreases with the square root of the number of blocks.
        let for_floor = f64::from(have) * ((floor.ln_1p() / claimed.ln_1p()).powi(2) - 1.0);
        Some(more.max(for_floor.max(0.0).ceil() as u32)).filter(|more| *more <= MOST_BLOCKS)
    };
    let (answer, sentence, more_blocks) = match (found.low.zip(found.high), toward.low.zip(toward.high)) {
        (Some((low, high)), Some(toward_ends)) if testable => {
            let within = low > -margin && high < margin;
            let (answer, sentence) = if floor > claimed && toward.value.abs() <= floor {
                let floor = plain_percent(floor);
                let why =
                    format!("inconclusive: {shown} is too small to resolve: the control's floor is {floor}");
                (HypothesisAnswer::Inconclusive, why)
            } else {
                judge(claim, toward.value, toward_ends, claimed, within, margin, &shown)
            };
            let more = if answer == HypothesisAnswer::Inconclusive { more() } else { None };
            (answer, sentence, more)
        }
        (None, _) => (
            HypothesisAnswer::Inconclusive,
            format!(
                "inconclusive: nothing was repeated in {}, so there is no error estimate; found {shown}",
                count(fit.blocks.len(), "block")
            ),
            None,
        ),
        _ => (
            HypothesisAnswer::Inconclusive,
            format!(
                "inconclusive: not testable with {} per side and {} of freedom; found {shown}",
                count(sides, "run"),
                if fit.freedom == 1 { "1 degree".into() } else { format!("{} degrees", fit.freedom) },
            ),
            more(),
        ),
    };
    let sentence = match more_blocks {
        Some(more) => format!("{sentence}; {} would decide", count(more as usize, "more block")),
        None => sentence,
    };
    let equivalent =
        found.low.is_some_and(|low| low > -margin) && found.high.is_some_and(|high| high < margin);
    HypothesisVerdict {
        answer,
        claim: Some(describe_claim(input, claim)),
        effect: Some(found),
        least,
        equivalent: equivalent && testable && floor <= margin,
        sentence,
        more_blocks,
    }
}

/// `toward` is the effect in the claimed direction.
fn judge(
    claim: &Claim,
    toward: f64,
    (low, high): (f64, f64),
    least: f64,
    within: bool,
    margin: f64,
    shown: &str,
) -> (HypothesisAnswer, String) {
    if claim.direction == Direction::Same {
        return if within {
            (
                HypothesisAnswer::Supported,
                format!("supported: {shown} lies within ± {}: equivalent", plain_percent(margin)),
            )
        } else if low > margin || high < -margin {
            (HypothesisAnswer::Refuted, format!("refuted: {shown} lies beyond ± {}", plain_percent(margin)))
        } else {
            (
                HypothesisAnswer::Inconclusive,
                format!("inconclusive: {shown} reaches beyond ± {}", plain_percent(margin)),
            )
        };
    }
    let least_words = plain_percent(least);
    if low >= least {
        (
            HypothesisAnswer::Supported,
            format!("supported: {shown}, entirely at or beyond the {least_words} claimed"),
        )
    } else if high < 0.0 {
        (HypothesisAnswer::Refuted, format!("refuted: {shown}, in the opposite direction"))
    } else if within && high < least {
        (
            HypothesisAnswer::Refuted,
            format!(
                "refuted: {shown} lies within ± {}, the smallest effect that matters: equivalent",
                plain_percent(margin)
            ),
        )
    } else if high < least {
        (HypothesisAnswer::Refuted, format!("refuted: {shown} is less than the {least_words} claimed"))
    } else if low > 0.0 && toward >= least {
        (
            HypothesisAnswer::Supported,
            format!(
                "supported: {shown}; the direction is certain, and the estimate reaches the {least_words} \
                claimed"
            ),
        )
    } else if low > 0.0 {
        (
            HypothesisAnswer::Inconclusive,
            format!("inconclusive: {shown} is an effect, but it may not reach the {least_words} claimed"),
        )
    } else {
        (
            HypothesisAnswer::Inconclusive,
            format!("inconclusive: {shown} is compatible with no effect and with the {least_words} claimed"),
        )
    }
}

/// The levels of the other factors at which the claimed effect has the opposite sign, significantly: a mean
/// over all levels would hide it. The largest such effect, as text.
pub(crate) fn exception(input: &StudyInput) -> Option<String> {
    let claim = input.claim.as_ref()?;
    let values = Values::of(input, &input.goal.metric, Counting::Valid);
    let fit = values.fit(input.confidence)?;
    let mean = fit.contrast(&between(input, &fit, &claim.from, &claim.to)?);
    let named: Vec<usize> = claim.from.iter().chain(&claim.to).map(|(factor, _)| *factor).collect();
    let others: Vec<usize> = (0..input.factors.len()).filter(|factor| !named.contains(factor)).collect();
    if others.is_empty() || matches!(input.design, StudyDesign::Fraction { .. }) {
        return None;
    }
    let at = |cell: &Vec<usize>| -> Vec<(usize, usize)> {
        others.iter().map(|factor| (*factor, cell[*factor])).collect()
    };
    let mut places: Vec<_> = fit.cells.iter().map(at).collect();
    places.sort_unstable();
    places.dedup();
    // Bonferroni: all places together may be wrong by chance as rarely as a single one.
    let chance = (1.0 - input.confidence) / places.len() as f64;
    let against = places.into_iter().filter_map(|at| {
        let side = |levels: &[(usize, usize)]| [levels, &at].concat();
        let here = fit.contrast(&between(input, &fit, &side(&claim.from), &side(&claim.to))?);
        let beyond_chance = here.p.is_some_and(|p| p < chance);
        (beyond_chance && (here.value > 0.0) != (mean.value > 0.0)).then_some((at, here))
    });
    let (at, here) = against.max_by(|a, b| a.1.value.abs().total_cmp(&b.1.value.abs()))?;
    Some(format!(
        "the claim was judged over all levels of the other factors; at {} the effect has the opposite sign: {}",
        input.levels_named(&at),
        format_effect(&values.relative(here), input.confidence)
    ))
}

/// Judges the predictions about other metrics.
pub(crate) fn signature(input: &StudyInput) -> Vec<SignatureLine> {
    let Some(claim) = &input.claim else { return Vec::new() };
    claim.signature.iter().map(|prediction| line(input, claim, prediction)).collect()
}

fn line(input: &StudyInput, claim: &Claim, prediction: &Prediction) -> SignatureLine {
    let values = Values::of(input, &prediction.metric, Counting::Valid);
    let fit = values.fit(input.confidence);
    let found = fit.as_ref().and_then(|fit| {
        Some(values.relative(fit.contrast(&between(input, fit, &claim.from, &claim.to)?)))
            .filter(|e| e.value.is_finite())
    });
    let matched = match found.and_then(|e| Some((e.value, e.low?, e.high?))) {
        None => PredictionResult::NotKnown,
        Some(ends) => matches(prediction, ends, input.goal.smallest),
    };
    SignatureLine {
        metric: prediction.metric.clone(),
        name: input.figure_name(&prediction.metric).into(),
        predicted: predicted(prediction, input.goal.smallest),
        found,
        matched,
    }
}

fn matches(prediction: &Prediction, (value, low, high): (f64, f64, f64), smallest: f64) -> PredictionResult {
    let (value, low, high) = match prediction.direction {
        Direction::Up => (value, low, high),
        Direction::Down => (-value, -high, -low),
        Direction::Same => {
            let margin = prediction.size.unwrap_or(smallest);
            return if low > -margin && high < margin {
                PredictionResult::Matched
            } else if low > margin || high < -margin {
                PredictionResult::NotMatched
            } else {
                PredictionResult::NotShown
            };
        }
    };
    let least = prediction.size.unwrap_or(0.0);
    if low > 0.0 && value >= least {
        PredictionResult::Matched
    } else if high < least || high < 0.0 {
        PredictionResult::NotMatched
    } else {
        PredictionResult::NotShown
    }
}

fn predicted(prediction: &Prediction, smallest: f64) -> String {
    let word = match prediction.direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Same => {
            return format!("the same within ± {}", plain_percent(prediction.size.unwrap_or(smallest)));
        }
    };
    prediction.size.map_or_else(|| word.into(), |size| format!("{word} by {} or more", plain_percent(size)))
}

/// The claim as text: "huge-pages=off → huge-pages=on raises NOPM by 1 % or more".
fn describe_claim(input: &StudyInput, claim: &Claim) -> String {
    let least = plain_percent(claim.least.unwrap_or(input.goal.smallest));
    let name = input.figure_name(&input.goal.metric);
    let what = match claim.direction {
        Direction::Up => format!("raises {name} by {least} or more"),
        Direction::Down => format!("lowers {name} by {least} or more"),
        Direction::Same => format!("leaves {name} unchanged within ± {least}"),
    };
    format!("{} → {} {what}", input.levels_named(&claim.from), input.levels_named(&claim.to))
}

/// The number of runs on the smaller side.
fn runs_a_side(fit: &Fit, weights: &[f64]) -> usize {
    let side = |up: bool| -> usize {
        let counted = fit.counts.iter().zip(weights);
        counted.filter(|(_, w)| if up { **w > 0.0 } else { **w < 0.0 }).map(|(n, _)| *n).sum()
    };
    side(true).min(side(false))
}

/// Additional blocks after which the effect would be significant, at the observed error. The result is the
/// number that distinguishes an effect as large as the second of `bounds` from 0 with [`POWER`]. (For "the
/// same" both sides must be excluded, so each may fail half as often.) If that many blocks have run already,
/// it is the number that separates the estimate from each bound within its interval.
fn more_blocks(
    deviation: f64,
    have: u32,
    toward: &Estimate,
    bounds: [f64; 2],
    confidence: f64,
) -> Option<u32> {
    let wanted = if bounds[0] < 0.0 { f64::midpoint(1.0, POWER) } else { POWER };
    let planned = power::pairs(deviation, bounds[1], wanted, confidence)?;
    if planned > have {
        return Some(planned - have).filter(|more| *more <= MOST_BLOCKS);
    }
    let within = |bound: &f64| {
        toward.low.is_none_or(|low| low <= *bound) && toward.high.is_none_or(|high| high >= *bound)
    };
    let distances = bounds.iter().filter(|bound| within(bound)).map(|bound| (toward.value - bound).abs());
    let distance = distances.fold(f64::INFINITY, f64::min);
    let enough = |blocks: u32| {
        let freedom = f64::from(blocks - 1);
        student::quantile(f64::midpoint(1.0, confidence), freedom)
            .is_some_and(|t| t * deviation / f64::from(blocks).sqrt() < distance)
    };
    (have.max(FLOOR as u32 - 1) + 1..=have + MOST_BLOCKS)
        .find(|blocks| enough(*blocks))
        .map(|blocks| blocks - have)
}
