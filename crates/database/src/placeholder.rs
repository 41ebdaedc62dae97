//! Parameters of statements, written `$1`, `$2`, … by workloads and otherwise by most engines.

use std::borrow::Cow;

/// The statement with `sign` in place of each parameter's `$`: `$2` becomes `?2`; and the highest number of a parameter.
/// Texts in quotes and comments stay as they are.
pub(crate) fn numbered<'a>(sql: &'a str, sign: &str) -> (Cow<'a, str>, usize) {
    if !sql.contains('$') {
        return (Cow::Borrowed(sql), 0);
    }
    let mut highest = 0;
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(['$', '\'', '"', '`', '[', '-', '/']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let length = opaque(found);
        if length > 0 {
            out.push_str(&found[..length]);
        } else if found.starts_with('$')
            && found[1..].starts_with(|next: char| next.is_ascii_digit())
            && !out.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '$')
        {
            let digits = found[1..].bytes().take_while(u8::is_ascii_digit).count();
            highest = highest.max(found[1..=digits].parse().unwrap_or(usize::MAX));
            out.push_str(sign);
        } else {
            out.push_str(&found[..1]);
        }
        rest = &found[length.max(1)..];
    }
    out.push_str(rest);
    (Cow::Owned(out), highest)
}

/// A statement for engines whose parameters are `?`, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Positional {
    /// The statement with a `?` for each parameter.
    pub(crate) sql: String,
    /// Where each `?` of ours stands in `sql`, and which parameter it is, from 0.
    pub(crate) at: Vec<(usize, usize)>,
}

impl Positional {
    /// Reads a statement as MySQL does: a backslash in a text begins an escape, and `#` a comment.
    pub(crate) fn parse(statement: &str) -> Self {
        let mut found = Self { sql: String::with_capacity(statement.len()), at: Vec::new() };
        let mut rest = statement;
        while let Some(at) = rest.find(['$', '\'', '"', '`', '#', '-', '/']) {
            let (before, sign) = rest.split_at(at);
            found.sql.push_str(before);
            let mut length = opaque_in_mysql(sign);
            let digits = sign[1..].bytes().take_while(u8::is_ascii_digit).count();
            let number =
                if length == 0 && sign.starts_with('$') { sign[1..=digits].parse().ok() } else { None };
            match number {
                Some(number @ 1..=65_535_usize)
                    if !found
                        .sql
                        .ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '$') =>
                {
                    found.at.push((found.sql.len(), number - 1));
                    found.sql.push('?');
                    length = 1 + digits;
                }
                _ => {
                    length = length.max(1);
                    found.sql.push_str(&sign[..length]);
                }
            }
            rest = &sign[length..];
        }
        found.sql.push_str(rest);
        found
    }

    /// How many parameters the statement has at least: the highest number in it.
    pub(crate) fn parameters(&self) -> usize {
        self.at.iter().map(|&(_, number)| number + 1).max().unwrap_or(0)
    }
}

/// [`opaque`], as MySQL has it.
fn opaque_in_mysql(sql: &str) -> usize {
    match sql.as_bytes() {
        [quote @ (b'\'' | b'"'), rest @ ..] => {
            let mut escaped = false;
            let end = rest.iter().position(|byte| {
                let ends = byte == quote && !escaped;
                escaped = *byte == b'\\' && !escaped;
                ends
            });
            end.map_or(sql.len(), |end| end + 2)
        }
        [b'#', ..] => sql.find('\n').map_or(sql.len(), |end| end + 1),
        // Two minuses are a comment only before a space.
        [b'-', b'-', next, ..] if !next.is_ascii_whitespace() => 0,
        [b'$', ..] => 0,
        _ => opaque(sql),
    }
}

/// How many bytes of a text or a comment `sql` begins with; 0 where it begins with neither.
fn opaque(sql: &str) -> usize {
    let until =
        |start: usize, end: &str| sql[start..].find(end).map_or(sql.len(), |at| start + at + end.len());
    match sql.as_bytes() {
        // A doubled quote ends one text and begins the next.
        [b'\'', ..] => until(1, "'"),
        [b'"', ..] => until(1, "\""),
        [b'`', ..] => until(1, "`"),
        [b'[', ..] => until(1, "]"),
        [b'-', b'-', ..] => until(2, "\n"),
        [b'/', b'*', ..] => until(2, "*/"),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_change_their_sign_and_texts_do_not() {
        for (sql, expected) in [
            ("SELECT $1, $12 - $2", "SELECT ?1, ?12 - ?2"),
            ("SELECT '$1', \"$2\", 'it''s $3', $4", "SELECT '$1', \"$2\", 'it''s $3', ?4"),
            ("SELECT $1 -- costs $2\n + $3 /* $4 */", "SELECT ?1 -- costs $2\n + ?3 /* $4 */"),
            ("SELECT a$b, '$1", "SELECT a$b, '$1"),
            ("SELECT total$1, [a $1], `b$2`, $2", "SELECT total$1, [a $1], `b$2`, ?2"),
            ("SELECT 1", "SELECT 1"),
        ] {
            assert_eq!(numbered(sql, "?").0, expected);
        }
        assert_eq!(numbered("SELECT $2, '$9', $1 -- $7", "@P"), ("SELECT @P2, '$9', @P1 -- $7".into(), 2));
    }

    #[test]
    fn parameters_become_question_marks_in_the_order_of_the_text() {
        for (sql, expected, order) in [
            ("SELECT $2, $1, $2", "SELECT ?, ?, ?", &[1, 0, 1][..]),
            (r"SELECT 'it\'s $1', $1", r"SELECT 'it\'s $1', ?", &[0]),
            (r#"SELECT "a\\", $1, 'b''$2'"#, r#"SELECT "a\\", ?, 'b''$2'"#, &[0]),
            ("SELECT 1 # $1\n + $1 -- $2\n /* $3 */", "SELECT 1 # $1\n + ? -- $2\n /* $3 */", &[0]),
            ("SELECT 5--$1, a$1, `x$1`, $0, $70000", "SELECT 5--?, a$1, `x$1`, $0, $70000", &[0]),
            ("SELECT $12é", "SELECT ?é", &[11]),
            ("SELECT '$1", "SELECT '$1", &[]),
        ] {
            let found = Positional::parse(sql);
            assert_eq!(found.sql, expected);
            let numbers: Vec<usize> = found.at.iter().map(|&(_, number)| number).collect();
            assert_eq!(numbers, order, "{sql}");
            assert!(found.at.iter().all(|&(at, _)| found.sql.as_bytes()[at] == b'?'));
        }
    }

    proptest! {
        #[test]
        fn nothing_but_signs_changes(sql in "[$'\"/*1é`\\[\\]\\- \n-]{0,24}") {
            let changed = numbered(&sql, "?").0;
            prop_assert_eq!(&changed.replace('?', "$"), &sql);
            let found = Positional::parse(&sql);
            let mut back = String::new();
            let mut rest = 0;
            for (at, number) in found.at {
                back.push_str(&found.sql[rest..at]);
                back.push_str(&format!("${}", number + 1));
                rest = at + 1;
            }
            back.push_str(&found.sql[rest..]);
            prop_assert_eq!(back, sql);
        }
    }
}
