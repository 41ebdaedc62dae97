//! The differences between the sides other than the results: every fact of specification and environment,
//! over all runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::RunReport;
use kelvin_measure::text::{NONE, count};

/// Factors that affect the results directly; listed first.
const FIRST: [&str; 3] = ["spec load.users", "spec load.duration", "spec load.ramp-up"];

/// Facts that cannot cause a difference in the results: names, and random seeds.
const ASIDE: [&str; 7] =
    ["notes", "target", "spec target", "spec label", "seed", "spec load.seed", "seed of the data"];

/// Largest number of values per side that are named.
const NAMED: usize = 3;

/// A fact that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name, such as "database.settings.shared_buffers".
    pub name: String,
    /// The values in the runs of A, each with the number of runs that have it.
    pub a: Vec<(String, usize)>,
    /// The values in the runs of B.
    pub b: Vec<(String, usize)>,
    /// Whether it may cause a difference in the results: it is not a name, a location or a momentary reading.
    pub matters: bool,
}

impl Difference {
    /// The values of one side as text; several values are each followed by their number of runs.
    pub fn describe_values(values: &[(String, usize)]) -> String {
        match values {
            [(value, _)] => value.clone(),
            several => {
                let mut each: Vec<String> = several
                    .iter()
                    .take(NAMED)
                    .map(|(value, n)| format!("{value} ({})", count(*n, "run")))
                    .collect();
                if several.len() > NAMED {
                    each.push(format!("and {} more", several.len() - NAMED));
                }
                each.join(", ")
            }
        }
    }
}

/// The facts of a run by their names.
pub(crate) type FactMap = BTreeMap<String, String>;

/// The facts of a report's run.
pub(super) fn of_report(r: &RunReport) -> FactMap {
    let others = [
        ("target", r.target.clone()),
        ("seed", r.recipe.seed.clone()),
        ("kelvin version", r.recipe.kelvin_version.clone()),
        ("random algorithm", r.recipe.random_algorithm.clone()),
        ("notes", r.notes.join("; ")),
    ];
    facts(&r.recipe.spec_toml, &r.recipe.environment, others)
}

/// The facts of a specification and its environment, and additional ones.
pub(crate) fn facts<const N: usize>(
    spec_toml: &str,
    environment: &serde_json::Value,
    others: [(&str, String); N],
) -> FactMap {
    let mut facts = BTreeMap::new();
    crate::model::flatten("", environment, &mut facts);
    facts.extend(others.into_iter().map(|(name, value)| (name.to_owned(), value)));
    // A specification of another version that cannot be read has no facts; the results of the run are still
    // usable.
    let mut of_spec = BTreeMap::new();
    if let Ok(spec) = toml::from_str(spec_toml) {
        crate::model::flatten("", &spec, &mut of_spec);
    }
    facts.extend(of_spec.into_iter().map(|(name, value)| (format!("spec {name}"), value)));
    facts
}

/// The differences between two sides: first those that matter, starting with the factors in [`FIRST`].
pub(crate) fn differences(a: &[FactMap], b: &[FactMap]) -> Vec<Difference> {
    let names: BTreeSet<&String> = a.iter().chain(b).flat_map(BTreeMap::keys).collect();
    let mut found: Vec<Difference> = names
        .into_iter()
        .map(|name| Difference {
            name: name.clone(),
            a: values(a, name),
            b: values(b, name),
            matters: matters(name),
        })
        .filter(differs)
        .collect();
    let place = |d: &Difference| FIRST.iter().position(|name| *name == d.name).unwrap_or(FIRST.len());
    let of_spec = |d: &Difference| !d.name.starts_with("spec ");
    found.sort_by_key(|d| (!d.matters, place(d), of_spec(d)));
    found
}

fn differs(difference: &Difference) -> bool {
    let values = |side: &[(String, usize)]| side.iter().map(|(v, _)| v.clone()).collect::<BTreeSet<_>>();
    let (a, b) = (values(&difference.a), values(&difference.b));
    a != b
}

fn matters(name: &str) -> bool {
    // A script is identified by its text, not by its name.
    if name.strip_prefix("spec script.scripts.").is_some_and(|of| of.rsplit('.').next() == Some("name")) {
        return false;
    }
    !ASIDE.contains(&name) && !kelvin_diagnose::is_incidental(&format!("/{}", name.replace('.', "/")))
}

/// The values of a fact in the runs of a side, in the order of first occurrence.
fn values(side: &[FactMap], name: &str) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for facts in side {
        let value = facts.get(name).map_or(NONE, String::as_str);
        match found.iter_mut().find(|(known, _)| known == value) {
            Some((_, runs)) => *runs += 1,
            None => found.push((value.to_owned(), 1)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(users: u32, seed: u64, buffers: &str, load: f64) -> FactMap {
        let environment = serde_json::json!({
            "client_host": { "load_average": load },
            "database": { "settings": { "shared_buffers": buffers } }
        });
        let spec = format!("label = \"x{seed}\"\n[load]\nusers = {users}\nseed = {seed}\n");
        facts(&spec, &environment, [("seed", seed.to_string())])
    }

    fn names(a: &[FactMap], b: &[FactMap]) -> Vec<(String, bool)> {
        differences(a, b).into_iter().map(|d| (d.name, d.matters)).collect()
    }

    #[test]
    fn all_runs_of_a_side_count_and_what_matters_stands_first() {
        let a = [run(4, 1, "1GB", 0.1), run(4, 2, "1GB", 0.2)];
        let b = [run(4, 1, "1GB", 0.3), run(4, 2, "2GB", 0.4)];
        assert_eq!(
            names(&a, &b),
            [("database.settings.shared_buffers".into(), true), ("client_host.load_average".into(), false)]
        );
        let found = differences(&a, &b);
        assert_eq!(Difference::describe_values(&found[0].a), "1GB");
        assert_eq!(Difference::describe_values(&found[0].b), "1GB (1 run), 2GB (1 run)");
        let c = [run(8, 3, "2GB", 0.1)];
        let first: Vec<_> = names(&a, &c).into_iter().map(|(name, _)| name).collect();
        assert_eq!(first[..2], ["spec load.users", "database.settings.shared_buffers"]);
        assert!(differences(&a, &c).iter().all(|d| d.matters == (first[..2].contains(&d.name))));
        assert_eq!(names(&a, &a), []);
    }
}
