//! Indexes: those that statements lack, and those that only cost.

use std::collections::BTreeMap;

use kelvin_measure::observation::{CaptureTime, Relation, StatementTotals};
use kelvin_measure::text;

use super::predicates::of_table;
use super::{Change, Remedy, Rules};
use crate::change::advised_name;
use crate::engine::engine_advice;
use crate::findings::useless_indexes::{self, Useless};
use crate::{Effect, EffectBasis, Evidence};

/// Rows from which an index can help: a smaller table is read as fast as one.
const LARGE: u64 = 10_000;

pub(super) fn remedies(evidence: &Evidence) -> Vec<Remedy> {
    let mut all = Vec::new();
    if engine_advice(evidence).sql().proposes_indexes {
        all.extend(missing(evidence));
        all.extend(gone(evidence));
    }
    all.extend(useless(evidence));
    all
}

/// By table and the columns of its indexes: the share of the statements' time, and the statement that takes most of it.
type Wanted = BTreeMap<(String, Vec<Vec<String>>), (f64, StatementTotals)>;

/// Indexes for statements whose plan reads a large table from its beginning to its end.
fn missing(evidence: &Evidence) -> Vec<Remedy> {
    let Some((relations, _)) = evidence.relations(CaptureTime::Before) else { return Vec::new() };
    // The point at which it takes the largest share.
    let mut wanted = Wanted::new();
    for point in evidence.points() {
        for (key, of_point) in wanted_at(evidence, point.point, relations) {
            let entry = wanted.entry(key).or_insert_with(|| of_point.clone());
            if of_point.0 > entry.0 {
                *entry = of_point;
            }
        }
    }
    let mut all = Vec::new();
    for ((table, indexes), (share, statement)) in &wanted {
        all.push(create(evidence, table, indexes, *share, statement));
    }
    all
}

/// Those of a point, whose statements' shares add up.
fn wanted_at(evidence: &Evidence, point: u32, relations: &[Relation]) -> Wanted {
    let mut wanted = Wanted::new();
    let Some((statements, total)) = evidence.statements(point) else { return wanted };
    for statement in statements {
        let scans = statement.plan.iter().flat_map(|plan| &plan.scans).filter(|scan| scan.index.is_none());
        let mut keys: Vec<(String, Vec<Vec<String>>)> = scans
            .filter_map(|scan| {
                let table = table(relations, &scan.relation)?;
                let mut indexes = of_table(&statement.text, &table.name);
                indexes.retain(|columns| !is_there(evidence, relations, &table.name, columns));
                let large = table.rows.is_some_and(|rows| rows >= LARGE);
                (large && !indexes.is_empty()).then(|| (table.name.clone(), indexes))
            })
            .collect();
        keys.sort();
        // A plan that scans it twice takes its time once.
        keys.dedup();
        let share = statement.total_ms / total.max(f64::MIN_POSITIVE);
        for key in keys {
            let entry = wanted.entry(key).or_insert_with(|| (0.0, statement.clone()));
            entry.0 += share;
            if statement.total_ms > entry.1.total_ms {
                entry.1 = statement.clone();
            }
        }
    }
    wanted
}

/// Whether the table has an index that begins with these columns, one of this name, or one that is not known.
fn is_there(evidence: &Evidence, relations: &[Relation], table: &str, columns: &[String]) -> bool {
    let name = advised_name(table, columns);
    let mut indexes =
        relations.iter().filter(|one| one.kind == "index" && one.table.as_deref() == Some(table));
    indexes.any(|one| {
        let same = one.name.rsplit('.').next() == Some(&name);
        same || match &one.definition {
            Some(definition) => btree_columns(definition).is_some_and(|its| its.starts_with(columns)),
            None => engine_advice(evidence).sql().undefined_index_serves,
        }
    })
}

/// The columns of a btree index over all rows, without their options.
fn btree_columns(definition: &str) -> Option<Vec<String>> {
    let list = definition.split_once(" USING btree (")?.1;
    // MySQL's columns can have a length behind them: `a`(10).
    let mut open = 1;
    let end = list.find(|c| {
        open += i32::from(c == '(') - i32::from(c == ')');
        open == 0
    })?;
    let (list, rest) = list.split_at(end);
    let column = |part: &str| {
        let part = part.trim();
        let name =
            part.strip_prefix('`').map_or_else(|| part.split(' ').next(), |part| part.split('`').next());
        name.unwrap_or_default().trim_matches('"').to_owned()
    };
    (!rest.contains(" WHERE ")).then(|| list.split(',').map(column).collect())
}

/// The indexes of a table, of which each alternative of a statement's condition needs its own.
fn create(
    evidence: &Evidence,
    table: &str,
    indexes: &[Vec<String>],
    share: f64,
    statement: &StatementTotals,
) -> Remedy {
    let analyze = super::tables::analyze_statement(evidence, table);
    let lists: Vec<String> = indexes.iter().map(|columns| format!("({})", columns.join(", "))).collect();
    let (mut apply, undo): (Vec<String>, Vec<String>) =
        indexes.iter().map(|columns| create_and_drop(evidence, table, columns)).unzip();
    apply.push(analyze.clone());
    Remedy {
        finding: "scan-without-index",
        title: format!(
            "{} on {table} {}",
            text::plural(indexes.len(), "index", "indexes"),
            lists.join(" and ")
        ),
        change: Change::Statements { apply, undo, control: vec![analyze] },
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
}

/// The statements that make an index and remove it.
fn create_and_drop(evidence: &Evidence, table: &str, columns: &[String]) -> (String, String) {
    let name = advised_name(table, columns);
    let sql = engine_advice(evidence).sql();
    let schema = || table.split_once('.').map(|(schema, _)| schema);
    let within = if sql.indexes_within_table { Some(table) } else { schema() };
    let drop =
        drop_statement(evidence, &within.map_or_else(|| name.clone(), |within| format!("{within}.{name}")));
    let (name, table, list) = (sql.quoted(&name), sql.quoted(table), sql.quoted_list(columns));
    (format!("CREATE INDEX IF NOT EXISTS {name} ON {table} ({list})"), drop)
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
        let apply = engine_advice(evidence).index_again(one)?;
        Some(Remedy {
            finding: "scan-without-index",
            title: format!("index {} again", one.name),
            change: Change::Statements {
                apply: vec![apply],
                undo: vec![drop_statement(evidence, &one.name)],
                control: Vec::new(),
            },
            reason: format!("the earlier run had it: {definition}"),
            effect: Effect::unknown("the statements' time with the index was not measured in this run"),
            rules: Rules::Allowed,
        })
    });
    made.collect()
}

/// Drops an index by its full name, which begins with its schema or its table, as the statements want.
fn drop_statement(evidence: &Evidence, name: &str) -> String {
    let sql = engine_advice(evidence).sql();
    let exists = if sql.repeats_drops { "IF EXISTS " } else { "" };
    match name.rsplit_once('.').filter(|_| sql.indexes_within_table) {
        Some((table, index)) => {
            format!("DROP INDEX {exists}{} ON {}", sql.quoted_part(index), sql.quoted(table))
        }
        None => format!("DROP INDEX {exists}{}", sql.quoted(name)),
    }
}

/// Indexes that cost writes and serve nothing: dropped, and made again by their definition. Those that are there twice are one change,
/// since each adds to the same cost and none needs an answer of its own.
fn useless(evidence: &Evidence) -> Vec<Remedy> {
    let all = useless_indexes::useless(evidence);
    // One whose definition is not known could not be made again: the others are dropped without it.
    let known = all.iter().filter_map(|one| Some((one, engine_advice(evidence).index_again(one.index)?)));
    let (twins, unused): (Vec<_>, Vec<_>) = known.partition(|(one, _)| one.twin.is_some());
    let twins = (!twins.is_empty()).then_some(twins);
    twins
        .into_iter()
        .chain(unused.into_iter().map(|one| vec![one]))
        .filter_map(|of| drop(evidence, &of))
        .collect()
}

/// Drops these, each with the statement that makes it again.
fn drop(evidence: &Evidence, indexes: &[(&Useless<'_>, String)]) -> Option<Remedy> {
    let (first, _) = indexes.first()?;
    let names: Vec<&str> = indexes.iter().map(|(one, _)| one.index.name.as_str()).collect();
    let title = match names.len() {
        1 => format!("drop the index {}", first.index.name),
        several => format!("drop {several} duplicate indexes: {}", names.join(", ")),
    };
    let entries = indexes.iter().map(|(one, _)| one.entries).sum();
    let apply: Vec<String> = names.iter().map(|name| drop_statement(evidence, name)).collect();
    let undo: Vec<String> = indexes.iter().map(|(_, again)| again.clone()).collect();
    let change = if engine_advice(evidence).sql().repeats_drops {
        Change::Statements { apply, undo, control: Vec::new() }
    } else {
        let (apply, undo) = (apply.join("; "), undo.join("; "));
        Change::Manual {
            how: format!("{apply}; runs before and after it show what it saves; undo it with {undo}"),
        }
    };
    Some(Remedy {
        finding: first.finding(),
        title,
        change,
        reason: first.reason(),
        effect: useless_indexes::cost(evidence, entries),
        rules: Rules::Allowed,
    })
}
