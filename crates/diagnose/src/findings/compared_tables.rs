//! Whether the runs of two sides worked on the same tables and indexes.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_measure::observation::{CaptureTime, Relation};

use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text::memory;

const ID: &str = "compared";

/// A relation whose size differs by more than this has different data: a run adds less than that to a table.
const SIZE: f64 = 1.10;
/// The sizes of smaller relations are not compared: a page more or less is a large share of them.
const SMALLEST: u64 = 1 << 20;

/// Sizes over the runs of a side, and in how many of these runs the relation exists.
struct Side {
    runs: usize,
    relations: BTreeMap<String, Vec<Relation>>,
}

/// Differences in tables and indexes before the load. Unobserved runs have no such data, and two engines use different
/// names and sizes for the same tables.
pub(super) fn compared(first: &[&Evidence], second: &[&Evidence]) -> Vec<Finding> {
    let mut engines = first.iter().chain(second).map(|of| of.context.environment("/engine"));
    let engine = engines.next();
    if engines.any(|other| Some(other) != engine) {
        return Vec::new();
    }
    let (a, b) = (side(first), side(second));
    if a.runs == 0 || b.runs == 0 {
        return Vec::new();
    }
    let names: BTreeSet<&String> = a.relations.keys().chain(b.relations.keys()).collect();
    let mut missing = Vec::new();
    let mut sizes = Vec::new();
    for name in names {
        let (x, y) = (a.relations(name), b.relations(name));
        let Some(relation) = x.first().or(y.first()) else { continue };
        // A relation that exists in the runs of one side only, or in only some runs of a side.
        if x.len() * b.runs != y.len() * a.runs || x.len() % a.runs != 0 {
            let place = |side: &Side, there: &[Relation]| match there.len() {
                0 => "missing".to_owned(),
                n if n == side.runs => format!("present, {}", memory(median(there) as f64)),
                n => format!("in {n} of {} runs", side.runs),
            };
            let found = format!("{} against {}", place(&a, x), place(&b, y));
            missing.push((relation.kind != "index", EvidenceLine::new(described(relation), found)));
        } else if x.len() == a.runs {
            let (one, other) = (median(x), median(y));
            let ratio = one.max(other) as f64 / one.min(other).max(1) as f64;
            if ratio > SIZE && one.max(other) >= SMALLEST {
                let found = format!("{} against {}", memory(one as f64), memory(other as f64));
                sizes.push((ratio, EvidenceLine::new(described(relation), found)));
            }
        }
    }
    missing.sort_by_key(|(table, _)| *table);
    sizes.sort_by(|(x, _), (y, _)| y.total_cmp(x));
    let mut found = Vec::new();
    if let Some((_, one)) = missing.first() {
        let title = match missing.len() {
            1 => format!("The two sides have different tables or indexes: {}", one.what),
            n => format!("The two sides have different tables or indexes: {} and {} more", one.what, n - 1),
        };
        found.push(finding(
            Severity::Red,
            title,
            missing.into_iter().map(|(_, fact)| fact).collect(),
            "any table or index that exists before the load in the runs of only one side, or in only some of \
            them",
            "Create the missing index (or drop the extra one) and run that side again; if the index is the \
            factor under study, this difference is intended.",
        ));
    }
    if let Some((_, one)) = sizes.first() {
        found.push(finding(
            Severity::Amber,
            format!("The two sides have tables or indexes of different sizes before the load: {}", one.what),
            sizes.into_iter().map(|(_, fact)| fact).collect(),
            "10 % between the sides' medians, for relations of 1 MiB or more",
            "Reset the data before every run (--reset auto): a side with larger or bloated tables is slower \
            for that reason.",
        ));
    }
    found
}

fn finding(
    severity: Severity,
    title: String,
    evidence: Vec<EvidenceLine>,
    threshold: &str,
    next: &str,
) -> Finding {
    Finding {
        id: ID,
        severity,
        point: None,
        title,
        evidence,
        effect: Effect::unknown("how the other tables would perform was not measured"),
        below_precision: false,
        threshold: threshold.into(),
        next: next.into(),
    }
}

fn described(relation: &Relation) -> String {
    match &relation.table {
        Some(table) => format!("{} {} of {table}", relation.kind, relation.name),
        None => format!("{} {}", relation.kind, relation.name),
    }
}

impl Side {
    fn relations(&self, name: &str) -> &[Relation] {
        self.relations.get(name).map_or(&[], Vec::as_slice)
    }
}

fn side(evidence: &[&Evidence]) -> Side {
    let mut side = Side { runs: 0, relations: BTreeMap::new() };
    for (relations, _) in evidence.iter().filter_map(|e| e.relations(CaptureTime::Before)) {
        side.runs += 1;
        for relation in relations {
            side.relations.entry(relation.name.clone()).or_default().push(relation.clone());
        }
    }
    side
}

fn median(relations: &[Relation]) -> u64 {
    let mut sizes: Vec<u64> = relations.iter().map(|relation| relation.bytes).collect();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::Event;
    use kelvin_measure::observation::Observation;

    use super::*;
    use crate::scene::{Scene, severities};

    fn run(relations: &[(&str, u64)]) -> Evidence {
        let relation = |(name, bytes): &(&str, u64)| Relation {
            name: (*name).into(),
            kind: if name.ends_with("_key") { "index" } else { "table" }.into(),
            table: name.strip_suffix("_key").map(Into::into),
            bytes: *bytes,
            ..Relation::default()
        };
        let mut evidence = Evidence::default();
        evidence.event(&Event::Observed(Observation::Relations {
            when: CaptureTime::Before,
            relations: relations.iter().map(relation).collect(),
            database_bytes: 0,
        }));
        evidence
    }

    fn found(a: &[Evidence], b: &[Evidence]) -> Vec<Finding> {
        compared(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>())
    }

    #[test]
    fn an_index_on_one_side_only_is_red_and_stands_first() {
        let with = || run(&[("stock", 90 << 20), ("stock_key", 20 << 20)]);
        let without = || run(&[("stock", 90 << 20), ("log", 1)]);
        assert_eq!(found(&[with(), with()], &[with()]), []);
        let all = found(&[with(), with()], &[without()]);
        assert_eq!(severities(&all), [Severity::Red]);
        let facts: Vec<_> = all[0].evidence.iter().map(|f| (f.what.as_str(), f.found.as_str())).collect();
        assert_eq!(
            facts,
            [
                ("index stock_key of stock", "present, 20 MB against missing"),
                ("table log", "missing against present, 1 B")
            ]
        );
        // Half of both sides: the sides are alike, and yet no run can be set against another.
        let mixed = || vec![with(), run(&[("stock", 90 << 20)])];
        assert_eq!(found(&mixed(), &mixed())[0].evidence[0].found, "in 1 of 2 runs against in 1 of 2 runs");
        assert_eq!(found(&[Evidence::default()], &[with()]), [], "nobody watched");
    }

    /// Between SQLite and PostgreSQL there were forty red lines of "missing" indexes, because the engines' names for
    /// the same indexes differ.
    #[test]
    fn trial_d9_two_engines_are_not_set_against_each_other_by_the_names_of_their_indexes() {
        let run = |engine: &str, relations: &[&str]| {
            let relation =
                |name: &&str| Relation { name: (*name).into(), kind: "index".into(), ..Relation::default() };
            let mut scene = Scene::healthy();
            scene.environment["engine"] = engine.into();
            scene.more = vec![Event::Observed(Observation::Relations {
                when: CaptureTime::Before,
                relations: relations.iter().map(relation).collect(),
                database_bytes: 0,
            })];
            scene.evidence()
        };
        let (sqlite, postgres) =
            (run("sqlite", &["stock", "item"]), run("postgres", &["stock_pkey", "item_pkey"]));
        assert_eq!(found(std::slice::from_ref(&sqlite), std::slice::from_ref(&postgres)), []);
        let other = run("postgres", &["stock_pkey"]);
        assert_eq!(severities(&found(&[postgres], &[other])), [Severity::Red], "reported for one engine");
    }

    #[test]
    fn other_sizes_are_amber_and_small_ones_nothing() {
        let sized = |stock: u64, small: u64| run(&[("stock", stock), ("district", small)]);
        assert_eq!(found(&[sized(100 << 20, 8192)], &[sized(109 << 20, 65_536)]), []);
        let all = found(&[sized(100 << 20, 8192)], &[sized(140 << 20, 8192)]);
        assert_eq!(severities(&all), [Severity::Amber]);
        assert_eq!(all[0].evidence.len(), 1);
        assert_eq!(all[0].evidence[0].what, "table stock");
    }
}
