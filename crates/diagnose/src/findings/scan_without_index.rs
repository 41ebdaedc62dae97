//! Is a large table scanned again and again because an index is missing?
//!
//! The tables' own counters show it also where the statements are calls of functions: sequential scans × rows. Small
//! tables are scanned because that is fastest, and are left out; so are the few scans of a check. Two more things show
//! that an index is gone where another one takes its place badly: the rows that a TPROC-C transaction reads, whose number
//! its rules decide, and an index that served an earlier run and is not there any more.

use kelvin_measure::{labels, text};
use std::collections::BTreeSet;

use kelvin_measure::observation::{CaptureTime, Relation, StatementTotals};
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "scan-without-index",
    question: "Is a large table scanned because an index is missing?",
    find,
};

/// Rows from which a scan is never the best way to few of them: some hundred pages.
const LARGE: u64 = 10_000;
/// Rows scanned for each transaction from which it is not what the workload does: TPC-C's New-Order touches some 46 rows,
/// its Stock-Level some 400 (TPC-C 2.4, 2.8).
const ROWS: f64 = 1000.0;
/// Scans for each transaction below which it may be a check or a report beside the load. TPROC-C's rarer transactions are
/// 4 % each.
const SCANS: f64 = 0.005;

/// Relations that the observer lists at most.
const MOST: usize = 200;

/// A table that was scanned.
struct Scanned<'a> {
    table: &'a Relation,
    rows: u64,
    scans: u64,
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    // Their work is to read whole tables.
    if [labels::SCAN, labels::TPROC_H].contains(&evidence.context.workload.as_str()) {
        return Vec::new();
    }
    if let Some(scanned) = scanned(evidence) {
        return vec![finding(evidence, &scanned)];
    }
    gone(evidence)
        .or_else(|| evidence.points().find_map(|point| reads(evidence, point)))
        .into_iter()
        .collect()
}

/// Whether this finding is there and red.
pub(super) fn is_red(evidence: &Evidence) -> bool {
    find(evidence).iter().any(|finding| finding.severity == Severity::Red)
}

/// Rows that the transactions of TPROC-C read through indexes, at most, by name: what each looks up and what it updates, with
/// the largest numbers that its rules allow (TPC-C 2.4 to 2.8; TPROCC.md).
const TRANSACTIONS: [(&str, f64); 5] = [
    ("New-Order", 70.0),
    ("Payment", 12.0),
    ("Delivery", 300.0),
    ("Stock-Level", 650.0),
    ("Order-Status", 30.0),
];
/// Multiple from which the rows read are too many: old row versions are read as well.
const TOO_MANY: f64 = 3.0;

/// Too many rows for each transaction of TPROC-C.
fn reads(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    if evidence.context.workload != "tproc-c" {
        return None;
    }
    let (mut transactions, mut expected) = (0.0, 0.0);
    for (series, kind) in
        evidence.context.series.iter().zip(&point.kinds).filter(|(series, _)| series.is_transaction())
    {
        let (_, rows) = TRANSACTIONS.iter().find(|(name, _)| *name == series.name)?;
        let good = kind.good() as f64;
        transactions += good;
        expected += rows * good;
    }
    let window = evidence.window(point.point)?;
    let read = evidence.mean_of_first_known(point.point, metric::ROWS_SCANNED)? * window.seconds();
    // Fewer can come from a catalogue query or a check during the load.
    if transactions < 100.0 || read < TOO_MANY * expected {
        return None;
    }
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Red,
        point: Some(point.point),
        title: format!(
            "{} rows were read per transaction; TPROC-C needs at most {} on average",
            text::rounded(read / transactions),
            text::rounded(expected / transactions)
        ),
        evidence: vec![
            EvidenceLine::new(
                "rows read by scans of tables and indexes",
                format!("{} in the window", text::rounded(read)),
            ),
            EvidenceLine::new("transactions", text::rounded(transactions)),
        ],
        effect: Effect::unknown("rows are counted, but the time to read them is not measured"),
        below_precision: false,
        threshold: "three times the rows that the transaction mix reads by its specification (TPC-C 2.4 to \
        2.8)"
            .into(),
        next: "Compare the tables' indexes with those that `kelvin build tproc-c` creates, and look at the \
            plans of the statements: an index is missing, or a different one is used; the statistics of a \
            table may be missing."
            .into(),
    })
}

/// An index that served the earlier run and is gone.
fn gone(evidence: &Evidence) -> Option<Finding> {
    let earlier = evidence.earlier.as_ref()?;
    let (before, _) = earlier.relations(CaptureTime::Before)?;
    let (after, _) = earlier.relations(CaptureTime::After)?;
    let (now, _) = evidence.relations(CaptureTime::Before)?;
    // Of a database with more of them the list ends somewhere, and what is not in it may be there.
    if now.len() >= MOST || !now.iter().any(|r| r.kind == "index") {
        return None;
    }
    let served = |index: &&Relation| {
        let scans =
            |of: &[Relation]| of.iter().find(|r| r.kind == "index" && r.name == index.name)?.index_scans;
        scans(after) > scans(before)
    };
    // Its table must still be there, or the whole schema is another one.
    let missing = |index: &&Relation| {
        let table = index.table.as_deref();
        !now.iter().any(|r| r.name == index.name)
            && now.iter().any(|r| r.kind == "table" && Some(r.name.as_str()) == table)
    };
    // Its likes may have been made again under another name.
    let as_many = |table: Option<&str>| {
        let count =
            |of: &[Relation]| of.iter().filter(|r| r.kind == "index" && r.table.as_deref() == table).count();
        count(now) >= count(before)
    };
    let index = before
        .iter()
        .filter(|r| r.kind == "index")
        .filter(served)
        .filter(missing)
        .find(|r| !as_many(r.table.as_deref()))?;
    let table = index.table.clone().unwrap_or_default();
    let run = earlier.context.run.map_or("the earlier run".into(), |run| format!("run {run}"));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Red,
        point: None,
        title: format!("The index {} on {table}, which {run} used, no longer exists", index.name),
        evidence: vec![EvidenceLine::new(
            format!("indexes on {table} that {run} had and this run does not have"),
            dropped(evidence, &table).join(", "),
        )],
        effect: Effect::unknown("the statements' time with the index was not measured in this run"),
        below_precision: false,
        threshold: "an index that was scanned in the previous run, on a table that has fewer indexes now"
            .into(),
        next: format!(
            "Create {} again and repeat the run; if it was dropped on purpose, it is the factor between the \
            two runs.",
            index.name
        ),
    })
}

/// Transactions of the whole load, ramp-up included: the counters cover all of it.
fn transactions(evidence: &Evidence) -> f64 {
    let all = evidence.points().flat_map(|point| point.seconds.values());
    all.map(|second| (second.good + second.failed) as f64).sum()
}

/// The table of which the most rows were scanned, if those were too many.
fn scanned(evidence: &Evidence) -> Option<Scanned<'_>> {
    let (before, _) = evidence.relations(CaptureTime::Before)?;
    let (after, _) = evidence.relations(CaptureTime::After)?;
    let transactions = transactions(evidence);
    let mut worst: Option<(f64, Scanned)> = None;
    for table in after.iter().filter(|r| r.kind == "table" && !r.name.starts_with("pg_catalog.")) {
        let Some(earlier) = before.iter().find(|r| r.kind == "table" && r.name == table.name) else {
            continue;
        };
        // The size before the load, if known: a table that grew was smaller for some of its scans.
        let rows = earlier.rows.filter(|rows| *rows > 0).or(table.rows);
        let (Some(rows), Some(first), Some(last)) = (rows, earlier.sequential_scans, table.sequential_scans)
        else {
            continue;
        };
        let scans = last.saturating_sub(first);
        let read = scans as f64 * rows as f64;
        let much =
            rows >= LARGE && scans as f64 >= (SCANS * transactions).max(3.0) && read >= ROWS * transactions;
        if much && worst.as_ref().is_none_or(|(most, _)| read > *most) {
            worst = Some((read, Scanned { table, rows, scans }));
        }
    }
    worst.map(|(_, scanned)| scanned)
}

fn same_table(index: &Relation, table: &str) -> bool {
    index.kind == "index"
        && index.table.as_deref().is_some_and(|of| of == table || table.ends_with(&format!(".{of}")))
}

/// Indexes that an earlier run had on the table and this one has not.
fn dropped(evidence: &Evidence, table: &str) -> Vec<String> {
    let indexes = |evidence: &Evidence| -> BTreeSet<String> {
        let relations = evidence.relations(CaptureTime::Before).map_or(&[][..], |(relations, _)| relations);
        relations.iter().filter(|r| same_table(r, table)).map(|r| r.name.clone()).collect()
    };
    let Some(earlier) = &evidence.earlier else { return Vec::new() };
    let read = |(relations, _): (&[Relation], u64)| relations.iter().any(|r| r.kind == "index");
    if !evidence.relations(CaptureTime::Before).is_some_and(read) {
        return Vec::new();
    }
    let now = indexes(evidence);
    indexes(earlier).into_iter().filter(|name| !now.contains(name)).collect()
}

/// Whether a statement's plan has a sequential scan of the table.
fn scans_whole(statement: &StatementTotals, table: &str) -> bool {
    let same = |name: &str| name == table || table.ends_with(&format!(".{name}"));
    let mut scans = statement.plan.iter().flat_map(|plan| &plan.scans);
    scans.any(|scan| scan.node == "Seq Scan" && same(&scan.relation))
}

/// Statements of any point with a sequential scan of the table in their plan, the longest first.
fn statements(evidence: &Evidence, table: &str) -> Vec<EvidenceLine> {
    let mut facts = Vec::new();
    for point in evidence.points() {
        let Some((statements, total)) = evidence.statements(point.point) else { continue };
        for statement in statements.iter().filter(|one| scans_whole(one, table)) {
            let text = text::statement(&statement.text);
            let share = statement.total_ms / total.max(f64::MIN_POSITIVE);
            facts.push(EvidenceLine::new(
                format!("statement with a sequential scan of it: {text}"),
                format!(
                    "{} calls, {} ms each, {} of all statement time",
                    text::rounded(statement.calls as f64),
                    text::number(statement.total_ms / statement.calls.max(1) as f64),
                    text::percent(share)
                ),
            ));
        }
    }
    facts.truncate(3);
    facts
}

/// The part of the statements' time in those that scan the table, over the points with statements.
fn statement_share(evidence: &Evidence, table: &str) -> Effect {
    let each = evidence.points().filter_map(|point| {
        let (statements, total) = evidence.statements(point.point)?;
        let its: f64 = statements.iter().filter(|one| scans_whole(one, table)).map(|one| one.total_ms).sum();
        (its > 0.0).then(|| its / total.max(f64::MIN_POSITIVE))
    });
    let most = each.reduce(f64::max);
    Effect::up_to_or(
        most,
        EffectBasis::StatementTime,
        "the plans of the statements that scan it are not known",
    )
}

fn finding(evidence: &Evidence, scanned: &Scanned) -> Finding {
    let table = &scanned.table.name;
    let rows = scanned.rows as f64;
    let transactions = transactions(evidence).max(1.0);
    let dropped = dropped(evidence, table);
    let served = evidence
        .earlier
        .as_ref()
        .is_some_and(|earlier| scanned_less(earlier, table, scanned.scans, transactions));
    let built_in =
        matches!(evidence.context.workload.as_str(), "tproc-c" | "pgbench") && !own_scripts(evidence);
    let red = built_in || !dropped.is_empty() || served;
    let mut facts = vec![
        EvidenceLine::new(
            format!("sequential scans of {table} during the load"),
            format!("{}, of {} rows each", text::rounded(scanned.scans as f64), text::rounded(rows)),
        ),
        EvidenceLine::new(
            "rows scanned per transaction",
            format!(
                "{} ({} transactions)",
                text::rounded(scanned.scans as f64 * rows / transactions),
                text::rounded(transactions)
            ),
        ),
    ];
    if !dropped.is_empty() {
        facts.push(EvidenceLine::new(
            "indexes that the earlier run had and this run does not have",
            dropped.join(", "),
        ));
    }
    if served {
        facts.push(EvidenceLine::new("in the earlier run", "it was not scanned this much"));
    }
    facts.extend(statements(evidence, table));
    let next = if dropped.is_empty() {
        format!(
            "Look at the plans of the statements that read {table} (`explain`), compare its indexes with the \
            workload's, and create the missing one; the table's statistics may be missing."
        )
    } else {
        format!("Create {} on {table} again and repeat the run.", dropped.join(", "))
    };
    Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!(
            "The table {table} ({} rows) was scanned completely {} times during the load",
            text::rounded(rows),
            text::rounded(scanned.scans as f64)
        ),
        evidence: facts,
        effect: statement_share(evidence, table),
        below_precision: false,
        threshold: "a table of 10,000 rows or more, scanned in 0.5 % of the transactions or more, with 1000 \
            rows per transaction (TPC-C's largest transaction reads about 400); red if no statement of the \
            workload needs the scan, or an earlier run did not scan it"
            .into(),
        next,
    }
}

/// Whether the workload is the user's own text, which may scan on purpose.
pub(super) fn own_scripts(evidence: &Evidence) -> bool {
    let scripts = evidence.context.spec("/pgbench/scripts").and_then(serde_json::Value::as_array);
    scripts.is_some_and(|scripts| scripts.iter().any(|script| script.get("text").is_some()))
}

/// Whether the table had less than a tenth of the scans for each transaction in the earlier run.
fn scanned_less(earlier: &Evidence, table: &str, scans: u64, per: f64) -> bool {
    let count = |when| {
        let (relations, _) = earlier.relations(when)?;
        relations.iter().find(|r| r.kind == "table" && r.name == table)?.sequential_scans
    };
    let (Some(first), Some(last)) = (count(CaptureTime::Before), count(CaptureTime::After)) else {
        return false;
    };
    let before = transactions(earlier);
    before > 0.0 && last.saturating_sub(first) as f64 / before < 0.1 * scans as f64 / per
}

#[cfg(test)]
mod tests {
    use super::super::staged::{Staged, index, statement, table};
    use super::*;

    fn run(workload: &str, customer_scans: u64) -> Staged {
        let relations = |scans, district| {
            vec![
                table("public.customer", 60_000, scans),
                table("public.district", 20, district),
                table("public.stock", 200_000, 4),
            ]
        };
        Staged::workload(workload, 8, 2).relations(CaptureTime::Before, relations(3, 10), 1 << 28).relations(
            CaptureTime::After,
            relations(3 + customer_scans, 200_000),
            1 << 28,
        )
    }

    #[test]
    fn a_dropped_index_is_red_by_the_counters_alone() {
        let found = find(&run("tproc-c", 2000).done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert!(found[0].title.contains("public.customer"), "{}", found[0].title);
    }

    #[test]
    fn the_earlier_run_names_the_index_and_plans_the_statement() {
        let earlier = run("script", 0)
            .relations(
                CaptureTime::Before,
                vec![table("public.customer", 60_000, 0), index("public.customer_name", "public.customer")],
                1,
            )
            .done();
        let indexes =
            vec![table("public.customer", 60_000, 3), index("public.customer_key", "public.customer")];
        let now = run("script", 2000)
            .relations(CaptureTime::Before, indexes, 1)
            .statements(vec![
                statement(1, 900.0, 300, "a", &[("Seq Scan", "customer")]),
                statement(2, 9.0, 300, "b", &[("Index Scan", "stock")]),
            ])
            .earlier(earlier);
        let found = find(&now.done());
        assert_eq!(found[0].severity, Severity::Red);
        assert!(found[0].next.contains("public.customer_name"), "{}", found[0].next);
        let statements: Vec<_> =
            found[0].evidence.iter().filter(|f| f.what.starts_with("statement")).collect();
        assert_eq!(statements.len(), 1);
    }

    #[test]
    fn a_script_of_the_users_own_may_scan() {
        assert_eq!(find(&run("script", 2000).done())[0].severity, Severity::Amber);
        assert_eq!(
            find(&run("script", 2000).earlier(run("script", 3).done()).done())[0].severity,
            Severity::Red
        );
        assert_eq!(
            find(&run("script", 2000).earlier(run("script", 1900).done()).done())[0].severity,
            Severity::Amber
        );
    }

    #[test]
    fn an_index_that_served_and_is_gone_is_red() {
        let schema = |scans, with: bool| {
            let name =
                Relation { index_scans: Some(scans), ..index("public.customer_name", "public.customer") };
            let key = index("public.customer_key", "public.customer");
            let table = table("public.customer", 60_000, 0);
            if with { vec![table, key, name] } else { vec![table, key] }
        };
        let earlier = |last| {
            Staged::new()
                .relations(CaptureTime::Before, schema(5, true), 1)
                .relations(CaptureTime::After, schema(last, true), 1)
                .done()
        };
        let now = |with| Staged::new().relations(CaptureTime::Before, schema(9, with), 1);
        let found = find(&now(false).earlier(earlier(700)).done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert!(found[0].title.contains("public.customer_name"), "{}", found[0].title);
        assert!(find(&now(true).earlier(earlier(700)).done()).is_empty());
        assert!(find(&now(false).earlier(earlier(5)).done()).is_empty());
    }

    /// As seen of PostgreSQL 15: 38 rows a transaction, and 890 without the index of the customers' names.
    #[test]
    fn rows_read_wholesale_are_red() {
        let run = |rows: f64| find(&Staged::new().metric("postgres.tuples.returned", rows * 1000.0).done());
        assert_eq!(run(890.0)[0].severity, Severity::Red);
        assert!(run(38.0).is_empty());
        assert!(
            find(&Staged::workload("script", 8, 4).metric("postgres.tuples.returned", 890_000.0).done())
                .is_empty()
        );
    }

    #[test]
    fn small_tables_and_a_checks_scans_are_healthy() {
        assert!(find(&run("tproc-c", 0).done()).is_empty());
        assert!(find(&run("tproc-c", 25).done()).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
        let only_before =
            Staged::new().relations(CaptureTime::Before, vec![table("public.customer", 60_000, 9)], 1);
        assert!(find(&only_before.done()).is_empty());
    }
}
