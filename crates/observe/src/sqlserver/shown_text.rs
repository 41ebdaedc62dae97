//! Texts of T-SQL as they may be shown: without values.

use crate::server::statement_text::masked;

/// A statement without its values, at most about `longest` bytes.
pub(super) fn shown(sql: &str, longest: usize) -> String {
    let clear = clear(sql);
    let mut text = masked(clear, longest);
    if clear.len() < sql.len() && !text.ends_with('…') {
        text.push('…');
    }
    text
}

/// The part of a text that every engine reads alike: names in brackets may have quotes in them, and a number behind `$` is an amount
/// of money, which is a parameter elsewhere.
pub(super) fn clear(sql: &str) -> &str {
    let bytes = sql.as_bytes();
    let money =
        (0..bytes.len()).find(|&at| bytes[at] == b'$' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit));
    let quoted = |at: &usize| {
        let name = sql[*at..].split(']').next().unwrap_or_default();
        bytes[*at] == b'[' && name.contains(['\'', '"'])
    };
    let name = (0..bytes.len()).filter(|&at| bytes[at] == b'[').find(quoted);
    let end = money.unwrap_or(sql.len()).min(name.unwrap_or(sql.len()));
    &sql[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_statement_is_shown_without_its_values() {
        for (sql, expected) in [
            (
                "UPDATE dbo.warehouse SET w_ytd = w_ytd + 12.50 WHERE w_id = 7",
                "UPDATE dbo.warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            ),
            (
                "SELECT [c_id] FROM [customer] WHERE c_last = N'BAR'",
                "SELECT [c_id] FROM [customer] WHERE c_last = N?",
            ),
            ("SELECT @no_w_id, @P1 FROM t", "SELECT @no_w_id, @P1 FROM t"),
            ("SELECT [a'b], 'secret'", "SELECT …"),
            ("SELECT $1234.5", "SELECT …"),
            ("SELECT a FROM t WHERE b LIKE '[a-z]'", "SELECT a FROM t WHERE b LIKE ?"),
        ] {
            assert_eq!(shown(sql, 1000), expected, "{sql}");
        }
    }

    /// Strings, names in brackets with quotes in them, comments, amounts.
    const TOKENS: [&str; 6] = [
        r"N?'([a-z\[\]]|''){0,4}SECRET([a-z\[\]]|''){0,4}'",
        r"\[[a-z' ]{1,5}\]",
        "--[a-z' ]{0,6}\n",
        r"/\*[a-z' \[]{0,6}\*/",
        "[a-z]{1,5}|[0-9]{1,4}",
        "[,()=<-]",
    ];

    proptest! {
        #[test]
        fn no_value_gets_through(kinds in prop::collection::vec((0..TOKENS.len()).prop_flat_map(|kind| TOKENS[kind]), 0..12)) {
            let sql = kinds.join(" ");
            let seen = shown(&sql, 1000);
            prop_assert!(!seen.contains("SECRET"), "{sql:?} {seen:?}");
        }
    }
}
