//! Plans in `auto_explain`'s text format, which servers have by default.
//!
//! The text has no escapes: a statement, a name or a value can have lines that look like parts of a plan. A text with two topmost nodes
//! is therefore no plan, quotes are followed across lines, and a node that is not understood makes all of the text no plan.

use super::{CONDITIONS, Node, Plan};

impl Plan {
    /// Of the text that `auto_explain` logs, without the tabs before its lines: the statement and its plan; none if it is not a plan,
    /// or not clearly one.
    ///
    /// Facts are those of [`Plan::from_value`], but for `is_inner_unique`: the text has it with VERBOSE only. Without it, it is set at each nested
    /// loop, as rows that may have been left unread are no mistake of the planner.
    pub fn of_logged_text(text: &str) -> Option<(String, Self)> {
        let text = text.strip_prefix("Query Text: ")?;
        let mut at = 0;
        let mut topmost = None;
        for line in text.split_inclusive('\n') {
            if !line.starts_with(' ')
                && let Some(found) = node(line.trim_end_matches('\n'))
            {
                if topmost.is_some() {
                    return None;
                }
                topmost = Some((at, at + line.len(), found));
            }
            at += line.len();
        }
        let (begin, end, (root, cost)) = topmost?;
        let statement = text.get(..begin)?;
        let statement =
            statement.split("\nQuery Parameters: ").next().unwrap_or_default().trim_end_matches('\n');
        let mut tree =
            Tree { open: vec![Open { node: root, column: 2, relationship: "" }], ..Tree::default() };
        for line in Whole(text.get(end..)?.lines()) {
            tree.line(&line)?;
        }
        let jit_ms = tree.jit_ms;
        Some((
            statement.to_owned(),
            Self { root: tree.finish()?, cost: Some(cost), execution_ms: None, jit_ms },
        ))
    }
}

/// Lines, those within quotes joined with the line in which the quotes are opened.
struct Whole<'a>(std::str::Lines<'a>);

impl Iterator for Whole<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut whole = self.0.next()?.to_owned();
        let mut quote = open_quote(&whole, None);
        while quote.is_some()
            && let Some(line) = self.0.next()
        {
            quote = open_quote(line, quote);
            whole.push('\n');
            whole.push_str(line);
        }
        Some(whole)
    }
}

/// The quote that is open at the end; the server doubles those within.
fn open_quote(line: &str, mut quote: Option<char>) -> Option<char> {
    for c in line.chars().filter(|c| matches!(c, '\'' | '"')) {
        match quote {
            None => quote = Some(c),
            Some(open) if open == c => quote = None,
            Some(_) => {}
        }
    }
    quote
}

/// A node whose lines are not over.
struct Open {
    node: Node,
    /// Where its properties and the arrows of the nodes below begin.
    column: usize,
    /// Of the nodes that follow with a further indent, under a heading.
    relationship: &'static str,
}

#[derive(Default)]
struct Tree {
    /// From the topmost; empty within what follows the plan.
    open: Vec<Open>,
    root: Option<Node>,
    is_verbose: bool,
    jit_ms: Option<f64>,
}

impl Tree {
    /// Takes a line after the topmost node's; none if the text is not a plan.
    fn line(&mut self, line: &str) -> Option<()> {
        let text = line.trim_start_matches(' ');
        let column = line.len() - text.len();
        if column == 0 {
            self.close(0);
        }
        if self.root.is_some() {
            let total = text.strip_prefix("Timing: ").and_then(|times| times.rsplit_once(", Total "));
            if let Some(total) = total.and_then(|(_, total)| number(total.strip_suffix(" ms")?)) {
                self.jit_ms = Some(total);
            }
            return Some(());
        }
        if open_quote(text, None).is_some() {
            return None;
        }
        if let Some(text) = text.strip_prefix("->  ") {
            self.close(column);
            let above = self.open.last_mut()?;
            let (mut node, _) = node(text)?;
            node.relationship.push_str(match column - above.column {
                0 => relationship(&above.node),
                2 if !above.relationship.is_empty() => above.relationship,
                _ => return None,
            });
            self.open.push(Open { node, column: column + 6, relationship: "" });
            return Some(());
        }
        let open = self.open.iter_mut().rev().find(|open| open.column <= column)?;
        if open.column < column {
            // Of a worker.
            open.node.spilled(text);
        } else if text.starts_with("InitPlan ") || text.starts_with("CTE ") {
            open.relationship = "InitPlan";
        } else if text.starts_with("SubPlan ") {
            open.relationship = "SubPlan";
        } else {
            self.is_verbose |= text.starts_with("Output: ") || text.starts_with("Inner Unique: ");
            open.node.property(text);
        }
        Some(())
    }

    /// Closes the nodes whose properties begin after this column.
    fn close(&mut self, column: usize) {
        while let Some(mut last) = self.open.pop_if(|open| open.column > column) {
            last.node.conditions.sort_by_key(|condition| rank(condition));
            for condition in &mut last.node.conditions {
                *condition = condition.split_once(": ").map_or_else(String::new, |(_, text)| text.to_owned());
            }
            match self.open.last_mut() {
                Some(above) => above.node.below.push(last.node),
                None => self.root = Some(last.node),
            }
        }
    }

    fn finish(mut self) -> Option<Node> {
        self.close(0);
        let mut root = self.root?;
        if !self.is_verbose {
            assume_unique(&mut root);
        }
        Some(root)
    }
}

fn assume_unique(node: &mut Node) {
    node.is_inner_unique = node.kind == "Nested Loop";
    node.below.iter_mut().for_each(assume_unique);
}

/// Where a condition with its name stands among others.
fn rank(condition: &str) -> Option<usize> {
    let (name, _) = condition.split_once(": ")?;
    CONDITIONS.iter().position(|known| *known == name)
}

/// What the next node is to the one above it, which the text shows by its place only.
fn relationship(above: &Node) -> &'static str {
    let is_first =
        || above.below.iter().all(|below| matches!(below.relationship.as_str(), "InitPlan" | "SubPlan"));
    match above.kind.as_str() {
        "Append" | "Merge Append" | "BitmapAnd" | "BitmapOr" => "Member",
        "Subquery Scan" => "Subquery",
        _ if is_first() => "Outer",
        _ => "Inner",
    }
}

impl Node {
    fn property(&mut self, text: &str) {
        if rank(text).is_some() {
            self.conditions.push(text.to_owned());
            return;
        }
        if let Some(worker) = text.strip_prefix("Worker ") {
            self.spilled(worker.split_once(":  ").map_or("", |(_, text)| text));
            return;
        }
        self.spilled(text);
        let Some((name, value)) = text.split_once(": ") else { return };
        let count = || value.parse().unwrap_or_default();
        match name {
            "Rows Removed by Filter" => self.removed = number(value).unwrap_or_default(),
            "Inner Unique" => self.is_inner_unique = value == "true",
            "Subplans Removed" => self.partitions_removed = count(),
            "Workers Planned" => self.workers = Some((count(), 0)),
            "Workers Launched" => self.workers = self.workers.map(|(planned, _)| (planned, count())),
            "Buffers" => self.blocks = blocks(value),
            _ => {}
        }
    }

    /// Takes from a property how it used temporary files, the first that says so.
    fn spilled(&mut self, text: &str) {
        let sort = || {
            text.strip_prefix("Sort Method: ")?.split_once("  Disk: ").map(|(method, _)| method.to_owned())
        };
        let batches = || {
            let (_, after) = text.split_once("Batches: ")?;
            let batches: u64 = after.split(' ').next()?.parse().ok().filter(|batches| *batches > 1)?;
            match self.kind.as_str() {
                "Hash" => Some(format!("hash in {batches} batches")),
                "Aggregate" => Some(format!("groups in {batches} batches")),
                _ => None,
            }
        };
        if self.spill.is_none() {
            self.spill = sort().or_else(batches);
        }
    }
}

/// Of "shared hit=7 read=3, temp read=1 written=99".
fn blocks(text: &str) -> [u64; 3] {
    let of = |pool: &str, name: &str| {
        let pool = text.split(", ").find_map(|one| one.strip_prefix(pool));
        let count = pool.and_then(|pool| pool.split(' ').find_map(|word| word.strip_prefix(name)));
        count.and_then(|count| count.parse().ok()).unwrap_or_default()
    };
    [of("shared ", "hit="), of("shared ", "read="), of("temp ", "written=")]
}

/// A number as the server prints it.
fn number(text: &str) -> Option<f64> {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| text.parse().ok())?
}

/// A node's line without its arrow, with the planner's total cost. Nothing may follow the numbers, and names come before them.
fn node(line: &str) -> Option<(Node, f64)> {
    let (title, numbers) = line.rsplit_once("  (cost=")?;
    let (costs, rest) = numbers.split_once(" rows=")?;
    let (rows, rest) = rest.split_once(" width=")?;
    let (width, rest) = rest.split_once(')')?;
    number(width)?;
    let (actual, loops) = match rest.strip_prefix(" (actual ") {
        Some(actual) => {
            let (before, loops) = actual.strip_suffix(')')?.split_once(" loops=")?;
            // After the times, where they are measured.
            let rows = match before.strip_prefix("time=") {
                Some(times) => times.split_once(' ')?.1,
                None => before,
            };
            (Some(number(rows.strip_prefix("rows=")?)?), number(loops)?)
        }
        None if rest == " (never executed)" => (Some(0.0), 0.0),
        None if rest.is_empty() => (None, 0.0),
        None => return None,
    };
    let node = Node { estimated: number(rows)?, actual, loops, ..titled(title)? };
    Some((node, number(costs.split_once("..")?.1)?))
}

/// A node of which only what it is and reads is known: "Index Scan Backward using i on public.t a".
fn titled(title: &str) -> Option<Node> {
    let names_at = |word: &str| title.find(word).unwrap_or(title.len());
    let (head, names) = title.split_at_checked(names_at(" using ").min(names_at(" on ")))?;
    let head = head.strip_prefix("Parallel ").unwrap_or(head);
    let head = head.strip_prefix("Async ").unwrap_or(head);
    let head = head.strip_suffix(" Backward").unwrap_or(head);
    let (kind, join) = kind(head)?;
    let mut node = Node { kind: kind.to_owned(), join: join.to_owned(), ..Node::default() };
    let names = match names.strip_prefix(" using ") {
        Some(names) => {
            let (index, rest) = name(names)?;
            node.index = Some(index);
            rest
        }
        None => names,
    };
    let Some(names) = names.strip_prefix(" on ") else { return names.is_empty().then_some(node) };
    let (mut read, mut rest) = name(names)?;
    if kind == "Bitmap Index Scan" {
        node.index = Some(read);
        return rest.is_empty().then_some(node);
    }
    let mut schema = None;
    if let Some(after) = rest.strip_prefix('.') {
        let (object, after) = name(after)?;
        schema = Some(std::mem::replace(&mut read, object));
        rest = after;
    }
    let alias = match rest.strip_prefix(' ') {
        Some(alias) => {
            let (alias, after) = name(alias)?;
            rest = after;
            alias
        }
        None => read.clone(),
    };
    if !rest.is_empty() {
        return None;
    }
    node.alias = Some(alias);
    let qualified =
        |name: String| schema.as_ref().map_or_else(|| name.clone(), |schema| format!("{schema}.{name}"));
    node.index = node.index.map(qualified);
    // Others read functions, subqueries, and tables that exist within the statement only.
    let reads_table = matches!(
        kind,
        "Seq Scan"
            | "Sample Scan"
            | "Index Scan"
            | "Index Only Scan"
            | "Bitmap Heap Scan"
            | "Tid Scan"
            | "Tid Range Scan"
            | "Foreign Scan"
            | "Custom Scan"
            | "ModifyTable"
    );
    node.relation = reads_table.then(|| qualified(read));
    Some(node)
}

/// The kind of a node and of a join as in JSON, where strategies are apart; none if it is no name of a node.
fn kind(head: &str) -> Option<(&str, &str)> {
    let plain = head.strip_prefix("Partial ").or_else(|| head.strip_prefix("Finalize ")).unwrap_or(head);
    let first = head.split(' ').next()?;
    if let Some(joined) = head.strip_suffix(" Join") {
        for kind in ["Nested Loop", "Hash Join", "Merge Join"] {
            if let Some(join) = joined.strip_prefix(kind.trim_end_matches(" Join")) {
                return Some((kind, if join.is_empty() { "Inner" } else { join.strip_prefix(' ')? }));
            }
        }
        return None;
    }
    let kind = match plain {
        "Nested Loop" => return Some((plain, "Inner")),
        "Aggregate" | "GroupAggregate" | "HashAggregate" | "MixedAggregate" => "Aggregate",
        "Insert" | "Update" | "Delete" | "Merge" => "ModifyTable",
        "Foreign Insert" | "Foreign Update" | "Foreign Delete" => "Foreign Scan",
        _ if matches!(first, "SetOp" | "HashSetOp" | "MergeSetOp") => "SetOp",
        _ if head.starts_with("Custom Scan (") => "Custom Scan",
        _ if !head.is_empty() && head.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ') => head,
        _ => return None,
    };
    Some((kind, ""))
}

/// A name, in quotes if it needs them, and what follows it.
fn name(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([' ', '.']).unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end)?;
        return (!name.is_empty()).then(|| (name.to_owned(), rest));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        let Some(next) = after.strip_prefix('"') else { return Some((name, after)) };
        name.push('"');
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As PostgreSQL 18 writes it.
    const LOGGED: &str = r#"Query Text: SELECT 'a
  b' FROM parts
Query Parameters: $1 = '7'
Limit  (cost=1.00..9.50 rows=2 width=8) (actual time=79.080..95.897 rows=2.00 loops=1)
  Buffers: shared hit=2115 read=3 dirtied=1, temp read=4 written=9
  CTE c
    ->  Parallel Seq Scan on public."par""ts" p  (cost=0.00..1.00 rows=422 width=40) (actual rows=2.50 loops=2)
          Output: p.a
          Filter: (p.f <> 'a''
  ->  Seq Scan on x  (cost=0.00..1.00 rows=1 width=4) (never executed)
b'::text)
          Rows Removed by Filter: 101
          Worker 0:  actual time=0.1..0.2 rows=1.00 loops=1
            Sort Method: external merge  Disk: 80kB
  ->  Nested Loop Left Join  (cost=0.00..3.00 rows=420 width=8) (actual time=0.1..0.2 rows=0.00 loops=1)
        Join Filter: (a = b)
        ->  CTE Scan on c  (cost=0.00..1.00 rows=5 width=8) (actual time=0.1..0.2 rows=0.00 loops=1)
        ->  Index Scan Backward using i on public.t  (cost=0.00..1.00 rows=7 width=8) (never executed)
              Index Cond: (id = c.id)
Settings: work_mem = '64kB'
JIT:
  Functions: 4
  Timing: Generation 0.1 ms (Deform 0.1 ms), Inlining 0.0 ms, Optimization 0.2 ms, Emission 1.0 ms, Total 1.3 ms
"#;

    #[test]
    fn a_plan_as_text_has_its_nodes_and_what_they_did() {
        let (statement, plan) = Plan::of_logged_text(LOGGED).unwrap();
        assert_eq!(statement, "SELECT 'a\n  b' FROM parts");
        assert_eq!((plan.cost, plan.jit_ms, plan.root.blocks), (Some(9.5), Some(1.3), [2115, 3, 9]));
        let nodes = plan.nodes();
        let found: Vec<_> = nodes
            .iter()
            .map(|node| (node.label(), node.relationship.as_str(), node.actual, node.loops))
            .collect();
        let wanted = [
            ("Limit", "", Some(2.0), 1.0),
            ("Seq Scan on public.par\"ts", "InitPlan", Some(2.5), 2.0),
            ("Nested Loop (left)", "Outer", Some(0.0), 1.0),
            ("CTE Scan", "Outer", Some(0.0), 1.0),
            ("Index Scan on public.t using public.i", "Inner", Some(0.0), 0.0),
        ];
        assert_eq!(found, wanted.map(|(label, to, rows, loops)| (label.to_owned(), to, rows, loops)));
        assert_eq!(nodes[1].conditions.len(), 1);
        assert!(nodes[1].conditions[0].ends_with("(never executed)\nb'::text)"));
        assert_eq!((nodes[1].removed, nodes[1].spill.as_deref()), (101.0, Some("external merge")));
        assert_eq!((nodes[1].alias.as_deref(), nodes[4].alias.as_deref()), (Some("p"), Some("t")));
        assert!(!nodes[2].is_inner_unique, "it is verbose");
        let (_, terse) = Plan::of_logged_text(&LOGGED.replace("Output: p.a", "x")).unwrap();
        assert!(terse.nodes()[2].is_inner_unique, "it may be");
    }

    #[test]
    fn what_is_not_clearly_a_plan_is_none() {
        let second = "Seq Scan on y  (cost=0.00..1.00 rows=1 width=4)\n";
        for bad in [
            "",
            "Query Text: select 1\n",
            "Query Text: \"select 1\"\nPlan: \n  Node Type: \"Result\"\n",
            &format!("Query Text: /*\n{second}*/\n{}", LOGGED.split_once("Query Parameters").unwrap().1),
            &format!("{LOGGED}{second}"),
            &LOGGED.replace("  ->  Nested", "   ->  Nested"),
            &LOGGED.replace("  ->  Nested", "    ->  Nested"),
            &LOGGED.replace("b'::text)", "b::text)"),
            &LOGGED.replace("rows=7 width", "rows=inf width"),
            &LOGGED.replace("(never executed)\n   ", "(never)\n   "),
        ] {
            assert_eq!(Plan::of_logged_text(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(
            lines in proptest::collection::vec(
                "( {0,14}(->  )?(Parallel |SubPlan |CTE |Worker 0:  )?([\"'é]|Hash Join|Seq Scan on |Index Scan using |t|\\.| ){0,5}\
                 (  \\(cost=0..1 rows=[0-9.]{0,4} width=4\\)( \\(actual rows=[0-9.]{1,4} loops=2\\))?)?)|.{0,30}",
                0..20,
            ),
            from in 0..LOGGED.len(),
            cut in ".{0,5}",
        ) {
            let _ = Plan::of_logged_text(&format!("Query Text: x\nSort  (cost=0..1 rows=1 width=4)\n{}\n", lines.join("\n")));
            let _ = Plan::of_logged_text(&format!("{}{cut}{}", &LOGGED[..from], &LOGGED[from..]));
        }

        #[test]
        fn a_name_in_quotes_comes_back(wanted in "[ \"a.é\n'(]{1,9}", rest in "[ .a]{0,3}") {
            let text = format!("\"{}\"{rest}", wanted.replace('"', "\"\""));
            prop_assert_eq!(name(&text), Some((wanted, &rest[..])));
        }
    }
}
