//! The columns that a node compares with values, from its conditions as the server prints them.
//!
//! What is not recognised is left out: a statistics object that is not proposed is better than one on the wrong columns.

use super::Node;

impl Node {
    /// The columns of the node's own table that must be equal to a value, or to one of a list of values: those whose shares the planner multiplies
    /// with each other. In the order of the conditions, each once; none for a node that reads no table.
    pub fn equal_columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        if self.relation.is_none() {
            return columns;
        }
        let parts = self.conditions.iter().flat_map(|condition| conjuncts(condition));
        for column in parts.filter_map(|part| equal_column(part, self.alias.as_deref())) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns
    }
}

/// Each parameter's number in a condition, with the name of the column that must be equal to it: of `((t.name)::text = $1)` 1 and "name".
pub fn equal_parameters(condition: &str) -> Vec<(usize, String)> {
    let one = |part: &str| {
        let sides = split(part, " = ");
        let [left, right] = sides.as_slice() else { return None };
        Some((bare(right).strip_prefix('$')?.parse().ok()?, column(left, None)?))
    };
    conjuncts(condition).into_iter().filter_map(one).collect()
}

/// Where each character outside of quotes is, with the depth of the parentheses around it.
fn outside(text: &str) -> impl Iterator<Item = (usize, char, u32)> {
    let (mut quote, mut depth) = (None, 0_u32);
    text.char_indices().filter_map(move |(at, c)| {
        match quote {
            Some(open) => {
                // A doubled quote closes and opens again.
                if c == open {
                    quote = None;
                }
                return None;
            }
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if matches!(c, '(' | '[') => depth += 1,
            None if matches!(c, ')' | ']') => depth = depth.saturating_sub(1),
            None => {}
        }
        quote.is_none().then_some((at, c, depth))
    })
}

/// Without the parentheses around all of it.
fn bare(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        // "(a) AND (b)" is not in parentheses.
        let end = outside(text).find(|(_, c, depth)| *c == ')' && *depth == 0).map(|(at, ..)| at);
        if end != Some(text.len() - 1) {
            break;
        }
        text = inner.trim();
    }
    text
}

/// Splits it at an operator that is in no parentheses and quotes.
fn split<'a>(text: &'a str, operator: &str) -> Vec<&'a str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    for (at, _, depth) in outside(text) {
        if depth == 0 && at >= from && text.get(at..).is_some_and(|rest| rest.starts_with(operator)) {
            parts.extend(text.get(from..at));
            from = at + operator.len();
        }
    }
    parts.extend(text.get(from..));
    parts
}

/// What is joined by AND.
fn conjuncts(condition: &str) -> Vec<&str> {
    let parts = split(bare(condition), " AND ");
    if let [one] = parts.as_slice() {
        return vec![bare(one)];
    }
    parts.into_iter().flat_map(conjuncts).collect()
}

/// The column of "(t.a = 5)", "((t.b)::text = 'x'::text)" or "(t.a = ANY ('{1,2}'::integer[]))".
fn equal_column(part: &str, alias: Option<&str>) -> Option<String> {
    let sides = split(part, " = ");
    let [left, right] = sides.as_slice() else { return None };
    is_value(right).then(|| column(left, alias)).flatten()
}

/// A value as the server prints it: a number, a string with its type, or a list of values.
fn is_value(text: &str) -> bool {
    let text = text.strip_prefix("ANY ").map_or(bare(text), bare);
    let digits = text.strip_prefix('-').unwrap_or(text);
    if text.starts_with('\'') {
        // Nothing but a type after the string: no operator.
        return outside(text).all(|(_, c, _)| c.is_alphanumeric() || " :'\"[](),._".contains(c));
    }
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// The name of a column without its table's, its casts and its quotes.
fn column(text: &str, alias: Option<&str>) -> Option<String> {
    let text = bare(text);
    // "(t.b)::text"
    let text = split(text, "::").first().map_or(text, |first| bare(first));
    let mut names = Vec::new();
    for part in split(text, ".") {
        names.push(name(part)?);
    }
    match names.as_slice() {
        [name] => Some(name.clone()),
        [table, name] if alias.is_none_or(|alias| alias == table) => Some(name.clone()),
        _ => None,
    }
}

fn name(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return Some(inner.replace("\"\"", "\""));
    }
    let is_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
    (is_name && !matches!(text, "true" | "false" | "NULL")).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(conditions: &[&str]) -> String {
        let node = Node {
            relation: Some("public.parts".into()),
            alias: Some("p".into()),
            conditions: conditions.iter().map(|&text| text.to_owned()).collect(),
            ..Node::default()
        };
        node.equal_columns().join(" ")
    }

    #[test]
    fn columns_that_are_equal_to_values_are_read_and_nothing_else() {
        for (conditions, expected) in [
            (&["((p.a = 5) AND (p.b = -7))"][..], "a b"),
            (&["(p.a = 5)", "((p.b)::text = 'x AND (p.c = 1)'::text)"], "a b"),
            (&["((p.a = 5) AND ((p.\"B c\")::text = 'it''s'::text) AND (p.d > 3))"], "a B c"),
            (&["((p.a = ANY ('{1,2}'::integer[])) AND (p.b = 1.5) AND (p.a = 1))"], "a b"),
            (&["((p.a = q.a) AND (p.b = 1))"], "b"),
            (&["((p.a = 1) OR (p.b = 2))"], ""),
            (&["(((p.a + 1) = 2) AND (lower(p.b) = 'x'::text) AND (q.c = 1))"], ""),
            (&["(p.d = ('2024-01-01'::date + '1 day'::interval))", "(p.e = '2024-01-01'::date)"], "e"),
            (&["(p.flag AND (p.t = '2024-01-01 00:00:00'::timestamp without time zone))"], "t"),
            (&["(p.a = $0)"], ""),
        ] {
            assert_eq!(columns(conditions), expected, "{conditions:?}");
        }
        let join = Node { conditions: vec!["((a = 1) AND (b = 2))".into()], ..Node::default() };
        assert_eq!(join.equal_columns(), Vec::<String>::new(), "of no table");
    }

    #[test]
    fn parameters_are_read_with_casts_and_quotes_and_not_in_expressions() {
        let names = |condition: &str| {
            equal_parameters(condition)
                .into_iter()
                .map(|(at, name)| format!("{at} {name}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(names("(t.kind = $1)"), ["1 kind"]);
        assert_eq!(names("((t.\"Kind\")::text = $12)"), ["12 Kind"]);
        assert_eq!(names("((s.s_w_id = $2) AND (s.s_i_id = $1))"), ["2 s_w_id", "1 s_i_id"]);
        assert_eq!(names("((t.name)::character varying = $1)"), ["1 name"]);
        assert!(names("(t.a <= $1)").is_empty() && names("(t.a = other.b)").is_empty());
        assert!(names("(lower(t.name) = $1)").is_empty() && names("((t.a + t.b) = $1)").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[()'\"a-z.=: \\[\\]ANDé0-9$]{0,60}") {
            let _ = columns(&[&text]);
            let _ = equal_parameters(&text);
        }
    }
}
