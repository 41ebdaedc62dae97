//! `--showcmd`: jobs as the command line that says the same.

use super::table::{self, Kind};
use crate::job::Jobs;

/// A command line that says what these jobs were read from, with the environment's variables replaced.
pub fn shown(jobs: &Jobs) -> String {
    let mut out = String::from("kelvin io");
    for word in words(jobs) {
        out.push(' ');
        out.push_str(&quoted(&word));
    }
    out
}

/// The words of that line, without the program's name.
pub fn words(jobs: &Jobs) -> Vec<String> {
    let mut out: Vec<String> = jobs.global.iter().map(word).collect();
    for job in &jobs.jobs {
        out.push(format!("--name={}", job.name));
        out.extend(job.given.iter().map(word));
    }
    out
}

fn word((name, value): &(String, String)) -> String {
    // Without the sign, the next word would be taken for the text.
    let takes_text = || table::find(name).is_some_and(|entry| matches!(entry.kind, Kind::OptionalText));
    if value.is_empty() && !takes_text() { format!("--{name}") } else { format!("--{name}={value}") }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,%+@^".contains(letter);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
