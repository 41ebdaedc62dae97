//! The columns by which a statement looks for the rows of a table: what an index on it would need.
//!
//! Not a parser of SQL: it reads the statements of a load as servers normalise them (values replaced by `$1` or `?`), and returns
//! nothing where it does not recognise one. An advice that does not come is better than a wrong one.

/// Columns of an index at most: more make it large and serve no other statement.
const MOST: usize = 4;
/// Alternatives of a condition at most: each needs an index.
const MOST_ARMS: usize = 4;
/// Parentheses within parentheses that are looked into.
const DEEPEST: usize = 8;

/// Columns of one table in what is joined by AND.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Predicates {
    /// Equal to values, in their order.
    values: Vec<String>,
    /// Equal to columns of other tables.
    joins: Vec<String>,
    /// Compared with `<`, `>`, `<=`, `>=` or BETWEEN: the first of them.
    range: Option<String>,
}

impl Predicates {
    /// The columns of an index that serves them: those of equality first, of which the values are known before any other table is read,
    /// then the range.
    fn columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        for column in self.values.iter().chain(&self.joins).chain(&self.range) {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        columns.truncate(MOST);
        columns
    }

    /// Adds a comparison, if it is one of the table's columns with something that another of its columns has no part in.
    fn add(&mut self, part: &[Token], table: &Table, single: bool) {
        let Some((left, operator, right)) = comparison(part) else { return };
        let (name, other) = match (table.column(left, single), table.column(right, single)) {
            (Some(name), None) => (name, right),
            (None, Some(name)) => (name, left),
            _ => return,
        };
        let is_join = !single && qualified(other).is_some();
        match operator {
            _ if !is_join && !is_value(other) => {}
            "=" if is_join => self.joins.push(name),
            "=" | "in" => self.values.push(name),
            _ => {
                self.range.get_or_insert(name);
            }
        }
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

/// The columns of the indexes that would find a statement's rows of a table, whose name may have its schema before it: one index, or one
/// for each alternative of an OR, which are of no use without each other. None where an alternative has no columns of the table.
pub(super) fn of_table(sql: &str, table: &str) -> Vec<Vec<String>> {
    let tokens = tokens(sql);
    find(&tokens, table.rsplit('.').next().unwrap_or(table)).unwrap_or_default()
}

fn find(tokens: &[Token], name: &str) -> Option<Vec<Vec<String>>> {
    let (tables, rest) = tables(tokens)?;
    let mut of_it = tables.iter().enumerate().filter(|(_, table)| table.name == name);
    let (at, table) = of_it.next()?;
    // Twice the same table: which of the two is scanned is not known.
    if of_it.next().is_some() {
        return None;
    }
    let before_condition = rest.get(..end(rest, |rest| is(rest.first(), "where"))).unwrap_or_default();
    let has_from = is(tokens.first(), "update") && split(before_condition, "from").len() > 1;
    let single = tables.len() == 1 && !has_from;
    let mut all = arms(condition(rest), DEEPEST);
    let mut using = Vec::new();
    for (right, other) in tables.iter().enumerate() {
        // The side whose rows all come needs no index for it.
        let finds = match other.join {
            Join::Inner => at <= right,
            Join::Left => at == right,
            Join::Right => at < right,
            Join::Full => false,
        };
        if finds {
            all = both(all, &arms(other.on, DEEPEST));
            // Of several earlier tables, which one has the column is not known.
            let column = if at == right || at == 0 && right == 1 { other.using.as_slice() } else { &[] };
            using.extend_from_slice(column);
        }
    }
    let mut found: Vec<Vec<String>> = Vec::new();
    for arm in &all {
        let mut predicates = Predicates { joins: using.clone(), ..Predicates::default() };
        for part in arm {
            predicates.add(part, table, single);
        }
        let columns = predicates.columns();
        if columns.is_empty() {
            return None;
        }
        if !found.contains(&columns) {
            found.push(columns);
        }
    }
    // Where an alternative has nothing but the columns of another, the other's further ones find no fewer rows.
    let is_needed = |one: &&Vec<String>| {
        let has_all = |other: &&Vec<String>| other.iter().all(|column| one.contains(column));
        !found.iter().filter(|other| other.len() < one.len()).any(|other| has_all(&other))
    };
    Some(found.iter().filter(is_needed).cloned().collect())
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
            ':' => {
                let more = rest.next_if(|next| matches!(next, ':' | '='));
                found.push(Token::Sign(std::iter::once(c).chain(more).collect()));
            }
            '<' | '>' | '=' | '!' | '~' | '@' | '#' | '%' | '&' | '|' | '^' => {
                let mut sign = String::from(c);
                while let Some(next) = rest.next_if(|next| "<>=!~@#%&|^+-*".contains(*next)) {
                    sign.push(next);
                }
                // PostgreSQL's rule: one of the first's signs is in an operator that ends in plus or minus.
                let bare = sign.trim_end_matches(['+', '-']).len();
                let more = if sign.contains(['~', '!', '@', '#', '%', '&', '|', '^']) {
                    String::new()
                } else {
                    sign.split_off(bare)
                };
                found.push(Token::Sign(sign));
                found.extend(more.chars().map(|one| Token::Sign(one.into())));
            }
            _ => found.push(Token::Sign(c.into())),
        }
    }
    found
}

fn is(token: Option<&Token>, word: &str) -> bool {
    matches!(token, Some(Token::Word(found) | Token::Sign(found)) if found == word)
}

/// A table of a statement, and how it is joined to those before it.
#[derive(Debug)]
struct Table<'a> {
    name: String,
    alias: String,
    join: Join,
    on: &'a [Token],
    /// The columns of USING.
    using: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Join {
    Inner,
    Left,
    Right,
    Full,
}

impl Table<'_> {
    /// The name of its column, if the operand is nothing else; without the table's name if it is the only one.
    fn column(&self, operand: &[Token], single: bool) -> Option<String> {
        let (of, name) = qualified(operand)?;
        let own = of.map_or(single, |of| of == self.alias || of == self.name);
        (own && !matches!(name, "null" | "true" | "false" | "not" | "current_timestamp"))
            .then(|| name.to_owned())
    }
}

/// The tables of a SELECT, UPDATE or DELETE, and what follows them; none for subqueries, NATURAL joins and all else.
fn tables(tokens: &[Token]) -> Option<(Vec<Table<'_>>, &[Token])> {
    let mut at = match tokens.first() {
        Some(Token::Word(first)) if first == "update" => 1,
        Some(Token::Word(first)) if first == "select" || first == "delete" => {
            let mut depth = 0_i32;
            1 + tokens.iter().position(|token| {
                depth += nesting(token);
                depth == 0 && is(Some(token), "from")
            })?
        }
        _ => return None,
    };
    let mut found = Vec::new();
    let mut join = Join::Inner;
    loop {
        let mut table = table(tokens, &mut at, join)?;
        if is(tokens.get(at), "on") {
            let rest = tokens.get(at + 1..)?;
            table.on = rest.get(..end(rest, |rest| joins(rest).is_some() || ends(rest)))?;
            at += 1 + table.on.len();
        } else if is(tokens.get(at), "using") {
            // DELETE's is a list of tables.
            let rest = tokens.get(at + 1..).filter(|rest| is(rest.first(), "("))?;
            let close = rest.iter().position(|token| is(Some(token), ")"))?;
            let word = |token: &Token| if let Token::Word(word) = token { Some(word.clone()) } else { None };
            table.using = rest.get(..close)?.iter().filter_map(word).collect();
            at += close + 2;
        }
        found.push(table);
        let Some((next, length)) = joins(tokens.get(at..)?) else {
            return Some((found, tokens.get(at..)?));
        };
        join = next?;
        at += length;
    }
}

/// A table's name and alias, which end at `at`.
fn table<'a>(tokens: &[Token], at: &mut usize, join: Join) -> Option<Table<'a>> {
    *at += usize::from(is(tokens.get(*at), "only"));
    let Some(Token::Word(mut name)) = tokens.get(*at).cloned() else { return None };
    *at += 1;
    if is(tokens.get(*at), ".") {
        let Some(Token::Word(table)) = tokens.get(*at + 1) else { return None };
        name.clone_from(table);
        *at += 2;
    }
    *at += usize::from(is(tokens.get(*at), "as"));
    let mut alias = name.clone();
    let rest = tokens.get(*at..)?;
    if let Some(Token::Word(word)) = rest.first()
        && !ends(rest)
        && joins(rest).is_none()
        && !matches!(word.as_str(), "on" | "using")
    {
        alias.clone_from(word);
        *at += 1;
    }
    Some(Table { name, alias, join, on: &[], using: Vec::new() })
}

/// How the next table is joined and how many tokens say so, if they do; no join where its columns are not named.
fn joins(rest: &[Token]) -> Option<(Option<Join>, usize)> {
    let Some(Token::Word(word) | Token::Sign(word)) = rest.first() else { return None };
    let join = match word.as_str() {
        "," | "join" => return Some((Some(Join::Inner), 1)),
        "natural" | "straight_join" => None,
        "inner" | "cross" => Some(Join::Inner),
        "left" => Some(Join::Left),
        "right" => Some(Join::Right),
        "full" => Some(Join::Full),
        _ => return None,
    };
    let length = 1 + usize::from(is(rest.get(1), "outer"));
    // Otherwise a function or a column.
    (join.is_none() || is(rest.get(length), "join")).then_some((join, length + 1))
}

const AFTER_TABLES: [&str; 9] =
    ["where", "set", "group", "order", "limit", "for", "returning", "having", "union"];

/// Whether the tables or a condition end here.
fn ends(rest: &[Token]) -> bool {
    matches!(rest.first(), Some(Token::Word(word)) if AFTER_TABLES.contains(&word.as_str()))
}

/// What a token adds to the depth: parentheses, and the CASE whose WHENs have ANDs and ORs of their own.
fn nesting(token: &Token) -> i32 {
    let (Token::Word(text) | Token::Sign(text)) = token else { return 0 };
    match text.as_str() {
        "(" | "case" => 1,
        ")" | "end" => -1,
        _ => 0,
    }
}

/// How many tokens there are before what `is_end` recognises, outside of parentheses.
fn end(tokens: &[Token], is_end: impl Fn(&[Token]) -> bool) -> usize {
    let mut depth = 0_i32;
    let stops = |(at, token): (usize, &Token)| {
        let outside = depth == 0 && tokens.get(at..).is_some_and(&is_end);
        depth += nesting(token);
        outside || depth < 0 || is(Some(token), ";")
    };
    tokens.iter().enumerate().position(stops).unwrap_or(tokens.len())
}

/// The tokens of the WHERE clause; none without it.
fn condition(tokens: &[Token]) -> &[Token] {
    let before = end(tokens, |rest| is(rest.first(), "where"));
    let rest = tokens.get(before + 1..).unwrap_or_default();
    rest.get(..end(rest, ends)).unwrap_or_default()
}

/// What is joined by OR, each as what is joined by AND. Where there are too many alternatives, the part is one that says nothing.
fn arms(tokens: &[Token], deepest: usize) -> Vec<Vec<&[Token]>> {
    let tokens = bare(tokens);
    let Some(deeper) = deepest.checked_sub(1) else { return vec![Vec::new()] };
    let alternatives = split(tokens, "or");
    if alternatives.len() > 1 {
        let all: Vec<_> = alternatives.into_iter().flat_map(|part| arms(part, deeper)).collect();
        return if all.len() > MOST_ARMS { vec![Vec::new()] } else { all };
    }
    match split(tokens, "and") {
        parts if parts.len() > 1 => {
            parts.into_iter().fold(vec![Vec::new()], |all, part| both(all, &arms(part, deeper)))
        }
        parts => vec![parts],
    }
}

/// Both conditions; the first alone where there were too many alternatives.
fn both<'a>(one: Vec<Vec<&'a [Token]>>, other: &[Vec<&'a [Token]>]) -> Vec<Vec<&'a [Token]>> {
    if one.len() * other.len() > MOST_ARMS {
        return one;
    }
    one.iter().flat_map(|one| other.iter().map(move |other| [one.as_slice(), other].concat())).collect()
}

/// Without the parentheses around all of it.
fn bare(mut tokens: &[Token]) -> &[Token] {
    for _ in 0..DEEPEST {
        match tokens {
            [first, inner @ .., _]
                if is(Some(first), "(")
                    && end(inner, |_| false) == inner.len()
                    && !is(inner.first(), "select") =>
            {
                tokens = inner;
            }
            _ => break,
        }
    }
    tokens
}

/// What is joined by this word, outside of parentheses.
fn split<'a>(tokens: &'a [Token], word: &str) -> Vec<&'a [Token]> {
    let (mut parts, mut from, mut depth, mut between) = (Vec::new(), 0, 0_i32, false);
    for (at, token) in tokens.iter().enumerate() {
        depth += nesting(token);
        if depth > 0 {
            continue;
        }
        if is(Some(token), "between") {
            between = true;
        } else if is(Some(token), word) && !(word == "and" && std::mem::take(&mut between)) {
            parts.extend(tokens.get(from..at));
            from = at + 1;
        }
    }
    parts.extend(tokens.get(from..));
    parts
}

/// Left side, operator and right side. What is negated or compared otherwise is no comparison here.
fn comparison(tokens: &[Token]) -> Option<(&[Token], &str, &[Token])> {
    let operators = ["=", "<", ">", "<=", ">=", "in", "between"];
    let mut depth = 0_i32;
    let at = tokens.iter().position(|token| {
        depth += nesting(token);
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

    /// "a b | c": the indexes' columns.
    fn columns(sql: &str, table: &str) -> String {
        of_table(sql, table).iter().map(|columns| columns.join(" ")).collect::<Vec<_>>().join(" | ")
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
                "ol_w_id ol_i_id",
            ),
            ("select 1 from t where lower(a) = $1 and b <> $2 and c = d and e = $3 limit $4", "t", "e"),
            ("select 1 from t where a not in ($1)", "t", ""),
            ("select 1 from t, t as v where v.b = $1", "t", ""),
            ("insert into t values ($1)", "t", ""),
            ("delete from t using u where t.a = u.b and t.c = any($1)", "t", ""),
            ("update t set x = $1 from u where t.id = u.id and status = $2", "t", "id"),
            ("update t set x = extract(epoch from y) where status = $2", "t", "status"),
            ("select 1 from t where tags <@ $1 and a=-1 and loc <-> $2 < $3 and b ~ $4", "t", "a"),
            ("select (select a from t where b = $1) from u where c = $2", "u", "c"),
        ] {
            assert_eq!(columns(sql, table), expected, "{sql} of {table}");
        }
    }

    #[test]
    fn joined_columns_are_of_both_sides_unless_all_rows_of_one_come() {
        for (sql, of_t, of_u) in [
            ("select 1 from t join u on t.a = u.b where t.c = $1", "c a", "b"),
            ("select 1 from s.t as x inner join u y on (x.a = y.b and y.c > $1) order by x.d", "a", "b c"),
            ("select 1 from t left join u on t.a = u.b and u.c = $1 where t.d = $2", "d", "c b"),
            ("select 1 from t right outer join u on t.a = u.b", "a", ""),
            ("select 1 from t full join u on t.a = u.b", "", ""),
            ("select 1 from t cross join u where t.a = u.b", "a", "b"),
            ("select 1 from t join u using (a, b) where t.c = $1 limit $2", "c a b", "a b"),
            ("select 1 from v join t on t.a = v.b join u using (c)", "a", "c"),
            ("select 1 from v, t join u on t.a = u.b where v.c = t.d", "d a", "b"),
            ("select 1 from t natural join u where t.a = $1", "", ""),
            ("select 1 from t join (select 1) u on t.a = u.b", "", ""),
            ("select 1 from t join u on left(t.a, 1) = u.b and t.c = u.d", "c", "d"),
            ("update t join u on t.a = u.b set c = 1 where u.d = ?", "a", "d b"),
        ] {
            assert_eq!((columns(sql, "t"), columns(sql, "u")), (of_t.into(), of_u.into()), "{sql}");
        }
    }

    #[test]
    fn each_alternative_has_its_index_and_one_without_leaves_none() {
        for (condition, expected) in [
            ("a = $1 or b = $2", "a | b"),
            ("(a = $1 or b = $2) and c = $3", "a c | b c"),
            ("a = $1 or (b = $2 and (c > $3 or d = $4))", "a | b c | b d"),
            ("((a = $1)) or a = $2", "a"),
            ("a = $1 or lower(b) = $2", ""),
            ("a = $1 and (b = $2 or lower(c) = $3)", "a"),
            ("a = $1 or (a = $2 and b = $3)", "a"),
            ("a between $1 and $2 or b = $3", "a | b"),
            ("a = $1 or b = $2 or c = $3 or d = $4 or e = $5", ""),
            ("f = $6 and (a = $1 or b = $2 or c = $3 or d = $4 or e = $5)", "f"),
            ("not (a = $1 or b = $2) and c = $3", "c"),
            ("case when a = $1 or b = $2 then c end = $3 and d = $4", "d"),
            ("exists (select 1 from u where x = 1 or y = 2) and a = $1", "a"),
        ] {
            assert_eq!(columns(&format!("select 1 from t where {condition}"), "t"), expected, "{condition}");
        }
        let sql = "select 1 from t join u on t.a = u.b where t.c = $1 or u.d = $2";
        assert_eq!((columns(sql, "t"), columns(sql, "u")), ("a".into(), "b".into()));
    }

    #[test]
    fn depth_is_bounded() {
        let deep =
            format!("select 1 from t where {}a = $1{}", "(b = $1 or ".repeat(20_000), ")".repeat(20_000));
        assert_eq!(columns(&deep, "t"), "");
        let bare = format!("select 1 from t where {}a = $1{}", "(".repeat(20_000), ")".repeat(20_000));
        let _ = columns(&bare, "t");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,120}", table in ".{0,10}") {
            let _ = of_table(&text, &table);
        }

        #[test]
        fn nor_does_one_of_its_words(words in proptest::collection::vec(
            prop::sample::select(vec!["select", "from", "where", "t", ",", ".", "(", ")", "and", "or", "between", "=", "$1", "in", "update", "set", "only", "as", "join", "left", "on", "using", "case", "end", "not", ";"]), 0..25)) {
            let _ = of_table(&words.join(" "), "t");
        }
    }
}
