//! What the study leaves open, as questions that another study can take.

use serde::Serialize;

use crate::effect_text::{count, format_effect, plain_percent, signed_percent};
use crate::verdict::{HypothesisAnswer, PredictionResult};
use crate::{Analysis, Effect, StudyInput};

/// Effects of each sort that are asked about; the list is to be read.
const MOST: usize = 3;

/// Why a question was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// The hypothesis is undecided.
    Inconclusive,
    /// The effect is there and its predicted cause is not seen.
    Signature,
    /// One factor changes the effect of another, which nobody had said.
    Interaction,
    /// An effect that nobody had predicted.
    Effect,
    /// Effects that a fraction confounds.
    Alias,
    /// The best level is the last that was tried.
    Edge,
    /// What limits the best cell.
    Limit,
    /// Void runs decide the answer.
    Void,
    /// The level moved while the study went on.
    Drift,
}

/// A question for another study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// Why it was left.
    pub open: Open,
    /// In a sentence.
    pub question: String,
    /// What it comes from.
    pub why: String,
    /// The factors that it is about, by name.
    pub factors: Vec<String>,
    /// The figure that it is about, by id.
    pub metric: Option<String>,
    /// Blocks that the study needs in all, if known.
    pub blocks: Option<u32>,
}

/// Every question that the analysis leaves open, the most pressing first.
pub(crate) fn questions(input: &StudyInput, of: &Analysis) -> Vec<Question> {
    let goal = &input.goal.metric;
    let name = input.figure_name(goal);
    let mut found = Vec::new();
    let mut ask = |open, question: String, why: String, factors: &[usize], metric: &str, blocks| {
        let factors = factors.iter().map(|f| input.factors[*f].name.clone()).collect();
        found.push(Question { open, question, why, factors, metric: Some(metric.to_owned()), blocks });
    };
    let claimed: Vec<usize> = input
        .claim
        .as_ref()
        .map(|claim| {
            let mut all: Vec<usize> = claim.from.iter().chain(&claim.to).map(|(f, _)| *f).collect();
            all.sort_unstable();
            all.dedup();
            all
        })
        .unwrap_or_default();

    if let (HypothesisAnswer::Inconclusive, Some(claim)) = (of.verdict.answer, &of.verdict.claim) {
        let have = of.primary.blocks as u32;
        let blocks = of.verdict.more_blocks.map(|more| have + more);
        let question = match of.verdict.more_blocks {
            Some(more) => {
                format!("Is it true that {claim}? {} would decide", count(more as usize, "more block"))
            }
            None => format!("Is it true that {claim}?"),
        };
        ask(Open::Inconclusive, question, of.verdict.sentence.clone(), &claimed, goal, blocks);
    }
    if of.sensitivity.depends {
        let question = "What made runs void? The answer depends on whether they count".to_owned();
        let with = of.sensitivity.with.as_ref().map_or_else(String::new, |with| with.sentence.clone());
        let why = format!("without void runs: {}; with them: {with}", of.verdict.sentence);
        ask(Open::Void, question, why, &claimed, goal, None);
    }
    for line in of
        .signature
        .iter()
        .filter(|line| matches!(line.matched, PredictionResult::NotMatched | PredictionResult::NotShown))
    {
        let shown = line.found.map_or_else(|| "nothing".into(), |e| format_effect(&e, input.confidence));
        let question = if of.verdict.answer == HypothesisAnswer::Supported {
            format!(
                "What changes {name}, if not the predicted mechanism? {} does not match the prediction",
                line.name
            )
        } else {
            format!("Is the predicted mechanism at work? {} does not match the prediction", line.name)
        };
        let why = format!("predicted {}, found {shown}: {}", line.predicted, line.matched.describe());
        ask(Open::Signature, question, why, &claimed, &line.metric, None);
    }
    let alpha = 1.0 - input.confidence;
    let sure = |e: &&Effect| e.adjusted.is_some_and(|p| p < alpha) && largest(e) >= input.goal.smallest;
    let effects = of.primary.allocation.as_ref().map_or(&[][..], |a| &a.effects);
    for e in effects.iter().filter(sure).filter(|e| e.factors.len() > 1).take(MOST) {
        let names: Vec<&str> = e.factors.iter().map(|f| input.factors[*f].name.as_str()).collect();
        let (last, rest) = names.split_last().map_or(("", String::new()), |(l, r)| (*l, r.join(" and ")));
        let question = format!("Why does {rest} change the effect of {last} on {name}?");
        let why = format!(
            "the interaction {} explains {} of the variation and was not predicted; {}",
            e.name,
            plain_percent(e.share),
            alias_words(e)
        );
        ask(Open::Interaction, question, trimmed(&why), &e.factors, goal, None);
    }
    for e in effects.iter().filter(sure).filter(|e| e.factors.len() == 1 && e.factors != claimed).take(MOST) {
        let shown: Vec<String> = e
            .contrasts
            .iter()
            .map(|c| format!("{} {}", c.name, format_effect(&c.estimate, input.confidence)))
            .collect();
        let question =
            format!("Does {} move {name} in a study that predicts it, and by what mechanism?", e.name);
        ask(
            Open::Effect,
            question,
            format!("found but not predicted: {}", shown.join("; ")),
            &e.factors,
            goal,
            None,
        );
    }
    for e in effects.iter().filter(sure).filter(|e| !e.aliases.is_empty()).take(1) {
        let question = format!("Is it the effect of {}, or of {}?", e.name, e.aliases.join(", or of "));
        let why =
            "the fractional design cannot distinguish them; a full factorial of the factors that matter can"
                .to_owned();
        ask(Open::Alias, question, why, &e.factors, goal, None);
    }
    if let Some(sweep) = of.sweep.as_ref().filter(|sweep| sweep.at_the_edge) {
        let at = sweep.best.first().map_or("", |level| &input.factors[0].levels[*level].name);
        let question = format!("Is {name} even better beyond {}={at}?", input.factors[0].name);
        ask(Open::Edge, question, "the best level is at the edge of the range".into(), &[0], goal, None);
    }
    if let Some(drift) = of.drift.as_ref().filter(|d| d.p < alpha && d.change.abs() >= input.goal.smallest) {
        let question = format!("What moved {name} by {} during the study?", signed_percent(drift.change));
        ask(
            Open::Drift,
            question,
            "the run order was randomized, so it adds noise but no bias".into(),
            &[],
            goal,
            None,
        );
    }
    if let Some((cell, limit)) = &of.limit {
        let question = format!("What raises {name} beyond that of {}?", input.cell_name(cell));
        ask(Open::Limit, question, format!("what limits the best cell: {limit}"), &[], goal, None);
    }
    found
}

/// The largest contrast of an effect.
pub(crate) fn largest(effect: &Effect) -> f64 {
    effect.contrasts.iter().map(|c| c.estimate.value.abs()).fold(0.0, f64::max)
}

fn alias_words(effect: &Effect) -> String {
    if effect.aliases.is_empty() {
        String::new()
    } else {
        format!("it could also be {}", effect.aliases.join(" or "))
    }
}

fn trimmed(text: &str) -> String {
    text.trim_end().trim_end_matches(';').to_owned()
}
