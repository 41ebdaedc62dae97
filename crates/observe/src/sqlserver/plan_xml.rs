//! Plans as SQL Server writes them: XML by the schema "showplan".
//!
//! What is kept for a reader: a line for each operator, what it reads, and by which model the optimizer estimated numbers of rows.
//! What is saved as `.sqlplan` opens in Management Studio, without the statement's values.

use std::fmt::Write;

use kelvin_measure::observation::{QueryPlan, Scan};
use roxmltree::{Document, Node};
use sha2::{Digest, Sha256};

use super::shown_text::shown;

/// Attributes that may hold values of the statement.
const WITH_VALUES: &[&str] = &[
    "ConstValue",
    "Expression",
    "ParameterCompiledValue",
    "ParameterRuntimeValue",
    "ParameterizedText",
    "ScalarString",
    "StatementText",
];

/// The longest text of an attribute that is kept.
const LONGEST: usize = 8000;

/// The plan; none for what is none.
pub(super) fn parse(xml: &str) -> Option<QueryPlan> {
    let document = Document::parse(xml).ok()?;
    let statement = document.descendants().find(|node| node.has_tag_name_anywhere("StmtSimple"))?;
    let root = statement.descendants().find(|node| node.has_tag_name_anywhere("RelOp"))?;
    let mut found = PlanContent::default();
    let of = |name: &str| statement.attribute(name);
    let mut heading = Vec::new();
    heading.extend(of("QueryPlanHash").map(|hash| format!("query_plan_hash {hash}")));
    heading.extend(of("CardinalityEstimationModelVersion").map(|model| format!("{ESTIMATOR}{model}")));
    let degree = statement.descendants().find_map(|node| node.attribute("DegreeOfParallelism"));
    heading.extend(degree.filter(|degree| *degree != "0").map(|degree| format!("{degree} threads")));
    if !heading.is_empty() {
        let _infallible = writeln!(found.text, "{}", heading.join(", "));
    }
    found.walk(root, 0);
    let digest = Sha256::digest(found.shape.as_bytes());
    let mut hash = String::with_capacity(16);
    for byte in digest.iter().take(8) {
        let _infallible = write!(hash, "{byte:02x}");
    }
    Some(QueryPlan { hash, text: found.text.trim_end().to_owned(), scans: found.scans, faster: None })
}

/// What stands before the model's version.
const ESTIMATOR: &str = "cardinality estimator ";

trait Named {
    /// Whether it is an element of this name, whatever the name space.
    fn has_tag_name_anywhere(&self, name: &str) -> bool;
}

impl Named for Node<'_, '_> {
    fn has_tag_name_anywhere(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

#[derive(Default)]
struct PlanContent {
    shape: String,
    text: String,
    scans: Vec<Scan>,
}

impl PlanContent {
    /// Adds an operator and those below it.
    fn walk(&mut self, operator: Node<'_, '_>, depth: usize) {
        let physical = operator.attribute("PhysicalOp").unwrap_or("?");
        // What it reads is named within it, and not within the operators below.
        let object = within(operator).find(|node| node.has_tag_name_anywhere("Object"));
        let name = |of: &str| {
            object.and_then(|object| object.attribute(of)).map(|name| name.replace(['[', ']'], ""))
        };
        let (schema, table, index) = (name("Schema"), name("Table"), name("Index"));
        let relation =
            table.map(|table| schema.map_or_else(|| table.clone(), |schema| format!("{schema}.{table}")));
        let _infallible = write!(
            self.shape,
            "({physical}|{}|{}",
            relation.as_deref().unwrap_or_default(),
            index.as_deref().unwrap_or_default()
        );
        let mut line = physical.to_owned();
        let logical = operator.attribute("LogicalOp").filter(|logical| *logical != physical);
        if let Some(logical) = logical {
            let _infallible = write!(line, " ({logical})");
        }
        if let Some(relation) = &relation {
            let _infallible = write!(line, " on {relation}");
            if let Some(index) = &index {
                let _infallible = write!(line, " using {index}");
            }
        }
        if let Some(rows) = operator.attribute("EstimateRows").and_then(|rows| rows.parse::<f64>().ok()) {
            let _infallible = write!(line, ", {} rows", rows.round());
        }
        if operator.attribute("Parallel").is_some_and(|parallel| matches!(parallel, "1" | "true")) {
            line.push_str(", parallel");
        }
        let _infallible = writeln!(self.text, "{:1$}{line}", "", depth * 2);
        let reads = physical.ends_with("Scan") || physical.ends_with("Seek") || physical.ends_with("Lookup");
        if let Some(relation) = relation.filter(|_| reads) {
            // Named as PostgreSQL's: what reads all of a table is found by it.
            let whole = matches!(physical, "Table Scan" | "Clustered Index Scan" | "Columnstore Index Scan");
            let node = if whole { "Seq Scan" } else { physical };
            self.scans.push(Scan { node: node.to_owned(), relation, index });
        }
        for below in below(operator) {
            self.walk(below, depth + 1);
        }
        self.shape.push(')');
    }
}

/// The elements of an operator, without those of the operators below it.
fn within<'a, 'b: 'a>(operator: Node<'a, 'b>) -> impl Iterator<Item = Node<'a, 'b>> {
    operator.descendants().filter(move |node| operator_of(*node) == Some(operator))
}

fn operator_of<'a, 'b>(node: Node<'a, 'b>) -> Option<Node<'a, 'b>> {
    node.ancestors().skip(1).find(|above| above.has_tag_name_anywhere("RelOp"))
}

/// The operators right below one.
fn below<'a, 'b: 'a>(operator: Node<'a, 'b>) -> impl Iterator<Item = Node<'a, 'b>> {
    within(operator).filter(|node| node.has_tag_name_anywhere("RelOp"))
}

/// The plan's file, with each value of the statement replaced by a question mark.
pub(super) fn without_values(xml: &str) -> String {
    let mut text = String::with_capacity(xml.len());
    let mut rest = xml;
    // An attribute's value has no quotation mark in it: they are written as entities.
    while let Some((before, after)) = rest.split_once("=\"") {
        text.push_str(before);
        text.push_str("=\"");
        let (value, behind) = after.split_once('"').unwrap_or((after, ""));
        let name = before.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
        match name {
            "ConstValue" | "ParameterCompiledValue" | "ParameterRuntimeValue" => text.push('?'),
            name if WITH_VALUES.contains(&name) => text.push_str(&escaped(&shown(&plain(value), LONGEST))),
            _ => text.push_str(value),
        }
        text.push('"');
        rest = behind;
    }
    text.push_str(rest);
    text
}

const ENTITIES: [(&str, &str); 8] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#xd;", "\r"),
    ("&#xa;", "\n"),
    ("&#x9;", "\t"),
    ("&amp;", "&"),
];

fn plain(value: &str) -> String {
    ENTITIES.iter().fold(value.to_owned(), |text, (entity, of)| {
        text.replace(entity, of).replace(&entity.to_uppercase(), of)
    })
}

fn escaped(value: &str) -> String {
    value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"<ShowPlanXML xmlns="http://schemas.microsoft.com/sqlserver/2004/07/showplan" Version="1.564"><BatchSequence><Batch><Statements>
<StmtSimple StatementText="SELECT COUNT(*) FROM stock WHERE s_name = 'hush' AND s_quantity &lt; 12" QueryHash="0x1234" QueryPlanHash="0xABCD" CardinalityEstimationModelVersion="150" ParameterizedText="(@1 int)SELECT 1">
<QueryPlan DegreeOfParallelism="4"><ParameterList><ColumnReference Column="@t" ParameterCompiledValue="(17)"/></ParameterList>
<RelOp PhysicalOp="Stream Aggregate" LogicalOp="Aggregate" EstimateRows="1" Parallel="0"><StreamAggregate>
<RelOp PhysicalOp="Nested Loops" LogicalOp="Inner Join" EstimateRows="200.4" Parallel="1"><NestedLoops>
<RelOp PhysicalOp="Index Seek" LogicalOp="Index Seek" EstimateRows="20"><IndexScan><Object Database="[tpcc]" Schema="[dbo]" Table="[order_line]" Index="[order_line_i1]"/></IndexScan></RelOp>
<RelOp PhysicalOp="Clustered Index Scan" LogicalOp="Clustered Index Scan" EstimateRows="100000"><IndexScan><Object Database="[tpcc]" Schema="[dbo]" Table="[stock]" Index="[stock_i1]"/>
<Predicate><ScalarOperator ScalarString="[s_name]=N'hush' AND [s_quantity]&lt;(12)"><Const ConstValue="(12)"/></ScalarOperator></Predicate></IndexScan></RelOp>
</NestedLoops></RelOp></StreamAggregate></RelOp></QueryPlan></StmtSimple></Statements></Batch></BatchSequence></ShowPlanXML>"#;

    #[test]
    fn a_plan_says_what_it_reads_and_by_which_model() {
        let plan = parse(PLAN).unwrap();
        let lines: Vec<&str> = plan.text.lines().collect();
        assert_eq!(
            lines,
            [
                "query_plan_hash 0xABCD, cardinality estimator 150, 4 threads",
                "Stream Aggregate (Aggregate), 1 rows",
                "  Nested Loops (Inner Join), 200 rows, parallel",
                "    Index Seek on dbo.order_line using order_line_i1, 20 rows",
                "    Clustered Index Scan on dbo.stock using stock_i1, 100000 rows",
            ]
        );
        let scans: Vec<_> =
            plan.scans.iter().map(|scan| (scan.node.as_str(), scan.relation.as_str())).collect();
        assert_eq!(scans, [("Index Seek", "dbo.order_line"), ("Seq Scan", "dbo.stock")]);
        // Estimates and models do not change the way.
        let same = parse(&PLAN.replace("100000", "3").replace("150", "70")).unwrap();
        assert_eq!(same.hash, plan.hash);
        assert_ne!(
            parse(&PLAN.replace("Clustered Index Scan", "Clustered Index Seek")).unwrap().hash,
            plan.hash
        );
        assert_eq!(parse("<ShowPlanXML/>"), None);
        assert_eq!(parse("no plan"), None);
    }

    #[test]
    fn what_is_saved_has_no_values_and_is_the_same_plan() {
        let saved = without_values(PLAN);
        assert!(!saved.contains("hush") && !saved.contains("(12)") && !saved.contains("(17)"), "{saved}");
        assert!(
            saved.contains(
                "StatementText=\"SELECT COUNT(*) FROM stock WHERE s_name = ? AND s_quantity &lt; ?\""
            )
        );
        assert_eq!(parse(&saved), parse(PLAN));
    }
}
