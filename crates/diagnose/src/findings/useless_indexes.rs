//! Indexes that cost writes and serve nothing: the facts for `duplicate-index`, `unused-index` and their remedies.

use std::collections::BTreeSet;

use kelvin_measure::observation::{CaptureTime, Relation, TableWrites, WaitGroup};
use kelvin_measure::text;

use crate::engine::engine_advice;
use crate::verdict::time::model;
use crate::{Class, Effect, EffectBasis, Evidence, PointEvidence, is_client};

/// New entries over the load from which an index costs something worth knowing: below, a report or a check uses it elsewhere.
const ENTRIES: u64 = 1000;

/// An index that could be dropped.
#[derive(Debug, Clone)]
pub(crate) struct Useless<'a> {
    /// After the load.
    pub(crate) index: &'a Relation,
    /// Another index with the same columns; none for one that was only never used.
    pub(crate) twin: Option<&'a str>,
    /// Entries that the load wrote into it: inserted rows, and updated ones whose new version went to another page.
    pub(crate) entries: u64,
    /// How often it was used during the load.
    pub(crate) scans: u64,
    /// What these uses are, as the database counts them.
    pub(crate) uses: &'static str,
}

impl Useless<'_> {
    /// The finding that names it.
    pub(crate) fn finding(&self) -> &'static str {
        if self.twin.is_some() { super::duplicate_index::ABOUT.id } else { super::unused_index::ABOUT.id }
    }

    /// What is known of it.
    pub(crate) fn reason(&self) -> String {
        let (entries, scans) = (text::rounded(self.entries as f64), text::rounded(self.scans as f64));
        let uses = self.uses;
        let size = match self.index.bytes {
            0 => String::new(),
            bytes => format!(", {}", text::memory(bytes as f64)),
        };
        match self.twin {
            Some(twin) => format!("same columns as {twin}; {entries} entries written, {scans} {uses}{size}"),
            None => format!("{entries} entries written, no scan during the load{size}"),
        }
    }
}

/// What the load wrote into tables and indexes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    /// Row versions.
    rows: u64,
    /// Entries of indexes.
    entries: u64,
}

impl Written {
    /// The share of all of it that so many entries are.
    pub(crate) fn share(self, entries: u64) -> f64 {
        entries as f64 / (self.rows + self.entries).max(1) as f64
    }

    /// Row versions of a table, and the entries that each of its indexes got for them where that is not counted by index: of inserted
    /// rows, and of updated ones whose new version went to another page.
    fn since(table: &Relation, before: &[Relation]) -> Option<Self> {
        let earlier = before.iter().find(|one| one.kind == table.kind && one.name == table.name)?;
        let (now, then) = (table.writes?, earlier.writes?);
        let moved = |of: TableWrites| of.updated - of.updated_in_page.min(of.updated);
        let inserted = now.inserted.saturating_sub(then.inserted);
        Some(Self {
            rows: inserted + now.updated.saturating_sub(then.updated),
            entries: inserted + moved(now).saturating_sub(moved(then)),
        })
    }
}

/// Entries that an index got, of whose table this was written: by its own count, if there is one.
fn entries_of(index: &Relation, of_table: Written, before: &[Relation]) -> u64 {
    Written::since(index, before).map_or(of_table.entries, |its| its.rows)
}

/// The sum over all tables with all of their indexes.
pub(crate) fn written(evidence: &Evidence) -> Written {
    let (Some((before, _)), Some((after, _))) =
        (evidence.relations(CaptureTime::Before), evidence.relations(CaptureTime::After))
    else {
        return Written::default();
    };
    let mut sum = Written::default();
    for table in after.iter().filter(|one| one.kind == "table") {
        let Some(of) = Written::since(table, before) else { continue };
        let is_its = |one: &&Relation| {
            one.kind == "index" && one.table.as_deref() == Some(&table.name) && !is_the_table(one)
        };
        sum.rows += of.rows;
        sum.entries += after.iter().filter(is_its).map(|index| entries_of(index, of, before)).sum::<u64>();
    }
    sum
}

/// What writing consists of: the CPU, the log and the data files.
const OF_WRITES: [Class; 4] = [Class::Cpu, Class::Log, Class::DataReads, Class::DataWrites];

/// Share of the transactions' time in what writing consists of. None where the sessions were not sampled.
fn working_at(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let model = model(evidence, point)?;
    Some(OF_WRITES.iter().filter_map(|class| model.share(*class)).map(|share| share.share).sum::<f64>())
}

/// The same at the point with the most.
pub(super) fn working(evidence: &Evidence) -> Option<f64> {
    evidence.points().filter_map(|point| working_at(evidence, point)).max_by(f64::total_cmp)
}

/// The same without what sessions do outside of the database, where the model counts it as the CPU's.
fn seen_working(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let model = model(evidence, point)?;
    let of_writes =
        |group: &WaitGroup| Class::from_wait_group(group).is_some_and(|class| OF_WRITES.contains(&class));
    let active = evidence.active(point.point, is_client);
    let seen: f64 =
        active.groups.iter().filter(|(group, _)| of_writes(group)).map(|(_, sessions)| *sessions).sum();
    Some(seen / model.sessions)
}

/// Share of the statements' time in those that write. What functions do is not known: they are none.
fn writing(evidence: &Evidence, point: u32) -> Option<f64> {
    let writes = |sql: &str| {
        // A statement of SQL Server's procedures.
        let sql = sql.strip_prefix("/* in ").and_then(|sql| sql.split_once("*/")).map_or(sql, |(_, sql)| sql);
        let first = sql.split_whitespace().next().unwrap_or_default().to_lowercase();
        matches!(first.as_str(), "insert" | "update" | "delete" | "merge" | "copy")
    };
    let (statements, total) = evidence.statements(point)?;
    let writing: f64 = statements.iter().filter(|one| writes(&one.text)).map(|one| one.total_ms).sum();
    (total > 0.0).then_some(writing / total)
}

/// What entries of indexes cost, as an entry is about as much work as a row version: at most as if the transactions had done nothing
/// but write in the time that consists of such work, and at least their share of what that time and the statements that write must have
/// in common.
pub(crate) fn cost(evidence: &Evidence, entries: u64) -> Effect {
    let Some(working) = working(evidence) else {
        return Effect::unknown("the wait events of the sessions were not sampled");
    };
    let share = written(evidence).share(entries);
    let common = evidence.points().filter_map(|point| {
        let common = seen_working(evidence, point)? + writing(evidence, point.point)? - 1.0;
        Some(common.max(0.0))
    });
    let low = common.fold(0.0, f64::max) * share;
    Effect::between(low, working * share, EffectBasis::TransactionTime)
}

/// What makes two indexes the same but for their names: method, columns, options and condition.
fn shape(index: &Relation) -> Option<(&str, &str)> {
    let definition = index.definition.as_deref()?;
    Some((index.table.as_deref()?, definition.split_once(" USING ").or(definition.split_once("] ("))?.1))
}

/// Whether its entries are the rows: those of InnoDB's primary key.
fn is_the_table(index: &Relation) -> bool {
    index.definition.as_deref().is_some_and(|definition| definition.contains(" ADD PRIMARY KEY "))
}

/// Whether each row has one entry in it; what has no definition could not be made again, either.
pub(super) fn is_plain(index: &Relation) -> bool {
    // SQL Server's definitions are of B-trees and name no method.
    let is_btree = |rest: &str| rest.starts_with("btree ") || rest.starts_with('[');
    shape(index).is_some_and(|(_, rest)| is_btree(rest) && !rest.contains(" WHERE "))
}

/// Those of a run, the ones with the most entries first. An index that enforces a constraint has its use. Of several that are the
/// same one stays: the one that enforces something, else the one with the most scans.
pub(crate) fn useless(evidence: &Evidence) -> Vec<Useless<'_>> {
    let (Some((before, _)), Some((after, _))) =
        (evidence.relations(CaptureTime::Before), evidence.relations(CaptureTime::After))
    else {
        return Vec::new();
    };
    let earlier =
        |one: &Relation| before.iter().find(|other| other.kind == one.kind && other.name == one.name);
    let entries = |index: &Relation| {
        let table = after
            .iter()
            .find(|one| one.kind == "table" && Some(one.name.as_str()) == index.table.as_deref())?;
        Some(entries_of(index, Written::since(table, before)?, before))
    };
    let scans = |index: &Relation| Some(index.index_scans?.saturating_sub(earlier(index)?.index_scans?));
    let mut indexes: Vec<(&Relation, u64, u64)> = after
        .iter()
        .filter(|one| one.kind == "index" && is_plain(one))
        .filter_map(|index| Some((index, entries(index)?, scans(index)?)))
        .collect();
    // Who stays comes first.
    indexes.sort_by_key(|(index, _, scans)| {
        (index.enforces != Some(true), std::cmp::Reverse(*scans), index.name.clone())
    });
    let uses = engine_advice(evidence).statistics().index_uses;
    let mut kept: Vec<&Relation> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (index, entries, scans) in indexes {
        let shape = shape(index);
        let twin = shape.filter(|shape| !seen.insert(*shape)).and_then(|of| {
            kept.iter().find(|other| self::shape(other) == Some(of)).map(|other| other.name.as_str())
        });
        kept.push(index);
        let useless = (twin.is_some() || scans == 0) && index.enforces == Some(false) && entries >= ENTRIES;
        if useless {
            found.push(Useless { index, twin, entries, scans, uses });
        }
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.entries));
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::staged::{Staged, index, table};
    use super::*;

    /// A table with these indexes, of which each has a name, columns, whether it enforces something, and scans during the load.
    pub(crate) fn load(indexes: &[(&str, &str, bool, u64)], inserted: u64) -> Evidence {
        load_at(indexes, inserted, 0.0)
    }

    /// The same with sessions that wait for rows, beside four on the CPU.
    pub(crate) fn load_at(indexes: &[(&str, &str, bool, u64)], inserted: u64, waiting: f64) -> Evidence {
        let writes =
            |inserted| Some(TableWrites { inserted, updated: 0, updated_in_page: 0, fillfactor: 100 });
        let of = |after: bool| {
            let stock = Relation {
                writes: writes(if after { 500 + inserted } else { 500 }),
                ..table("public.stock", 100_000, 0)
            };
            let each = indexes.iter().map(|(name, columns, enforces, scans)| Relation {
                definition: Some(format!("CREATE INDEX {name} ON public.stock USING btree ({columns})")),
                enforces: Some(*enforces),
                index_scans: Some(7 + if after { *scans } else { 0 }),
                ..index(&format!("public.{name}"), "public.stock")
            });
            std::iter::once(stock).chain(each).collect::<Vec<_>>()
        };
        let sessions =
            [("client backend", "CPU", "", 4.0), ("client backend", "Lock", "transactionid", waiting)];
        let mut insert = super::super::staged::statement(1, 900.0, 100, "a", &[]);
        insert.text = "insert into stock values ($1)".into();
        Staged::new()
            .statements(vec![insert])
            .sessions(&sessions, &[])
            .relations(CaptureTime::Before, of(false), 1 << 30)
            .relations(CaptureTime::After, of(true), 1 << 30)
            .done()
    }

    #[test]
    fn of_two_that_are_the_same_the_one_that_serves_stays() {
        let two =
            load(&[("a", "s_i_id", false, 10), ("b", "s_i_id", false, 90), ("pk", "s_w_id", true, 0)], 5000);
        let found = useless(&two);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].index.name.as_str(), found[0].twin), ("public.a", Some("public.b")));
        let unique = load(&[("a", "s_i_id", false, 90), ("pk", "s_i_id", true, 1)], 5000);
        assert_eq!(useless(&unique)[0].index.name, "public.a");
    }

    #[test]
    fn what_serves_or_costs_nothing_is_none() {
        assert!(useless(&load(&[("a", "s_i_id", false, 1)], 5000)).is_empty());
        assert!(useless(&load(&[("a", "s_i_id", false, 0)], 500)).is_empty());
        assert_eq!(useless(&load(&[("a", "s_i_id", false, 0)], 5000))[0].twin, None);
        let partial = [("a", "s_i_id) WHERE (s_w_id = 1", false, 0)];
        assert!(useless(&load(&partial, 5000)).is_empty(), "how many rows it has is not known");
    }
}
