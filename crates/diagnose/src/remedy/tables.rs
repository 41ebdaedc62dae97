//! Statistics and options of tables.

use kelvin_measure::text;

use super::{Change, Remedy, Rules, finding};
use crate::engine::engine_advice;
use crate::findings::{hot_updates_lost, missing_statistics, stale_statistics};
use crate::{Effect, EffectBasis, Evidence, Finding};

/// Tables for which an option or statistics are proposed at most.
const MOST: usize = 5;
const NOT_RUN: &str = "the plans based on statistics were not run";

pub(super) fn remedies(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    let mut all: Vec<Remedy> = stale(evidence).into_iter().collect();
    all.extend(statistics(evidence, found));
    all.extend(fillfactor(evidence));
    all.extend(filled_pages(evidence, found));
    all.extend(released(found));
    all
}

/// Row versions that a session, a prepared transaction or a slot holds: whether it may be ended is not Kelvin's to know.
fn released(found: &[Finding]) -> impl Iterator<Item = Remedy> {
    found.iter().filter(|one| one.id == "held-snapshot").filter_map(|held| {
        let holder = held.evidence.iter().find(|line| line.what == "held by")?;
        Some(Remedy {
            finding: held.id,
            title: format!("release the row versions held by {}", holder.found),
            change: Change::Manual { how: held.next.clone() },
            reason: held.title.clone(),
            effect: held.effect.clone(),
            rules: Rules::Allowed,
        })
    })
}

/// ANALYZE of the tables without statistics. Data that are restored have none again.
fn statistics(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    if finding(found, "missing-statistics").is_none() {
        return Vec::new();
    }
    let tables = missing_statistics::tables(evidence);
    let tables: Vec<&str> = tables.iter().take(MOST).map(|one| one.name.as_str()).collect();
    if tables.is_empty() {
        return Vec::new();
    }
    let automatic = engine_advice(evidence).statistics().automatic.is_some();
    let what = if automatic { "missing or stale statistics" } else { "no statistics for the planner" };
    let reason = format!("{} with {what}", text::count(tables.len(), "table"));
    let unknown = Effect::unknown(NOT_RUN);
    vec![analyze(evidence, "missing-statistics", &tables, reason, unknown)]
}

/// ANALYZE of the tables whose statistics are stale, below nodes with other numbers of rows than expected.
fn stale(evidence: &Evidence) -> Option<Remedy> {
    let (mut tables, share) = stale_statistics::stale_tables(evidence);
    tables.truncate(MOST);
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let effect = Effect::up_to_or(share, EffectBasis::StatementTime, NOT_RUN);
    let reason = stale_statistics::reason(&tables);
    (!tables.is_empty()).then(|| analyze(evidence, "misestimate", &names, reason, effect))
}

/// Statistics cannot be put back as they were: only restored data have the old ones again.
fn analyze(
    evidence: &Evidence,
    finding: &'static str,
    tables: &[&str],
    reason: String,
    effect: Effect,
) -> Remedy {
    let engine = engine_advice(evidence).statistics();
    let apply: Vec<String> = tables.iter().map(|table| analyze_statement(evidence, table)).collect();
    let change = match engine.by_hand {
        Some(remark) => Change::by_hand(&format!("{}{remark}", apply.join("; "))),
        None => Change::Statements { apply, undo: Vec::new(), control: Vec::new() },
    };
    Remedy {
        finding,
        title: format!("{} {}", engine.title, tables.join(", ")),
        change,
        reason,
        effect,
        rules: Rules::Allowed,
    }
}

/// The statement that updates the statistics of a table.
pub(super) fn analyze_statement(evidence: &Evidence, table: &str) -> String {
    let engine = engine_advice(evidence);
    format!("{} {}", engine.statistics().update, engine.sql().quoted(table))
}

/// A page for each warehouse and each district of TPROC-C, where sessions queued for the pages that they share.
fn filled_pages(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    let from = finding(found, "hot-page")?;
    let filled = evidence.context.spec("/tproc-c/fill-page").and_then(serde_json::Value::as_bool);
    let of_tproc_c = engine_advice(evidence).host().fills_pages && evidence.context.workload == "tproc-c";
    (of_tproc_c && filled != Some(true)).then(|| Remedy {
        finding: from.id,
        title: "build tproc-c with --fill-page".into(),
        change: Change::Manual {
            how: "use kelvin ab to compare two specifications (kelvin run --print-spec), one of them with \
                --fill-page and both with --reset reload"
                .into(),
        },
        reason: from.title.clone(),
        effect: from.effect.clone(),
        rules: Rules::Allowed,
    })
}

/// Room in the pages of tables whose updates found none.
fn fillfactor(evidence: &Evidence) -> Vec<Remedy> {
    let made = hot_updates_lost::lost(evidence).into_iter().take(MOST).map(|one| {
        let (table, now) = (engine_advice(evidence).sql().quoted(&one.table.name), one.fillfactor);
        let wanted = hot_updates_lost::ROOM;
        let rewritten = format!("VACUUM (FULL, ANALYZE) {table}");
        let back = match now {
            // The server's default.
            100 => format!("ALTER TABLE {table} RESET (fillfactor)"),
            _ => format!("ALTER TABLE {table} SET (fillfactor = {now})"),
        };
        Remedy {
            finding: "hot-updates-lost",
            title: format!("fillfactor = {wanted} for {} (now {now})", one.table.name),
            change: Change::Statements {
                apply: vec![format!("ALTER TABLE {table} SET (fillfactor = {wanted})"), rewritten.clone()],
                undo: vec![back, rewritten.clone()],
                control: vec![rewritten],
            },
            reason: one.reason(),
            effect: Effect::unknown("the time that an update spends on indexes is not measured"),
            rules: Rules::Allowed,
        }
    });
    made.collect()
}
