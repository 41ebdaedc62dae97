//! Files of settings, in the form of an option file: `name = value`, comments, and the server's groups.

use super::name::{check_name, normalized};
use crate::profile::Line;
use crate::{Error, Result};

/// A file of settings is a page or two.
const LONGEST: usize = 1 << 20;

/// Groups that the server reads.
const GROUPS: [&str; 4] = ["mysqld", "server", "mariadb", "mariadbd"];

/// Reads a file of settings: `name = value` or `name` alone, which switches it on; values quoted or plain; comments from `#`, or
/// from `;` at the beginning of a line; dashes and underscores in names are the same. Lines before the first group are the
/// server's, and groups of other programs are passed over. The comment lines right above a setting are its reason. Refused, with
/// the number of the line: a setting that is there twice, files that are included, and names that Kelvin does not change.
pub fn parse(text: &str) -> Result<Vec<Line>> {
    if text.len() > LONGEST {
        return Err(Error::usage(format!("{} bytes are too many for a settings file", text.len())));
    }
    let mut found: Vec<(usize, Line)> = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    let mut servers = true;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let refuse = |why: String| Error::usage(format!("line {number}: {why}"));
        let line = line.trim();
        if line.is_empty() {
            above.clear();
        } else if let Some(comment) = line.strip_prefix(['#', ';']) {
            above.push(comment.trim());
        } else if line.starts_with('!') {
            return Err(refuse(
                "included files are not supported here; write the settings themselves".into(),
            ));
        } else if let Some(group) = line.strip_prefix('[') {
            let group =
                group.trim_end().strip_suffix(']').ok_or_else(|| refuse("the group has no ]".into()))?;
            servers = GROUPS.iter().any(|known| group == *known || group.starts_with(&format!("{known}-")));
            above.clear();
        } else if servers {
            let (name, value) = assignment(line).map_err(refuse)?;
            check_name(name).map_err(|error| refuse(error.message().to_owned()))?;
            let name = normalized(name);
            if let Some((first, _)) = found.iter().find(|(_, other)| other.name == name) {
                return Err(refuse(format!("{name} is set twice, first in line {first}")));
            }
            found.push((number, Line { name, value, reason: above.join(" ").trim().into() }));
            above.clear();
        }
    }
    Ok(found.into_iter().map(|(_, line)| line).collect())
}

/// Name and value of a line.
fn assignment(line: &str) -> std::result::Result<(&str, String), String> {
    let (name, value) = line.split_once('=').unwrap_or((line, "ON"));
    let (name, value) = (name.trim(), value.trim());
    let value = match value.chars().next() {
        Some(quote @ ('\'' | '"')) => {
            let (inner, rest) = unquoted(&value[1..], quote)
                .ok_or_else(|| format!("the value of {name} has no closing quote"))?;
            if !rest.trim_start().is_empty() && !rest.trim_start().starts_with('#') {
                return Err(format!("{:?} follows the value of {name}", shortened(rest.trim_start())));
            }
            inner
        }
        // A comment begins anywhere in a line.
        _ => value.split('#').next().unwrap_or_default().trim_end().to_owned(),
    };
    if value.chars().any(char::is_control) {
        return Err(format!("the value of {name} contains a control character"));
    }
    Ok((name, value))
}

/// The text up to the closing quote, its escapes taken away, and the rest.
fn unquoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            c if c == quote => return Some((value, &text[index + c.len_utf8()..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                's' => ' ',
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

/// A value as it stands in an option file: plain where that is the same.
pub(crate) fn written(value: &str) -> Result<String> {
    if value.chars().any(char::is_control) {
        return Err(Error::usage(format!("the setting {value:?} contains a control character")));
    }
    let plain = !value.is_empty()
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ',' | '/' | ':'));
    if plain {
        return Ok(value.to_owned());
    }
    Ok(format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_are_read_with_their_reasons() {
        let text = "# of no line\n\n# no reads\n; from the disk\ninnodb-buffer-pool-size = 8G\n[client]\nport=1\n[mysqld]\n\
                    skip_name_resolve\nsql_mode = \"A,\\\"B\\\" # no comment\" # c\ninnodb_flush_method=O_DIRECT # why\n[mariadb-10.11]\nsync_binlog = 1\n";
        let expected = [
            Line::new("innodb_buffer_pool_size", "8G", "no reads from the disk"),
            Line::new("skip_name_resolve", "ON", ""),
            Line::new("sql_mode", "A,\"B\" # no comment", ""),
            Line::new("innodb_flush_method", "O_DIRECT", ""),
            Line::new("sync_binlog", "1", ""),
        ];
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn errors_have_the_number_of_the_line() {
        for (text, expected) in [
            ("sync_binlog=1\n\nsync-binlog=0", "line 3: sync_binlog is set twice, first in line 1"),
            ("a = 'x", "line 1: the value of a has no closing quote"),
            ("a = 'x' y", "line 1: \"y\" follows the value of a"),
            ("= 1", "line 1: \"\" is not the name"),
            ("\n!include /etc/x", "line 2: included files are not supported"),
            ("[mysqld\n", "line 1: the group has no ]"),
            ("socket = /x", "line 1: socket defines where the server is"),
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
            let line = format!("some_name = {}", written(&value).unwrap());
            prop_assert_eq!(parse(&line).unwrap(), vec![Line::new("some_name", value, "")]);
        }
    }
}
