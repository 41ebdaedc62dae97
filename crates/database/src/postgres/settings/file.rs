//! Files of settings, in the form of `postgresql.conf`: `name = value` and comments.

use super::name::check_name;
use crate::profile::Line;
use crate::{Error, Result};

/// A file of settings is a page or two.
const LONGEST: usize = 1 << 20;

/// Reads a file of settings: `name = value` or `name value`, values quoted or plain, comments from `#` to the end of the
/// line, as in `postgresql.conf`. A comment behind a setting, or the comment lines right above it, are its reason.
/// Refused, with the number of the line: what is none of this, a setting that is there twice, `include`, and names that
/// [`check_name`] refuses. Names and values are the server's to know.
pub fn parse(text: &str) -> Result<Vec<Line>> {
    if text.len() > LONGEST {
        return Err(Error::usage(format!("{} bytes are too many for a settings file", text.len())));
    }
    let mut found: Vec<(usize, Line)> = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let refuse = |why: String| Error::usage(format!("line {number}: {why}"));
        let line = line.trim();
        if line.is_empty() {
            above.clear();
        } else if let Some(comment) = line.strip_prefix('#') {
            above.push(comment.trim());
        } else {
            let (name, value, comment) = assignment(line).map_err(refuse)?;
            if ["include", "include_dir", "include_if_exists"].contains(&name.to_ascii_lowercase().as_str()) {
                return Err(refuse(format!("{name} is not supported here; write the settings themselves")));
            }
            check_name(name).map_err(|error| refuse(error.message().to_owned()))?;
            let twice = found.iter().find(|(_, other)| other.name.eq_ignore_ascii_case(name));
            if let Some((first, _)) = twice {
                return Err(refuse(format!("{name} is set twice, first in line {first}")));
            }
            let reason = if comment.is_empty() { above.join(" ") } else { comment.to_owned() };
            found.push((number, Line { name: name.into(), value, reason: reason.trim().into() }));
            above.clear();
        }
    }
    Ok(found.into_iter().map(|(_, line)| line).collect())
}

/// Name, value and comment of a line.
fn assignment(line: &str) -> std::result::Result<(&str, String, &str), String> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let end = line.find(|c: char| !of_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() {
        return Err(format!("{:?} does not begin with the name of a setting", shortened(line)));
    }
    let blank = rest.starts_with(|c: char| c.is_whitespace());
    let rest = rest.trim_start();
    let (rest, separated) = rest.strip_prefix('=').map_or((rest, blank), |rest| (rest.trim_start(), true));
    if rest.is_empty() || rest.starts_with('#') {
        return Err(format!("{name} has no value; write {name} = value"));
    }
    if !separated {
        return Err(format!("{:?} after {name} is neither '=' nor a value", shortened(rest)));
    }
    let (value, rest) = if let Some(quoted) = rest.strip_prefix('\'') {
        unquoted(quoted).ok_or_else(|| format!("the value of {name} has no closing quote"))?
    } else {
        let plain = |c: char| c.is_alphanumeric() || "_.:/+-".contains(c);
        let end = rest.find(|c: char| !plain(c)).unwrap_or(rest.len());
        (rest[..end].to_owned(), &rest[end..])
    };
    let comment = rest.trim_start();
    if comment.is_empty() {
        return Ok((name, value, ""));
    }
    match comment.strip_prefix('#') {
        Some(comment) => Ok((name, value, comment.trim())),
        _ => Err(format!(
            "{:?} follows the value of {name}; put a value with spaces or special characters in quotes: '…'",
            shortened(comment)
        )),
    }
}

/// The text up to the closing quote, its escapes taken away, and the rest. A quote is doubled or escaped.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        match c {
            '\'' if chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
                value.push('\'');
            }
            '\'' => return Some((value, &text[index + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            c => value.push(c),
        }
    }
    None
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A value as it is in a file.
pub(crate) fn quoted(value: &str) -> Result<String> {
    if value.chars().any(char::is_control) {
        return Err(Error::usage(format!("the setting {value:?} contains a control character")));
    }
    Ok(format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")))
}

/// A value as it is in a file: plain where that is the same, so that a person reads it more easily.
pub(crate) fn written(value: &str) -> Result<String> {
    let number = value.starts_with(|c: char| c.is_ascii_digit())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
        && value.chars().filter(|c| *c == '.').count() <= 1
        // Up to 15 the server's grammar knows no unit behind a decimal point.
        && !(value.contains('.') && value.contains(|c: char| c.is_ascii_alphabetic()));
    let word = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if number || word { Ok(value.to_owned()) } else { quoted(value) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_are_read_with_their_reasons() {
        let text = "# a page about buffers\n\n# they hold\n# the tables\nshared_buffers = 8GB\n\nwork_mem 64MB # sorts\n\
                    a.b='it''s \\'x\\' \\\\ # no comment'  #c\r\nempty = ''\nreal = -1.5e3\n";
        let lines = parse(text).unwrap();
        let expected = [
            Line::new("shared_buffers", "8GB", "they hold the tables"),
            Line::new("work_mem", "64MB", "sorts"),
            Line::new("a.b", "it's 'x' \\ # no comment", "c"),
            Line::new("empty", "", ""),
            Line::new("real", "-1.5e3", ""),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn errors_have_the_number_of_the_line() {
        for (text, expected) in [
            ("\nfsync", "line 2: fsync has no value"),
            ("fsync =", "line 1: fsync has no value"),
            ("fsync = # x", "line 1: fsync has no value"),
            ("fsync=on\n\nFSYNC=off", "line 3: FSYNC is set twice, first in line 1"),
            ("a = 'x", "line 1: the value of a has no closing quote"),
            ("a = 'x\\", "line 1: the value of a has no closing quote"),
            ("a = 1 2", "line 1: \"2\" follows the value of a"),
            ("a = $b", "line 1: \"$b\" follows the value of a"),
            ("= 1", "line 1: \"= 1\" does not begin with the name"),
            ("a;b = 1", "line 1: \";b = 1\" after a is neither"),
            ("include 'x.conf'", "line 1: include is not supported here"),
            ("a = 1\nport = 1", "line 2: port defines where the server is"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message().starts_with(expected), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(?s).{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_read_as_it_was(value in "\\PC{0,40}") {
            let line = format!("some_name = {} # why", written(&value).unwrap());
            prop_assert_eq!(parse(&line).unwrap(), vec![Line::new("some_name", value, "why")]);
        }
    }
}
