//! Words around figures: counts of things, lists, lines of a width.

use std::fmt::Display;

/// "1 checkpoint", "3 checkpoints".
pub fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, one: &str) -> String {
    format!("{number} {one}{}", plural(number, "", "s"))
}

/// The form of a word that fits a number.
pub fn plural<'a, N: Copy + PartialEq + From<u8>>(number: N, one: &'a str, many: &'a str) -> &'a str {
    if number == N::from(1) { one } else { many }
}

/// The first names, and how many more there are: "a, b, c and 2 more".
pub fn few<T: AsRef<str>>(names: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut names = names.into_iter();
    let shown: Vec<T> = names.by_ref().take(most).collect();
    let shown = shown.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.count() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// All names as a sentence has them: "a, b and c".
pub fn series<T: AsRef<str>>(names: &[T]) -> String {
    let joined = |names: &[T]| names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {}", joined(first), last.as_ref()),
        all => joined(all),
    }
}

/// A sentence without the marks of commands and names (`` ` ``), which are for pages.
pub fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// Blanks for control characters: a label or a server's message must not steer the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The same for text of several lines, which stay.
pub fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

/// Truncates to so many characters, the last of which marks the truncation; control characters become blanks.
pub fn cut(text: &str, most: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A statement's beginning on one line.
pub fn statement(text: &str) -> String {
    const LONGEST: usize = 120;
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST)
}

/// Breaks a sentence between words into lines of a width in characters. The lead precedes the first line, and the
/// following ones are indented by its width; a word that is longer than a line gets a separate line.
pub fn wrap(lead: &str, text: &str, width: usize) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    hanging(lead, &words.join(" "), lead.chars().count(), width)
}

/// The same with another indent of the following lines, and with the runs of blanks in the text, which align columns.
pub fn hanging(lead: &str, text: &str, indent: usize, width: usize) -> Vec<String> {
    let mut line = lead.to_owned();
    let mut used = lead.chars().count();
    let mut lines = Vec::new();
    for (at, word) in text.split_inclusive(' ').enumerate() {
        let length = word.trim_end().chars().count();
        if at > 0 && used + length > width && length > 0 {
            line.truncate(line.trim_end_matches(' ').len());
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            used = indent;
        }
        line.push_str(word);
        used += word.chars().count();
    }
    line.truncate(line.trim_end_matches(' ').len().max(if lines.is_empty() { lead.len() } else { 0 }));
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_agree_with_their_numbers() {
        assert_eq!([count(1, "checkpoint"), count(2_u64, "block")], ["1 checkpoint", "2 blocks"]);
        assert_eq!(
            [plural(1_usize, "entry", "entries"), plural(0_u32, "entry", "entries")],
            ["entry", "entries"]
        );
        let names = ["t0", "t1", "t2"];
        assert_eq!([few(names, 3), few(names, 1)], ["t0, t1, t2", "t0 and 2 more"]);
        assert_eq!([series(&names), series(&names[..1]), series::<&str>(&[])], ["t0, t1 and t2", "t0", ""]);
    }

    #[test]
    fn sentences_break_between_words() {
        assert_eq!(wrap("", "one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("- ", "one two three", 7), ["- one", "  two", "  three"]);
        assert_eq!([wrap("", "", 7), wrap("- ", "", 7)], [[""], ["- "]]);
        assert_eq!(wrap("", "exceptional words", 7), ["exceptional", "words"]);
        assert_eq!(hanging("  ", "a  b one two", 4, 9), ["  a  b", "    one", "    two"]);
        assert_eq!([cut("abc", 3), cut("a\x1bcd", 3)], ["abc", "a …"]);
        assert_eq!([printable("a\x1b[2J\nb"), printable_lines("a\x1b[2J\nb")], ["a [2J b", "a [2J\nb"]);
    }
}
