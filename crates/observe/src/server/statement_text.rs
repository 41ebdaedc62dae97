//! Texts of statements without the values in them: those are the users' data.
//!
//! Servers normalise the statements that they count. What a session runs at the moment comes as it was sent, and a few statements are
//! counted as they were sent, some with a password (`ALTER ROLE … PASSWORD '…'`).

use std::iter::Peekable;
use std::str::Chars;

use sha2::{Digest, Sha256};

use super::figures::LONGEST_TEXT;

/// A statement's text with a question mark for each of its values, at most about `longest` bytes.
///
/// Engines and their settings differ in what ends a string (backslashes), begins a comment (`#`, `--x`, nested ones) or quotes a
/// name. Where two of them would read a text differently the rest is left out: no way of reading it leaves a value in what is
/// returned.
pub(crate) fn masked(sql: &str, longest: usize) -> String {
    let mut text = String::new();
    let mut rest = sql.chars().peekable();
    let mut within_name = false;
    while let Some(c) = rest.next() {
        if text.len() >= longest {
            text.push('…');
            break;
        }
        let next = rest.peek().copied();
        let clear = match c {
            '\'' | '"' => {
                value(&mut text);
                skip_string(&mut rest, c)
            }
            '0'..='9' if !within_name => {
                value(&mut text);
                while rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '.').is_some() {}
                true
            }
            '/' if next == Some('*') => skip_comment(&mut rest),
            '-' if next == Some('-') => skip_line(&mut rest),
            '`' => quoted_name(&mut rest, &mut text),
            '#' => false,
            // A parameter; otherwise it may quote a string.
            '$' if !within_name => {
                text.push('$');
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    text.push(digit);
                }
                text.ends_with(|c: char| c.is_ascii_digit())
            }
            _ if c.is_whitespace() => {
                if !text.ends_with(' ') {
                    text.push(' ');
                }
                true
            }
            _ => {
                text.push(c);
                true
            }
        };
        if !clear {
            text.push('…');
            break;
        }
        within_name =
            matches!(c, '_' | '`' | '$') || c.is_alphanumeric() && (within_name || !c.is_ascii_digit());
    }
    text
}

/// What the text of a statement as a client sent it to PostgreSQL has in common with the text that its server normalised, where parameters
/// stand for its values and for lists of them: a question mark for each. None where it is not clear what is a value, or it is too long:
/// several statements would look alike.
pub fn comparable(sql: &str) -> Option<String> {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        let next_is_digit = rest.peek().is_some_and(char::is_ascii_digit);
        match c {
            '$' if next_is_digit => {
                while rest.next_if(char::is_ascii_digit).is_some() {}
                text.push('0');
            }
            // The server takes the sign for a part of the value.
            '-' if next_is_digit && text.trim_end().ends_with(['(', ',', '=', '<', '>', '+', '*', '/']) => {}
            // Names are what they are without their quotes.
            '"' => {}
            _ if c.is_alphabetic() || c == '_' => {
                let mut word = c.to_string();
                while let Some(c) = rest.next_if(|next| next.is_alphanumeric() || matches!(next, '_' | '$')) {
                    word.push(c);
                }
                let is_value = ["true", "false", "null"].iter().any(|value| word.eq_ignore_ascii_case(value));
                text.push_str(if is_value { "0" } else { &word });
            }
            _ => text.push(c),
        }
    }
    let text = masked(text.trim().trim_end_matches(';'), LONGEST_TEXT);
    (!text.ends_with('…')).then(|| text.replace("?, …", "?").replace(" )", ")"))
}

/// Of several values in a row the first stands for all, so that lists of any length are one statement.
fn value(text: &mut String) {
    let before = text.trim_end();
    let list = ["?,", "?, …,"].iter().find_map(|end| before.strip_suffix(end)).map(str::len);
    match list {
        Some(length) => {
            text.truncate(length);
            text.push_str("?, …");
        }
        None => text.push('?'),
    }
}

/// Over the rest of a string; false where it is not sure where it ends. A quote within it is doubled.
fn skip_string(rest: &mut Peekable<Chars<'_>>, quote: char) -> bool {
    let mut backslashes = 0;
    while let Some(c) = rest.next() {
        if c == quote {
            if backslashes % 2 == 1 {
                return false;
            }
            if rest.next_if_eq(&quote).is_none() {
                return true;
            }
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
    }
    false
}

/// Over the rest of a comment; false where another begins in it, or it never ends.
fn skip_comment(rest: &mut Peekable<Chars<'_>>) -> bool {
    rest.next();
    let mut before = ' ';
    for c in rest.by_ref() {
        match (before, c) {
            ('*', '/') => return true,
            ('/', '*') => return false,
            _ => before = c,
        }
    }
    false
}

/// Over a comment to the end of its line; false where not everyone takes it for one.
fn skip_line(rest: &mut Peekable<Chars<'_>>) -> bool {
    rest.next();
    if rest.peek().is_some_and(|c| !c.is_whitespace()) {
        return false;
    }
    rest.by_ref().find(|c| *c == '\n');
    true
}

/// Copies a name in backticks; false where it may be none.
fn quoted_name(rest: &mut Peekable<Chars<'_>>, text: &mut String) -> bool {
    let begun = text.len();
    text.push('`');
    for c in rest.by_ref() {
        match c {
            '\'' | '"' | '$' => break,
            _ => text.push(c),
        }
        if c == '`' {
            return true;
        }
    }
    text.truncate(begun);
    false
}

/// Whether it is a query: what else there is runs when it is explained, or cannot be.
pub(crate) fn is_query(text: &str) -> bool {
    let word = first_word(text);
    ["select", "insert", "update", "delete", "merge", "replace", "with"].contains(&word.as_str())
}

/// Its first word in lower case, after comments and parentheses; empty where that is not clear.
pub(crate) fn first_word(text: &str) -> String {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("/*") {
            // MySQL and MariaDB run what is in such a comment.
            if comment.starts_with('!') || comment.starts_with("M!") {
                return String::new();
            }
            let Some(end) = comment.find("*/") else { return String::new() };
            rest = comment[end + 2..].trim_start();
        } else if let Some(comment) = rest.strip_prefix("--") {
            let Some(end) = comment.find('\n') else { return String::new() };
            rest = comment[end..].trim_start();
        } else if let Some(inner) = rest.strip_prefix('(') {
            rest = inner.trim_start();
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    rest[..end].to_ascii_lowercase()
}

/// The first 64 bits of SHA-256: an identifier for a statement to which its server gives none, and the hash of a plan.
pub(crate) fn hash(text: &str) -> i64 {
    let digest = Sha256::digest(text.as_bytes());
    i64::from_be_bytes(std::array::from_fn(|index| digest[index]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_statement_is_reported_without_its_values() {
        for (sql, expected) in [
            ("update h set v=v+1 where id=17", "update h set v=v+? where id=?"),
            (
                "SELECT c_1 FROM t2 WHERE n = 'O''Brien' AND m = \"it's\" ",
                "SELECT c_1 FROM t2 WHERE n = ? AND m = ? ",
            ),
            ("insert into `t9`\n  values (1.5e3, -2, 'a''b', 0xFF)", "insert into `t9` values (?, -?, …)"),
            (
                "select * from t where id in (1, 2,3, 4) and b = 5",
                "select * from t where id in (?, …) and b = ?",
            ),
            ("select 'never ends", "select ?…"),
            ("ALTER ROLE bob PASSWORD 'hunter2'", "ALTER ROLE bob PASSWORD ?"),
            ("select $1, a$b /* 'x */ from t -- don't\n where c = 'x'", "select $1, a$b from t where c = ?"),
            // One engine reads this differently from another.
            (r"select 'C:\', 'secret'", "select ?…"),
            ("select $$secret$$", "select $…"),
            ("select 5--'3\nsecret'", "select ?…"),
            ("select 1 # don't\n, 'secret'", "select ? …"),
            ("/* /* */ ' */ select 'secret'", "…"),
            ("select `a'b`, 'secret'", "select …"),
        ] {
            assert_eq!(masked(sql, 1000), expected, "{sql}");
        }
        assert_eq!(masked("select a from b", 6), "select…");
    }

    #[test]
    fn a_statement_and_its_normalised_text_are_comparable() {
        for (sent, normalised) in [
            ("select v from t where a = $1 and b = 'x'", "select v from t where a = $1 and b = $2"),
            ("update t set v = v + 1 where id = $1;", "update t set v = v + $2 where id = $1"),
            ("select 1 from t where id in ($1, $2, $3)", "select $4 from t where id in ($1, $2, $3)"),
            (
                "select a from t where b in (1, -2) and c = $1",
                "select a from t where b in ($2 /*, ... */) and c = $1",
            ),
            ("select a from t where b = -1 and c = true", "select a from t where b = $1 and c = $2"),
            ("select \"a\" from \"t\" where b = 1", "select \"a\" from \"t\" where b = $1"),
        ] {
            let text = comparable(sent).unwrap();
            assert_eq!(Some(&text), comparable(normalised).as_ref());
            assert_eq!(Some(&text), comparable(&text).as_ref());
        }
        for (one, other) in [
            ("select a from t where b = $1", "select a from t where c = $1"),
            ("select \"a\" from \"t\" where \"b\" = $1", "select \"a\" from \"u\" where \"b\" = $1"),
            ("select a - 1 from t", "select a from t"),
        ] {
            assert_ne!(comparable(one), comparable(other));
        }
        for unclear in ["select a #> $1 from t", "--x\nselect 1", "select $$a$$", "select e'\\''"] {
            assert_eq!(comparable(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn only_queries_are_explained() {
        for text in [
            "SELECT 1",
            " select $1",
            "/* a */ UPDATE t SET a = $1",
            "-- x\nwith a as (select 1) table a",
            "(SELECT 1)",
        ] {
            assert!(is_query(text), "{text}");
        }
        for text in [
            "COMMIT",
            "CALL p()",
            "selectx",
            "EXECUTE a",
            "VACUUM",
            "",
            "/* select",
            "/*!50000 CALL p() */ select 1",
            "/*M! a */ select 1",
            "-- select",
            "CREATE TABLE a AS SELECT 1",
        ] {
            assert!(!is_query(text), "{text}");
        }
    }

    /// Strings end at a single quote, backslashes mean nothing, comments nest.
    const STANDARD: [&str; 7] = [
        r"'([a-z\\]|''){0,4}SECRET([a-z\\]|''){0,4}'",
        r"\$\$[a-z']{0,4}SECRET\$\$",
        "\"[a-z']{1,5}\"",
        "--[a-z' ]{0,6}\n",
        r"/\*[a-z' ]{0,5}(/\*[a-z']{0,4}\*/)?[a-z']{0,3}\*/",
        "[a-z]{1,5}|[0-9]{1,4}",
        "[,()=<#-]",
    ];
    /// Backslashes escape, strings have quotes of both kinds, `#` begins a comment.
    const ESCAPING: [&str; 7] = [
        r"'([a-z]|''|\\['a-z\\]){0,4}SECRET([a-z]|''|\\['a-z\\]){0,4}'",
        "\"([a-z']|\"\"|\\\\\"){0,4}SECRET\"",
        "`[a-z'\"]{1,5}`",
        "#[a-z' ]{0,6}\n",
        "-- [a-z' ]{0,6}\n",
        r"/\*[a-z' /]{0,6}\*/",
        "[a-z]{1,5}|[0-9]{1,4}|[,()=<-]",
    ];

    fn tokens(kinds: &'static [&'static str; 7]) -> impl Strategy<Value = String> {
        let one = (0..kinds.len()).prop_flat_map(|kind| kinds[kind]);
        prop::collection::vec(one, 0..12).prop_map(|tokens| tokens.join(" "))
    }

    proptest! {
        #[test]
        fn no_statement_makes_it_panic(sql: String) {
            let _ = masked(&sql, 120);
            let _ = is_query(&sql);
        }

        /// Statements as two engines write them, with a secret in each of their strings.
        #[test]
        fn no_value_gets_through(standard in tokens(&STANDARD), escaping in tokens(&ESCAPING)) {
            for sql in [standard, escaping] {
                let shown = masked(&sql, 1000);
                prop_assert!(!shown.contains("SECRET"), "{sql:?} {shown:?}");
            }
        }

        #[test]
        fn a_comment_or_a_bracket_before_a_query_changes_nothing(comment in "[a-z ]{0,20}", text in "(select|commit|update|call)[ a-z0-9$]{0,20}") {
            let expected = is_query(&text);
            prop_assert_eq!(is_query(&format!("/*{comment}*/ {text}")), expected);
            prop_assert_eq!(is_query(&format!("--{comment}\n({text}")), expected);
        }
    }
}
