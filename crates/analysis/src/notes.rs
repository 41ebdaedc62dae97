//! The user's text in the notebook, by phase, without Kelvin's parts and the template's hints.

/// The names of the eight phases.
pub const PHASES: [&str; 8] = [
    "Observation",
    "Declaration of the goal",
    "Hypothesis",
    "Method",
    "Test",
    "Analysis",
    "Conclusion",
    "Further research",
];

/// The user's paragraphs of each phase. `template` is the notebook as created; text that equals it is a hint,
/// not the user's.
pub fn phases(notebook: &str, template: &str) -> [Vec<String>; 8] {
    let hints = sections(template);
    let mut found = sections(notebook);
    for (phase, hints) in found.iter_mut().zip(&hints) {
        phase.retain(|paragraph| !hints.contains(paragraph));
    }
    found
}

fn sections(notebook: &str) -> [Vec<String>; 8] {
    let mut found: [Vec<String>; 8] = Default::default();
    let mut phase = None;
    let mut paragraph = String::new();
    let mut own = true;
    let mut fenced = false;
    for line in notebook.lines().chain([""]) {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let plain = !fenced && !fence;
        if plain && line.trim().starts_with("<!-- kelvin:") {
            own = false;
        }
        let heading = if plain && own { number(line) } else { None };
        // Empty lines inside a code block belong to it.
        if heading.is_some() || !own || (line.trim().is_empty() && !fenced) {
            if let (Some(at), false) = (phase, paragraph.trim().is_empty()) {
                let into: &mut Vec<String> = &mut found[at];
                into.push(std::mem::take(&mut paragraph).trim_end().to_owned());
            }
            paragraph.clear();
        } else {
            paragraph.push_str(line);
            paragraph.push('\n');
        }
        if plain && line.trim().starts_with("<!-- /kelvin") {
            own = true;
        }
        if heading.is_some() {
            phase = heading;
        }
    }
    // An unclosed fence extends to the end.
    if let (Some(at), false) = (phase, paragraph.trim().is_empty()) {
        found[at].push(paragraph.trim_end().to_owned());
    }
    found
}

/// The phase that a heading begins: "## 3 Hypothesis".
fn number(line: &str) -> Option<usize> {
    let heading = line.strip_prefix("## ")?.trim_start();
    let digit = heading.chars().next()?.to_digit(10)? as usize;
    let rest = heading[1..].chars().next();
    ((1..=8).contains(&digit) && !rest.is_some_and(|c| c.is_ascii_digit())).then(|| digit - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_persons_words_are_found_without_hints_and_kelvins_parts() {
        let template = "# s\n\n## 1 Observation\n\nWhat was seen.\n\n## 5 Test\n\n<!-- kelvin: runs -->\n_no_\n<!-- /kelvin -->\n";
        let notebook = "# s\n\n## 1 Observation\n\nWhat was seen.\n\nSlow.\nVery.\n\n```\n## 2 no\n\nx\n```\n\n## 5 Test\n\n\
                        <!-- kelvin: runs -->\nrun 1\n\n## 6 not a phase of yours\n<!-- /kelvin -->\nDoor open.\n";
        let found = phases(notebook, template);
        assert_eq!(found[0], ["Slow.\nVery.", "```\n## 2 no\n\nx\n```"]);
        assert_eq!(found[4], ["Door open."]);
        assert!(found[5].is_empty(), "what Kelvin wrote begins no phase");
        assert!(found[1].is_empty());
    }

    proptest! {
        #[test]
        fn any_notebook_is_read(text in "(## [0-9] \\PC{0,9}\n|<!-- /?kelvin: ?r? ?-->\n|```\n|\\PC{0,20}\n){0,12}") {
            let found = phases(&text, "");
            for paragraph in found.iter().flatten() {
                prop_assert!(!paragraph.trim().is_empty());
            }
        }
    }
}
