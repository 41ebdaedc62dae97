//! Open questions of the study, for a further study.

use serde::Serialize;

use crate::effect_text::format_effect;
use crate::verdict::{HypothesisAnswer, PredictionResult};
use crate::{Analysis, Effect, StudyInput};
use kelvin_measure::text::{count, plain_percent, signed_percent};

/// Maximum number of effects of each kind, to keep the list readable.
const MOST: usize = 3;

/// Why a question is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// The hypothesis is undecided.
    Inconclusive,
    /// The effect is there, but its predicted cause is not observed.
    Signature,
    /// One factor changes the effect of another, which was not predicted.
    Interaction,
    /// An effect that was not predicted.
    Effect,
    /// Effects that a fraction confounds.
    Alias,
    /// The best level is the last that was tried.
    Edge,
    /// The limit of the best cell.
    Limit,
    /// Void runs decide the answer.
    Void,
    /// The level drifted during the study.
    Drift,
}

/// A question for another study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// Why it was left.
    pub open: Open,
    /// The question as a sentence.
    pub question: String,
    /// The reason.
    pub why: String,
    /// The factors concerned, by name.
    pub factors: Vec<String>,
    /// The metric concerned, by id.
    pub metric: Option<String>,
    /// The total number of blocks that the study needs, if known.
    pub blocks: Option<u32>,
}

/// Every open question of the analysis, the most pressing first.
pub(crate) fn questions(input: &StudyInput, of: &Analysis) -> Vec<Question> {
    let claim = input.claim.iter().flat_map(|claim| claim.from.iter().chain(&claim.to));
    let mut claimed: Vec<usize> = claim.map(|(factor, _)| *factor).collect();
    claimed.sort_unstable();
    claimed.dedup();
    let name = input.figure_name(&input.goal.metric);
    let mut questions = Questions { input, of, name, claimed, found: Vec::new() };
    questions.of_the_hypothesis();
    questions.of_effects();
    questions.of_the_course();
    questions.found
}

/// The questions of a study.
struct Questions<'a> {
    input: &'a StudyInput,
    of: &'a Analysis,
    /// The name of the goal's metric.
    name: &'a str,
    /// The factors that the hypothesis is about.
    claimed: Vec<usize>,
    found: Vec<Question>,
}

impl Questions<'_> {
    /// A question about the goal and these factors.
    fn ask(
        &mut self,
        open: Open,
        question: String,
        why: impl Into<String>,
        factors: &[usize],
    ) -> &mut Question {
        let factors = factors.iter().map(|f| self.input.factors[*f].name.clone()).collect();
        let metric = Some(self.input.goal.metric.clone());
        self.found.push(Question { open, question, why: why.into(), factors, metric, blocks: None });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    /// The same about the factors of the hypothesis.
    fn ask_of_claim(&mut self, open: Open, question: String, why: impl Into<String>) -> &mut Question {
        let claimed = self.claimed.clone();
        self.ask(open, question, why, &claimed)
    }

    fn of_the_hypothesis(&mut self) {
        let (input, of, name) = (self.input, self.of, self.name);
        if let (HypothesisAnswer::Inconclusive, Some(claim)) = (of.verdict.answer, &of.verdict.claim) {
            let have = of.primary.blocks as u32;
            let question = match of.verdict.more_blocks {
                Some(more) => {
                    format!("Is it true that {claim}? {} would decide", count(more as usize, "more block"))
                }
                None => format!("Is it true that {claim}?"),
            };
            let blocks = of.verdict.more_blocks.map(|more| have + more);
            self.ask_of_claim(Open::Inconclusive, question, of.verdict.sentence.clone()).blocks = blocks;
        }
        if of.sensitivity.depends {
            let question = "What made runs void? The answer depends on whether they count".to_owned();
            let with = of.sensitivity.with.as_ref().map_or_else(String::new, |with| with.sentence.clone());
            let why = format!("without void runs: {}; with them: {with}", of.verdict.sentence);
            self.ask_of_claim(Open::Void, question, why);
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
            self.ask_of_claim(Open::Signature, question, why).metric = Some(line.metric.clone());
        }
    }

    fn of_effects(&mut self) {
        let (input, name) = (self.input, self.name);
        let alpha = 1.0 - input.confidence;
        let sure = |e: &&Effect| e.adjusted.is_some_and(|p| p < alpha) && largest(e) >= input.goal.smallest;
        let effects = self.of.primary.allocation.as_ref().map_or(&[][..], |a| &a.effects);
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
            self.ask(Open::Interaction, question, trimmed(&why), &e.factors);
        }
        let claimed = self.claimed.clone();
        let mains = effects.iter().filter(sure).filter(|e| e.factors.len() == 1 && e.factors != claimed);
        for e in mains.take(MOST) {
            let contrasts = e.contrasts.iter();
            let shown: Vec<String> = contrasts
                .map(|c| format!("{} {}", c.name, format_effect(&c.estimate, input.confidence)))
                .collect();
            let question =
                format!("Does {} move {name} in a study that predicts it, and by what mechanism?", e.name);
            let why = format!("found but not predicted: {}", shown.join("; "));
            self.ask(Open::Effect, question, why, &e.factors);
        }
        for e in effects.iter().filter(sure).filter(|e| !e.aliases.is_empty()).take(1) {
            let question = format!("Is it the effect of {}, or of {}?", e.name, e.aliases.join(", or of "));
            let why = "the fractional design cannot distinguish them; a full factorial of the factors that matter can";
            self.ask(Open::Alias, question, why, &e.factors);
        }
    }

    /// Questions about the edge of the range, drift, and the limit of the best cell.
    fn of_the_course(&mut self) {
        let (input, of, name) = (self.input, self.of, self.name);
        if let Some(sweep) = of.sweep.as_ref().filter(|sweep| sweep.at_the_edge) {
            let at = sweep.best.first().map_or("", |level| &input.factors[0].levels[*level].name);
            let question = format!("Is {name} even better beyond {}={at}?", input.factors[0].name);
            self.ask(Open::Edge, question, "the best level is at the edge of the range", &[0]);
        }
        let alpha = 1.0 - input.confidence;
        let moved = |p: f64, change: f64| p < alpha && change.abs() >= input.goal.smallest;
        if let Some(drift) = of.drift.as_ref().filter(|d| moved(d.p, d.change)) {
            let question = format!("What moved {name} by {} during the study?", signed_percent(drift.change));
            let why = "the run order was randomized, so it adds noise but no bias";
            self.ask(Open::Drift, question, why, &[]);
        }
        if let Some((cell, limit)) = &of.limit {
            let question = format!("What raises {name} beyond that of {}?", input.cell_name(cell));
            self.ask(Open::Limit, question, format!("what limits the best cell: {limit}"), &[]);
        }
    }
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
