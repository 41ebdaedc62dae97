//! Advice for PostgreSQL.

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::sampled_execution::MisestimatedNode;

use super::{
    BufferPool, EngineAdvice, HostAdvice, QueueAdvice, SessionAdvice, SpillAdvice, SqlDialect,
    StatisticsAdvice,
};
use crate::change::advised_name;
use crate::{Change, Class};

pub(super) struct Postgres;

impl EngineAdvice for Postgres {
    fn sql(&self) -> SqlDialect {
        // An index without a definition is one of a partition or another tablespace, or not valid.
        SqlDialect { proposes_indexes: true, repeats_drops: true, ..SqlDialect::NEUTRAL }
    }

    fn statistics(&self) -> StatisticsAdvice {
        StatisticsAdvice {
            update: "ANALYZE",
            title: "analyze",
            by_hand: None,
            renew: "Run `analyze` on",
            renewed_by: "autovacuum did not: it may be off, behind, or set to wait for more changes",
            estimates: "Run `analyze` on the tables below these nodes; for columns that depend on each other \
                `create statistics`, for columns with a skewed distribution a higher statistics target. Then compare the \
                plans: a wrong estimate is harmful only if it leads to a slow plan.",
            plans_change: "when autovacuum analyzes the table",
            after_loading: "Run `analyze` (or `vacuum analyze`) after loading, before every run.",
            index_uses: "scans",
            ..StatisticsAdvice::NEUTRAL
        }
    }

    fn sessions(&self) -> SessionAdvice {
        SessionAdvice {
            figures: "the database's counters: blocks, WAL, checkpoints, statements",
            list: "End these sessions before the run: `SELECT pid, application_name, state, xact_start FROM \
                pg_stat_activity` lists them, `pg_blocking_pids(pid)` shows which of them block a session.",
            end: ("pg_terminate_backend(", ")"),
            idle: "idle_in_transaction_session_timeout ends such sessions.",
            // From the fork to the first statement's catalogue lookups: 1.5 to 4 ms on machines of 2015 to 2023; the lower end, so
            // that the estimate is no exaggeration.
            opening_cpu_ms: Some(1.5),
            opening_threshold: "5 new sessions per second; red if opening them takes 8 % of the database's host's CPUs or more at \
                1.5 ms each, the lower end of what a new PostgreSQL session costs",
            opening_next: "Find out who connects (log_connections), and put a pooler in between or keep the sessions open",
            ..SessionAdvice::NEUTRAL
        }
    }

    fn queues(&self) -> QueueAdvice {
        QueueAdvice {
            locks: &LOCKS,
            latch: "lightweight lock",
            page: "Spread the rows over more pages: a lower fillfactor and a rewrite (`vacuum full`) for small \
                tables that all users update, hash partitions for an index into whose end all users insert.",
            ..QueueAdvice::NEUTRAL
        }
    }

    fn spills(&self) -> SpillAdvice {
        SpillAdvice {
            memory_is_set: true,
            setting: Some("work_mem"),
            threshold: "1 MB/s of temporary files; red if writing and reading them would take 10 % of the statements' time even at \
                1 GB/s, as in the page cache, and a quarter of the host's memory can hold three times the size of their files for all users",
            next: "Raise work_mem for the statements that spill (each sort and hash of each session can use this much), or create \
                an index that provides the required order; `kelvin advise --prove` measures the gain.",
            next_of_queries: "Raise work_mem (each sort and each process of a query can use it, a hash hash_mem_multiplier \
                times as much); if there are many other sessions, raise it only for those of these queries.",
            unknown: "which statements spilled is not known (pg_stat_statements)",
            ..SpillAdvice::NEUTRAL
        }
    }

    fn host(&self) -> HostAdvice {
        HostAdvice {
            size_unit: Some((1024.0, "kB")),
            memory: "shared_buffers, work_mem × users",
            huge_pages: Some("shared_buffers"),
            reads_page_cache: true,
            ..HostAdvice::NEUTRAL
        }
    }

    /// The share is that of "Resource Consumption" in the manual.
    fn buffers(&self) -> BufferPool {
        let page = ("block_size", 8192.0);
        BufferPool { name: "the shared buffers", setting: Some("shared_buffers"), page, share: 0.25 }
    }

    fn experiment(&self, class: Class) -> Option<&'static str> {
        Some(match class {
            Class::DataReads => {
                "With `shared_buffers` (or memory) large enough for the data, throughput should rise."
            }
            Class::DataWrites => {
                "With fewer checkpoints (`max_wal_size`) or a faster data device, throughput should rise."
            }
            Class::Log => "With `synchronous_commit = off`, for the experiment only, throughput should rise.",
            Class::Replication => {
                "With `synchronous_standby_names` empty, for the experiment only, throughput should rise."
            }
            _ => return None,
        })
    }

    fn replaces_pages(&self, group: &WaitGroup) -> bool {
        let event = group.event.as_str();
        match group.kind {
            WaitKind::DataRead => true,
            WaitKind::DataWrite => event.starts_with("DataFile") && event != "DataFileExtend",
            WaitKind::Latch => matches!(event, "BufferMapping" | "buffer_mapping"),
            _ => false,
        }
    }

    fn latch_name<'a>(&self, group: &'a WaitGroup) -> Option<&'a str> {
        matches!(group.class.as_str(), "LWLock" | "IPC").then_some(&group.event)
    }

    fn latch_remedy(&self, name: &str) -> &'static str {
        // Without the separators that some versions have: "buffer_mapping", "BufferMappingLock", "BufferMapping".
        let plain = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let found = LATCHES.iter().find(|(known, _)| plain.starts_with(known)).map(|(_, remedy)| *remedy);
        found.unwrap_or("Look the name up among the wait events in PostgreSQL's manual; fewer sessions (a pooler) shorten any such queue.")
    }

    /// A statistics object, for nodes with more rows than expected that compare two or more columns: the planner multiplies their shares,
    /// as if they were independent.
    fn column_statistics(
        &self,
        table: &str,
        columns: &[String],
        node: &MisestimatedNode,
    ) -> Option<(String, Change)> {
        if columns.len() < 2 || node.actual <= node.estimated {
            return None;
        }
        // It is in the table's schema, whatever the search path.
        let schema = table.split_once('.').map_or_else(String::new, |(schema, _)| format!("{schema}."));
        let sql = self.sql();
        let name = sql.quoted(&format!("{schema}{}", advised_name(table, columns)));
        let (quoted, list) = (sql.quoted(table), sql.quoted_list(columns));
        let create = format!(
            "CREATE STATISTICS IF NOT EXISTS {name} (dependencies, ndistinct, mcv) ON {list} FROM {quoted}"
        );
        let analyze = format!("ANALYZE {quoted}");
        let change = Change::Statements {
            apply: vec![create, analyze.clone()],
            undo: vec![format!("DROP STATISTICS IF EXISTS {name}")],
            control: vec![analyze],
        };
        Some((format!("statistics on {table} ({})", columns.join(", ")), change))
    }
}

const PREDICATES: &str = "These are the predicate locks of SERIALIZABLE transactions: declare transactions \
    that only read as `read only`, keep transactions short, or use REPEATABLE READ if the application allows \
    it; a higher max_pred_locks_per_transaction prevents the promotion of row locks to table locks.";

/// What a lightweight lock protects, by the beginning of its name in any version, and what helps.
const LATCHES: [(&str, &str); 12] = [
    (
        "buffermapping",
        "This is the buffer mapping table: pages are replaced constantly. Raise shared_buffers until the \
        load's pages fit.",
    ),
    (
        "lockmanager",
        "This is the lock manager: a statement that locks more than 16 relations (partitions, indexes) does \
        not fit into the session's fast-path slots. Use fewer partitions and indexes per statement, prepared \
        statements, or PostgreSQL 18 with a higher max_locks_per_transaction.",
    ),
    (
        "procarray",
        "This is the list of transactions, which each snapshot reads: use fewer sessions (a pooler), and transactions of several \
        statements instead of one each.",
    ),
    (
        "xidgen",
        "Each transaction that writes takes a transaction ID: put more changes into one transaction, and \
            avoid savepoints.",
    ),
    (
        "subtrans",
        "Subtransactions (savepoints, exception blocks in PL/pgSQL) exceed 64 in a transaction while another one is old: avoid \
        them, end old transactions; since PostgreSQL 17, raise subtransaction_buffers.",
    ),
    (
        "multixact",
        "Several transactions lock the same rows with FOR SHARE or foreign keys: lock fewer; since PostgreSQL 17, raise \
        multixact_member_buffers and multixact_offset_buffers.",
    ),
    (
        "xact",
        "This is the state of transactions: since PostgreSQL 17, raise transaction_buffers; set hint bits with `vacuum` after \
        loading.",
    ),
    ("serializable", PREDICATES),
    ("predicate", PREDICATES),
    ("perxactpredicate", PREDICATES),
    ("oldserxid", PREDICATES),
    (
        "parallel",
        "These are workers of parallel statements: compare with max_parallel_workers_per_gather = 0.",
    ),
];

/// What a lock is for and what helps, by a part of its name.
const LOCKS: [(&str, &str, &str); 6] = [
    (
        "extend",
        "the extension of a table or index",
        "Each session that needs a new page waits for the one that adds it: insert many rows with one statement (COPY), use hash \
        partitions, or PostgreSQL 16 or later, which adds many pages at a time.",
    ),
    (
        "advisory",
        "advisory locks",
        "The application takes them itself (`pg_advisory_lock`): hold them for less time, or use more than one key.",
    ),
    (
        "relation",
        "locks of tables",
        "A statement changes the definition of a table, or locks the whole table (DDL, `lock table`, \
        `truncate`, `vacuum full`): keep it out of the measured window, or give it a lock_timeout, since all \
        others queue behind it while it waits.",
    ),
    (
        "virtualxid",
        "the end of other transactions",
        "`create index concurrently` and similar commands wait for all older transactions: keep them out of \
            the measured window.",
    ),
    (
        "object",
        "locks of database objects",
        "They are taken to create and drop objects, and by `notify` at commit: do not create objects in \
            transactions, and send fewer notifications.",
    ),
    (
        "spectoken",
        "insertions with ON CONFLICT",
        "Several sessions insert the same key with `on conflict`: give each key one session, or check first \
            whether the row exists.",
    ),
];
