//! Words, names and values of a statement or a condition as MySQL and MariaDB write them.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

/// A part of a text. Comments and spaces are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name in backticks.
    Quoted(String),
    /// A keyword, or a name without backticks.
    Word(String),
    /// A string or a number.
    Value,
    /// Anything else.
    Sign(char),
}

impl Token {
    /// What it is called, where it may be a name.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Quoted(name) | Self::Word(name) => Some(name),
            _ => None,
        }
    }
}

/// The parts of a text; none where it is not clear where they end.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut all = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        match c {
            '\'' | '"' => {
                quoted(&mut rest, c)?;
                all.push(Token::Value);
            }
            '`' => all.push(Token::Quoted(quoted(&mut rest, c)?)),
            '/' if next == Some('*') => skip_comment(&mut rest)?,
            '#' => skip_line(&mut rest),
            '-' if next == Some('-') => {
                rest.next();
                // Otherwise it is a number below zero that is subtracted.
                if rest.peek().is_some_and(|next| !next.is_whitespace()) {
                    return None;
                }
                skip_line(&mut rest);
            }
            '0'..='9' => {
                while rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '.').is_some() {}
                all.push(Token::Value);
            }
            _ if is_of_word(c) => {
                let mut word = String::from(c);
                while let Some(next) = rest.next_if(|next| is_of_word(*next)) {
                    word.push(next);
                }
                all.push(Token::Word(word));
            }
            _ if c.is_whitespace() => {}
            _ => all.push(Token::Sign(c)),
        }
    }
    Some(all)
}

pub(super) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '@')
}

/// What stands until the quote, which is doubled within.
fn quoted(rest: &mut Peekable<Chars<'_>>, quote: char) -> Option<String> {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        if c == '\\' && quote != '`' {
            text.extend(rest.next());
        } else if c != quote || rest.next_if_eq(&quote).is_some() {
            text.push(c);
        } else {
            return Some(text);
        }
    }
    None
}

/// None for one that both servers execute, or that does not end.
fn skip_comment(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    rest.next();
    if matches!(rest.peek(), Some('!' | 'M')) {
        return None;
    }
    let mut before = ' ';
    for c in rest.by_ref() {
        if (before, c) == ('*', '/') {
            return Some(());
        }
        before = c;
    }
    None
}

fn skip_line(rest: &mut Peekable<Chars<'_>>) {
    rest.by_ref().find(|c| *c == '\n');
}

/// What a statement as a client sent it has in common with the text of its digest: values and lists of them are alike.
pub(super) fn comparable(sql: &str) -> Option<String> {
    let mut text = String::new();
    for token in tokens(sql.trim().trim_end_matches(';'))? {
        match token {
            Token::Quoted(word) | Token::Word(word) => {
                if text.ends_with(is_of_word) {
                    text.push(' ');
                }
                text.push_str(&word.to_lowercase());
            }
            Token::Value | Token::Sign('?') => {
                // The first of a list stands for all.
                let list = text.strip_suffix("?,...,").or_else(|| text.strip_suffix("?,")).map(str::len);
                match list {
                    Some(length) => {
                        text.truncate(length);
                        text.push_str("?,...");
                    }
                    None => text.push('?'),
                }
            }
            Token::Sign(')') if text.ends_with("(?,...") => {
                text.truncate(text.len() - "?,...".len());
                text.push_str("...)");
            }
            Token::Sign(sign) => text.push(sign),
        }
    }
    Some(text)
}

/// Tables with their schemas by what the statement calls them, from the statement as the server understood it (its note 1003). A name that
/// stands for two tables is left out.
pub(super) fn tables(note: &str) -> HashMap<String, String> {
    let mut found: HashMap<String, Option<String>> = HashMap::new();
    let all = tokens(note).unwrap_or_default();
    let mut expected = false;
    for (at, token) in all.iter().enumerate() {
        match token {
            Token::Word(word) => expected = matches!(word.as_str(), "from" | "join" | "straight_join"),
            Token::Sign('(') => {}
            Token::Quoted(schema) if expected => {
                expected = false;
                let [Some(Token::Sign('.')), Some(Token::Quoted(table)), after] =
                    [1, 2, 3].map(|step| all.get(at + step))
                else {
                    continue;
                };
                let name = match after {
                    Some(Token::Quoted(alias)) => alias,
                    _ => table,
                };
                let full = format!("{schema}.{table}");
                let known = found.entry(name.clone()).or_insert_with(|| Some(full.clone()));
                if known.as_ref() != Some(&full) {
                    *known = None;
                }
            }
            _ => expected = false,
        }
    }
    found.into_iter().filter_map(|(name, table)| Some((name, table?))).collect()
}

/// The columns of the table of this name that a condition compares with values, for which a histogram may help; none where it has columns of
/// another table, too.
pub(super) fn columns(condition: &str, table: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let all = tokens(condition).unwrap_or_default();
    for at in 1..all.len() {
        let (Some(of), true, Some(column)) =
            (all[at - 1].name(), all[at] == Token::Sign('.'), all.get(at + 1).and_then(Token::name))
        else {
            continue;
        };
        if of != table {
            return Vec::new();
        }
        let is_compared = begins(&all[..at - 1]) && has_value(&all[at + 2..]);
        if is_compared && !found.iter().any(|known| known == column) {
            found.push(column.to_owned());
        }
    }
    found
}

/// Whether a comparison begins behind these: not a function's argument or the rest of a sum.
fn begins(before: &[Token]) -> bool {
    let joins = |word: &str| matches!(word, "and" | "or" | "xor" | "not");
    match before {
        [.., Token::Word(word)] | [.., Token::Word(word), Token::Sign('(')] => joins(word),
        [.., Token::Quoted(_), Token::Sign('(')] => false,
        [] | [.., Token::Sign('(')] => true,
        _ => false,
    }
}

/// Whether a column that is followed by these is compared with a value.
fn has_value(after: &[Token]) -> bool {
    let word = |token: Option<&Token>, is: &str| matches!(token, Some(Token::Word(word)) if word == is);
    let after = &after[usize::from(word(after.first(), "not"))..];
    let signs = after.iter().take_while(|token| matches!(token, Token::Sign('=' | '<' | '>' | '!'))).count();
    let of_word = word(after.first(), "in") || word(after.first(), "between");
    if signs == 0 && !of_word {
        return word(after.first(), "is");
    }
    let mut rest = after[signs.max(1)..].iter().skip_while(|token| matches!(token, Token::Sign('-' | '(')));
    let mut value = rest.next();
    // DATE'2026-11-28', _utf8mb4'x'
    if matches!(value, Some(Token::Word(word)) if word.starts_with('_') || matches!(word.to_ascii_lowercase().as_str(), "date" | "time" | "timestamp"))
    {
        value = rest.next();
    }
    // Not the first part of a sum.
    value == Some(&Token::Value)
        && matches!(rest.next(), None | Some(Token::Word(_) | Token::Sign(')' | ',')))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_statement_is_found_by_the_text_of_its_digest() {
        for (sent, digest) in [
            (
                "select count(*) from parts p where p.pad='x' -- why\n and id in (1, 2,3) limit 5;",
                "SELECT COUNT ( * ) FROM `parts` `p` WHERE `p` . `pad` = ? AND ID IN (...) LIMIT ? ",
            ),
            ("select 1, 'a', `v` from t where a in (7)", "SELECT ?, ... , `v` FROM `t` WHERE `a` IN (?)"),
            ("select 1 from others/* c */where id % 20000 <= 0.5", "SELECT ? FROM OTHERS WHERE ID % ? <= ?"),
        ] {
            assert_eq!(comparable(sent), comparable(digest), "{sent}");
            assert!(comparable(sent).is_some());
        }
        assert_ne!(comparable("select a b from t"), comparable("select ab from t"));
        for unclear in ["select 'a", "select /*! 1 */ 2", "select 5--3", "select `a", "select /* a"] {
            assert_eq!(comparable(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn tables_are_known_by_what_the_statement_calls_them() {
        let found = tables(
            "with `q` as (/* select#2 */ select `k`.`u`.`a` AS `a` from `k`.`u`) select `q`.`a` AS `a`,`k`.`f`(1) from `q` \
             join `k`.`o``x` left join (`k`.`parts` `p` join `l`.`twice`) on(`k`.`p`.`id` = 'from `k`.`no`') \
             semi join (`m`.`twice`) where 1",
        );
        let mut found: Vec<_> = found.iter().map(|(name, table)| (name.as_str(), table.as_str())).collect();
        found.sort_unstable();
        assert_eq!(found, [("o`x", "k.o`x"), ("p", "k.parts"), ("u", "k.u")]);
    }

    #[test]
    fn a_condition_has_the_columns_of_its_table() {
        assert_eq!(columns("((p.a = 5) and (p.`b c` > 'p.d') and (p.a < 1.5))", "p"), ["a", "b c"]);
        for compared in [
            "p.a in (1,2)",
            "p.a not in ('x')",
            "(p.a between 1 and 5)",
            "(p.a is not null)",
            "not(p.a <=> -(5))",
            "p.a >= DATE'2026-11-28' and year(p.d) = 2026",
        ] {
            assert_eq!(columns(compared, "p"), ["a"], "{compared}");
        }
        for other in [
            "year(p.d) = 2024",
            "if(p.a = 5,1,0)",
            "((p.id % 3) = 0)",
            "p.id % 3 = 0",
            "3 + p.id = 5",
            "p.a = p.b",
            "p.a = 5 + p.b",
            "p.a like '%x'",
            "p.a = q.b",
            "p.a = 5 and p.b = q.b",
            "p.a",
        ] {
            assert!(columns(other, "p").is_empty(), "{other}");
        }
        assert!(columns("", "p").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in ".{0,200}", signs in "[a-z?'\"`;.( ,/*#-]{0,60}") {
            for text in [text, signs] {
                let _ = (comparable(&text), tables(&text), columns(&text, "a"));
            }
        }
    }
}
