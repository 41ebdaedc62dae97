//! Advice for MySQL and MariaDB.

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::sampled_execution::MisestimatedNode;

use super::{
    BufferPool, EngineAdvice, HostAdvice, NodeKinds, QueueAdvice, SessionAdvice, SpillAdvice, SqlDialect,
    StatisticsAdvice,
};
use crate::{Change, Class};

pub(super) struct Mysql {
    pub(super) is_mariadb: bool,
}

impl EngineAdvice for Mysql {
    fn sql(&self) -> SqlDialect {
        SqlDialect {
            quotes: ('`', '`'),
            // Only MariaDB has IF [NOT] EXISTS for indexes.
            proposes_indexes: self.is_mariadb,
            repeats_drops: self.is_mariadb,
            indexes_within_table: true,
            // They are full-text, spatial or ignored ones.
            undefined_index_serves: false,
        }
    }

    fn statistics(&self) -> StatisticsAdvice {
        StatisticsAdvice {
            update: "ANALYZE TABLE",
            title: "analyze",
            // A restored dump has new ones on both sides of a comparison.
            by_hand: Some(FAILS_AS_ROWS),
            uncounted: Some(NodeKinds { whole_table: "Table scan", filter: "Filter" }),
            renew: "Run `analyze table` on",
            renewed_by: "InnoDB did not update them after changes to a tenth of the rows: innodb_stats_auto_recalc, or \
                STATS_AUTO_RECALC of the table, may be off",
            estimates: "Run `analyze table` on the tables that these nodes read; if the estimates for an \
                index stay wrong, with a larger `stats_sample_pages`. For a condition on columns without an index, create \
                histograms (MariaDB: `analyze table … persistent for columns (…) indexes ()`; MySQL: `analyze table … update \
                histogram on …`); for columns that depend on each other, of which neither server keeps statistics, an index \
                on all of them. Then compare the plans: a wrong estimate is harmful only if it leads to a slow plan.",
            index_uses: "rows found through it",
            ..StatisticsAdvice::NEUTRAL
        }
    }

    fn sessions(&self) -> SessionAdvice {
        SessionAdvice {
            figures: "the database's counters: pages, redo log, row locks, statements",
            list: "End these sessions before the run: `SHOW PROCESSLIST` lists them, `SELECT * FROM \
                information_schema.INNODB_TRX` lists their open transactions.",
            end: ("KILL ", ""),
            idle: if self.is_mariadb {
                "idle_transaction_timeout ends such sessions."
            } else {
                "wait_timeout ends idle sessions, in a transaction or not."
            },
            named_by_account: true,
            // They are whole seconds.
            age_error: 1.0,
            opened: "attempts to connect per second",
            // A thread: 0.09 to 0.17 ms on MariaDB 10.11, with and without its thread cache, by a socket or TCP, without TLS (4000
            // connections each).
            opening_cpu_ms: Some(0.1),
            opening_threshold: "5 new sessions per second; red if opening them takes 8 % of the database's host's CPUs or more at \
                0.1 ms each, the lower end of what a new session of MariaDB costs without TLS",
            opening_next: "Find out who connects (performance_schema.hosts, the general log), and keep the sessions open in a pool",
            ..SessionAdvice::NEUTRAL
        }
    }

    fn queues(&self) -> QueueAdvice {
        QueueAdvice {
            locks: &LOCKS,
            lock_threshold: "one kind of lock other than row locks: amber from 10 % of the active sessions and half a \
                session; a single transaction that holds it is reported by lock-holder only if it holds a row \
                lock",
            ..QueueAdvice::NEUTRAL
        }
    }

    fn spills(&self) -> SpillAdvice {
        SpillAdvice { setting: Some("sort_buffer_size"), ..SpillAdvice::NEUTRAL }
    }

    fn host(&self) -> HostAdvice {
        HostAdvice {
            size_unit: Some((1.0, "")),
            memory: "innodb_buffer_pool_size, the buffers of sessions × users",
            ..HostAdvice::NEUTRAL
        }
    }

    /// The share is the lower one of "Configuring InnoDB Buffer Pool Size" in the manual: 50 to 75 %.
    fn buffers(&self) -> BufferPool {
        let page = ("innodb_page_size", 16_384.0);
        BufferPool { name: "the buffer pool", setting: Some("innodb_buffer_pool_size"), page, share: 0.5 }
    }

    fn experiment(&self, class: Class) -> Option<&'static str> {
        Some(match class {
            Class::DataReads => {
                "With `innodb_buffer_pool_size` large enough for the data, throughput should rise."
            }
            Class::DataWrites => {
                "With a larger redo log (`innodb_redo_log_capacity`, `innodb_log_file_size`) or a faster data \
                device, throughput should rise."
            }
            Class::Log => {
                "With `innodb_flush_log_at_trx_commit = 2` (and `sync_binlog = 0` if there is a binary log), for \
                the experiment only, throughput should rise."
            }
            Class::Replication => {
                "Without semi-synchronous replication, for the experiment only, throughput should rise."
            }
            _ => return None,
        })
    }

    fn replaces_pages(&self, group: &WaitGroup) -> bool {
        group.kind == WaitKind::DataRead || group.kind == WaitKind::DataWrite && group.event == "data write"
    }

    /// They have names of the server's source code, and that of the adaptive hash index a finding of its own.
    fn latch_name<'a>(&self, _: &'a WaitGroup) -> Option<&'a str> {
        None
    }

    /// A histogram: the optimizers guess, too many or too few rows, where they have no statistics.
    fn column_statistics(
        &self,
        table: &str,
        columns: &[String],
        _: &MisestimatedNode,
    ) -> Option<(String, Change)> {
        if columns.is_empty() {
            return None;
        }
        let sql = self.sql();
        let (quoted, list) = (sql.quoted(table), sql.quoted_list(columns));
        let histogram = if self.is_mariadb {
            format!("PERSISTENT FOR COLUMNS ({list}) INDEXES ()")
        } else {
            format!("UPDATE HISTOGRAM ON {list}")
        };
        let change = Change::by_hand(&format!("ANALYZE TABLE {quoted} {histogram}{FAILS_AS_ROWS}"));
        Some((format!("histogram of {table} ({})", columns.join(", ")), change))
    }
}

/// What ANALYZE TABLE does.
const FAILS_AS_ROWS: &str = "; it returns failures as rows";

/// What a lock is for and what helps, by a part of the session's state.
const LOCKS: [(&str, &str, &str); 3] = [
    (
        "metadata lock",
        "metadata locks",
        "A statement changes the definition of a table while transactions use it: keep DDL out of the \
        measured window, and end open transactions first.",
    ),
    (
        "user lock",
        "user locks",
        "The application takes them itself (`get_lock`): hold them for less time, or use more than one name.",
    ),
    (
        "table level lock",
        "locks of tables",
        "The table's engine locks it as a whole (MyISAM, Aria, MEMORY), or `lock tables` does: use InnoDB.",
    ),
];

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{CaptureTime, StatementTotals};
    use kelvin_measure::sampled_execution::{MisestimatedNode, SampledExecution};
    use serde_json::json;

    use crate::findings::staged::{Staged, statement, table};
    use crate::{Change, Remedy, remedies};

    fn of(version: &str, nodes: Vec<MisestimatedNode>) -> Vec<Remedy> {
        let sample = Some(SampledExecution::Executed { took_ms: 1.0, misestimates: nodes });
        let one = StatementTotals { sample, ..statement(1, 75.0, 1, "a", &[]) };
        let staged = Staged::new().environment(json!({ "engine": "mysql" })).setting("version", version);
        let staged = staged.relations(CaptureTime::After, vec![table("k.parts", 200, 0)], 1);
        let evidence = staged.statements(vec![one, statement(2, 25.0, 1, "b", &[])]).done();
        let found = crate::findings_for(&evidence);
        remedies(&evidence, &found).into_iter().filter(|one| one.finding == "misestimate").collect()
    }

    fn node(kind: &str, columns: &[&str]) -> MisestimatedNode {
        MisestimatedNode {
            node: format!("{kind} on k.parts"),
            relation: Some("k.parts".into()),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            estimated: 10_000.0,
            actual: 10.0,
            loops: 1.0,
            ..MisestimatedNode::default()
        }
    }

    fn statement_of(remedy: &Remedy) -> &str {
        let Change::Manual { how } = &remedy.change else { panic!("{remedy:?}") };
        how.split_once("; ").unwrap().0
    }

    #[test]
    fn a_condition_without_statistics_gets_a_histogram() {
        let all = of("8.0.31", vec![node("Filter", &["b", "a`"])]);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            (all[0].title.as_str(), all[0].effect.high()),
            ("histogram of k.parts (a`, b)", Some(0.75))
        );
        assert_eq!(statement_of(&all[0]), "ANALYZE TABLE `k`.`parts` UPDATE HISTOGRAM ON `a```, `b`");
        let all = of("10.11.19-MariaDB", vec![node("Filter", &["o'b"])]);
        assert_eq!(
            statement_of(&all[0]),
            "ANALYZE TABLE `k`.`parts` PERSISTENT FOR COLUMNS (`o'b`) INDEXES ()"
        );
        let known = MisestimatedNode { has_statistics: true, ..node("Filter", &["a"]) };
        assert!(of("8.0.31", vec![known, node("Filter", &[])]).is_empty());
    }

    #[test]
    fn a_table_whose_rows_missed_is_analyzed() {
        for kind in ["Table scan", "Index lookup"] {
            let all = of("8.0.31", vec![node(kind, &[])]);
            assert_eq!(all.len(), 1, "{all:?}");
            assert_eq!((all[0].title.as_str(), all[0].effect.high()), ("analyze k.parts", Some(0.75)));
            assert_eq!(statement_of(&all[0]), "ANALYZE TABLE `k`.`parts`");
            assert_eq!(all[0].reason, "k.parts: 200 rows by its statistics");
        }
    }
}
