//! `notebook.md`: the eight phases of a study as text.
//!
//! Most of it is written by the user. A few parts are Kelvin's: they are between `<!-- kelvin: NAME -->` and
//! `<!-- /kelvin -->`, and are rewritten whenever Kelvin has new results. A part without these two lines is no longer
//! updated.

use super::Study;

/// A part that Kelvin fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotebookPart {
    /// The locked hypothesis.
    Lock,
    /// The plan: order, time, power.
    Plan,
    /// The events of the runs: void ones with their reasons, deviations.
    Runs,
    /// The results of the analysis.
    Analysis,
    /// Hypotheses derived from open questions.
    Next,
}

impl NotebookPart {
    const fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Plan => "plan",
            Self::Runs => "runs",
            Self::Analysis => "analysis",
            Self::Next => "next",
        }
    }

    fn opening(self) -> String {
        format!("<!-- kelvin: {} -->", self.name())
    }
}

const CLOSING: &str = "<!-- /kelvin -->";

/// The notebook with this part filled; `None` when it has no such part.
pub fn fill(notebook: &str, part: NotebookPart, text: &str) -> Option<String> {
    let opening = part.opening();
    let begin = notebook.find(&opening)? + opening.len();
    let end = begin + notebook[begin..].find(CLOSING)?;
    // Kelvin's text must not end the part early.
    let text = text.replace(CLOSING, "");
    Some(format!("{}\n{}\n{}", &notebook[..begin], text.trim_end(), &notebook[end..]))
}

/// A new notebook.
pub fn template(study: &Study) -> String {
    let empty = |part: NotebookPart, what: &str| format!("{}\n_{what}_\n{CLOSING}", part.opening());
    let parent = match &study.parent {
        Some(parent) => format!("Continues: {parent}\n\n"),
        None => String::new(),
    };
    format!(
        "# {name}\n\n\
        {parent}\
        Question: {question}\n\n\
        Kelvin writes the parts between `<!-- kelvin: … -->` and `<!-- /kelvin -->` and overwrites changes there; the rest is \
        yours.\n\n\
        ## 1 Observation\n\n\
        What you observed, with numbers (`kelvin show`, `kelvin doctor`), on which machine, and what is strange about it. \
        Keep strange values: one of them may be the answer.\n\n\
        ## 2 Declaration of the goal\n\n\
        `study.toml` contains the metric, direction and smallest effect that matters. Here: why that size, and what is out \
        of scope.\n\n\
        ## 3 Hypothesis\n\n\
        `study.toml` contains the statement, mechanism and predicted signature. Here: what would convince you that you are \
        wrong, and what else could explain the same observation.\n\n\
        {lock}\n\n\
        ## 4 Method\n\n\
        Why this workload and these levels; what is kept constant; risks, and how to undo the changes.\n\n\
        {plan}\n\n\
        ## 5 Test\n\n\
        What you observed during the runs, and what you did to the machine meanwhile.\n\n\
        {runs}\n\n\
        ## 6 Analysis\n\n\
        Your interpretation. If there are strange results, go back to 4 or 1.\n\n\
        {analysis}\n\n\
        ## 7 Conclusion\n\n\
        Supported, refuted or inconclusive; why; what it applies to (the universe), and the configuration to keep.\n\n\
        ## 8 Further research\n\n\
        The next hypothesis (`kelvin study fork` starts a study from here).\n\n\
        {next}\n",
        name = study.name,
        question = study.question,
        lock = empty(
            NotebookPart::Lock,
            "not locked; `kelvin study lock` fixes the hypothesis before the first run"
        ),
        plan = empty(NotebookPart::Plan, "`kelvin study lock` and `kelvin study run` write it here"),
        runs = empty(NotebookPart::Runs, "no runs yet"),
        analysis = empty(NotebookPart::Analysis, "no analysis yet; `kelvin study analyze` writes it here"),
        next = empty(NotebookPart::Next, "no analysis yet"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOTEBOOK: &str = "mine\n<!-- kelvin: runs -->\nold\n<!-- /kelvin -->\nalso mine\n";

    #[test]
    fn only_kelvins_part_changes() {
        let filled = fill(NOTEBOOK, NotebookPart::Runs, "new\nlines\n").unwrap();
        assert_eq!(filled, "mine\n<!-- kelvin: runs -->\nnew\nlines\n<!-- /kelvin -->\nalso mine\n");
        assert_eq!(fill(&filled, NotebookPart::Runs, "new\nlines").unwrap(), filled);
        assert_eq!(fill(NOTEBOOK, NotebookPart::Plan, "x"), None, "a part that was taken out stays out");
        assert_eq!(fill("<!-- kelvin: runs --> never closed", NotebookPart::Runs, "x"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_written_over(before in "\\PC{0,40}", text in "\\PC{0,40}(<!-- /kelvin -->)?\\PC{0,9}") {
            let notebook = format!("{before}{NOTEBOOK}");
            if let Some(filled) = fill(&notebook, NotebookPart::Runs, &text) {
                let again = fill(&filled, NotebookPart::Runs, "last").unwrap();
                prop_assert!(again.ends_with("\nlast\n<!-- /kelvin -->\nalso mine\n"), "{again}");
            }
        }
    }
}
