//! Sentences in lines of a width.

/// A sentence without the marks of commands and names (`` ` ``), which are for pages.
pub fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// Breaks a sentence between words; a word that is longer than a line has one of its own. Widths are in characters.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_break_between_words() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
    }
}
