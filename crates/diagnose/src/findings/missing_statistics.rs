//! Does the planner know the tables it plans for?

use kelvin_measure::observation::{CaptureTime, Relation, StatementTotals};
use kelvin_measure::text;

use super::FindingDefinition;
use crate::engine::engine_advice;
use crate::noise::WANTED;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "missing-statistics",
    question: "Does the planner have statistics for every table?",
    find,
};

/// Rows from which a guess matters: smaller tables are a page or few, whatever the plan.
const ROWS: u64 = 1000;
/// Blocks that a statement reads for each row that it returns from which its plan is probably not the best one: an index of four
/// levels and the row itself are five, and this is ten times as many.
const BLOCKS: f64 = 50.0;
/// Share of the statements' time in such statements: what another plan leaves of them is not known, but it is at most a third where
/// this number of blocks is read in vain.
const SHARE: f64 = 3.0 * WANTED;

/// Whether it may return few rows of many whatever its plan is: it aggregates, or leaves duplicates out.
fn summarizes(sql: &str) -> bool {
    const WORDS: [&str; 6] = ["distinct", "exists", "group by", "having", "intersect", "except"];
    let text = sql.to_lowercase();
    let is_name = |one: char| one.is_alphanumeric() || one == '_';
    // What is called with what is in the parentheses.
    let mut before = text.split('(');
    before.next_back();
    let calls = before.any(|part| {
        let word = part.trim_end().rsplit(|one| !is_name(one)).next().unwrap_or_default();
        let aggregates = ["count", "sum", "avg", "min", "max", "every"];
        aggregates.contains(&word) || word.ends_with("_agg") || word.starts_with("bool_")
    });
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    calls || WORDS.iter().any(|word| flat.contains(word))
}

/// Statements with plans that read a table without statistics, and far more of it than they return; with the share of the statements' time
/// that they take. Those that summarize are none: they read much and return little with the best plan, too.
fn costly<'a>(evidence: &'a Evidence, tables: &[&Relation]) -> Option<(f64, &'a StatementTotals)> {
    let of_point = |point: u32| {
        let (statements, total) = evidence.statements(point)?;
        let blocks = |one: &StatementTotals| Some(one.blocks_hit? + one.blocks_read?);
        let is_costly = |one: &&StatementTotals| {
            let plan = one.plan.as_ref().map_or(&[][..], |plan| &plan.scans);
            let guessed = plan.iter().any(|scan| tables.iter().any(|table| table.name == scan.relation));
            let each =
                blocks(one).map_or(0.0, |blocks| blocks as f64 / one.rows.max(one.calls).max(1) as f64);
            guessed && each >= BLOCKS && !summarizes(&one.text)
        };
        let time: f64 = statements.iter().filter(is_costly).map(|one| one.total_ms).sum();
        let first = statements.iter().find(is_costly)?;
        (total > 0.0).then_some((time / total, first))
    };
    evidence.points().filter_map(|point| of_point(point.point)).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Changes after which SQL Server takes a table's statistics for stale, from compatibility level 130 on.
fn too_many(rows: u64) -> u64 {
    ((rows as f64 * 1000.0).sqrt()).min(500.0 + 0.2 * rows as f64) as u64
}

/// Tables for which statistics should have been made before the load. SQL Server makes them when a statement needs them, unless that is
/// off; it does not renew stale ones, either, then.
pub(crate) fn tables(evidence: &Evidence) -> Vec<&Relation> {
    let Some((relations, _)) = evidence.relations(CaptureTime::Before) else { return Vec::new() };
    let automatic = engine_advice(evidence).statistics().automatic;
    if automatic.is_some_and(|setting| evidence.setting(setting) != Some("off")) {
        return Vec::new();
    }
    let wanted = |table: &&Relation| {
        let Some(rows) = table.rows.filter(|rows| table.kind == "table" && *rows >= ROWS) else {
            return false;
        };
        let stale = automatic.is_some()
            && table.changed_since_analyze.is_some_and(|changes| changes > too_many(rows));
        stale || table.analyzed == Some(false)
    };
    relations.iter().filter(wanted).collect()
}

/// Of a server that makes and renews them itself, unless that is off.
fn of_automatic(tables: &[&Relation]) -> Finding {
    let rows = |value: Option<u64>| text::rounded(value.unwrap_or(0) as f64);
    let fact = |table: &&Relation| {
        let state = match table.changed_since_analyze.filter(|_| table.analyzed == Some(true)) {
            Some(changes) => {
                let ago = table
                    .analyzed_ago
                    .map_or_else(String::new, |ago| format!(" {} ago", text::duration(ago)));
                format!("{} changes since they were updated{ago}", rows(Some(changes)))
            }
            None => "no statistics".into(),
        };
        EvidenceLine::new(table.name.clone(), format!("{} rows, {state}", rows(table.rows)))
    };
    let mut facts = vec![EvidenceLine::new("AUTO_UPDATE_STATISTICS", "off")];
    facts.extend(tables.iter().take(10).map(fact));
    Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!(
            "{} had missing or stale statistics when the load began: {}",
            text::count(tables.len(), "table"),
            text::few(tables.iter().map(|table| &table.name), 3)
        ),
        evidence: facts,
        effect: Effect::unknown("the plans based on new statistics were not run"),
        below_precision: false,
        threshold: "AUTO_UPDATE_STATISTICS is off, and a table of 1000 rows or more has no statistics, or \
        had more changes than the threshold of the automatic update: the smaller of 500 + 20 % of its rows \
        and the square root of 1,000 × its rows"
            .into(),
        next: "Run `UPDATE STATISTICS` on the tables after loading, and set AUTO_UPDATE_STATISTICS on, unless a job renews them.".into(),
    }
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    let tables = tables(evidence);
    if tables.is_empty() {
        return Vec::new();
    }
    let engine = engine_advice(evidence).statistics();
    if engine.automatic.is_some() {
        return vec![of_automatic(&tables)];
    }
    let fact = |table: &&Relation| {
        EvidenceLine::new(
            table.name.clone(),
            format!("{} rows, no statistics", text::rounded(table.rows.unwrap_or(0) as f64)),
        )
    };
    let names: Vec<&str> = tables.iter().take(3).map(|table| table.name.as_str()).collect();
    let more = if tables.len() > names.len() { ", …" } else { "" };
    let costly = costly(evidence, &tables);
    let mut facts: Vec<EvidenceLine> = tables.iter().take(10).map(fact).collect();
    if let Some((share, statement)) = costly {
        let blocks = statement.blocks_hit.unwrap_or(0) + statement.blocks_read.unwrap_or(0);
        facts.push(EvidenceLine::new(
            format!("reads much and returns little: {}", text::statement(&statement.text)),
            format!(
                "{} blocks for {} in {} calls",
                text::rounded(blocks as f64),
                text::count(statement.rows as usize, "row"),
                text::rounded(statement.calls as f64)
            ),
        ));
        facts.push(EvidenceLine::new("share of such statements", text::percent(share)));
    }
    let red = costly.is_some_and(|(share, _)| share >= SHARE);
    vec![Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!(
            "{} had no statistics when the load began: {}{more}",
            text::count(tables.len(), "table"),
            names.join(", ")
        ),
        evidence: facts,
        effect: Effect::up_to_or(
            costly.map(|(share, _)| share),
            EffectBasis::StatementTime,
            "the plans based on statistics were not run",
        ),
        below_precision: false,
        threshold: format!(
            "a table of 1000 rows or more without planner statistics: its plans rely on guesses, and \
            may change during the run {}; red if statements that read such a table take \
            30 % of the statements' time and read 50 blocks or more for each row that they return, excluding \
            aggregates",
            engine.plans_change
        ),
        next: engine.after_loading.into(),
    }]
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::Relation;

    use super::super::staged::{Staged, table};
    use super::*;

    fn found(analyzed: Option<bool>, rows: u64) -> Vec<Finding> {
        let stock = Relation { analyzed, ..table("public.stock", rows, 0) };
        find(
            &Staged::new()
                .relations(CaptureTime::Before, vec![stock, table("public.item", 100_000, 0)], 1)
                .done(),
        )
    }

    #[test]
    fn a_table_without_statistics_is_amber() {
        let one = found(Some(false), 100_000);
        assert_eq!((one.len(), one[0].severity), (1, Severity::Amber));
        assert!(one[0].title.contains("public.stock") && !one[0].title.contains("item"));
    }

    #[test]
    fn stale_statistics_of_sql_server_are_amber_where_it_does_not_renew_them() {
        let found = |automatic: &str, changed: u64| {
            let stock = Relation {
                analyzed: Some(true),
                changed_since_analyze: Some(changed),
                analyzed_ago: Some(7200.0),
                ..table("dbo.stock", 100_000, 0)
            };
            let staged = Staged::new().environment(serde_json::json!({"engine": "sqlserver"}));
            let staged = staged.setting("is_auto_update_stats_on", automatic).relations(
                CaptureTime::Before,
                vec![stock],
                1,
            );
            let evidence = staged.done();
            let found = find(&evidence);
            (crate::remedies(&evidence, &found), found)
        };
        let (remedies, stale) = found("off", 20_000);
        assert_eq!(stale[0].severity, Severity::Amber);
        assert_eq!(
            stale[0].evidence[1].found,
            "100,000 rows, 20,000 changes since they were updated 2 h 00 min ago"
        );
        assert_eq!(remedies[0].title, "update the statistics of dbo.stock");
        // The square root of a hundred million.
        assert!(found("off", 10_000).1.is_empty());
        assert!(found("on", 20_000).1.is_empty());
    }

    #[test]
    fn statements_that_read_much_of_it_for_little_are_red() {
        let found = |blocks: u64, ms: f64| {
            let scan = [("Index Scan", "public.stock")];
            let mut one = crate::findings::staged::statement(1, ms, 100, "a", &scan);
            (one.blocks_hit, one.blocks_read) = (Some(blocks), Some(0));
            let other =
                crate::findings::staged::statement(2, 100.0, 100, "b", &[("Index Scan", "public.item")]);
            let stock = Relation { analyzed: Some(false), ..table("public.stock", 100_000, 0) };
            let staged = Staged::new().relations(CaptureTime::Before, vec![stock], 1);
            find(&staged.statements(vec![one, other]).done()).remove(0)
        };
        assert_eq!(found(200_000, 900.0).severity, Severity::Red);
        assert_eq!(found(200_000, 900.0).effect.high(), Some(0.9));
        assert_eq!(found(200_000, 20.0).severity, Severity::Amber, "little of the time");
        assert_eq!(found(500, 900.0).severity, Severity::Amber, "five blocks a row");
    }

    #[test]
    fn aggregates_read_much_for_one_row_with_statistics_too() {
        for sql in [
            "select count(*) from stock",
            "SELECT w, SUM (q) FROM stock",
            "select distinct s_i_id from stock",
            "select a from stock group\n by a",
            "select array_agg(a) from stock",
        ] {
            assert!(summarizes(sql), "{sql}");
            let scan = [("Seq Scan", "public.stock")];
            let mut one = crate::findings::staged::statement(1, 900.0, 100, "a", &scan);
            one.text = sql.into();
            (one.blocks_hit, one.blocks_read) = (Some(200_000), Some(0));
            let stock = Relation { analyzed: Some(false), ..table("public.stock", 100_000, 0) };
            let staged = Staged::new().relations(CaptureTime::Before, vec![stock], 1).statements(vec![one]);
            assert_eq!(find(&staged.done())[0].severity, Severity::Amber, "{sql}");
        }
        for sql in
            ["select id, pad from parcel where state = $1 and (customer = $2)", "select s_max from stock"]
        {
            assert!(!summarizes(sql), "{sql}");
        }
    }

    #[test]
    fn small_known_or_unseen_tables_are_nothing() {
        assert!(
            found(Some(false), 40).is_empty()
                && found(Some(true), 100_000).is_empty()
                && found(None, 100_000).is_empty()
        );
        assert!(find(&Staged::new().done()).is_empty());
    }
}
