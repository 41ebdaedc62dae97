//! `--showcmd`: jobs as the command line that says the same.

use super::table::{self, ValueKind};
use crate::job::Jobs;

/// A command line that says what these jobs were read from, with the environment's variables replaced.
pub fn render_command_line(jobs: &Jobs) -> String {
    let mut out = String::from("kelvin io");
    for word in shown_words(jobs) {
        out.push(' ');
        out.push_str(&quoted(&word));
    }
    out
}

/// The words of that line, without the program's name.
pub fn shown_words(jobs: &Jobs) -> Vec<String> {
    let mut out: Vec<String> = jobs.global.iter().map(word).collect();
    for job in &jobs.jobs {
        out.push(format!("--name={}", job.name));
        out.extend(job.given.iter().filter(|(name, _)| name != "name").map(word));
    }
    out
}

fn word((name, value): &(String, String)) -> String {
    // Without the sign, the next word would be taken for the text.
    let takes_text = || table::find(name).is_some_and(|entry| matches!(entry.kind, ValueKind::OptionalText));
    if value.is_empty() && !takes_text() { format!("--{name}") } else { format!("--{name}={value}") }
}

/// The options of a job so that their order says nothing, as in a file, where `kb_base` says how all of its section are
/// read: what was read before a `kb_base` has its units written for it.
pub fn without_order(given: &[(String, String)]) -> Vec<(String, String)> {
    let Some(base) = given.iter().rposition(|(name, _)| name == "kb_base") else { return given.to_vec() };
    let thousand = |until: usize| {
        given[..until]
            .iter()
            .rev()
            .find(|(name, _)| name == "kb_base")
            .is_some_and(|(_, value)| value == "1000")
    };
    let written = |(index, (name, value)): (usize, &(String, String))| {
        let other = index < base && thousand(index) != thousand(base + 1);
        let sizes = table::find(name).is_some_and(|entry| entry.kind.holds_sizes());
        (name.clone(), if other && sizes { other_units(value) } else { value.clone() })
    };
    given.iter().enumerate().map(written).collect()
}

/// Units that say with the other `kb_base` what these say with this one: `4k` and `4kib` change places.
fn other_units(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_alphabetic()) {
        let unit = &rest[at..];
        let end = unit.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(unit.len());
        let (before, first) = (&rest[..at], &unit[..1]);
        out.push_str(before);
        match unit[..end].to_ascii_lowercase().as_bytes() {
            [b'k' | b'm' | b'g' | b't' | b'p', b'i', b'b'] => out.push_str(first),
            [b'k' | b'm' | b'g' | b't' | b'p', ..]
                if before.ends_with(|last: char| last.is_ascii_digit() || last == ')') =>
            {
                out.push_str(first);
                out.push_str("ib");
            }
            _ => out.push_str(&unit[..end]),
        }
        rest = &unit[end..];
    }
    out + rest
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,%+@^".contains(letter);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_with_what_they_are_read_with() {
        for (value, expected) in [
            ("64k", "64kib"),
            ("4KiB-8m", "4K-8mib"),
            ("4k/50:1mb/50", "4kib/50:1mib/50"),
            ("(4*1024)k", "(4*1024)kib"),
            ("0x1f", "0x1f"),
            ("20%,", "20%,"),
        ] {
            assert_eq!(other_units(value), expected);
        }
    }
}
