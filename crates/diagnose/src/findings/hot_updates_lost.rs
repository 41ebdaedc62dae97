//! Did updates find no room in their page, so that every index had to be written?
//!
//! PostgreSQL leaves the indexes alone if an updated row's new version is on the same page and no indexed column has changed
//! (HOT). A page that is filled to 100 % has no room for it until it is pruned, which a long transaction prevents.

use std::collections::BTreeSet;

use kelvin_measure::observation::{CaptureTime, Relation};
use kelvin_measure::text;

use super::FindingDefinition;
use super::useless_indexes::{self, written};
use crate::noise::WANTED;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "hot-updates-lost",
    question: "Did updates of hot tables find room in their pages?",
    find,
};

/// Updates over the load from which the share means something.
const UPDATES: u64 = 10_000;
/// Updates for each row: below, most rows are changed for the first time since the table was loaded, and a packed page has never
/// room then.
const PER_ROW: f64 = 1.0;
/// Share of the updates that found room, below which the pages are too full: on a table that is updated over and over,
/// pruning makes room, and nearly all find it (pgbench's branches and tellers, PostgreSQL 15: over 95 %).
const FOUND: f64 = 0.5;
/// The fillfactor that is proposed: PostgreSQL's documentation names no number, pgbench's and others' experiments use 50 to 90 for
/// tables that are updated often; half of a page is room for a second version of each row.
pub(crate) const ROOM: u32 = 50;

/// A table whose updates found no room.
#[derive(Debug, Clone)]
pub(crate) struct Lost<'a> {
    /// After the load.
    pub(crate) table: &'a Relation,
    pub(crate) fillfactor: u32,
    updates: u64,
    in_page: u64,
    rows: u64,
    /// How many it has, of which each row has one entry.
    indexes: u64,
    /// Share of the statements' time in those that update it.
    time: f64,
}

impl Lost<'_> {
    /// Entries of indexes that were written only because of it: a row's first new version finds no room in a full page, whatever is done.
    fn entries(&self) -> u64 {
        self.updates.saturating_sub(self.in_page).saturating_sub(self.rows) * self.indexes
    }

    /// What is known of it.
    pub(crate) fn reason(&self) -> String {
        format!(
            "{} of {} updates found room in their page (fillfactor {})",
            text::percent(self.in_page as f64 / self.updates.max(1) as f64),
            text::rounded(self.updates as f64),
            self.fillfactor
        )
    }
}

/// Whether a text has this word.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|one| one == word)
}

/// Columns that the statements of the load set in a table, in lower case; none where that is not known: no statement sets any, or
/// one sets them in a way that is not read here.
fn sets(evidence: &Evidence, table: &str) -> Option<BTreeSet<String>> {
    let plain = table.rsplit('.').next().unwrap_or(table).to_lowercase();
    let mut columns = BTreeSet::new();
    for point in evidence.points() {
        let Some((statements, _)) = evidence.statements(point.point) else { continue };
        for statement in statements {
            columns.extend(set_by(&statement.text, &plain)?);
        }
    }
    (!columns.is_empty()).then_some(columns)
}

/// Columns that a statement sets in this table; none where it may set others.
fn set_by(sql: &str, table: &str) -> Option<Vec<String>> {
    let text = sql.to_lowercase().replace('"', "");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !has_word(&text, table) {
        return Some(Vec::new());
    }
    let Some((target, rest)) = text.strip_prefix("update ").and_then(|rest| rest.split_once(" set ")) else {
        // A lock of rows is none; ON CONFLICT DO UPDATE, MERGE and an UPDATE within WITH are.
        let locks = text.replace("for update", "").replace("for no key update", "");
        return (!has_word(&locks, "update") && !has_word(&locks, "merge")).then(Vec::new);
    };
    if !has_word(target, table) {
        return Some(Vec::new());
    }
    let list = rest.split(" where ").next().unwrap_or(rest);
    // (a, b) = …, and a subquery, whose WHERE is not the statement's.
    if list.starts_with('(') || list.contains(", (") || list.contains(",(") || has_word(list, "select") {
        return None;
    }
    let names = list.split(',').filter_map(|part| part.split_once('='));
    Some(names.map(|(name, _)| name.split(['[', '.']).next().unwrap_or(name).trim().to_owned()).collect())
}

/// Share of the statements' time in those that update a table.
fn time_of_updates(evidence: &Evidence, table: &str) -> f64 {
    let plain = table.rsplit('.').next().unwrap_or(table).to_lowercase();
    let of_point = |point: u32| {
        let (statements, total) = evidence.statements(point)?;
        let updates = |sql: &str| set_by(sql, &plain).is_some_and(|columns| !columns.is_empty());
        let time: f64 = statements.iter().filter(|one| updates(&one.text)).map(|one| one.total_ms).sum();
        (total > 0.0).then_some(time / total)
    };
    evidence.points().filter_map(|point| of_point(point.point)).fold(0.0, f64::max)
}

/// Tables whose updates found no room, those with the most updates first.
pub(crate) fn lost(evidence: &Evidence) -> Vec<Lost<'_>> {
    let (Some((before, _)), Some((after, _))) =
        (evidence.relations(CaptureTime::Before), evidence.relations(CaptureTime::After))
    else {
        return Vec::new();
    };
    let mut found: Vec<Lost<'_>> = after
        .iter()
        .filter_map(|table| {
            let then = before.iter().find(|one| one.kind == "table" && one.name == table.name)?.writes?;
            let now = table.writes?;
            let (updates, in_page) = (
                now.updated.saturating_sub(then.updated),
                now.updated_in_page.saturating_sub(then.updated_in_page),
            );
            let rows = table.rows.unwrap_or(0).max(1) as f64;
            // An update of an indexed column has to write the indexes, however much room there is.
            let is_its = |one: &&Relation| one.kind == "index" && one.table.as_deref() == Some(&table.name);
            let set = sets(evidence, &table.name);
            // What is not known is taken for an indexed column.
            let of_index = after.iter().filter(is_its).any(|index| match (&index.definition, &set) {
                (Some(definition), Some(set)) => {
                    let definition = definition.to_lowercase();
                    set.iter().any(|column| has_word(&definition, column))
                }
                _ => true,
            });
            let hot = updates >= UPDATES && updates as f64 / rows >= PER_ROW;
            let few = (in_page as f64) < FOUND * updates as f64;
            (hot && few && set.is_some() && !of_index && now.fillfactor > ROOM).then_some(Lost {
                table,
                fillfactor: now.fillfactor,
                updates,
                in_page,
                rows: rows as u64,
                indexes: after.iter().filter(is_its).filter(|index| useless_indexes::is_plain(index)).count()
                    as u64,
                time: time_of_updates(evidence, &table.name),
            })
        })
        .collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.updates));
    found
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    let found = lost(evidence);
    let Some(first) = found.first() else { return Vec::new() };
    let share = written(evidence).share(found.iter().map(Lost::entries).sum());
    let time: f64 = found.iter().map(|one| one.time).sum();
    let mut facts = vec![EvidenceLine::new(
        "index entries for them, of the row versions and index entries that the load wrote",
        text::percent(share),
    )];
    facts
        .push(EvidenceLine::new("statements that update them, of the statements' time", text::percent(time)));
    facts.extend(found.iter().take(5).map(|one| EvidenceLine::new(&one.table.name, one.reason())));
    vec![Finding {
        id: ABOUT.id,
        severity: if share * time.min(1.0) >= WANTED { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!("Updates of {} wrote its indexes, too: {}", first.table.name, first.reason()),
        evidence: facts,
        effect: Effect::unknown("the time that an update spends on indexes is not measured"),
        below_precision: false,
        threshold: "less than half of 10,000 updates or more, at least one per row, were HOT, although the \
            statements set no indexed column; red if the share of their index entries (minus one per row) in \
            all row versions and index entries that the load wrote, multiplied by the share of the \
            statements' time in these updates, is 10 % or more"
            .into(),
        next: format!(
            "Look for long transactions, which keep old versions in the pages; otherwise leave room in the \
            table's pages: ALTER TABLE {} SET (fillfactor = {ROOM}), then VACUUM FULL. `kelvin advise \
            --prove` measures the gain.",
            first.table.name
        ),
    }]
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{StatementTotals, TableWrites};

    use super::super::staged::{Staged, index, table};
    use super::*;

    fn load(rows: u64, updated: u64, in_page: u64, sql: &str) -> Vec<Finding> {
        load_beside(0.0, rows, updated, in_page, sql)
    }

    /// Beside others that take so many times its time.
    fn load_beside(others: f64, rows: u64, updated: u64, in_page: u64, sql: &str) -> Vec<Finding> {
        let of = |updated, updated_in_page| {
            let writes = TableWrites { inserted: 0, updated, updated_in_page, fillfactor: 100 };
            let definition =
                Some("CREATE UNIQUE INDEX p ON public.district USING btree (d_w_id, d_id)".into());
            vec![
                Relation { writes: Some(writes), ..table("public.district", rows, 0) },
                Relation { definition, ..index("public.p", "public.district") },
            ]
        };
        let statement =
            StatementTotals { text: sql.into(), calls: 1, total_ms: 1.0, ..StatementTotals::default() };
        let staged = Staged::new()
            .relations(CaptureTime::Before, of(5, 5), 1)
            .relations(CaptureTime::After, of(5 + updated, 5 + in_page), 1)
            .statements(vec![statement, super::super::staged::statement(2, others, 1, "SELECT $1", &[])]);
        find(&staged.done())
    }

    #[test]
    fn full_pages_of_a_hot_table_are_red_and_all_else_is_nothing() {
        const SQL: &str = "UPDATE district SET d_next_o_id = d_next_o_id + $1 WHERE d_w_id = $2";
        assert_eq!(
            set_by(
                "UPDATE \"district\"\n SET d_tax = $1,\n\td_ytd[1] = d_ytd[1] + $2 WHERE d_id = $3",
                "district"
            ),
            Some(vec!["d_tax".into(), "d_ytd".into()])
        );
        assert_eq!(set_by("SELECT 1 FROM district FOR UPDATE", "district"), Some(Vec::new()));
        let found = load(1000, 50_000, 10_000, SQL);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert!(found[0].title.contains("20 % of 50"), "{}", found[0].title);
        let severity = |found: Vec<Finding>| found[0].severity;
        assert_eq!(
            severity(load_beside(9.0, 1000, 50_000, 10_000, SQL)),
            Severity::Amber,
            "a tenth of the time"
        );
        assert_eq!(severity(load(10_000, 10_000, 4_900, SQL)), Severity::Amber, "first updates of each row");
        for (rows, updated, in_page, sql) in [
            (1000, 50_000, 48_000, SQL),
            (100_000, 50_000, 0, SQL),
            (1000, 5000, 0, SQL),
            (1000, 50_000, 0, "UPDATE district SET d_id = $1 WHERE d_w_id = $2"),
            (1000, 50_000, 0, "SELECT $1"),
            (1000, 50_000, 0, "update\n  \"district\"\n set\n \"d_id\" = $1\nwhere d_w_id = $2"),
            (1000, 50_000, 0, "UPDATE district SET (d_tax, d_id) = ($1, $2) WHERE d_w_id = $3"),
            (1000, 50_000, 0, "INSERT INTO district VALUES ($1) ON CONFLICT (d_id) DO UPDATE SET d_id = $2"),
            (
                1000,
                50_000,
                0,
                "MERGE INTO district USING s ON d_id = $1 WHEN MATCHED THEN UPDATE SET d_id = $2",
            ),
        ] {
            assert!(load(rows, updated, in_page, sql).is_empty(), "{rows} {updated} {in_page} {sql}");
        }
    }
}
