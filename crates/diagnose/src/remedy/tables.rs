//! Statistics and options of tables.

use kelvin_measure::observation::CaptureTime;
use kelvin_measure::text;

use super::{Change, Remedy, Rules, finding, quoted};
use crate::findings::hot_updates_lost;
use crate::{Effect, Evidence, Finding};

/// Tables for which an option or statistics are proposed at most.
const MOST: usize = 5;

pub(super) fn remedies(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    let mut all = statistics(evidence, found);
    all.extend(fillfactor(evidence));
    all.extend(filled_pages(evidence, found));
    all
}

/// ANALYZE of the tables without statistics. Data that are restored have none again.
fn statistics(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    if crate::load::is_mysql(evidence) || finding(found, "missing-statistics").is_none() {
        return Vec::new();
    }
    let Some((relations, _)) = evidence.relations(CaptureTime::Before) else { return Vec::new() };
    let unknown = relations.iter().filter(|one| one.kind == "table" && one.analyzed == Some(false));
    let mut tables: Vec<&str> = unknown.map(|one| one.name.as_str()).collect();
    tables.truncate(MOST);
    if tables.is_empty() {
        return Vec::new();
    }
    vec![Remedy {
        finding: "missing-statistics",
        title: format!("analyze {}", tables.join(", ")),
        change: Change::Statements {
            apply: tables.iter().map(|table| format!("ANALYZE {}", quoted(evidence, table))).collect(),
            undo: Vec::new(),
            control: Vec::new(),
        },
        reason: format!("{} without statistics for the planner", text::count(tables.len(), "table")),
        effect: Effect::unknown("the plans based on statistics were not run"),
        rules: Rules::Allowed,
    }]
}

/// A page for each warehouse and each district of TPROC-C, where sessions queued for the pages that they share.
fn filled_pages(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    let from = finding(found, "hot-page")?;
    let filled = evidence.context.spec("/tproc-c/fill-page").and_then(serde_json::Value::as_bool);
    let of_tproc_c = crate::load::is_sqlserver(evidence) && evidence.context.workload == "tproc-c";
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
        let (table, now) = (quoted(evidence, &one.table.name), one.fillfactor);
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
