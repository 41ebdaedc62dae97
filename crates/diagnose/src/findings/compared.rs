//! Why the runs of two sides cannot be compared as if they differed in only one factor.

use kelvin_measure::text::few;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::machine_changed::describe_value;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

const ID: &str = "compared";

/// What differs from run to run without being a cause: names, loads before the run, sizes, places.
const INCIDENTAL: [&str; 9] = [
    "/label",
    // Other random values of the same distributions: the runs of a side are to have several.
    "/load/seed",
    "/target",
    "/client_host/name",
    "/client_host/load_average",
    "/database_bytes",
    "/data_filesystem/free_bytes",
    "/data_filesystem/path",
    "/engine",
];

/// Differences named in the title, at most.
const NAMED: usize = 5;

/// Where a difference lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComparedPart {
    Run,
    Database,
    Host,
}

/// Whether a fact by its path ("/client_host/load_average") differs from run to run without being a cause.
pub(super) fn is_incidental(path: &str) -> bool {
    // The limit counts (`/server_memory_limit`), not the names of the groups that have it.
    INCIDENTAL.contains(&path) || path.starts_with("/server_memory_groups")
}

/// Values that affect a figure most, and are listed first.
const FIRST: [&str; 3] = ["/load/users", "/load/duration", "/load/ramp-up"];

/// Differences between two sides of runs, if there is more than one. An item differs if its values on one side are not its
/// values on the other.
pub(super) fn compared(first: &[&Evidence], second: &[&Evidence]) -> Vec<Finding> {
    let mut differences: Vec<(ComparedPart, String, Vec<Value>, Vec<Value>)> = Vec::new();
    let mut add = |part, a: &[Option<&Value>], b: &[Option<&Value>]| {
        let leaves = |side: &[Option<&Value>]| side.iter().map(|value| leaves(*value)).collect::<Vec<_>>();
        let (a, b) = (leaves(a), leaves(b));
        let names: BTreeSet<&String> = a.iter().chain(&b).flat_map(BTreeMap::keys).collect();
        for name in names.into_iter().filter(|name| !is_incidental(name)) {
            let (one, other) = (values(&a, name), values(&b, name));
            let same = one.len() == other.len() && one.iter().all(|value| other.contains(value));
            if !same {
                let part = if name.starts_with("/database/") { ComparedPart::Database } else { part };
                differences.push((part, name.clone(), one, other));
            }
        }
    };
    let specs = |side: &[&Evidence]| side.iter().map(|e| e.context.spec("").cloned()).collect::<Vec<_>>();
    let surroundings =
        |side: &[&Evidence]| side.iter().map(|e| e.context.environment("").cloned()).collect::<Vec<_>>();
    let (a, b) = (specs(first), specs(second));
    add(ComparedPart::Run, &refs(&a), &refs(&b));
    let (a, b) = (surroundings(first), surroundings(second));
    add(ComparedPart::Host, &refs(&a), &refs(&b));
    if differences.len() < 2 {
        return Vec::new();
    }
    differences.sort_by_key(|(_, name, ..)| FIRST.iter().position(|of| of == name).unwrap_or(FIRST.len()));
    let parts = |part| differences.iter().filter(|(of, ..)| *of == part).count();
    let kinds = [ComparedPart::Run, ComparedPart::Database, ComparedPart::Host]
        .into_iter()
        .filter(|part| parts(*part) > 0)
        .count();
    // Several settings of one database may belong together; several values of a specification do not.
    let red = kinds > 1 || parts(ComparedPart::Run) > 1;
    let names: Vec<&str> = differences.iter().map(|(_, name, ..)| short(name)).collect();
    let all = |values: &[Value]| values.iter().map(describe_value).collect::<Vec<_>>().join(" or ");
    let facts = differences.iter().map(|(_, name, one, other)| {
        EvidenceLine::new(short(name), format!("{} against {}", all(one), all(other)))
    });
    let sides = if first.len() == 1 && second.len() == 1 { "runs" } else { "sides" };
    vec![Finding {
        id: ID,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!("The two {sides} differ in {} things: {}", names.len(), few(&names, NAMED)),
        evidence: facts.collect(),
        effect: Effect::unknown("the sides differ in several things, and their effects cannot be separated"),
        below_precision: false,
        threshold: "more than one difference in specification, settings, versions or host; red when the \
            differences are of different kinds, or when the specification has more than one"
            .into(),
        next:
            "Make both sides equal except for the factor under study and run both again, interleaved; or use \
            a factorial design, which separates the effects."
                .into(),
    }]
}

fn refs(values: &[Option<Value>]) -> Vec<Option<&Value>> {
    values.iter().map(Option::as_ref).collect()
}

/// The values of a fact over the runs of a side, each once; a run that lacks it has none.
fn values(side: &[BTreeMap<String, Value>], name: &str) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for run in side {
        let value = run.get(name).cloned().unwrap_or_default();
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The name without its path.
fn short(name: &str) -> &str {
    let name = name
        .strip_prefix("/client_host/")
        .or_else(|| name.strip_prefix("/database/settings/"))
        .unwrap_or(name);
    name.strip_prefix('/').unwrap_or(name)
}

/// Every value that is not an object, by its path.
fn leaves(value: Option<&Value>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(String, &Value)> = value.map(|value| (String::new(), value)).into_iter().collect();
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(name, value)| (format!("{path}/{name}"), value)));
            }
            Value::Null => {}
            other => {
                found.insert(path, other.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scene::{Scene, severities};

    fn scene(users: u32, buffers: &str) -> Scene {
        let mut scene = Scene::healthy();
        scene.spec["load"]["users"] = json!(users);
        scene.environment["database"] =
            json!({ "version": "15.1", "settings": { "shared_buffers": buffers, "huge_pages": buffers } });
        scene
    }

    #[test]
    fn one_factor_is_no_finding_and_more_are() {
        let found = |a: &Scene, b: &Scene| compared(&[&a.evidence()], &[&b.evidence()]);
        let base = scene(4, "1");
        assert_eq!(found(&base, &base), []);
        assert_eq!(found(&base, &scene(8, "1")), []);
        assert_eq!(severities(&found(&base, &scene(4, "2"))), [Severity::Amber], "two settings");
        let both = found(&base, &scene(8, "2"));
        assert_eq!(severities(&both), [Severity::Red]);
        let whats: Vec<_> = both[0].evidence.iter().map(|fact| fact.what.as_str()).collect();
        assert_eq!(whats, ["load/users", "huge_pages", "shared_buffers"]);
        assert_eq!(both[0].evidence[0].found, "4 against 8");
        assert_eq!(compared(&[&Evidence::default()], &[&Evidence::default()]), []);
    }

    #[test]
    fn what_is_incidental_is_left_out() {
        let mut other = scene(4, "1");
        other.spec["label"] = json!("b");
        other.environment["client_host"]["load_average"] = json!(3.0);
        other.environment["client_host"]["name"] = json!("b");
        other.environment["server_memory_groups"] =
            json!([{ "directory": "/a", "limit": 1 }, { "directory": "/", "limit": null }]);
        assert_eq!(compared(&[&scene(4, "1").evidence()], &[&other.evidence()]), []);
    }

    #[test]
    fn every_run_of_a_side_counts_and_seeds_may_vary() {
        let seeded = |seed: u64, users: u32, buffers: &str| {
            let mut scene = scene(users, buffers);
            scene.spec["load"]["seed"] = json!(seed);
            scene.evidence()
        };
        let a = [seeded(1, 4, "1"), seeded(2, 4, "1"), seeded(3, 4, "1")];
        let alike = [seeded(1, 4, "1"), seeded(2, 4, "1")];
        let (a, alike): (Vec<_>, Vec<_>) = (a.iter().collect(), alike.iter().collect());
        assert_eq!(compared(&a, &alike), []);
        // The first runs are alike; the last is not.
        let odd = [seeded(1, 4, "1"), seeded(2, 8, "2")];
        let found = compared(&a, &odd.iter().collect::<Vec<_>>());
        assert_eq!(severities(&found), [Severity::Red]);
        assert_eq!(found[0].evidence[0].found, "4 against 4 or 8");
        assert!(
            found[0].title.starts_with("The two sides differ in 3 things: load/users"),
            "{}",
            found[0].title
        );
        let others = [seeded(7, 8, "1"), seeded(8, 8, "1")];
        assert_eq!(compared(&a, &others.iter().collect::<Vec<_>>()), [], "one factor, and other seeds");
    }
}
