//! Did sorts and hashes spill to temporary files?

use kelvin_measure::observation::StatementTotals;
use kelvin_measure::text;
use kelvin_observe::metric;

use super::query_plans::{self, Affected};
use super::{FindingDefinition, buffers_too_small};
use crate::engine::engine_advice;
use crate::noise::WANTED;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "temporary-files",
    question: "Did sorts and hashes spill to temporary files?",
    find,
};

/// Bytes a second from which it is more than a report beside the load: PostgreSQL's own pages of 8 kB, 128 a second.
const RATE: f64 = 1_048_576.0;
/// Bytes a second at which temporary files are written, and at which they are read again, at best: from and to the system's cache, with
/// the sorting of their rows. The time at this rate is the least that they take.
const FASTEST: f64 = 1e9;
/// Times the bytes of its file that a sort or hash takes in memory: rows have a header there and pointers to them.
const IN_MEMORY: f64 = 3.0;
/// Part of the host's memory that all users together may take for it.
const OF_HOST: f64 = 0.25;

/// Temporary tables on disk and merges of sorts a second from which they are more than a report beside the load. MySQL and MariaDB count no
/// bytes; with their default settings each is some megabytes.
const SPILLS: f64 = 1.0;

/// Bytes of one query from which its plan would be another with more memory.
const BYTES: u64 = 1 << 20;

fn find(evidence: &Evidence) -> Vec<Finding> {
    if let Some(finding) = of_queries(evidence) {
        return vec![finding];
    }
    let found = evidence.points().filter_map(|point| {
        let counted = is_counted(evidence, point.point);
        if counted { of_counts(evidence, point) } else { of_point(evidence, point) }
    });
    found.collect()
}

/// By the plans of the queries themselves, where they are known.
fn of_queries(evidence: &Evidence) -> Option<Finding> {
    let spilled =
        Affected::by(evidence, |one| (one.temporary_bytes >= BYTES).then_some(one.temporary_bytes as f64))?;
    let mut facts = spilled.lines("wrote to temporary files", |one| {
        let bytes = text::memory(one.temporary_bytes as f64);
        if one.spills.is_empty() { bytes } else { format!("{bytes}: {}", text::few(&one.spills, 3)) }
    });
    facts.extend(work_mem(evidence));
    facts.extend(
        evidence.setting("hash_mem_multiplier").map(|value| EvidenceLine::new("hash_mem_multiplier", value)),
    );
    let written = text::memory(spilled.sum());
    let title = format!(
        "{} to temporary files: {written} in one execution each",
        spilled.subject("spilled", "spilled")
    );
    Some(Finding {
        threshold: "1 MB of temporary files by a query, when it was executed once more after the load".into(),
        next: engine_advice(evidence).spills().next_of_queries.into(),
        ..query_plans::amber(ABOUT.id, title, facts, spilled.effect(|_| 1.0))
    })
}

fn work_mem(evidence: &Evidence) -> Option<EvidenceLine> {
    Some(EvidenceLine::new("work_mem", text::memory(evidence.setting_number("work_mem")?)))
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let (statements, total) = evidence.statements(point.point).unwrap_or((&[], 0.0));
    let mut spilled: Vec<&StatementTotals> =
        statements.iter().filter(|one| one.temporary_bytes.is_some_and(|bytes| bytes > 0)).collect();
    spilled.sort_by_key(|one| std::cmp::Reverse(one.temporary_bytes));
    let engine = engine_advice(evidence).spills();
    let seconds = evidence.window(point.point)?.seconds().max(f64::MIN_POSITIVE);
    // A server that does not count them in all counts them by statement.
    let rate = if evidence.unit(metric::TEMPORARY_BYTES).is_some() {
        evidence.mean(point.point, metric::TEMPORARY_BYTES)?
    } else {
        spilled.iter().filter_map(|one| one.temporary_bytes).sum::<u64>() as f64 / seconds
    };
    if rate < RATE {
        return None;
    }
    let time: f64 = spilled.iter().map(|one| one.total_ms).sum();
    let share = (total > 0.0 && !spilled.is_empty()).then(|| time / total);
    let each = |one: &StatementTotals| one.temporary_bytes.unwrap_or(0) as f64 / one.calls.max(1) as f64;
    let needed = spilled.iter().map(|one| each(one)).fold(0.0, f64::max) * IN_MEMORY;
    let host = buffers_too_small::memory(evidence);
    let room = host.is_some_and(|host| needed * f64::from(point.users.max(1)) <= OF_HOST * host);
    // In milliseconds: what a statement's files take is a part of its time.
    let of_files =
        |one: &&StatementTotals| (2e3 * one.temporary_bytes.unwrap_or(0) as f64 / FASTEST).min(one.total_ms);
    let files: f64 = spilled.iter().map(of_files).sum();
    let least = (total > 0.0 && !spilled.is_empty()).then(|| files / total);
    let red = engine.memory_is_set && room && least.is_some_and(|least| least >= WANTED);
    let place = engine.place;
    let mut facts = vec![EvidenceLine::new(format!("written to {place}"), text::disk_rate(rate))];
    facts.extend(least.map(|least| {
        EvidenceLine::new("to write and read them at 1 GB/s, of the statements' time", text::percent(least))
    }));
    facts.extend(work_mem(evidence));
    facts.extend(spilled.iter().take(3).map(|one| {
        EvidenceLine::new(
            format!("statement that spilled: {}", text::statement(&one.text)),
            format!(
                "{} per call, {} calls, {} ms each",
                text::memory(each(one)),
                text::rounded(one.calls as f64),
                text::number(one.total_ms / one.calls.max(1) as f64)
            ),
        )
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("Statements spilled {} to {place}", text::disk_rate(rate)),
        evidence: facts,
        effect: Effect::up_to_or(share, EffectBasis::StatementTime, engine.unknown),
        below_precision: false,
        threshold: engine.threshold.into(),
        next: engine.next.into(),
    })
}

/// Merges of sorts a second, by all clients of MySQL or MariaDB.
pub(crate) fn merges(evidence: &Evidence, point: u32) -> f64 {
    evidence.mean(point, metric::MERGE_PASSES).unwrap_or(0.0)
}

/// Whether the server counts temporary tables on disk and merges of sorts, and no bytes.
pub(crate) fn is_counted(evidence: &Evidence, point: u32) -> bool {
    let counts = |one: &StatementTotals| one.disk_tables.or(one.merge_passes).is_some();
    evidence.unit(metric::MERGE_PASSES).is_some()
        || evidence.statements(point).is_some_and(|(statements, _)| statements.iter().any(counts))
}

/// Temporary tables on disk are those of the statements with the most time: the server's own count has those that observing it makes.
fn of_counts(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let (statements, total) = evidence.statements(point.point).unwrap_or((&[], 0.0));
    let counts = |one: &StatementTotals| (one.disk_tables.unwrap_or(0), one.merge_passes.unwrap_or(0));
    let spills = |one: &StatementTotals| counts(one).0 + counts(one).1;
    let mut spilled: Vec<&StatementTotals> = statements.iter().filter(|one| spills(one) > 0).collect();
    spilled.sort_by_key(|one| std::cmp::Reverse(spills(one)));
    let of_spilling =
        |one: &&StatementTotals| one.total_ms * (spills(one) as f64 / one.calls.max(1) as f64).min(1.0);
    let share =
        (total > 0.0 && !spilled.is_empty()).then(|| spilled.iter().map(of_spilling).sum::<f64>() / total);
    // Long ones spill much, and seldom.
    let long = spilled.iter().filter(|one| spills(one) >= one.calls.div_ceil(2));
    let long = long.map(|one| one.total_ms).sum::<f64>() / total.max(f64::MIN_POSITIVE);
    let tables = spilled.iter().map(|one| counts(one).0 as f64).sum::<f64>()
        / evidence.window(point.point)?.seconds().max(f64::MIN_POSITIVE);
    let merges = merges(evidence, point.point);
    if tables + merges < SPILLS && long < WANTED {
        return None;
    }
    let mut facts = Vec::new();
    let mut remedies = Vec::new();
    let mut of = |what: &str, rate: f64, settings: &[&str], remedy: &'static str| {
        if rate > 0.0 {
            facts.push(EvidenceLine::new(what, text::number(rate)));
            let known =
                |name: &&str| Some(EvidenceLine::new(*name, text::memory(evidence.setting_number(name)?)));
            facts.extend(settings.iter().filter_map(known));
            remedies.push(remedy);
        }
    };
    // MySQL 8's default, to which max_heap_table_size does not apply.
    let engine = evidence.setting("internal_tmp_mem_storage_engine");
    let (settings, remedy) = if engine.is_some_and(|engine| engine.eq_ignore_ascii_case("TempTable")) {
        (["tmp_table_size", "temptable_max_ram"], TEMPTABLES)
    } else {
        (["tmp_table_size", "max_heap_table_size"], TABLES)
    };
    of("temporary tables on disk per second", tables, &settings, remedy);
    of("merges of sorts per second", merges, &["sort_buffer_size"], SORTS);
    facts.extend(spilled.iter().take(3).map(|one| {
        let each = |count: u64| text::number(count as f64 / one.calls.max(1) as f64);
        let (tables, merges) = counts(one);
        EvidenceLine::new(
            format!("statement that spilled: {}", text::statement(&one.text)),
            format!(
                "{} temporary tables on disk and {} merges per call, {} calls, {} ms each",
                each(tables),
                each(merges),
                text::rounded(one.calls as f64),
                text::number(one.total_ms / one.calls.max(1) as f64)
            ),
        )
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!(
            "Statements put {} temporary tables on disk and merged sorts {} times per second",
            text::number(tables),
            text::number(merges)
        ),
        evidence: facts,
        effect: Effect::up_to_or(
            share,
            EffectBasis::StatementTime,
            "which statements spilled is not known (performance_schema)",
        ),
        below_precision: false,
        threshold: "one temporary table on disk or one merge of a sort per second, or 10 % of the \
        statements' time in statements that average one or more per two executions"
            .into(),
        next: format!(
            "{} An index in the order that the statement needs avoids the sort or the temporary table.",
            remedies.join(" ")
        ),
    })
}

const TABLES: &str = "Raise tmp_table_size and max_heap_table_size (the smaller one limits a table in \
memory; in MariaDB, a table with TEXT or BLOB columns is always on disk), for the sessions that need it.";
const TEMPTABLES: &str = "Raise tmp_table_size (the limit of each table, from MySQL 8.0.28 on) and temptable_max_ram (of all of them \
    together).";
const SORTS: &str =
    "Raise sort_buffer_size for the sessions that sort; `kelvin advise --prove` measures the gain.";

#[cfg(test)]
mod tests {
    use kelvin_measure::query_analysis::QueryAnalysis;

    use super::super::query_plans::tests::{analysis, execution};
    use super::super::staged::{Staged, statement};
    use super::*;

    fn severity(rate: f64, spilling_ms: f64) -> Option<Severity> {
        let mut one = statement(1, spilling_ms, 10, "a", &[]);
        one.temporary_bytes = Some(10 << 20);
        let staged = Staged::new()
            .metric("postgres.temp.bytes", rate)
            .setting("work_mem", "65536")
            .statements(vec![one, statement(2, 100.0, 10, "b", &[])]);
        find(&staged.done()).first().map(|found| found.severity)
    }

    #[test]
    fn queries_that_spilled_are_named_with_what_did() {
        let spilled = QueryAnalysis {
            temporary_bytes: 20 << 20,
            spills: vec!["Sort: external merge".into()],
            ..analysis("Q9")
        };
        let staged = Staged::new().setting("work_mem", "65536").metric("postgres.temp.bytes", 5e6);
        let staged = staged.queries(&[execution("Q9", 3.0, "a"), execution("Q1", 1.0, "b")]);
        let found = find(&staged.analyses(&[spilled, analysis("Q1")]).done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        assert!(found[0].title.starts_with("Q9 spilled"), "{}", found[0].title);
        let facts = format!("{:?}", found[0].evidence);
        assert!(facts.contains("external merge") && facts.contains("work_mem"), "{facts}");
        assert_eq!(found[0].effect.high(), Some(0.75));
        assert!(find(&Staged::new().analyses(&[analysis("Q1")]).done()).is_empty());
    }

    #[test]
    fn spills_of_sql_server_are_counted_by_statement_and_never_red() {
        let found = |bytes: u64| {
            let one = StatementTotals { temporary_bytes: Some(bytes), ..statement(1, 900.0, 10, "a", &[]) };
            let staged = Staged::new().environment(serde_json::json!({"engine": "sqlserver"}));
            // On PostgreSQL it would be red.
            let staged = staged.place("data", "vda").metric("host.memory.total", 1e12);
            find(&staged.statements(vec![one, statement(2, 100.0, 10, "b", &[])]).done()).pop()
        };
        let spilled = found(10 << 30).unwrap();
        assert_eq!((spilled.severity, spilled.effect.high()), (Severity::Amber, Some(0.9)));
        assert!(
            spilled.title.ends_with(" to tempdb") && spilled.next.contains("MIN_GRANT_PERCENT"),
            "{spilled:?}"
        );
        assert!(found(1 << 20).is_none());
    }

    #[test]
    fn a_spill_that_memory_would_take_is_red_where_it_has_much_of_the_time() {
        let found = |memory: f64, spilling_ms: f64, bytes: u64| {
            let mut one = statement(1, spilling_ms, 10, "a", &[]);
            one.temporary_bytes = Some(bytes);
            let staged = Staged::new().place("data", "vda").metric("host.memory.total", memory);
            let staged = staged.metric("postgres.temp.bytes", 11.6e6);
            let statements = vec![one, statement(2, 100.0, 10, "b", &[])];
            find(&staged.statements(statements).done())[0].severity
        };
        // Ten megabytes each, for eight users.
        assert_eq!(found(8e9, 900.0, 100 << 20), Severity::Red);
        assert_eq!(found(8e9, 10.0, 100 << 20), Severity::Amber, "an eleventh of the time");
        assert_eq!(found(64e6, 900.0, 100 << 20), Severity::Amber, "no memory for it");
        // A report of ten seconds that writes twelve megabytes in them.
        assert_eq!(found(8e9, 10_000.0, 12 << 20), Severity::Amber);
    }

    #[test]
    fn tables_on_disk_and_merges_of_mysql_are_amber_with_their_statement_and_setting() {
        let found = |calls: u64, tables: u64, merges: u64, ms: f64| {
            let mut one = statement(1, ms, calls, "a", &[]);
            (one.disk_tables, one.merge_passes) = (Some(tables), Some(merges));
            let staged = Staged::new().environment(serde_json::json!({"engine": "mysql"}));
            let staged = staged.setting("sort_buffer_size", "65536");
            let staged = staged.metric("mysql.sort.merge_passes", merges as f64 / 20.0);
            find(&staged.statements(vec![one, statement(2, 100.0, 10, "b", &[])]).done()).pop()
        };
        let sorts = found(100, 0, 300, 10.0).unwrap();
        assert_eq!((sorts.severity, sorts.effect.high().is_some()), (Severity::Amber, true));
        let facts = format!("{:?}", sorts.evidence);
        assert!(facts.contains("sort_buffer_size") && facts.contains("and 3 merges per call"), "{facts}");
        assert!(
            sorts.next.contains("sort_buffer_size") && !sorts.next.contains("tmp_table_size"),
            "{}",
            sorts.next
        );
        let tables = found(1000, 1000, 0, 1.0).unwrap();
        assert!(tables.next.contains("tmp_table_size"), "{}", tables.next);
        let staged = Staged::new().environment(serde_json::json!({"engine": "mysql"}));
        let staged = staged.setting("internal_tmp_mem_storage_engine", "TempTable");
        let mut one = statement(1, 1.0, 1000, "a", &[]);
        one.disk_tables = Some(1000);
        let of_mysql_8 = find(&staged.statements(vec![one]).done()).pop().unwrap().next;
        assert!(of_mysql_8.contains("temptable_max_ram") && !of_mysql_8.contains("max_heap"), "{of_mysql_8}");
        // A report beside the load; queries that take their time.
        assert!(found(1, 3, 3, 5.0).is_none());
        assert!(found(2, 2, 0, 900.0).is_some());
        assert!(found(100, 2, 0, 900.0).is_none(), "one execution in fifty");
    }

    #[test]
    fn spills_are_amber_from_a_rate() {
        assert_eq!(severity(11.6e6, 900.0), Some(Severity::Amber));
        assert_eq!(severity(11.6e6, 1.0), Some(Severity::Amber));
        assert_eq!(severity(0.0, 900.0), None);
        let unknown = find(&Staged::new().metric("postgres.temp.bytes", 5e6).done());
        assert_eq!(unknown[0].severity, Severity::Amber);
    }
}
