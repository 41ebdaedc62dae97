//! Advice for SQL Server.

use kelvin_measure::observation::{Relation, WaitGroup};

use super::{
    EngineAdvice, HostAdvice, QueueAdvice, SessionAdvice, SpillAdvice, SqlDialect, StatisticsAdvice,
};
use crate::Class;

pub(super) struct SqlServer;

impl EngineAdvice for SqlServer {
    fn sql(&self) -> SqlDialect {
        SqlDialect {
            quotes: ('[', ']'),
            // An index is made again under a condition. Which one a statement lacks is not derived from its text.
            repeats_drops: true,
            indexes_within_table: true,
            ..SqlDialect::NEUTRAL
        }
    }

    fn statistics(&self) -> StatisticsAdvice {
        StatisticsAdvice {
            // By hand, because its data cannot be saved.
            update: "UPDATE STATISTICS",
            automatic: Some("is_auto_update_stats_on"),
            index_uses: "seeks and scans",
            ..StatisticsAdvice::NEUTRAL
        }
    }

    fn sessions(&self) -> SessionAdvice {
        SessionAdvice {
            figures: "the database's counters: waits, files, memory, schedulers, statements",
            list: "End these sessions before the run: `SELECT session_id, program_name, status, open_transaction_count FROM \
                sys.dm_exec_sessions` lists them.",
            end: ("KILL ", ""),
            opened: "logins per second",
            opening_threshold: "5 logins per second; never red, because the cost of a login to SQL Server was not \
                measured",
            opening_unknown: "the cost of a login to SQL Server was not measured",
            opening_next: "Find out who connects (host_name and program_name of sys.dm_exec_sessions, by login_time), and use the driver's \
                connection pool: reusing a pooled connection is not a login",
            ..SessionAdvice::NEUTRAL
        }
    }

    fn queues(&self) -> QueueAdvice {
        QueueAdvice {
            page: "Spread the rows over more pages. For TPROC-C, `--fill-page` builds warehouse and district with \
                one row per page; as an A/B: `kelvin run --print-spec > a.toml` with the flags of this run, the \
                same with `--fill-page` as b.toml, then `kelvin ab a.toml b.toml`. For an index into whose end \
                all users insert: OPTIMIZE_FOR_SEQUENTIAL_KEY, or hash partitions.",
            page_of_inserts: true,
            ..QueueAdvice::NEUTRAL
        }
    }

    fn spills(&self) -> SpillAdvice {
        SpillAdvice {
            place: "tempdb",
            threshold: "1 MB/s of spills by the most time-consuming statements, in pages that the server \
                counted; never red, because the server decides how much memory a statement is granted",
            next: "A sort or hash spills when the memory granted to its statement, which the optimizer derives from its estimates of \
                rows, is too small: update the statistics of the tables (UPDATE STATISTICS), create an index in the \
                required order, or give the statement more with the hint MIN_GRANT_PERCENT. From compatibility level \
                150 on (140 in batch mode) the server corrects the grant of a statement that is executed repeatedly \
                (memory grant feedback).",
            ..SpillAdvice::NEUTRAL
        }
    }

    fn host(&self) -> HostAdvice {
        HostAdvice {
            memory: "`max server memory`",
            can_squeeze: false,
            fills_pages: true,
            ..HostAdvice::NEUTRAL
        }
    }

    fn experiment(&self, class: Class) -> Option<&'static str> {
        Some(match class {
            Class::Cpu => {
                "Look at the statements that use the most CPU time first (`kelvin top-sql --by cpu`): with \
                fewer rows read by them, throughput should rise."
            }
            Class::DataReads => {
                "With more memory (`max server memory`) or a faster data device, throughput should rise."
            }
            Class::DataWrites => {
                "With a longer recovery target (`TARGET_RECOVERY_TIME`) or a faster data device, throughput should rise."
            }
            Class::Log => {
                "With `DELAYED_DURABILITY = FORCED`, for the experiment only, throughput should rise."
            }
            Class::Replication => {
                "With the replicas in asynchronous commit mode, for the experiment only, throughput should rise."
            }
            _ => return None,
        })
    }

    /// The class of latches that the session waits for.
    fn latch_name<'a>(&self, group: &'a WaitGroup) -> Option<&'a str> {
        group.object.as_deref().filter(|_| group.class == "Latch")
    }

    fn latch_remedy(&self, name: &str) -> &'static str {
        let found = LATCHES.iter().find(|(class, _)| name.starts_with(class)).map(|(_, remedy)| *remedy);
        found.unwrap_or("Look the class up in Microsoft's reference of sys.dm_os_latch_stats; fewer sessions shorten any such queue.")
    }

    fn index_again(&self, index: &Relation) -> Option<String> {
        let definition = index.definition.as_ref()?;
        let (table, name) = index.name.rsplit_once('.')?;
        let literal = |text: &str| format!("N'{}'", text.replace('\'', "''"));
        Some(format!(
            "IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE object_id = OBJECT_ID({}) AND name = {}) {definition}",
            literal(&self.sql().quoted(table)),
            literal(name)
        ))
    }
}

/// What a class of latches protects, and what helps.
const LATCHES: [(&str, &str); 6] = [
    ("ACCESS_METHODS_DATASET_PARENT", PARALLEL_SCANS),
    ("ACCESS_METHODS_SCAN_RANGE_GENERATOR", PARALLEL_SCANS),
    (
        "ACCESS_METHODS_HOBT_VIRTUAL_ROOT",
        "This is the root of an index, which changes when the pages below it are split: spread the inserts over hash \
        partitions.",
    ),
    (
        "FGCB_ADD_REMOVE",
        "Files of a filegroup grew: make them large enough before the load, let them grow in larger \
        increments, and allow instant file initialization (the privilege \"perform volume maintenance tasks\").",
    ),
    (
        "LOG_MANAGER",
        "The transaction log grew: make it large enough before the load, and find out why it is not reused \
        (log_reuse_wait_desc of sys.databases).",
    ),
    (
        "NESTING_TRANSACTION",
        "Threads of a parallel statement share a transaction: compare with MAXDOP = 1 for such statements.",
    ),
];

const PARALLEL_SCANS: &str = "Threads of a parallel scan take their ranges of pages from it: compare with a lower MAXDOP or a higher \
    `cost threshold for parallelism`, and look for an index that avoids the scan.";
