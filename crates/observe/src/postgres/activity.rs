//! What a PostgreSQL server counts and who waits for whom, for whoever asks without a load.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kelvin_database::postgres::MARK;
use kelvin_database::{Engine, Result, Rows};
use kelvin_measure::observation::UnavailableMetrics;

use super::link::{Link, connect};
use super::sessions::PostgresSessions;
use super::statements::{self, StatementsView};
use super::{plans, sql};
use crate::activity::{
    Activity, BlockedSession, FileSums, IoSums, ServerActivity, ServerReading, StatementCounters,
    StatementPlan, StatementReading,
};
use crate::server;
use crate::server::sessions::Sessions;
use crate::server::shortened;
use crate::server::statement_text::masked;
use crate::watch_plan::WatchPlan;

/// A statement of who waits and of who is waited for is cut after so many characters.
const LONGEST_STATEMENT: usize = 400;

/// Wait events that a healthy server does not have, by the beginnings of the names that versions 13 to 18 give them.
const POISON: &[(&str, &[&str], &str)] = &[
    (
        "LWLock",
        &["Subtrans"],
        "subtransaction overflow: transactions with more than 64 savepoints or exception blocks make every snapshot look up pg_subtrans",
    ),
    (
        "LWLock",
        &["MultiXact"],
        "many sessions lock the same rows with FOR SHARE, FOR KEY SHARE or foreign keys: multixacts are looked up",
    ),
    ("LWLock", &["WALBufMapping"], "wal_buffers is too small: sessions wait until WAL buffers are written"),
    (
        "LWLock",
        &["LockManager", "lock_manager"],
        "more than 16 locks per transaction, by many partitions or indexes: the shared lock table is contended",
    ),
    (
        "Timeout",
        &["SpinDelay"],
        "spinlock contention: more running processes than CPUs can serve, or one hot structure",
    ),
];

/// Connects to the server twice: one connection samples the sessions.
pub(crate) fn activity(engine: &Arc<dyn Engine>, plan: &WatchPlan) -> Result<Activity> {
    let (sessions, link) = server::links(engine, plan, connect)?;
    let interval = Duration::from_secs(1) / plan.looks;
    Ok(Activity {
        sessions: Box::new(Sessions::new(sessions, interval, PostgresSessions::new(plan, None))),
        server: Box::new(PostgresActivity { link, source: None, ours: HashMap::new() }),
    })
}

struct PostgresActivity {
    link: Link,
    /// The view of statements, once it was found.
    source: Option<StatementsView>,
    /// Texts that were asked for, and whether our own role has run them.
    ours: HashMap<i64, (String, bool)>,
}

impl PostgresActivity {
    /// The view of statements, or why there is none.
    fn source(&mut self) -> std::result::Result<StatementsView, String> {
        if let Some(source) = &self.source {
            return Ok(source.clone());
        }
        let (source, track) = self.link.with(|session, _| statements::find(session, false))??;
        if track == "none" {
            return Err("pg_stat_statements.track is none; set it to top or all".into());
        }
        self.source = Some(source.clone());
        Ok(source)
    }
}

impl ServerActivity for PostgresActivity {
    fn product(&mut self) -> std::result::Result<String, String> {
        let asked = "SELECT /* kelvin observer */ current_setting('server_version')";
        self.link.with(|session, _| {
            let rows = session.query(asked)?;
            let version = rows.text(0, 0)?;
            Ok(format!("PostgreSQL {}", version.split(' ').next().unwrap_or(version)))
        })
    }

    fn absent(&mut self) -> Vec<UnavailableMetrics> {
        let mut absent = Vec::new();
        let mut add =
            |what: &str, why: &str| absent.push(UnavailableMetrics { what: what.into(), why: why.into() });
        add("numbers and times of waits", "PostgreSQL counts no waits; all shares are sampled");
        let version = self.link.about.version;
        if version < sql::V16 {
            add(
                "files by kind of process and use",
                "pg_stat_io is available since PostgreSQL 16; until then only each database's reads are counted",
            );
        }
        let settings = self.link.with(|session, _| {
            let rows = session.query(
                "SELECT /* kelvin observer */ current_setting('track_io_timing'), \
                 coalesce(current_setting('track_wal_io_timing', true), '')",
            )?;
            Ok([rows.text(0, 0)? == "off", rows.text(0, 1)? == "off"])
        });
        let Ok([io, wal]) = settings else { return absent };
        if io {
            add(
                "latency of files",
                "track_io_timing is off; turn it on (pg_test_timing measures its overhead)",
            );
        }
        if wal {
            add("latency of the WAL", "track_wal_io_timing is off; turn it on");
        }
        absent
    }

    fn read(&mut self) -> std::result::Result<ServerReading, String> {
        let files = self.link.with(|session, server| {
            let rows = session.query(&sql::files(server.version))?;
            (0..rows.len()).map(|row| file(&rows, row)).collect()
        })?;
        Ok(ServerReading { files, ..ServerReading::default() })
    }

    fn blocked(&mut self) -> std::result::Result<Vec<BlockedSession>, String> {
        self.link.with(|session, server| {
            let rows = session.query(&sql::blocked(server.version))?;
            (0..rows.len()).map(|row| blocked(&rows, row)).collect()
        })
    }

    fn poison(&self, class: &str, event: &str) -> Option<&'static str> {
        let of = |(of_class, names, _): &&(&str, &[&str], &str)| {
            *of_class == class && names.iter().any(|name| event.starts_with(name))
        };
        POISON.iter().find(of).map(|(_, _, sign)| *sign)
    }

    fn query_id(&self, query: i64) -> String {
        query.to_string()
    }

    fn statement_counters(&mut self) -> std::result::Result<StatementCounters, String> {
        let source = self.source()?;
        let since = self.link.with(|session, server| {
            if server.version < sql::V14 {
                return Ok(None);
            }
            // Beside the view, in its schema.
            let info = source.view.replace(".pg_stat_statements", ".pg_stat_statements_info");
            let rows = session.query(&format!(
                "SELECT {MARK} to_char(stats_reset AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS \"UTC\"') FROM {info}"
            ))?;
            Ok(rows.optional(0, 0, Rows::text)?.map(str::to_owned))
        });
        let mut absent = Vec::new();
        if !self.link.about.rights.all_stats {
            absent.push(UnavailableMetrics {
                what: "statements of other roles".into(),
                why: "the role cannot see them; GRANT pg_monitor (or pg_read_all_stats) TO it".into(),
            });
        }
        // An old version of the extension has no such view.
        let since = since.unwrap_or(None);
        Ok(StatementCounters {
            since,
            cpu: false,
            sampled_by_id: self.link.about.version >= sql::V14,
            reads: "pages read",
            writes: "pages dirtied",
            absent,
        })
    }

    fn statements(&mut self) -> std::result::Result<StatementReading, String> {
        let source = self.source()?;
        self.link.with(|session, _| statements::read(session, &source))
    }

    fn texts(&mut self, queries: &[i64]) -> std::result::Result<HashMap<i64, String>, String> {
        let source = self.source()?;
        let found = self.link.with(|session, _| statements::texts(session, &source, queries))?;
        let texts = found.iter().map(|(query, (text, _))| (*query, text.clone())).collect();
        self.ours.extend(found);
        Ok(texts)
    }

    fn plan(&mut self, query: i64, others: bool) -> std::result::Result<StatementPlan, String> {
        let unknown = !self.ours.contains_key(&query);
        if unknown {
            let why = "a plan needs the statement's normalised text, which only pg_stat_statements has";
            self.texts(&[query]).map_err(|error| format!("{why}: {error}"))?;
        }
        let Some((text, ours)) = self.ours.get(&query) else {
            return Err("pg_stat_statements no longer has its text".into());
        };
        if !ours && !others {
            return Err("statement of another role: planning it may run functions with your privileges; \
                 --plans=all includes such statements"
                .into());
        }
        // The server's message repeats parts of the statement, which here is normalised.
        let explained = self.link.with(|session, server| plans::plan(session, server.version, text))?;
        let Some(explained) = explained else {
            return Err(
                "not a query: EXPLAIN plans SELECT, INSERT, UPDATE, DELETE, MERGE and WITH only".into()
            );
        };
        let files = vec![("txt", format!("{}\n", explained.plan.text)), ("json", explained.json)];
        Ok(StatementPlan { plan: explained.plan, files })
    }
}

fn file(rows: &Rows, row: usize) -> Result<FileSums> {
    let value = |column| rows.optional(row, column, Rows::float);
    Ok(FileSums {
        name: rows.text(row, 0)?.to_owned(),
        reads: IoSums { count: value(1)?, bytes: value(2)?, ms: value(3)? },
        writes: IoSums { count: value(4)?, bytes: value(5)?, ms: value(6)? },
        syncs: IoSums { count: value(7)?, bytes: None, ms: value(8)? },
    })
}

fn blocked(rows: &Rows, row: usize) -> Result<BlockedSession> {
    let text = |column| rows.optional(row, column, Rows::text).map(Option::unwrap_or_default);
    let (lock, relation) = (text(2)?, text(3)?);
    let waits_for = match (lock, relation) {
        ("transactionid" | "tuple", "") => "row".to_owned(),
        ("transactionid" | "tuple", relation) => format!("row of {relation}"),
        (lock, "") => lock.to_owned(),
        (lock, relation) => format!("{lock} {relation}"),
    };
    Ok(BlockedSession {
        session: rows.int(row, 0)?,
        application: shortened(text(1)?),
        waits_for,
        waited_ms: rows.optional(row, 4, Rows::float)?,
        statement: masked(text(5)?, LONGEST_STATEMENT),
        // 0 is a prepared transaction.
        blocker: rows.optional(row, 6, Rows::int)?.unwrap_or(0),
        blocker_application: shortened(text(7)?),
        blocker_doing: text(8)?.to_owned(),
        blocker_transaction_ms: rows.optional(row, 9, Rows::float)?,
        blocker_statement: masked(text(10)?, LONGEST_STATEMENT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_trouble_are_known_by_the_names_of_all_versions() {
        let sign = |class: &str, event: &str| {
            POISON
                .iter()
                .find(|(of, names, _)| *of == class && names.iter().any(|name| event.starts_with(name)))
        };
        for (class, event) in [
            ("LWLock", "SubtransSLRU"),
            ("LWLock", "SubtransBuffer"),
            ("LWLock", "MultiXactOffsetSLRU"),
            ("LWLock", "LockManager"),
            ("Timeout", "SpinDelay"),
        ] {
            assert!(sign(class, event).is_some(), "{class} {event}");
        }
        assert!(sign("LWLock", "WALWrite").is_none() && sign("Lock", "transactionid").is_none());
    }
}
