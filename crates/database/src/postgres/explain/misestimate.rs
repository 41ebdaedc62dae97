//! Where a plan had other numbers of rows than the planner expected.

use super::{Node, Plan};

/// Rows below which a wrong estimate costs nothing.
const ROWS: f64 = 1000.0;
/// A node that missed by so much is the cause of what the nodes above it miss.
const MISSED: f64 = 100.0;

impl Plan {
    /// The lowest node that missed its rows by 100 times, of several the one that missed by most; otherwise the one that missed by
    /// most. Only nodes of 1000 rows or more in all of their loops count. `is_partial`: whoever executed it may not have asked for all of
    /// its rows.
    pub fn misestimated(&self, is_partial: bool) -> Option<&Node> {
        worst(&self.root, is_partial)
    }

    /// All nodes that missed their rows by so many times, in the plan's order, of a plan that was executed to its end. Only nodes of 1000
    /// rows or more in all of their loops count.
    pub fn all_misestimated(&self, times: f64) -> Vec<&Node> {
        let mut found = Vec::new();
        collect(&self.root, false, times, &mut found);
        found
    }
}

fn collect<'a>(node: &'a Node, is_partial: bool, times: f64, found: &mut Vec<&'a Node>) {
    if is_misestimated(node, is_partial) && node.missed() >= times {
        found.push(node);
    }
    for below in &node.below {
        collect(below, may_end_early(node, below, is_partial), times, found);
    }
}

impl Node {
    /// How many times as many rows as expected there were, or as many expected as there were; no number of rows is below one.
    pub fn missed(&self) -> f64 {
        let (estimated, actual) = (self.estimated.max(1.0), self.actual.unwrap_or_default().max(1.0));
        (estimated / actual).max(actual / estimated)
    }
}

fn worst(node: &Node, is_partial: bool) -> Option<&Node> {
    let more = |a: &&Node, b: &&Node| a.missed().total_cmp(&b.missed());
    let below = node.below.iter().filter_map(|below| worst(below, may_end_early(node, below, is_partial)));
    let below = below.max_by(more);
    if below.is_some_and(|found| found.missed() >= MISSED) {
        return below;
    }
    below.into_iter().chain(is_misestimated(node, is_partial).then_some(node)).max_by(more)
}

fn is_misestimated(node: &Node, is_partial: bool) -> bool {
    let Some(actual) = node.actual.filter(|_| node.loops > 0.0) else { return false };
    let matters = actual.max(node.estimated) * node.loops >= ROWS;
    // These return a bitmap, and no rows.
    let has_rows = !matches!(node.kind.as_str(), "BitmapAnd" | "BitmapOr");
    matters && has_rows && (actual >= node.estimated || !is_partial)
}

/// Whether a node may stop asking one below it for rows before it has all of them.
fn may_end_early(node: &Node, below: &Node, is_partial: bool) -> bool {
    let looks_for_one = node.is_inner_unique || matches!(node.join.as_str(), "Semi" | "Anti");
    match node.kind.as_str() {
        // They take all rows before they return one.
        "Sort" | "Hash" => false,
        "Limit" | "Merge Join" => true,
        // With nothing in the hash, no row of the other side can match.
        "Hash Join" if below.relationship == "Outer" && node.below.iter().any(is_empty_hash) => true,
        "Nested Loop" if below.relationship == "Inner" && looks_for_one => true,
        _ => is_partial || matches!(below.relationship.as_str(), "SubPlan" | "InitPlan"),
    }
}

fn is_empty_hash(node: &Node) -> bool {
    node.relationship == "Inner" && node.actual == Some(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, estimated: f64, actual: f64, below: Vec<Node>) -> Node {
        let actual = Some(actual);
        Node { kind: kind.into(), estimated, actual, loops: 1.0, below, ..Node::default() }
    }

    fn named(found: Option<&Node>) -> (String, f64) {
        found.map(|found| (found.label(), found.missed())).unwrap()
    }

    #[test]
    fn the_lowest_node_that_missed_is_named() {
        let scan = node("Seq Scan", 10.0, 5000.0, Vec::new());
        let join = node("Hash Join", 1.0, 5000.0, vec![scan.clone(), node("Hash", 3.0, 3.0, Vec::new())]);
        assert_eq!(named(worst(&join, false)), ("Seq Scan".into(), 500.0));
        let nearly = node("Seq Scan", 100.0, 5000.0, Vec::new());
        let join = node("Hash Join", 1.0, 5000.0, vec![nearly]);
        assert_eq!(named(worst(&join, false)), ("Hash Join".into(), 5000.0));
        let plan = |root| super::super::Plan { root, ..Default::default() };
        let both = plan(join.clone());
        let all =
            |times| both.all_misestimated(times).iter().map(|node| node.kind.clone()).collect::<Vec<_>>();
        assert_eq!(all(10.0), ["Hash Join", "Seq Scan"]);
        assert_eq!(all(100.0), ["Hash Join"]);
        // Few rows are no matter.
        assert_eq!(worst(&node("Seq Scan", 1.0, 500.0, Vec::new()), false), None);
    }

    #[test]
    fn rows_that_nobody_asked_for_are_no_mistake() {
        let scan = || node("Index Scan", 1e6, 10.0, Vec::new());
        let limit = node("Limit", 10.0, 10.0, vec![scan()]);
        assert_eq!(worst(&limit, false), None);
        assert_eq!(worst(&node("Merge Join", 10.0, 10.0, vec![scan()]), false), None);
        let mut inner = scan();
        inner.relationship = "Inner".into();
        let mut join = node("Nested Loop", 10.0, 10.0, vec![inner]);
        assert_eq!(named(worst(&join, false)).1, 1e5);
        join.join = "Semi".into();
        assert_eq!(worst(&join, false), None);
        // A sort has taken all of them, and more rows than expected are more than expected.
        let sorted = node("Limit", 10.0, 10.0, vec![node("Sort", 10.0, 10.0, vec![scan()])]);
        assert_eq!(named(worst(&sorted, false)), ("Index Scan".into(), 1e5));
        let more = node("Limit", 10.0, 10.0, vec![node("Index Scan", 10.0, 1e6, Vec::new())]);
        assert_eq!(named(worst(&more, false)).1, 1e5);
        let mut empty = node("Hash", 10.0, 0.0, Vec::new());
        empty.relationship = "Inner".into();
        let outer = Node { relationship: "Outer".into(), ..scan() };
        assert_eq!(worst(&node("Hash Join", 10.0, 0.0, vec![outer, empty]), false), None);
        let never = Node { loops: 0.0, ..scan() };
        assert_eq!(worst(&never, false), None);
    }
}
