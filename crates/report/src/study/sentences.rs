//! Sentences about a study that all formats share.

use kelvin_analysis::effect_text::format_effect;
use kelvin_analysis::{Analysis, HypothesisAnswer, PredictionResult};
use kelvin_measure::text::{count, plain_percent, plural, probability, signed_percent};

/// The answer to "is it statistically correct?".
pub(crate) fn correct(of: &Analysis) -> String {
    let verdict = &of.verdict;
    match verdict.answer {
        HypothesisAnswer::Supported | HypothesisAnswer::Refuted if of.sensitivity.depends => {
            "yes, by the counted runs; with the void runs included, the answer would be different".into()
        }
        HypothesisAnswer::Supported | HypothesisAnswer::Refuted => "yes".into(),
        HypothesisAnswer::Inconclusive if of.runs.counted == 0 => "no: no counted runs".into(),
        HypothesisAnswer::Inconclusive if of.primary.freedom == 0 => {
            "no: nothing was repeated; any test needs four blocks".into()
        }
        HypothesisAnswer::Inconclusive => match verdict.more_blocks {
            Some(more) => {
                let cells = of.table.rows.len().max(1);
                let runs = more as usize * cells;
                format!("no: {} ({}) would decide", count(more as usize, "more block"), count(runs, "run"))
            }
            None => "no, and the number of blocks needed to decide is not known".into(),
        },
        HypothesisAnswer::NotTestable => "there is nothing to test".into(),
    }
}

/// The result of the signature as a whole; none if nothing was predicted.
pub(crate) fn signature(of: &Analysis) -> Option<String> {
    if of.signature.is_empty() {
        return None;
    }
    let matched = of.signature.iter().filter(|line| line.matched == PredictionResult::Matched).count();
    let all = of.signature.len();
    let rest = match (of.verdict.answer, matched == all) {
        (HypothesisAnswer::Supported, true) => {
            "the effect is present, and so are the other effects that the mechanism predicts"
        }
        (HypothesisAnswer::Supported, false) => "the effect is present; the assumed mechanism is not shown",
        (_, true) => "the other effects that the mechanism predicts are present",
        (_, false) => "the assumed mechanism is not shown",
    };
    Some(format!("{matched} of {all} predictions matched: {rest}"))
}

/// The result of the A/A controls.
pub(crate) fn control(of: &Analysis) -> Option<String> {
    let control = of.control.as_ref()?;
    let mut text = format!(
        "The same cell run twice in {} differs by {}",
        count(control.pairs, "block"),
        format_effect(&control.difference, of.confidence)
    );
    match control.floor {
        Some(floor) => {
            text.push_str(&format!("; effects below {} are not resolvable here.", plain_percent(floor)));
        }
        None => text.push_str("; one pair is too few to determine the smallest resolvable effect."),
    }
    if control.differs {
        text.push_str(" Equal runs differ: something other than the factors has an effect.");
    }
    Some(text)
}

/// The result with and without void runs.
pub(crate) fn sensitivity(of: &Analysis) -> Vec<String> {
    let found = &of.sensitivity;
    let mut lines = vec![format!("Without void runs: {}.", found.without.sentence)];
    match &found.with {
        Some(with) => {
            lines.push(format!(
                "With {} that {} a value: {}.",
                count(found.void_with_value, "void run"),
                if found.void_with_value == 1 { "has" } else { "have" },
                with.sentence
            ));
            lines.push(if found.depends {
                "The conclusion depends on whether they count.".into()
            } else {
                "The conclusion does not depend on them.".into()
            });
        }
        None if of.runs.void == 0 => lines.push("No run was void.".into()),
        None => lines.push("No void run of a cell has a value that could be included.".into()),
    }
    lines
}

/// Drift over the order of the runs.
pub(crate) fn drift(of: &Analysis) -> String {
    match &of.drift {
        None => "Too few runs to detect drift.".into(),
        Some(drift) => {
            let sure = drift.p < 1.0 - of.confidence;
            let end = if sure {
                "drift is shown; blocks remove most of it, and the order was random"
            } else {
                "no drift is shown"
            };
            format!(
                "Drift from the first run to the last: {} (p {}): {end}.",
                signed_percent(drift.change),
                probability(Some(drift.p))
            )
        }
    }
}

/// The conclusions that changing one factor at a time would have given.
pub(crate) fn one_at_a_time(of: &Analysis) -> Option<Vec<String>> {
    let alone = of.one_at_a_time.as_ref()?;
    if alone.wrong.is_empty() {
        return Some(vec![
            "Changing one factor at a time would have given the same result here: no interaction would have \
             misled it."
                .into(),
        ]);
    }
    let mut lines = vec!["Changing one factor at a time would have led to wrong conclusions:".to_owned()];
    lines.extend(alone.wrong.iter().cloned());
    Some(lines)
}

/// The configuration to keep: the best cell, and those that do not differ significantly from it.
pub(crate) fn keep(of: &Analysis) -> Option<String> {
    let best = &of.table.rows[of.table.best?];
    let name = |levels: &[String]| {
        let each = of.factors.iter().zip(levels).map(|(factor, level)| format!("{}={level}", factor.name));
        each.collect::<Vec<_>>().join(" ")
    };
    let alike: Vec<String> =
        of.table.rows.iter().filter(|row| row.with_best).map(|row| name(&row.levels)).collect();
    let mut text = format!("{}: the best of the cells measured", name(&best.levels));
    if of.primary.freedom == 0 {
        text.push_str("; based on single runs, so another may be equally good");
    } else if !alike.is_empty() {
        text.push_str(&format!("; not distinguishable from it: {}", alike.join("; ")));
    }
    Some(text)
}

/// Variation, runs and blocks in one line.
pub(crate) fn precision(of: &Analysis) -> String {
    let variation = of.primary.variation.map_or_else(
        || "variation from run to run is not known".into(),
        |v| {
            format!(
                "variation from run to run {} (standard deviation ÷ mean, without block effects)",
                plain_percent(v)
            )
        },
    );
    format!(
        "{} in {} count{}; {}, {}; {variation}",
        count(of.runs.counted, "run"),
        count(of.primary.blocks, "block"),
        plural(of.runs.counted, "s", ""),
        count(of.runs.controls, "control"),
        format_args!("{} void", of.runs.void)
    )
}
