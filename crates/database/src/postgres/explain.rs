//! Plans as `EXPLAIN (VERBOSE, FORMAT JSON)` returns them, with what `ANALYZE` and `BUFFERS` add, and as `auto_explain` logs them as text.

mod conditions;
mod logged;
mod misestimate;

pub use conditions::equal_parameters;

use std::fmt::Write;

use serde_json::Value;

/// A plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The topmost node.
    pub root: Node,
    /// The planner's total cost, in its own units; none in a plan without costs.
    pub cost: Option<f64>,
    /// Time of the execution in milliseconds; none without `ANALYZE`.
    pub execution_ms: Option<f64>,
    /// Milliseconds that all of its processes together spent compiling; none if nothing was compiled.
    pub jit_ms: Option<f64>,
}

/// A node of a plan. Numbers of rows are those of each loop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    /// What it does: "Hash Join".
    pub kind: String,
    /// "Inner", "Semi", "Anti" of a join, otherwise empty.
    pub join: String,
    /// What it is to the node above: "Outer", "Inner", "`SubPlan`", "Member"; empty for the topmost.
    pub relationship: String,
    /// The table that it reads, with its schema.
    pub relation: Option<String>,
    /// The name that the statement has for the table.
    pub alias: Option<String>,
    /// The index that it reads, with its schema.
    pub index: Option<String>,
    /// What its rows must meet, as the server prints it: "((t.a = 1) AND (t.b = 2))". All of them must be met.
    pub conditions: Vec<String>,
    /// Rows that the planner expected.
    pub estimated: f64,
    /// Rows that there were; none without `ANALYZE`.
    pub actual: Option<f64>,
    /// How often it was executed, by all processes; 0 without `ANALYZE`.
    pub loops: f64,
    /// Rows that a filter removed.
    pub removed: f64,
    /// Whether a join looks for the first match only.
    pub is_inner_unique: bool,
    /// Partitions that were left out when the execution began.
    pub partitions_removed: u64,
    /// Parallel workers that it planned for, and that it got; of nodes that start some.
    pub workers: Option<(u64, u64)>,
    /// How it used temporary files: "external merge", "hash in 16 batches".
    pub spill: Option<String>,
    /// Blocks found in shared buffers, read into them, and written to temporary files, with all nodes below.
    pub blocks: [u64; 3],
    /// The nodes that it takes its rows from.
    pub below: Vec<Node>,
}

impl Plan {
    /// Of the text that the server returned; none if it is not a plan.
    pub fn parse(json: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(json).ok()?;
        Self::from_value(value.get(0)?)
    }

    /// Of the object that has the topmost node as "Plan"; none if it has none.
    pub fn from_value(whole: &Value) -> Option<Self> {
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        Some(Self {
            root: Node::parse(whole.get("Plan")?)?,
            cost: number(whole.pointer("/Plan/Total Cost")),
            execution_ms: number(whole.get("Execution Time")),
            jit_ms: number(whole.pointer("/JIT/Timing/Total")),
        })
    }

    /// Nodes, relations and indexes in the plan's order, without costs, values, kinds of join (inner, semi) and strategies (sorted,
    /// hashed).
    pub fn shape(&self) -> String {
        let mut shape = String::new();
        self.root.write_shape(&mut shape);
        shape
    }

    /// Every node, from the top.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut nodes = Vec::new();
        self.root.collect(&mut nodes);
        nodes
    }
}

/// Where a node has its conditions. A bitmap's own is repeated by the scan above it.
const CONDITIONS: [&str; 6] =
    ["Index Cond", "Recheck Cond", "Hash Cond", "Merge Cond", "Join Filter", "Filter"];

impl Node {
    fn parse(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let number = |key: &str| value.get(key).and_then(Value::as_f64);
        let count = |key: &str| value.get(key).and_then(Value::as_u64);
        let kind = text("Node Type")?;
        let qualified =
            |name: &str| text("Schema").map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"));
        let below = value.get("Plans").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Some(Self {
            kind: kind.to_owned(),
            join: text("Join Type").unwrap_or_default().to_owned(),
            relationship: text("Parent Relationship").unwrap_or_default().to_owned(),
            relation: text("Relation Name").map(qualified),
            alias: text("Alias").map(str::to_owned),
            index: text("Index Name").map(qualified),
            conditions: CONDITIONS.iter().filter_map(|key| text(key).map(str::to_owned)).collect(),
            estimated: number("Plan Rows").unwrap_or_default(),
            actual: number("Actual Rows"),
            loops: number("Actual Loops").unwrap_or_default(),
            removed: number("Rows Removed by Filter").unwrap_or_default(),
            is_inner_unique: value.get("Inner Unique").and_then(Value::as_bool) == Some(true),
            partitions_removed: count("Subplans Removed").unwrap_or_default(),
            workers: count("Workers Planned").zip(Some(count("Workers Launched").unwrap_or_default())),
            spill: spill(value),
            blocks: ["Shared Hit Blocks", "Shared Read Blocks", "Temp Written Blocks"]
                .map(|key| count(key).unwrap_or_default()),
            below: below.iter().map(Self::parse).collect::<Option<_>>()?,
        })
    }

    fn write_shape(&self, shape: &mut String) {
        let _infallible = write!(
            shape,
            "({}|{}|{}",
            self.kind,
            self.relation.as_deref().unwrap_or_default(),
            self.index.as_deref().unwrap_or_default()
        );
        self.below.iter().for_each(|node| node.write_shape(shape));
        shape.push(')');
    }

    fn collect<'a>(&'a self, nodes: &mut Vec<&'a Self>) {
        nodes.push(self);
        self.below.iter().for_each(|node| node.collect(nodes));
    }

    /// The first index of a bitmap, in the schema of its relation.
    pub fn bitmap_index(&self, relation: &str) -> Option<String> {
        if let Some(name) = &self.index {
            let schema = relation.split_once('.').map(|(schema, _)| format!("{schema}."));
            return Some(format!("{}{name}", schema.unwrap_or_default()));
        }
        self.below.iter().find_map(|node| node.bitmap_index(relation))
    }

    /// Its name with what it reads: "Seq Scan on public.orders".
    pub fn label(&self) -> String {
        match (&self.relation, &self.index) {
            (Some(relation), Some(index)) => format!("{} on {relation} using {index}", self.kind),
            (Some(relation), None) => format!("{} on {relation}", self.kind),
            (None, Some(index)) => format!("{} using {index}", self.kind),
            (None, None) if self.join.is_empty() || self.join == "Inner" => self.kind.clone(),
            (None, None) => format!("{} ({})", self.kind, self.join.to_lowercase()),
        }
    }
}

/// How a node or one of its workers used temporary files.
fn spill(value: &Value) -> Option<String> {
    let workers = value.get("Workers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    std::iter::once(value).chain(workers).find_map(|one| {
        let count = |key: &str| one.get(key).and_then(Value::as_u64).filter(|count| *count > 1);
        if one.get("Sort Space Type").and_then(Value::as_str) == Some("Disk") {
            return Some(one.get("Sort Method").and_then(Value::as_str)?.to_owned());
        }
        if let Some(batches) = count("Hash Batches") {
            return Some(format!("hash in {batches} batches"));
        }
        count("HashAgg Batches").map(|batches| format!("groups in {batches} batches"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANALYZED: &str = r#"[{"Plan": {"Node Type": "Gather", "Workers Planned": 2, "Workers Launched": 1, "Plan Rows": 10,
        "Actual Rows": 12, "Actual Loops": 1, "Shared Hit Blocks": 7, "Shared Read Blocks": 3, "Temp Written Blocks": 99, "Plans": [
         {"Node Type": "Sort", "Parent Relationship": "Outer", "Plan Rows": 5, "Actual Rows": 6.5, "Actual Loops": 2,
          "Workers": [{"Worker Number": 0, "Sort Method": "external merge", "Sort Space Used": 800, "Sort Space Type": "Disk"}],
          "Plans": [{"Node Type": "Hash Join", "Join Type": "Semi", "Plan Rows": 5, "Plans": [
           {"Node Type": "Seq Scan", "Relation Name": "orders", "Schema": "public", "Alias": "orders_1", "Rows Removed by Filter": 4},
           {"Node Type": "Hash", "Hash Batches": 16, "Plans": [
            {"Node Type": "Index Scan", "Relation Name": "lineitem", "Schema": "public", "Index Name": "l"}]}]}]}]},
        "Execution Time": 12.5, "JIT": {"Functions": 4, "Timing": {"Generation": {"Deform": 0.1, "Total": 1.0}, "Total": 4.0}}}]"#;

    #[test]
    fn a_plan_has_what_its_execution_showed() {
        let plan = Plan::parse(ANALYZED).unwrap();
        assert_eq!((plan.execution_ms, plan.jit_ms), (Some(12.5), Some(4.0)));
        assert_eq!((plan.root.workers, plan.root.blocks), (Some((2, 1)), [7, 3, 99]));
        let nodes = plan.nodes();
        let labels: Vec<String> = nodes.iter().map(|node| node.label()).collect();
        let wanted = [
            "Gather",
            "Sort",
            "Hash Join (semi)",
            "Seq Scan on public.orders",
            "Hash",
            "Index Scan on public.lineitem using public.l",
        ];
        assert_eq!(labels, wanted);
        let spills: Vec<_> = nodes.iter().filter_map(|node| node.spill.as_deref()).collect();
        assert_eq!(spills, ["external merge", "hash in 16 batches"]);
        assert_eq!((nodes[1].actual, nodes[3].removed), (Some(6.5), 4.0));
        assert!(plan.shape().starts_with("(Gather||(Sort||(Hash Join||(Seq Scan|public.orders|)"));
    }

    #[test]
    fn what_is_no_plan_is_none() {
        for bad in ["", "[]", "{}", "[{\"Plan\": 1}]", "[{\"Plan\": {\"Plans\": []}}]"] {
            assert_eq!(Plan::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(text in ".{0,200}") {
            let _ = Plan::parse(&text);
        }
    }
}
