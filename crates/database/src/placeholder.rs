//! Parameters of statements, written `$1`, `$2`, … by workloads and otherwise by most engines.

use std::borrow::Cow;

/// The statement with `sign` in place of each parameter's `$`: `$2` becomes `?2`. Texts in quotes and comments stay as
/// they are.
pub(crate) fn numbered(sql: &str, sign: char) -> Cow<'_, str> {
    if !sql.contains('$') {
        return Cow::Borrowed(sql);
    }
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
            out.push(sign);
        } else {
            out.push_str(&found[..1]);
        }
        rest = &found[length.max(1)..];
    }
    out.push_str(rest);
    Cow::Owned(out)
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
            assert_eq!(numbered(sql, '?'), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_but_signs_changes(sql in "[$'\"/*1é`\\[\\]\\- \n-]{0,24}") {
            let changed = numbered(&sql, '?');
            prop_assert_eq!(changed.replace('?', "$"), sql);
        }
    }
}
