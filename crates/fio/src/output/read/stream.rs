//! Finding the results in a stream that also holds other lines.

use kelvin_measure::text::cut;
use std::path::Path;

use serde_json::Value;

use super::{ParsedStream, Stray, fields};
use crate::error::Location;
use crate::{Error, Result};

/// Numbers that JSON does not have and that fio writes where a mean has no samples.
const NOT_NUMBERS: [&str; 4] = ["-nan", "nan", "-inf", "inf"];

/// Replaces them with a 0 of the same length, so that positions do not change.
fn without_not_numbers(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(colon) = [rest.find("\":"), rest.find("\" :")].into_iter().flatten().min() {
        let after = colon + rest.get(colon..).and_then(|rest| rest.find(':')).unwrap_or(0) + 1;
        let (before, behind) = rest.split_at(after);
        clean.push_str(before);
        rest = behind;
        let value = behind.trim_start_matches(' ');
        let blanks = behind.len() - value.len();
        for word in NOT_NUMBERS {
            let ends = |next: Option<char>| next.is_none_or(|next| ",}\r\n ".contains(next));
            if let Some(next) = value.strip_prefix(word)
                && ends(next.chars().next())
            {
                clean.push_str(&format!("{:>width$}", 0, width = blanks + word.len()));
                rest = next;
                break;
            }
        }
    }
    clean.push_str(rest);
    clean
}

/// All results in a text, in their order. Other lines before, between and after them are kept with their positions; an
/// error has the position of the unreadable text. It is an error if there is no result.
pub fn parse_json(text: &str, path: Option<&Path>) -> Result<ParsedStream> {
    let is_suspect = NOT_NUMBERS.iter().any(|word| text.contains(word));
    let clean = if is_suspect { without_not_numbers(text) } else { text.to_owned() };
    let mut parsed = ParsedStream::default();
    let mut failure = None;
    let (mut position, mut line) = (0, 1_u32);
    while let Some(rest) = clean.get(position..).filter(|rest| !rest.is_empty()) {
        let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let here = rest.get(..end).unwrap_or(rest);
        // A result begins on a separate line.
        if here.trim_start().starts_with('{') {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            match values.next() {
                Some(Ok(Value::Object(top))) if fields::is_result(&top) => {
                    let read = values.byte_offset();
                    parsed.results.push(fields::result(&top, line));
                    line += newlines(rest.get(..read).unwrap_or(""));
                    position += read;
                    continue;
                }
                Some(Err(error)) => {
                    // Where lines that are not JSON begin with a brace, a later line may still begin a result; only the
                    // first failure is reported.
                    let column = error.column() as u32;
                    failure.get_or_insert((line + error.line().saturating_sub(1) as u32, column, error));
                    if parsed.results.is_empty() {
                        // Objects within a broken result must not be taken for separate results.
                        break;
                    }
                }
                _ => {}
            }
        }
        if !here.trim().is_empty() {
            stray(&mut parsed, line, here.trim_end());
        }
        position += end;
        line += newlines(here);
    }
    match failure {
        Some((line, column, error)) => Err(unreadable(path, line, column, &describe(&error, &parsed))),
        None if parsed.results.is_empty() => {
            let what = match parsed.stray.first() {
                Some(stray) => {
                    format!("no fio JSON result; the first line is {:?}", cut(&stray.text, 60))
                }
                None => "no fio JSON result: the input is empty".into(),
            };
            Err(unreadable(path, 1, 0, &format!("{what} (use --output-format=json)")))
        }
        None => Ok(parsed),
    }
}

fn newlines(text: &str) -> u32 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u32
}

fn stray(parsed: &mut ParsedStream, line: u32, text: &str) {
    match parsed.stray.last_mut() {
        Some(last) if last.line + last.lines == line => last.lines += 1,
        _ => parsed.stray.push(Stray { line, lines: 1, text: text.to_owned() }),
    }
}

fn describe(error: &serde_json::Error, parsed: &ParsedStream) -> String {
    // serde's message contains the position, counted from the beginning of the result.
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or(&words);
    let before = match parsed.results.len() {
        0 => String::new(),
        1 => " (one complete result precedes it)".into(),
        several => format!(" ({several} complete results precede it)"),
    };
    if error.is_eof() {
        format!("the result is truncated: was the run killed?{before}")
    } else {
        format!("not JSON: {words}{before}")
    }
}

fn unreadable(path: Option<&Path>, line: u32, column: u32, problem: &str) -> Error {
    Error::Input {
        place: Location { file: Some(path.unwrap_or(Path::new("standard input")).to_owned()), line, column },
        problem: problem.into(),
    }
}
