//! Kelvin's JSON has fio's fields, in fio's order, with fio's types: checked against the schema that `derive.py` made
//! from real outputs of fio 3.33. Kelvin's additions are under `kelvin` and nowhere else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../output/support.rs"]
mod support;

use std::collections::BTreeSet;
use std::fmt;

use kelvin_fio::job::{Mixed, SteadyFigure, SteadyState};
use kelvin_fio::output::json;
use kelvin_fio::result::{JobsOutcome, SteadyOutcome};
use kelvin_fio::{Direction, PerDirection};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use support::{SECOND, direction, failures, job, jobs, options, outcome, reader, target, worker};

/// A document with its fields in their order, and whole numbers apart from others.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Whole,
    Real,
    Text(String),
    Object(Vec<(String, Node)>),
    List(Vec<Node>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value that fio writes")
            }
            fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
                Ok(Node::Whole)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
                Ok(Node::Whole)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
                Ok(Node::Real)
            }
            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Text(text.into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Node::Object(fields))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Node::List(items))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Node {
    fn field(&self, name: &str) -> Option<&Node> {
        match self {
            Self::Object(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        match self.field(name) {
            Some(Self::List(items)) => items
                .iter()
                .map(|item| match item {
                    Self::Text(text) => text.as_str(),
                    other => panic!("{other:?}"),
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn schema() -> Node {
    serde_json::from_str(include_str!("schema.json")).expect("the schema is JSON")
}

/// The errors of a value by the schema; every path that was seen is recorded.
fn check(schema: &Node, value: &Node, path: &str, seen: &mut BTreeSet<String>, wrong: &mut Vec<String>) {
    seen.insert(path.to_owned());
    let Some(Node::Text(asked)) = schema.field("type") else {
        // A list that is empty in every sample does not define its items.
        return;
    };
    let is = match value {
        Node::Whole => "integer",
        Node::Real => "number",
        Node::Text(_) => "string",
        Node::Object(_) => "object",
        Node::List(_) => "array",
    };
    if is != asked {
        wrong.push(format!("{path} is of type {is} and should be {asked}"));
        return;
    }
    match value {
        Node::Object(fields) => {
            if let Some(each) = schema.field("additionalProperties") {
                for (_, value) in fields {
                    check(each, value, &format!("{path}.*"), seen, wrong);
                }
                return;
            }
            let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            for required in schema.texts("required") {
                if !names.contains(&required) {
                    wrong.push(format!("{path} lacks {required}"));
                }
            }
            let order = schema.texts("order");
            let mut last = 0;
            for (name, value) in fields {
                if name == "kelvin" {
                    continue;
                }
                let known = schema.field("properties").and_then(|properties| properties.field(name));
                let (Some(known), Some(place)) = (known, order.iter().position(|one| one == name)) else {
                    wrong.push(format!("{path}.{name} is no field of fio's"));
                    continue;
                };
                if place < last {
                    wrong.push(format!("{path}.{name} is not in fio's place"));
                }
                last = place;
                check(known, value, &format!("{path}.{name}"), seen, wrong);
            }
        }
        Node::List(items) => {
            if let Some(each) = schema.field("items") {
                for item in items {
                    check(each, item, &format!("{path}[]"), seen, wrong);
                }
            }
        }
        _ => {}
    }
}

/// All paths of the schema.
fn paths(schema: &Node, path: &str, all: &mut BTreeSet<String>) {
    all.insert(path.to_owned());
    if let Some(each) = schema.field("additionalProperties") {
        paths(each, &format!("{path}.*"), all);
    }
    if let Some(each) = schema.field("items") {
        paths(each, &format!("{path}[]"), all);
    }
    if let Some(Node::Object(fields)) = schema.field("properties") {
        for (name, known) in fields {
            paths(known, &format!("{path}.{name}"), all);
        }
    }
}

/// Outcomes that have everything that a result can have.
fn outcomes() -> Vec<JobsOutcome> {
    let mut plain = reader(0);
    plain.syncs.record(120_000);
    let mut bins = kelvin_fio::Bins::default();
    bins.record(120_000);
    plain.sync_bins.add(&bins);
    let mut wanted = job("a");
    wanted.given = vec![("rw".into(), "read".into())];
    wanted.description = Some("words".into());
    wanted.report.total_percentiles = true;
    wanted.report.submission_percentiles = true;
    wanted.latency.target = Some(300_000);
    wanted.latency.window = 50_000_000;
    wanted.errors.go_on_read = true;
    plain.failures.push(failures());
    plain.steady = Some(SteadyOutcome {
        attained: true,
        criterion: 0.5,
        max_deviation: 5.0,
        slope: 0.1,
        iops: vec![995.0, 1005.0],
        bandwidth: vec![4_075_520.0, 4_116_480.0],
        latency: vec![1.0],
    });
    wanted.steady = Some(SteadyState {
        figure: SteadyFigure::Iops,
        slope: false,
        limit: 5.0,
        percent: true,
        window: 2 * SECOND,
        ramp: 0,
        interval: SECOND,
    });
    let mut all_directions = target("/data/f", Some("vda"));
    for way in Direction::ALL {
        all_directions.directions[way] = direction(100, 100_000, 1000);
    }
    plain.targets.push(all_directions);
    plain.runtime = PerDirection([SECOND; 3]);
    let mut full = outcome(jobs(vec![wanted.clone()]), vec![plain.clone()]);
    full.jobs.global = vec![("size".into(), "1g".into())];
    let mut results = vec![full];
    for mixed in [Mixed::Mixed, Mixed::Both] {
        let mut other = wanted.clone();
        other.report.mixed = mixed;
        results.push(outcome(jobs(vec![other]), vec![plain.clone()]));
    }
    // No I/O was done, none was requested.
    let mut nothing = outcome(jobs(vec![job("b")]), vec![worker(0)]);
    nothing.disks.clear();
    results.push(nothing);
    results
}

#[test]
fn every_field_is_fios_and_every_field_of_fios_is_there() {
    let schema = schema();
    let (mut seen, mut all, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for outcome in outcomes() {
        for plus in [false, true] {
            let text = json(&outcome, &options(), plus);
            check(&schema, &serde_json::from_str(&text).unwrap(), "$", &mut seen, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    paths(&schema, "$", &mut all);
    let missing: Vec<&String> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "fio writes these, Kelvin never does: {missing:#?}");
}

#[test]
fn what_is_kelvins_own_is_under_one_key_of_a_job_and_of_a_disk() {
    let text = json(&outcomes()[0], &options(), false);
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kelvin = &parsed["jobs"][0]["kelvin"];
    assert_eq!(kelvin["workers"], 1);
    assert_eq!(kelvin["targets"][0]["path"], "/data/f");
    // The same path twice: added up.
    assert_eq!(kelvin["targets"][0]["read"]["total_ios"], 2100);
    assert_eq!(kelvin["failures"][0]["message"], "Input/output error");
    assert_eq!(parsed["disk_util"][0]["kelvin"]["read_sectors"], 16_000);
}

/// The check itself detects errors.
#[test]
fn the_check_reports_a_wrong_field_type_place_and_a_missing_one() {
    let good = json(&outcomes()[0], &options(), false);
    let faults = [
        ("\"iops\" : 2", "\"speed\" : 2", "is no field of fio's"),
        ("\"error\" : 5", "\"error\" : 5.0", "$.jobs[].error is of type number and should be integer"),
        (
            "\"jobname\" : \"a\",\n      \"groupid\" : 0,",
            "\"groupid\" : 0,\n      \"jobname\" : \"a\",",
            "is not in fio's place",
        ),
        ("\"eta\" : 0,\n", "", "$.jobs[] lacks eta"),
    ];
    for (found, instead, message) in faults {
        assert!(good.contains(found), "{found}");
        let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
        let bad = good.replacen(found, instead, 1);
        check(&schema(), &serde_json::from_str(&bad).unwrap(), "$", &mut seen, &mut wrong);
        assert!(wrong.iter().any(|one| one.contains(message)), "{message}: {wrong:?}");
    }
}
