//! MySQL's plans: lines that begin with an arrow, indented by four for each level.

use kelvin_database::postgres::explain::{Node, Plan};

use super::{Tables, filter, partial};

/// Levels of a plan that are read: what is deeper would be read by as many calls.
const DEEPEST: usize = 200;
const INDENTED: usize = 4;

/// The plan of the text that the server returned.
///
/// # Errors
/// Which line is none of a plan, and why.
pub(in crate::mysql) fn parse(text: &str, tables: &Tables) -> Result<Plan, String> {
    // The nodes above the current line, from the top, which has no line of its own.
    let mut open: Vec<Line> = vec![Line::default()];
    let mut number = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        number += 1;
        let at = |why: &str| format!("line {number}: {why}");
        let (indent, Some(rest)) =
            (line.len() - line.trim_start().len(), line.trim_start().strip_prefix("-> "))
        else {
            return Err(at("no arrow"));
        };
        let depth = indent / INDENTED + 1;
        if depth > open.len() || depth > DEEPEST {
            return Err(at("indented too far"));
        }
        close(&mut open, depth, tables);
        open.push(Line::parse(rest).map_err(at)?);
    }
    if number == 0 {
        return Err("it is empty".into());
    }
    close(&mut open, 1, tables);
    let Some(top) = open.pop() else { return Err("it is empty".into()) };
    let took = top.below.first().and_then(|first| first.1);
    let root = top.below.into_iter().map(|(node, _)| node).collect();
    Ok(Plan { root: Node { below: root, ..Node::default() }, execution_ms: took, ..Plan::default() })
}

/// Makes nodes of the open lines until only so many are left.
fn close(open: &mut Vec<Line>, left: usize, tables: &Tables) {
    while open.len() > left {
        let is_joined = open.iter().any(Line::is_join);
        let Some(line) = open.pop() else { return };
        let ended = line.ended;
        if let Some(above) = open.last_mut() {
            above.below.push((line.node(tables, is_joined), ended));
        }
    }
}

/// A line, with the nodes of the lines below it.
#[derive(Default)]
struct Line {
    /// Without its numbers.
    text: String,
    estimated: Option<f64>,
    /// Rows and loops; none where it was not executed.
    actual: Option<(f64, f64)>,
    /// Milliseconds until its last row.
    ended: Option<f64>,
    below: Vec<(Node, Option<f64>)>,
}

impl Line {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let mut parsed = Self::default();
        // Conditions come before the numbers, whatever they contain.
        let line = match line.rsplit_once(" (actual time=") {
            Some((before, actual)) => {
                let (rows, loops) = (value(actual, "rows=")?, value(actual, "loops=")?);
                parsed.actual = Some((rows, loops));
                parsed.ended =
                    actual.split([' ', ')']).next().and_then(|time| time.split_once("..")?.1.parse().ok());
                before.trim_end()
            }
            None => line.strip_suffix("(never executed)").unwrap_or(line).trim_end(),
        };
        let line = match line.rsplit_once(" (cost=") {
            Some((before, cost)) => {
                parsed.estimated = Some(value(cost, "rows=")?);
                before.trim_end()
            }
            None => line,
        };
        line.clone_into(&mut parsed.text);
        Ok(parsed)
    }

    fn is_join(&self) -> bool {
        self.kind().ends_with(" Join") || self.kind() == "Nested Loop"
    }

    /// As PostgreSQL calls what takes all rows, or may not; otherwise the text before a colon.
    fn kind(&self) -> &str {
        let text = self.text.split(':').next().unwrap_or_default();
        let begins = |with: &str| text.starts_with(with);
        match text {
            _ if begins("Limit") => "Limit",
            _ if begins("Sort") => "Sort",
            "Hash" => "Hash",
            _ if begins("Nested loop") => "Nested Loop",
            _ if text.contains("hash join")
                || text.contains("hash semijoin")
                || text.contains("hash antijoin") =>
            {
                "Hash Join"
            }
            _ => text,
        }
    }

    fn node(self, tables: &Tables, is_joined: bool) -> Node {
        let kind = self.kind().to_owned();
        let mut below: Vec<Node> = self.below.into_iter().map(|(node, _)| node).collect();
        let estimated = self.estimated.unwrap_or_default();
        let rows = self.actual.map(|(rows, _)| rows).filter(|_| self.estimated.is_some());
        let loops = self.actual.map_or(0.0, |(_, loops)| loops);
        if let Some(condition) = self.text.strip_prefix("Filter: ") {
            // Subqueries of the condition come behind what it filters.
            let mut below = below.into_iter();
            let Some(of) = below.next() else { return Node::default() };
            let of = Node { loops: of.loops.max(loops), ..of };
            let mut node = filter(condition, (estimated, rows), is_joined, of);
            node.below.extend(below);
            return node;
        }
        if let Some(read) = Read::parse(&self.text, tables) {
            let node = Node {
                kind: read.kind.to_owned(),
                relation: Some(read.table.to_owned()),
                alias: Some(read.alias.to_owned()),
                index: read.index.map(str::to_owned),
                conditions: vec![read.rest.to_owned()],
                estimated,
                actual: rows,
                loops,
                below,
                ..Node::default()
            };
            // The estimate is that of the index, before its condition leaves out some of its rows.
            return if read.rest.contains("with index condition") { partial(node) } else { node };
        }
        let looks_for_one =
            ["semijoin", "antijoin", "FirstMatch"].into_iter().any(|word| self.text.contains(word));
        if matches!(kind.as_str(), "Nested Loop" | "Hash Join") {
            for (at, one) in below.iter_mut().enumerate() {
                one.relationship = if at == 0 { "Outer".into() } else { "Inner".into() };
            }
        }
        let is_subquery = kind.starts_with("Select #");
        Node {
            join: if looks_for_one { "Semi".into() } else { String::new() },
            relationship: if is_subquery { "SubPlan".into() } else { String::new() },
            kind,
            loops,
            below,
            ..Node::default()
        }
    }
}

/// The number behind `key`.
fn value(text: &str, key: &str) -> Result<f64, &'static str> {
    let (_, rest) = text.split_once(key).ok_or("a number of rows or loops is missing")?;
    let end = rest.find([' ', ')']).unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().map_err(|_| "a number of rows or loops is none")?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err("a number of rows or loops is none") }
}

/// A line that reads a table: "Covering index lookup on p using a (a=5)".
struct Read<'a> {
    kind: &'a str,
    alias: &'a str,
    table: &'a str,
    index: Option<&'a str>,
    rest: &'a str,
}

impl<'a> Read<'a> {
    fn parse(text: &'a str, tables: &'a Tables) -> Option<Self> {
        // What has other signs is no kind of node: it may be a value.
        let is_kind = |kind: &str| kind.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '-'));
        let (kind, rest) = text.split_once(" on ").filter(|(kind, _)| is_kind(kind))?;
        // A name may have spaces: it is one of those in the statement.
        let fits = |alias: &&String| {
            rest.strip_prefix(alias.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',']))
        };
        let alias = tables.keys().filter(fits).max_by_key(|alias| alias.len())?;
        let rest = &rest[alias.len()..];
        let (index, rest) = match rest.strip_prefix(" using ") {
            Some(rest) => {
                let end = [" (", " over ", ", "]
                    .iter()
                    .filter_map(|end| rest.find(end))
                    .min()
                    .unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        Some(Self { kind, alias, table: tables.get(alias)?, index, rest: rest.trim_start() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As MySQL 8.0.31 returned them, with other numbers.
    const JOIN: &str = "-> Limit: 10 row(s)  (actual time=0.3..168.5 rows=10 loops=1)
    -> Sort: count(*), limit input to 10 row(s) per chunk  (actual time=0.297..0.297 rows=10 loops=1)
        -> Table scan on <temporary>  (cost=2.5..2.5 rows=0) (actual time=0.255..0.267 rows=1950 loops=1)
            -> Aggregate using temporary table  (actual time=0.255..0.255 rows=195 loops=1)
                -> Nested loop inner join  (cost=45072.72 rows=9) (actual time=0.029..157.030 rows=199991 loops=1)
                    -> Filter: (p.pad = ' (cost=1 rows=1) (actual time=')  (cost=20.25 rows=1000) (actual time=100..100.260 rows=2 loops=1)
                        -> Covering index lookup on p using a (a=5)  (cost=20.25 rows=200) (actual time=0.027..22.949 rows=200200 loops=1)
                    -> Filter: (o x.id = (p.id % 20000))  (cost=0.25 rows=1) (actual time=0.000..0.001 rows=1 loops=200001)
                        -> Index range scan on o x using i over (5 < a), with index condition: (`o x`.v < 3)  (cost=0.25 rows=5000) (actual time=0..0 rows=7 loops=200001)
-> Select #2 (subquery in projection; dependent)
    -> Table scan on s  (cost=0.35 rows=100000) (actual time=0.001..0.001 rows=1 loops=200)
    -> Table scan on t  (cost=0.35 rows=100000) (never executed)
";

    fn missed(text: &str) -> Vec<String> {
        let tables =
            ["p", "o", "o x", "s", "t", "x"].map(|name| (name.to_owned(), format!("k.{name}"))).into();
        parse(text, &tables).unwrap().all_misestimated(10.0).iter().map(|node| node.label()).collect()
    }

    #[test]
    fn tables_and_conditions_that_missed_are_named() {
        assert_eq!(missed(JOIN), ["Filter on k.p", "Covering index lookup on k.p using a"]);
        assert_eq!(parse(JOIN, &Tables::default()).unwrap().execution_ms, Some(168.5));
        let alone = "-> Filter: (p.pad = 'x')  (cost=1 rows=20000) (actual time=1..1 rows=2 loops=1)
    -> Table scan on p  (cost=1 rows=200000) (actual time=1..1 rows=200200 loops=1)";
        assert!(missed(alone).is_empty(), "nothing is joined");
    }

    #[test]
    fn a_value_is_no_kind_of_node() {
        let numbers = "(cost=1 rows=20) (actual time=1..1 rows=200200 loops=1)";
        assert_eq!(
            missed(&format!("-> Single-row index lookup on p  {numbers}")),
            ["Single-row index lookup on k.p"]
        );
        for text in ["Constant 'secret on p'", "Rows (secret, 5 on p"] {
            assert!(missed(&format!("-> {text}  {numbers}")).is_empty(), "{text}");
        }
    }

    #[test]
    fn fewer_rows_where_nobody_asked_for_all_are_no_mistake() {
        let scan =
            "-> Table scan on x  (cost=1981.35 rows=1.9571e+4) (actual time=0.02..0.02 rows=3 loops=1)";
        assert_eq!(missed(scan), ["Table scan on k.x"]);
        for above in ["Limit: 3 row(s)", "Select #2 (subquery in condition; dependent)"] {
            assert!(
                missed(&format!("-> {above}  (actual time=0.1..0.1 rows=3 loops=1)\n    {scan}")).is_empty(),
                "{above}"
            );
        }
        let first = "-> Table scan on p  (cost=1 rows=3) (actual time=1..1 rows=3 loops=1)";
        let semijoin = format!(
            "-> Nested loop semijoin (FirstMatch)  (cost=1 rows=3) (actual time=1..1 rows=3 loops=1)\n    {first}\n    {scan}"
        );
        assert!(missed(&semijoin).is_empty());
    }

    #[test]
    fn what_is_no_plan_is_an_error_with_its_line() {
        let deep: Vec<_> = (0..5000).map(|depth| format!("{:1$}-> Hash", "", depth * INDENTED)).collect();
        let deep = deep.join("\n");
        for (text, why) in [
            ("", "empty"),
            ("Table scan", "line 1: no arrow"),
            ("-> Hash\n            -> Hash", "line 2: indented too far"),
            ("-> Hash (actual time=1..1 loops=1)", "line 1: a number of rows or loops is missing"),
            ("-> Hash\n-> Hash (cost=1 rows=NaN)", "line 2: a number of rows or loops is none"),
            (&deep, "line 201: indented too far"),
        ] {
            let error = parse(text, &Tables::default()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        let line = (0..4_usize, "(Filter: |Table scan on p|Limit|Hash|Nested loop semijoin|Index lookup on p using )[a-z (),:é]{0,9}", "[0-9.eE+-]{1,9}")
            .prop_map(|(depth, text, rows)| format!("{:1$}-> {text} (cost=1 rows={rows}) (actual time=1..2 rows={rows}9 loops=1)", "", depth * 4));
        let lines = prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"));
        let broken =
            (0..JOIN.len(), ".{0,5}").prop_map(|(at, with)| format!("{}{with}{}", &JOIN[..at], &JOIN[at..]));
        prop_oneof![lines, broken, ".{0,200}"]
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in hostile()) {
            let tables = [("p".to_owned(), "k.p".to_owned())].into();
            if let Ok(plan) = parse(&text, &tables) {
                let all = plan.all_misestimated(10.0);
                prop_assert!(all.iter().all(|node| node.missed() >= 10.0 && node.relation.is_some()));
            }
        }
    }
}
