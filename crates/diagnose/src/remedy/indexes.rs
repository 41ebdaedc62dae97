//! Indexes: those that statements lack, and those that only cost.

use std::collections::BTreeMap;

use kelvin_measure::observation::{CaptureTime, Relation, StatementTotals};
use kelvin_measure::text;

use super::predicates::of_table;
use super::{Change, Remedy, Rules, quoted};
use crate::findings::useless_indexes;
use crate::{Effect, EffectBasis, Evidence};

/// Rows from which an index can help: a smaller table is read as fast as one.
const LARGE: u64 = 10_000;

pub(super) fn remedies(evidence: &Evidence) -> Vec<Remedy> {
    let mut all = missing(evidence);
    all.extend(gone(evidence));
    all.extend(useless(evidence));
    all
}

/// Indexes for statements whose plan reads a large table from its beginning to its end.
fn missing(evidence: &Evidence) -> Vec<Remedy> {
    let Some((relations, _)) = evidence.relations(CaptureTime::Before) else { return Vec::new() };
    // By table and columns: the share of the statements' time, and the statement that takes most of it.
    let mut wanted: BTreeMap<(String, Vec<String>), (f64, StatementTotals)> = BTreeMap::new();
    for point in evidence.points() {
        let Some((statements, total)) = evidence.statements(point.point) else { continue };
        for statement in statements {
            let scans =
                statement.plan.iter().flat_map(|plan| &plan.scans).filter(|scan| scan.index.is_none());
            for scan in scans {
                let Some(table) = table(relations, &scan.relation) else { continue };
                let Some(columns) = of_table(&statement.text, &table.name).map(|found| found.columns())
                else {
                    continue;
                };
                if columns.is_empty() || table.rows.is_none_or(|rows| rows < LARGE) {
                    continue;
                }
                let share = statement.total_ms / total.max(f64::MIN_POSITIVE);
                let entry =
                    wanted.entry((table.name.clone(), columns)).or_insert_with(|| (0.0, statement.clone()));
                entry.0 += share;
                if statement.total_ms > entry.1.total_ms {
                    entry.1 = statement.clone();
                }
            }
        }
    }
    let made = wanted.into_iter().map(|((table, columns), (share, statement))| {
        let name = index_name(&table, &columns);
        let list: Vec<String> = columns.iter().map(|column| quoted(evidence, column)).collect();
        let (table_sql, name_sql) = (quoted(evidence, &table), quoted(evidence, &name));
        // PostgreSQL's DROP INDEX names the schema, MySQL's the table.
        let drop = if crate::load::is_mysql(evidence) {
            format!("DROP INDEX IF EXISTS {name_sql} ON {table_sql}")
        } else {
            let schema = table.split_once('.').map_or(String::new(), |(schema, _)| {
                format!("{}.", quoted(evidence, schema))
            });
            format!("DROP INDEX IF EXISTS {schema}{name_sql}")
        };
        Remedy {
            finding: "scan-without-index",
            title: format!("index on {table} ({})", columns.join(", ")),
            change: Change::Statements {
                apply: vec![
                    format!("CREATE INDEX IF NOT EXISTS {name_sql} ON {table_sql} ({})", list.join(", ")),
                    if crate::load::is_mysql(evidence) {
                        format!("ANALYZE TABLE {table_sql}")
                    } else {
                        format!("ANALYZE {table_sql}")
                    },
                ],
                undo: vec![drop],
            },
            reason: format!(
                "a statement that reads all of {table} takes {} of the statements' time ({} calls, {} ms each): {}",
                text::percent(share.min(1.0)),
                text::rounded(statement.calls as f64),
                text::number(statement.total_ms / statement.calls.max(1) as f64),
                text::statement(&statement.text)
            ),
            effect: Effect::up_to(share, EffectBasis::StatementTime),
            rules: Rules::Allowed,
        }
    });
    made.collect()
}

/// A name of its own, which says what it is and fits into PostgreSQL's 63 bytes.
fn index_name(table: &str, columns: &[String]) -> String {
    let plain = table.rsplit('.').next().unwrap_or(table);
    let name = format!("kelvin_advice_{plain}_{}", columns.join("_"));
    name.chars().take(48).collect()
}

fn table<'a>(relations: &'a [Relation], name: &str) -> Option<&'a Relation> {
    relations
        .iter()
        .find(|one| one.kind == "table" && (one.name == name || one.name.rsplit('.').next() == Some(name)))
}

/// An index that served the earlier run and is gone: made again as it was.
fn gone(evidence: &Evidence) -> Vec<Remedy> {
    let Some((before, _)) = evidence.earlier.as_ref().and_then(|run| run.relations(CaptureTime::Before))
    else {
        return Vec::new();
    };
    let Some((now, _)) = evidence.relations(CaptureTime::Before) else { return Vec::new() };
    let indexes = |of: &[Relation], table: Option<&str>| {
        of.iter().filter(|one| one.kind == "index" && one.table.as_deref() == table).count()
    };
    let missing = before.iter().filter(|one| {
        let table = one.table.as_deref();
        one.kind == "index"
            && !now.iter().any(|other| other.name == one.name)
            && now.iter().any(|other| other.kind == "table" && Some(other.name.as_str()) == table)
            && indexes(now, table) < indexes(before, table)
    });
    let made = missing.filter_map(|one| {
        let definition = one.definition.as_ref()?;
        let apply = once(definition)?;
        Some(Remedy {
            finding: "scan-without-index",
            title: format!("index {} again", one.name),
            change: Change::Statements {
                apply: vec![apply],
                undo: vec![format!("DROP INDEX IF EXISTS {}", quoted(evidence, &one.name))],
            },
            reason: format!("the earlier run had it: {definition}"),
            effect: Effect::unknown("the statements' time with the index was not measured in this run"),
            rules: Rules::Allowed,
        })
    });
    made.collect()
}

/// "CREATE [UNIQUE] INDEX …" so that it does nothing where the index is there.
fn once(definition: &str) -> Option<String> {
    let at = definition.find(" INDEX ")? + " INDEX ".len();
    let (head, rest) = definition.split_at_checked(at)?;
    head.starts_with("CREATE ").then(|| format!("{head}IF NOT EXISTS {rest}"))
}

/// Indexes that cost writes and serve nothing: dropped, and made again by their definition.
fn useless(evidence: &Evidence) -> Vec<Remedy> {
    let made = useless_indexes::useless(evidence).into_iter().filter_map(|one| {
        let definition = one.index.definition.as_ref()?;
        Some(Remedy {
            finding: one.finding(),
            title: format!("drop the index {}", one.index.name),
            change: Change::Statements {
                apply: vec![format!("DROP INDEX IF EXISTS {}", quoted(evidence, &one.index.name))],
                undo: vec![once(definition)?],
            },
            reason: one.reason(),
            effect: Effect::unknown("what a write spends on one index is not measured"),
            rules: Rules::Allowed,
        })
    });
    made.collect()
}
