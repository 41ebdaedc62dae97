//! Text for a terminal that several subcommands share.

use kelvin_lab::study::{Direction, Lock};

use super::StudyStatus;
use crate::out::wrapped;

/// Width of the text in columns.
pub(super) const WIDTH: usize = 100;

/// A paragraph whose first line begins with `lead`; the other lines are indented as far.
pub(super) fn paragraph(text: &mut String, lead: &str, words: &str) {
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    wrapped(text, &format!("{lead}{words}"), 0, lead.chars().count(), WIDTH);
}

/// Name, question, goal and hypothesis.
pub(super) fn head(text: &mut String, situation: &StudyStatus) {
    let study = &situation.study;
    text.push_str(&format!("study {} in {}\n", study.name, situation.folder.path().display()));
    if let Some(parent) = &study.parent {
        paragraph(text, "continues   ", parent);
    }
    paragraph(text, "question    ", &study.question);
    let goal = &study.goal;
    let better = match goal.direction {
        kelvin_diagnose::Better::Higher => "higher",
        kelvin_diagnose::Better::Lower => "lower",
    };
    let words = format!(
        "{}, {better} is better; the smallest effect that matters is {}",
        goal.metric, goal.smallest_effect
    );
    paragraph(text, "goal        ", &words);
    let hypothesis = &study.hypothesis;
    paragraph(text, "hypothesis  ", &hypothesis.statement);
    paragraph(text, "            ", &format!("because {}", hypothesis.mechanism));
    let predicted = hypothesis.predicts.iter().map(|one| {
        let by = match (one.direction, one.by) {
            (Direction::Same, by) => format!(" within {}", by.unwrap_or(goal.smallest_effect)),
            (_, Some(by)) => format!(" by {by}"),
            (_, None) => String::new(),
        };
        format!("{} {}{by}", one.metric, one.direction.as_str())
    });
    let words = format!(
        "predicts {} from {} to {}: {}",
        hypothesis.factor,
        hypothesis.from,
        hypothesis.to,
        predicted.collect::<Vec<_>>().join(", ")
    );
    paragraph(text, "            ", &words);
    lock(text, situation);
}

fn lock(text: &mut String, situation: &StudyStatus) {
    match &situation.lock {
        None => paragraph(
            text,
            "lock        ",
            "none: EXPLORATORY. kelvin study lock locks the hypothesis before the first run",
        ),
        Some(lock) => {
            paragraph(text, "lock        ", &locked(lock));
            for deviation in &situation.changed {
                paragraph(text, "  DEVIATION ", &deviation.describe());
            }
        }
    }
}

/// "2026-11-21 20:10 UTC, sha256 0123456789ab…".
pub(super) fn locked(lock: &Lock) -> String {
    let hash: String = lock.sha256.chars().take(12).collect();
    let after = match lock.runs_before {
        0 => String::new(),
        1 => "; AFTER 1 run: exploratory".into(),
        runs => format!("; AFTER {runs} runs: exploratory"),
    };
    format!("{}, sha256 {hash}…{after}", lock.at.strftime("%Y-%m-%d %H:%M UTC"))
}

/// A table with columns of minimum width, separated by two blanks. Columns for which `left` is true are
/// left-aligned.
pub(super) fn table(text: &mut String, rows: &[Vec<String>], left: impl Fn(usize) -> bool) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line.push(' ');
            line.push_str(&if left(column) {
                format!("{cell:<width$} ")
            } else {
                format!("{cell:>width$} ")
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
