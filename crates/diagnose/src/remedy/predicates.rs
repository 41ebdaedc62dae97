//! The columns by which a statement looks for the rows of a table: what an index on it would need.
//!
//! Not a parser of SQL: it reads the statements of a load as servers normalise them (values replaced by `$1` or `?`), and returns
//! nothing where it does not recognise one. An advice that does not come is better than a wrong one.

/// Columns of one table in a statement's WHERE clause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Predicates {
    /// Compared for equality, in their order.
    pub(super) equal: Vec<String>,
    /// Compared with `<`, `>`, `<=`, `>=` or BETWEEN: the first of them.
    pub(super) range: Option<String>,
}

/// Columns of an index at most: more make it large and serve no other statement.
const MOST: usize = 4;

impl Predicates {
    /// The columns of an index that serves them: those of equality first, then the range.
    pub(super) fn columns(&self) -> Vec<String> {
        let range = self.range.iter().filter(|range| !self.equal.contains(range));
        self.equal.iter().chain(range).take(MOST).cloned().collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name or keyword in lower case, unless it was quoted.
    Word(String),
    /// A parameter, number or string.
    Value,
    /// An operator or punctuation.
    Sign(String),
}

/// The predicates of a statement on a table, whose name may have its schema before it.
pub(super) fn of_table(sql: &str, table: &str) -> Option<Predicates> {
    let tokens = tokens(sql);
    let (names, rest) = tables(&tokens)?;
    let plain = table.rsplit('.').next().unwrap_or(table);
    let mut of_it = names.iter().filter(|(name, _)| name == plain);
    let (_, alias) = of_it.next()?;
    // Twice the same table: which of the two is scanned is not known.
    if of_it.next().is_some() {
        return None;
    }
    let condition = condition(rest)?;
    let single = names.len() == 1;
    let mut found = Predicates::default();
    for part in conjuncts(condition)? {
        let own = |operand: &[Token]| column(operand, alias, plain, single);
        let Some((left, operator, right)) = comparison(part) else { continue };
        let (name, other) = match (own(left), own(right)) {
            (Some(name), None) => (name, right),
            (None, Some(name)) => (name, left),
            _ => continue,
        };
        // With a function of another column on the other side no index of this one helps.
        let simple = is_value(other) || !single && qualified(other).is_some();
        match operator {
            _ if !simple => {}
            "=" | "in" if !found.equal.contains(&name) => found.equal.push(name),
            "<" | ">" | "<=" | ">=" | "between" => {
                found.range.get_or_insert(name);
            }
            _ => {}
        }
    }
    (!found.columns().is_empty()).then_some(found)
}

fn tokens(sql: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            _ if c.is_whitespace() => {}
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                let mut last = ' ';
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            '\'' => {
                rest.by_ref().find(|c| *c == '\'');
                found.push(Token::Value);
            }
            '"' | '`' => found.push(Token::Word(rest.by_ref().take_while(|next| *next != c).collect())),
            '?' => found.push(Token::Value),
            '$' | '0'..='9' => {
                while rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '.').is_some() {}
                found.push(Token::Value);
            }
            _ if c.is_alphabetic() || c == '_' => {
                let mut word: String = c.to_lowercase().collect();
                while let Some(next) =
                    rest.next_if(|next| next.is_alphanumeric() || matches!(next, '_' | '$'))
                {
                    word.extend(next.to_lowercase());
                }
                found.push(Token::Word(word));
            }
            '<' | '>' | '=' | '!' | ':' => {
                let mut sign = String::from(c);
                while let Some(next) = rest.next_if(|next| matches!(next, '<' | '>' | '=' | ':')) {
                    sign.push(next);
                }
                found.push(Token::Sign(sign));
            }
            _ => found.push(Token::Sign(c.into())),
        }
    }
    found
}

fn is(token: Option<&Token>, word: &str) -> bool {
    matches!(token, Some(Token::Word(found) | Token::Sign(found)) if found == word)
}

/// Names of tables, each with its alias.
type Tables = Vec<(String, String)>;

/// The tables of a SELECT, UPDATE or DELETE with their aliases, and what follows them; none for joins by JOIN, for
/// subqueries and all else.
fn tables(tokens: &[Token]) -> Option<(Tables, &[Token])> {
    let mut at = match tokens.first() {
        Some(Token::Word(first)) if first == "update" => 1,
        Some(Token::Word(first)) if first == "select" || first == "delete" => {
            let mut depth = 0_i32;
            1 + tokens.iter().position(|token| {
                depth += i32::from(is(Some(token), "(")) - i32::from(is(Some(token), ")"));
                depth == 0 && is(Some(token), "from")
            })?
        }
        _ => return None,
    };
    if is(tokens.get(at), "only") {
        at += 1;
    }
    let mut names = Vec::new();
    loop {
        let Some(Token::Word(name)) = tokens.get(at) else { return None };
        let mut name = name.clone();
        at += 1;
        if is(tokens.get(at), ".") {
            let Some(Token::Word(table)) = tokens.get(at + 1) else { return None };
            name.clone_from(table);
            at += 2;
        }
        if is(tokens.get(at), "as") {
            at += 1;
        }
        let mut alias = name.clone();
        if let Some(Token::Word(word)) = tokens.get(at)
            && !AFTER_TABLES.contains(&word.as_str())
        {
            if JOINS.contains(&word.as_str()) {
                return None;
            }
            alias.clone_from(word);
            at += 1;
        }
        names.push((name, alias));
        if !is(tokens.get(at), ",") {
            return Some((names, tokens.get(at..)?));
        }
        at += 1;
    }
}

const AFTER_TABLES: [&str; 9] =
    ["where", "set", "group", "order", "limit", "for", "returning", "having", "union"];
const JOINS: [&str; 7] = ["join", "inner", "left", "right", "full", "cross", "natural"];

/// The tokens of the WHERE clause.
fn condition(tokens: &[Token]) -> Option<&[Token]> {
    let mut depth = 0_i32;
    let mut outside = |token: &Token| {
        depth += i32::from(is(Some(token), "(")) - i32::from(is(Some(token), ")"));
        depth == 0
    };
    let from = 1 + tokens.iter().position(|token| outside(token) && is(Some(token), "where"))?;
    let tokens = tokens.get(from..)?;
    let ends = |token: &Token| matches!(token, Token::Word(word) if AFTER_TABLES.contains(&word.as_str()));
    let mut depth = 0_i32;
    let to = tokens.iter().position(|token| {
        depth += i32::from(is(Some(token), "(")) - i32::from(is(Some(token), ")"));
        depth == 0 && ends(token) || depth < 0 || is(Some(token), ";")
    });
    tokens.get(..to.unwrap_or(tokens.len()))
}

/// What is joined by AND; none where something is joined by OR.
fn conjuncts(tokens: &[Token]) -> Option<Vec<&[Token]>> {
    let (mut parts, mut from, mut depth, mut between) = (Vec::new(), 0, 0_i32, false);
    for (at, token) in tokens.iter().enumerate() {
        depth += i32::from(is(Some(token), "(")) - i32::from(is(Some(token), ")"));
        if depth > 0 {
            continue;
        }
        if is(Some(token), "or") {
            return None;
        }
        if is(Some(token), "between") {
            between = true;
        } else if is(Some(token), "and") && !std::mem::take(&mut between) {
            parts.extend(tokens.get(from..at));
            from = at + 1;
        }
    }
    parts.extend(tokens.get(from..));
    Some(parts)
}

/// Left side, operator and right side. What is negated or compared otherwise is no comparison here.
fn comparison(tokens: &[Token]) -> Option<(&[Token], &str, &[Token])> {
    let operators = ["=", "<", ">", "<=", ">=", "in", "between"];
    let mut depth = 0_i32;
    let at = tokens.iter().position(|token| {
        depth += i32::from(is(Some(token), "(")) - i32::from(is(Some(token), ")"));
        let (Token::Word(sign) | Token::Sign(sign)) = token else { return false };
        depth == 0 && operators.contains(&sign.as_str())
    })?;
    let (Token::Word(operator) | Token::Sign(operator)) = tokens.get(at)? else { return None };
    Some((tokens.get(..at)?, operator.as_str(), tokens.get(at + 1..)?))
}

/// The name and its qualifier, if the operand is nothing but a column.
fn qualified(operand: &[Token]) -> Option<(Option<&str>, &str)> {
    match operand {
        [Token::Word(name)] => Some((None, name)),
        [Token::Word(of), Token::Sign(dot), Token::Word(name)] if dot == "." => Some((Some(of), name)),
        _ => None,
    }
}

fn column(operand: &[Token], alias: &str, table: &str, single: bool) -> Option<String> {
    let (of, name) = qualified(operand)?;
    let own = of.map_or(single, |of| of == alias || of == table);
    (own && !matches!(name, "null" | "true" | "false" | "not" | "current_timestamp")).then(|| name.to_owned())
}

/// Whether it depends on no column: values, casts, lists and arithmetic of values.
fn is_value(operand: &[Token]) -> bool {
    let mut cast = false;
    !operand.is_empty()
        && operand.iter().all(|token| match token {
            Token::Value => true,
            Token::Sign(sign) => {
                cast = sign == "::";
                true
            }
            Token::Word(word) => cast || matches!(word.as_str(), "and" | "any" | "array" | "interval"),
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(sql: &str, table: &str) -> Vec<String> {
        of_table(sql, table).map(|found| found.columns()).unwrap_or_default()
    }

    #[test]
    fn equality_comes_before_a_range() {
        for (sql, table, expected) in [
            (
                "SELECT c_id FROM customer WHERE c_last = $3 AND c_d_id = $2 ORDER BY c_first",
                "public.customer",
                "c_last c_d_id",
            ),
            (
                "select count(*) from only a.orders o where o.o_id >= $1 and o.o_w_id = $2::int",
                "a.orders",
                "o_w_id o_id",
            ),
            (
                "UPDATE stock SET s_quantity = $1 WHERE s_i_id IN ($2, $3) AND s_w_id = $4",
                "stock",
                "s_i_id s_w_id",
            ),
            (
                "DELETE FROM `new_order` WHERE `no_o_id` BETWEEN ? AND ? AND `no_w_id` = ?",
                "new_order",
                "no_w_id no_o_id",
            ),
            ("select s from order_line, stock where s_i_id = $1 and ol_w_id = $2", "stock", ""),
            (
                "select s from order_line l, stock k where k.s_i_id = l.ol_i_id and l.ol_w_id = $1",
                "stock",
                "s_i_id",
            ),
            (
                "select s from order_line l, stock k where k.s_i_id = l.ol_i_id and l.ol_w_id = $1",
                "order_line",
                "ol_i_id ol_w_id",
            ),
            ("select 1 from t where a = $1 or b = $2", "t", ""),
            ("select 1 from t where lower(a) = $1 and b <> $2 and c = d and e = $3 limit $4", "t", "e"),
            ("select 1 from t where a not in ($1)", "t", ""),
            ("select 1 from t join u on t.a = u.a where t.b = $1", "t", ""),
            ("select 1 from t, t as v where v.b = $1", "t", ""),
            ("insert into t values ($1)", "t", ""),
            ("select (select a from t where b = $1) from u where c = $2", "u", "c"),
        ] {
            assert_eq!(columns(sql, table).join(" "), expected, "{sql} of {table}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,120}", table in ".{0,10}") {
            let _ = of_table(&text, &table);
        }

        #[test]
        fn nor_does_one_of_its_words(words in proptest::collection::vec(
            prop::sample::select(vec!["select", "from", "where", "t", ",", ".", "(", ")", "and", "or", "between", "=", "$1", "in", "update", "set", "only", "as"]), 0..25)) {
            let _ = of_table(&words.join(" "), "t");
        }
    }
}
