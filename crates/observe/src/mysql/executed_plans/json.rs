//! MariaDB's plans.

use kelvin_database::postgres::explain::{Node, Plan};
use serde_json::Value;

use super::{Tables, filter, partial};

/// The plan of the text that the server returned. `is_limited`: the statement may stop before it has all rows.
///
/// # Errors
/// Why it is no plan.
pub(in crate::mysql) fn parse(text: &str, tables: &Tables, is_limited: bool) -> Result<Plan, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let block = value.get("query_block").filter(|block| block.is_object()).ok_or("it has no query_block")?;
    let kind = if is_limited { "Limit" } else { "" };
    let root = Node { kind: kind.into(), below: nodes(block, tables, false), ..Node::default() };
    let took = block.get("r_total_time_ms").and_then(Value::as_f64);
    Ok(Plan { root, execution_ms: took, ..Plan::default() })
}

/// The nodes of an object or a list.
fn nodes(value: &Value, tables: &Tables, is_joined: bool) -> Vec<Node> {
    match value {
        Value::Object(object) => {
            let of = |(name, inner): (&String, &Value)| node(name, inner, tables, is_joined);
            object.iter().flat_map(of).collect()
        }
        Value::Array(all) => all.iter().flat_map(|one| nodes(one, tables, is_joined)).collect(),
        _ => Vec::new(),
    }
}

fn node(name: &str, inner: &Value, tables: &Tables, is_joined: bool) -> Vec<Node> {
    let around = |kind: &str, relationship: &str| {
        let below = nodes(inner, tables, is_joined);
        vec![Node { kind: kind.into(), relationship: relationship.into(), below, ..Node::default() }]
    };
    match name {
        "table" => vec![table(inner, tables, is_joined)],
        "nested_loop" => nodes(inner, tables, is_joined || inner.as_array().is_some_and(|all| all.len() > 1)),
        // It takes all rows before it returns one.
        "filesort" => around("Sort", ""),
        "subqueries" => around("", "SubPlan"),
        _ => nodes(inner, tables, is_joined),
    }
}

fn table(value: &Value, tables: &Tables, is_joined: bool) -> Node {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let number = |key: &str| value.get(key).and_then(Value::as_f64).filter(|number| *number >= 0.0);
    let has = |key: &str| value.get(key).is_some_and(|value| *value != Value::Bool(false));
    let alias = text("table_name").unwrap_or_default();
    let relation = tables.get(alias).cloned();
    let (estimated, actual) = (number("rows"), number("r_rows"));
    let pages = value.pointer("/r_engine_stats/pages_accessed").and_then(Value::as_u64);
    let scan = Node {
        kind: access(text("access_type").unwrap_or_default()).into(),
        index: text("key").map(str::to_owned),
        alias: Some(alias.to_owned()),
        conditions: text("index_condition").map(str::to_owned).into_iter().collect(),
        estimated: estimated.unwrap_or_default(),
        actual: actual.filter(|_| relation.is_some() && estimated.is_some()),
        loops: number("r_loops").unwrap_or_default(),
        blocks: [pages.unwrap_or_default(), 0, 0],
        // What is materialized for it.
        below: nodes(value, tables, is_joined),
        relation,
        ..Node::default()
    };
    let rows = number("filtered").map(|share| scan.estimated * share / 100.0);
    let found = actual.zip(number("r_filtered")).map(|(rows, share)| rows * share / 100.0);
    // The estimate is that of the index, before they leave out some of its rows.
    let narrowed = has("index_condition") || has("rowid_filter");
    let condition = text("attached_condition");
    let read = if let (Some(condition), Some(rows)) = (condition, rows) {
        let mut filtered = filter(condition, (rows, found), is_joined, scan);
        if narrowed {
            filtered.below = filtered.below.into_iter().map(partial).collect();
        }
        filtered
    } else if narrowed {
        partial(scan)
    } else {
        scan
    };
    let ends_early = ["first_match", "loose_scan", "not_exists", "distinct"].into_iter().any(has);
    if ends_early { partial(read) } else { read }
}

/// How a table is read, in the words of MySQL's plans.
fn access(kind: &str) -> &str {
    match kind {
        "ALL" => "Table scan",
        "index" => "Index scan",
        "range" => "Index range scan",
        "ref" | "ref_or_null" | "eq_ref" => "Index lookup",
        "index_merge" => "Index merge",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As MariaDB 10.11 returned it, with other numbers.
    const JOIN: &str = r#"{"query_optimization": {"r_total_time_ms": 0.1}, "query_block": {"select_id": 1, "r_loops": 1, "r_total_time_ms": 42.5,
      "nested_loop": [
       {"read_sorted_file": {"r_rows": 5, "filesort": {"sort_key": "p.pad", "r_loops": 1, "table": {
        "table_name": "p", "access_type": "ALL", "r_loops": 1, "rows": 200, "r_rows": 200200, "r_engine_stats": {"pages_accessed": 1432},
        "filtered": 100, "r_filtered": 5, "attached_condition": "p.pad = 'x'"}}}},
       {"table": {"table_name": "o", "access_type": "ref", "key": "i", "r_loops": 200, "rows": 10, "r_rows": 3000,
        "filtered": 100, "r_filtered": 100}},
       {"block-nl-join": {"table": {"table_name": "<derived2>", "access_type": "ALL", "r_loops": 1, "rows": 1, "r_rows": 100000, "filtered": 100,
        "r_filtered": 100, "materialized": {"query_block": {"select_id": 2, "nested_loop": [
         {"table": {"table_name": "u", "access_type": "index", "key": "a", "r_loops": 1, "rows": 1, "r_rows": 5000, "filtered": 100,
          "r_filtered": 1, "attached_condition": "u.a > 3"}}]}}}, "buffer_type": "flat"}},
       {"table": {"table_name": "c", "access_type": "const", "r_loops": 0, "rows": 1, "r_rows": null, "filtered": 100, "r_filtered": null}}],
      "subqueries": [{"query_block": {"select_id": 3, "nested_loop": [
       {"table": {"table_name": "s", "access_type": "ALL", "r_loops": 1, "rows": 20000, "r_rows": 1, "filtered": 100, "r_filtered": 100}}]}}]}}"#;

    fn missed(text: &str, is_limited: bool) -> Vec<String> {
        let tables = ["p", "o", "u", "c", "s"].map(|name| (name.to_owned(), format!("k.{name}"))).into();
        let plan = parse(text, &tables, is_limited).unwrap();
        plan.all_misestimated(10.0).iter().map(|node| node.label()).collect()
    }

    #[test]
    fn tables_and_conditions_that_missed_are_named() {
        let all = [
            "Filter on k.p",
            "Table scan on k.p",
            "Index lookup on k.o using i",
            "Index scan on k.u using a",
        ];
        assert_eq!(missed(JOIN, false), all);
        assert_eq!(missed(JOIN, true), all, "more rows than expected");
        let plan = parse(JOIN, &Tables::default(), false).unwrap();
        assert_eq!(
            (plan.execution_ms, plan.all_misestimated(10.0)),
            (Some(42.5), Vec::new()),
            "no table is known"
        );
    }

    #[test]
    fn fewer_rows_where_nobody_asked_for_all_are_no_mistake() {
        let scan = |more: &str| {
            format!(
                r#"{{"query_block": {{"nested_loop": [{{"table": {{"table_name": "p", "access_type": "ALL", "r_loops": 1, "rows": 200000,
                "r_rows": 10, "filtered": 100, "r_filtered": 100{more}}}}}]}}}}"#
            )
        };
        assert_eq!(missed(&scan(""), false), ["Table scan on k.p"]);
        assert!(missed(&scan(""), true).is_empty());
        for more in [
            r#", "first_match": "o""#,
            r#", "distinct": true"#,
            r#", "index_condition": "p.a < 5""#,
            r#", "rowid_filter": {"rows": 5}"#,
        ] {
            assert!(missed(&scan(more), false).is_empty(), "{more}");
        }
    }

    #[test]
    fn what_is_no_plan_is_an_error() {
        for (text, why) in [
            ("", "EOF"),
            ("[]", "no query_block"),
            ("{\"query_block\": 5}", "no query_block"),
            ("{\"a\"", "column"),
        ] {
            let error = parse(text, &Tables::default(), false).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let deep = format!("{}{}", "{\"query_block\":".repeat(500), "}".repeat(500));
        assert!(parse(&deep, &Tables::default(), false).unwrap_err().contains("recursion limit"));
    }

    /// Any object, and a real plan with any bytes in it.
    fn hostile() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            Just("null"),
            Just("-1e308"),
            Just("\"p\""),
            Just("[{}]"),
            Just("true"),
            Just("18446744073709551615")
        ];
        let key = prop::sample::select(vec![
            "table",
            "rows",
            "r_rows",
            "r_loops",
            "filtered",
            "r_filtered",
            "table_name",
            "nested_loop",
            "attached_condition",
            "r_engine_stats",
        ]);
        let pairs = prop::collection::vec((key, value), 0..12);
        let object = pairs.prop_map(|all| {
            let all: Vec<String> = all.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
            format!("{{\"query_block\": {{\"nested_loop\": [{{\"table\": {{{}}}}}, {{}}]}}}}", all.join(", "))
        });
        let broken = (0..JOIN.len(), ".{0,5}").prop_map(|(at, with)| {
            let mut text = JOIN.to_owned();
            let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.insert_str(at, &with);
            text
        });
        prop_oneof![object, broken, ".{0,200}"]
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in hostile()) {
            let tables = [("p".to_owned(), "k.p".to_owned())].into();
            if let Ok(plan) = parse(&text, &tables, false) {
                let all = plan.all_misestimated(10.0);
                prop_assert!(all.iter().all(|node| node.missed() >= 10.0 && node.relation.is_some()));
            }
        }
    }
}
