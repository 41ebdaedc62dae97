//! The text of a study's file, for errors that show their location like those of the TOML parser.

use std::fmt::Display;
use std::ops::Range;

use super::StudyError;

/// A file's name and text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// An error at a position in the text.
    pub(super) fn refuse(&self, span: Range<usize>, why: impl Display) -> StudyError {
        let start = (0..=span.start.min(self.text.len())).rev().find(|&at| self.text.is_char_boundary(at));
        let before = &self.text[..start.unwrap_or(0)];
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[begin..].chars().count() + 1;
        let content = self.text[begin..].lines().next().unwrap_or_default();
        let end = span.end.clamp(before.len(), begin + content.len());
        let marked = self.text.get(before.len()..end).map_or(1, |marked| marked.chars().count().max(1));
        let gutter = " ".repeat(line.to_string().len());
        self.refuse_all(format!(
            "error at line {line}, column {column}\n{gutter} |\n{line} | {content}\n{gutter} | {}{}\n{why}",
            " ".repeat(column - 1),
            "^".repeat(marked)
        ))
    }

    /// An error of the file as a whole.
    pub(super) fn refuse_all(&self, why: impl Display) -> StudyError {
        // The text may contain the password that is the cause of the error.
        StudyError::Parse {
            path: self.name.into(),
            message: kelvin_measure::redact(why.to_string().trim_end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_shown() {
        let source = Source { name: "study.toml", text: "a = 1\nbö = \"xyz\" # why\n" };
        let at = source.text.find("\"xyz\"").unwrap();
        insta::assert_snapshot!(source.refuse(at..at + 5, "there is no xyz"), @r#"
        study.toml: error at line 2, column 6
          |
        2 | bö = "xyz" # why
          |      ^^^^^
        there is no xyz
        "#);
        for at in 0..=source.text.len() + 3 {
            assert!(source.refuse(at..at + 100, "no").to_string().contains("line"));
        }
    }
}
