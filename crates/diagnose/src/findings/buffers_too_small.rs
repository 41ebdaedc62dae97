//! Are the database's buffers too small, although there is memory?
//!
//! A page that is not in the database's own buffers costs a system call and a copy even if the kernel's cache has it,
//! and the page that it replaces may have to be written first, after its WAL. Observed on PostgreSQL 15 with 400 MB of
//! data and 4 MB of buffers: 26 % of the pages missed, 36 reads and 13 writes per transaction, 42 % less throughput,
//! and yet only 2 % of the sessions' time in waits for data files. So the cost of replacing pages is calculated.

use kelvin_measure::observation::CaptureTime;
use kelvin_measure::text;

use kelvin_observe::metric;

use super::FindingDefinition;
use crate::engine::engine_advice;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, is_client};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "buffers-too-small",
    question: "Do the database's own buffers hold the load's working set?",
    find,
};

/// Share of the pages that should be found in the buffers.
const HIT: f64 = 0.95;
/// Share of the sessions' time from which page replacement matters.
const COST: f64 = 0.02;
/// The minimum cost of transferring a page to or from the kernel's cache, in seconds: a system call, a copy of 8 kB and
/// the buffer's replacement.
const EXCHANGE: f64 = 10e-6;
/// The default of PostgreSQL, MySQL and MariaDB, used if the memory size is not known.
const DEFAULT: f64 = 134_217_728.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// Whether the point has this finding as red.
pub(super) fn is_red(evidence: &Evidence, point: u32) -> bool {
    of_point(evidence, point).is_some_and(|finding| finding.severity == Severity::Red)
}

/// Bytes of memory of the database's host, if that is this host.
pub(crate) fn memory(evidence: &Evidence) -> Option<f64> {
    evidence.file_location("data")?;
    evidence.newest(metric::MEMORY_TOTAL)
}

/// Bytes of the database.
pub(super) fn database(evidence: &Evidence) -> Option<f64> {
    let known = evidence.relations(CaptureTime::After).or_else(|| evidence.relations(CaptureTime::Before));
    let environment = || evidence.context.environment("/database_bytes").and_then(serde_json::Value::as_f64);
    known.map(|(_, bytes)| bytes as f64).or_else(environment).filter(|bytes| *bytes > 0.0)
}

/// The setting of the buffers' size, and the bytes with which the engine's documentation begins, where the host's memory is known.
pub(crate) fn wanted(evidence: &Evidence) -> Option<(&'static str, f64)> {
    let pool = engine_advice(evidence).buffers();
    let megabyte = 1_048_576.0;
    Some((pool.setting?, (memory(evidence)? * pool.share / megabyte).floor() * megabyte))
}

/// Share of the sessions' time in waits for data files.
pub(super) fn waiting(evidence: &Evidence, point: u32) -> Option<f64> {
    let active = evidence.active(point, is_client);
    let engine = engine_advice(evidence);
    let replacing = active.groups.iter().filter(|(group, _)| engine.replaces_pages(group));
    let waiting: f64 = replacing.map(|(_, sessions)| sessions).sum();
    (active.sessions() > 0.0).then(|| waiting / active.sessions())
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let pool = engine_advice(evidence).buffers();
    let setting = pool.setting?;
    let buffers = pool.bytes(evidence)?;
    let database = database(evidence)?;
    let hits = evidence.mean_of_first_known(point, metric::BUFFER_HITS)?;
    let reads = evidence.mean_of_first_known(point, metric::BUFFER_READS)?;
    let hit = hits / (hits + reads);
    // NaN if no page was accessed.
    if database <= buffers || hit.is_nan() || hit >= HIT {
        return None;
    }
    let writes = evidence.mean(point, metric::BACKEND_WRITES).unwrap_or(0.0);
    let sessions = evidence.active(point, is_client).sessions();
    let users = f64::from(evidence.point(point)?.users);
    let of = if sessions > 0.0 { sessions } else { users };
    let exchange = (reads + writes) * EXCHANGE / of.max(1.0);
    let waiting = waiting(evidence, point).unwrap_or(0.0);
    let memory = memory(evidence);
    let room = memory.map_or(buffers <= DEFAULT, |memory| buffers < pool.share / 2.0 * memory);
    let red = room && exchange.max(waiting) >= COST;
    let committed = evidence.mean_of_first_known(point, metric::COMMITS).filter(|rate| *rate > 0.0);
    let mut facts = vec![
        EvidenceLine::new(format!("pages found in {}", pool.name), text::percent(hit)),
        EvidenceLine::new(setting, text::memory(buffers)),
        EvidenceLine::new("database", text::memory(database)),
    ];
    facts.extend(memory.map(|memory| EvidenceLine::new("memory of the host", text::memory(memory))));
    let each =
        committed.map_or(String::new(), |rate| format!(", {} per transaction", text::number(reads / rate)));
    facts.push(EvidenceLine::new(
        "pages not found in the buffers",
        format!("{} per second{each}", text::rounded(reads)),
    ));
    let each =
        committed.map_or(String::new(), |rate| format!(", {} per transaction", text::number(writes / rate)));
    facts.push(EvidenceLine::new(
        "pages written by the sessions themselves",
        format!("{} per second{each}", text::rounded(writes)),
    ));
    facts.push(EvidenceLine::new(
        "session time spent waiting for data files and buffers",
        text::percent(waiting),
    ));
    facts.push(EvidenceLine::new(
        "session time spent replacing pages (10 µs per page)",
        text::percent(exchange),
    ));
    let part = if pool.share < 0.5 { "a quarter" } else { "half" };
    let enough = memory.map_or_else(
        || format!("{part} of the host's memory"),
        |memory| format!("{} ({part} of the memory)", text::memory(memory * pool.share)),
    );
    let next = if room {
        format!("Set {setting} to {enough}, restart the server and run again.")
    } else {
        "State with the result that the database is larger than its buffers, and compare it only with \
        results of such databases; data-in-page-cache shows what served the reads."
            .into()
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!(
            "{} of the pages were not in {} ({}, a database of {})",
            text::percent(1.0 - hit),
            pool.name,
            text::memory(buffers),
            text::memory(database)
        ),
        evidence: facts,
        effect: Effect::up_to(exchange.max(waiting), EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "less than 95 % of the pages found in the buffers, and the database larger than the \
            buffers; red when this costs 2 % of the sessions' time and the buffers are smaller than half of \
            the recommended size (PostgreSQL: 25 % of the memory, MySQL: 50 %), or no larger than the \
            default if the memory size is not known"
            .into(),
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    /// As seen of PostgreSQL 15: four warehouses, eight users, and shared_buffers of 4 MB.
    fn tiny(buffers: &str) -> Staged {
        Staged::new()
            .setting("shared_buffers", buffers)
            .relations(CaptureTime::After, Vec::new(), 500 << 20)
            .metric("postgres.blocks.read", 35_000.0)
            .metric("postgres.blocks.hit", 97_000.0)
            .metric("postgres.backend.writes", 12_700.0)
            .metric("postgres.transactions.commit", 970.0)
            .sessions(
                &[
                    ("client backend", "LWLock", "WALWrite", 6.0),
                    ("client backend", "IO", "DataFileRead", 0.05),
                    ("client backend", "CPU", "", 1.9),
                ],
                &[],
            )
    }

    fn severity(staged: Staged) -> Option<Severity> {
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn tiny_buffers_are_red_though_few_sessions_are_seen_waiting() {
        assert_eq!(severity(tiny("4194304")), Some(Severity::Red));
        assert_eq!(
            severity(tiny("4194304").place("data", "vda").metric("host.memory.total", 24e9)),
            Some(Severity::Red)
        );
    }

    #[test]
    fn innodbs_buffer_pool_is_meant_by_its_own_name() {
        let pool = |bytes: &str| {
            Staged::new()
                .environment(serde_json::json!({ "engine": "mysql" }))
                .setting("innodb_buffer_pool_size", bytes)
                .setting("innodb_page_size", "16384")
                .relations(CaptureTime::After, Vec::new(), 500 << 20)
                .metric("mysql.buffer.reads", 35_000.0)
                .metric("mysql.buffer.hits", 97_000.0)
        };
        let found = find(&pool("33554432").done());
        assert_eq!(found[0].severity, Severity::Red);
        assert!(found[0].title.contains("not in the buffer pool (32 MB"), "{}", found[0].title);
        assert!(
            found[0].next.contains("innodb_buffer_pool_size to half of the host's memory"),
            "{}",
            found[0].next
        );
        assert_eq!(severity(pool("6442450944")), None);
    }

    #[test]
    fn where_the_memory_gives_no_more_it_is_amber() {
        assert_eq!(
            severity(tiny("268435456").place("data", "vda").metric("host.memory.total", 1e9)),
            Some(Severity::Amber)
        );
        assert_eq!(severity(tiny("268435456")), Some(Severity::Amber));
    }

    #[test]
    fn a_database_within_its_buffers_is_healthy_also_while_they_fill() {
        assert_eq!(severity(tiny("6442450944")), None);
        assert_eq!(severity(tiny("4194304").metric("postgres.blocks.hit", 9e6)), None);
        assert_eq!(severity(Staged::new()), None);
        assert_eq!(severity(Staged::new().setting("shared_buffers", "4194304")), None);
    }
}
