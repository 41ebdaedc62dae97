//! What a MySQL or MariaDB server counts and who waits for whom, for whoever asks without a load.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, Error, Result, Rows, Session};
use kelvin_measure::observation::{UnavailableMetrics, WaitKind};

use super::link::{Link, Server, connect};
use super::samples::Samples;
use super::sessions::{MysqlSessions, text};
use super::state::counted_kind;
use super::statements::{self, CPU_TIME, NO_PERFORMANCE_SCHEMA};
use super::{BETWEEN_LOOKS, files, placement, sql};
use crate::activity::{
    Activity, BlockedSession, CountedWait, ServerActivity, ServerReading, StatementCounters, StatementPlan,
    StatementReading,
};
use crate::server;
use crate::server::link::{FIGURES, Observers, SESSIONS};
use crate::server::sessions::Sessions;
use crate::server::shortened;
use crate::server::statement_text::masked;
use crate::watch_plan::WatchPlan;

/// A statement of who waits and of who is waited for is cut after so many characters.
const LONGEST_STATEMENT: usize = 400;

/// Waits that both products always count, as status variables: number, milliseconds, and the kind, class and
/// event under which they are reported.
const STATUS: [(&str, Option<&str>, WaitKind, &str, &str); 3] = [
    ("innodb_row_lock_waits", Some("innodb_row_lock_time"), WaitKind::RowLock, "Lock", "row"),
    ("innodb_buffer_pool_wait_free", None, WaitKind::DataWrite, "InnoDB", FREE_PAGE),
    ("innodb_log_waits", None, WaitKind::Log, "InnoDB", LOG_BUFFER),
];
const FREE_PAGE: &str = "free page in the buffer pool";
const LOG_BUFFER: &str = "space in the log buffer";

/// Connects to the server twice: one connection samples the sessions.
pub(crate) fn activity(engine: &Arc<dyn Engine>, plan: &WatchPlan) -> Result<Activity> {
    let (mut sessions, link) = server::links(engine, plan, connect)?;
    let place = placement::find_by(engine.as_ref(), &mut sessions);
    let observers = Observers::default();
    observers.set(SESSIONS, sessions.about.connection);
    observers.set(FIGURES, link.about.connection);
    let interval = (Duration::from_secs(1) / plan.looks).max(BETWEEN_LOOKS);
    let samples = Samples::default();
    let looks = MysqlSessions::new(plan, place.server, observers.clone(), samples.clone());
    Ok(Activity {
        sessions: Box::new(Sessions::new(sessions, interval, looks)),
        server: Box::new(MysqlActivity { link, observers, samples, texts: HashMap::new(), cpu: false }),
    })
}

struct MysqlActivity {
    link: Link,
    observers: Observers,
    samples: Samples,
    /// Of the last reading of the statements.
    texts: HashMap<i64, String>,
    /// Whether CPU time is counted by statement.
    cpu: bool,
}

impl MysqlActivity {
    fn with<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Session, &Server) -> Result<T>,
    ) -> std::result::Result<T, String> {
        let observers = &self.observers;
        self.link.with(|session, server| {
            observers.set(FIGURES, server.connection);
            work(session, server)
        })
    }
}

impl ServerActivity for MysqlActivity {
    fn product(&mut self) -> std::result::Result<String, String> {
        self.with(|session, server| {
            let rows = session.query("SELECT VERSION()")?;
            let version = rows.text(0, 0)?;
            let product = if server.mariadb { "MariaDB" } else { "MySQL" };
            Ok(format!("{product} {}", version.split('-').next().unwrap_or(version)))
        })
    }

    fn absent(&mut self) -> Vec<UnavailableMetrics> {
        let mut absent = Vec::new();
        if !self.link.about.performance_schema {
            absent.push(UnavailableMetrics {
                what: "numbers and times of waits other than row locks, latency of files".into(),
                why: NO_PERFORMANCE_SCHEMA.into(),
            });
        }
        if self.link.about.mariadb {
            absent.push(UnavailableMetrics {
                what: "who holds a metadata lock".into(),
                why: "MariaDB shows that only with the plugin metadata_lock_info".into(),
            });
        }
        absent
    }

    fn read(&mut self) -> std::result::Result<ServerReading, String> {
        self.with(|session, server| {
            let mut reading = ServerReading { waits: status(session)?, ..ServerReading::default() };
            if server.performance_schema {
                reading.waits.extend(events(session)?);
                reading.files = files::by_instance(session)?;
            }
            Ok(reading)
        })
    }

    fn blocked(&mut self) -> std::result::Result<Vec<BlockedSession>, String> {
        self.with(|session, server| {
            if server.mariadb && !server.transactions {
                return Ok(Vec::new());
            }
            let mut found = Vec::new();
            for sql in sql::blocked(server) {
                let rows = session.query(sql)?;
                for row in 0..rows.len() {
                    found.push(blocked(&rows, row)?);
                }
            }
            Ok(found)
        })
    }

    fn poison(&self, class: &str, event: &str) -> Option<&'static str> {
        match (class, event) {
            ("InnoDB", FREE_PAGE) => Some(
                "sessions had to write a dirty page before they could read one: the buffer pool is too small or pages are \
                 written too slowly (innodb_io_capacity)",
            ),
            ("InnoDB", LOG_BUFFER) => {
                Some("innodb_log_buffer_size is too small: sessions waited until the log buffer was written")
            }
            _ => None,
        }
    }

    /// The beginning of the digest.
    fn query_id(&self, query: i64) -> String {
        format!("{query:016x}")
    }

    fn statement_counters(&mut self) -> std::result::Result<StatementCounters, String> {
        statements::available(&mut self.link)?;
        let (since, cpu) = self.with(|session, server| {
            let rows = session.query(
                "SELECT DATE_FORMAT(CONVERT_TZ(MIN(FIRST_SEEN), @@session.time_zone, '+00:00'), '%Y-%m-%d %H:%i:%s UTC') \
                 FROM performance_schema.events_statements_summary_by_digest",
            )?;
            let since = rows.optional(0, 0, Rows::text)?.map(str::to_owned);
            let cpu = !server.mariadb && server.version >= CPU_TIME && {
                let rows = session.query(
                    "SELECT CAST(COUNT(*) AS SIGNED) FROM performance_schema.setup_consumers \
                     WHERE NAME = 'events_statements_cpu' AND ENABLED = 'YES'",
                )?;
                rows.int(0, 0)? == 1
            };
            Ok((since, cpu))
        })?;
        self.cpu = cpu;
        Ok(StatementCounters {
            since,
            cpu,
            sampled_by_id: !self.link.about.mariadb,
            reads: "rows examined",
            writes: "rows changed",
            absent: Vec::new(),
        })
    }

    fn statements(&mut self) -> std::result::Result<StatementReading, String> {
        let cpu = self.cpu;
        let reading = self.with(|session, server| statements::read(session, server, cpu))?;
        self.texts = reading.texts;
        Ok(reading.sums)
    }

    fn texts(&mut self, queries: &[i64]) -> std::result::Result<HashMap<i64, String>, String> {
        let of = |query: &i64| Some((*query, self.texts.get(query)?.clone()));
        Ok(queries.iter().filter_map(of).collect())
    }

    /// Neither product runs stored functions to explain a statement, whoever wrote it.
    fn plan(&mut self, query: i64, _others: bool) -> std::result::Result<StatementPlan, String> {
        let sample = match self.samples.get(query) {
            // MariaDB keeps none.
            None if !self.link.about.mariadb => self.with(|session, _| sample(session, query))?,
            sampled => sampled,
        };
        let text = self.texts.get(&query).cloned().unwrap_or_default();
        if sample.is_none() && text.is_empty() {
            return Err("no sample of it was taken while it ran".into());
        }
        // The server's own message repeats a part of the statement.
        let refused =
            |error: Error| Error::usage(format!("the server does not explain it (error {})", error.code()));
        let plan = self
            .with(|session, _| statements::explain(session, &text, sample.as_deref()).map_err(refused))?
            .ok_or(
                "EXPLAIN plans a single SELECT, WITH, INSERT, REPLACE, UPDATE or DELETE that reads a table",
            )?;
        Ok(StatementPlan { files: vec![("txt", format!("{}\n", plan.text))], plan })
    }
}

/// MySQL's sample of a digest, while it has one.
fn sample(session: &mut dyn Session, query: i64) -> Result<Option<String>> {
    let rows = session.query(&format!(
        "SELECT QUERY_SAMPLE_TEXT FROM performance_schema.events_statements_summary_by_digest \
         WHERE DIGEST LIKE '{query:016x}%' AND SCHEMA_NAME = DATABASE() LIMIT 1"
    ))?;
    if rows.is_empty() { Ok(None) } else { Ok(rows.optional(0, 0, Rows::text)?.map(str::to_owned)) }
}

fn status(session: &mut dyn Session) -> Result<Vec<CountedWait>> {
    let rows = session.query(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_row_lock_waits', 'Innodb_row_lock_time', \
         'Innodb_buffer_pool_wait_free', 'Innodb_log_waits')",
    )?;
    let mut values = HashMap::new();
    for row in 0..rows.len() {
        if let Ok(value) = rows.text(row, 1)?.parse::<f64>() {
            values.insert(rows.text(row, 0)?.to_lowercase(), value);
        }
    }
    let one = |&(count, time, kind, class, event): &(&str, Option<&str>, WaitKind, &str, &str)| {
        Some(CountedWait {
            kind,
            class: class.into(),
            event: event.into(),
            count: *values.get(count)?,
            total_ms: time.and_then(|time| values.get(time).copied()),
            signal_ms: None,
        })
    };
    Ok(STATUS.iter().filter_map(one).collect())
}

/// All threads' waits. That for a table's row contains those for its file and its latches and is left out, as is what idle sessions
/// and idle threads wait for.
fn events(session: &mut dyn Session) -> Result<Vec<CountedWait>> {
    let rows = session.query(
        "SELECT EVENT_NAME, COUNT_STAR + 0e0, SUM_TIMER_WAIT / 1e9 \
         FROM performance_schema.events_waits_summary_global_by_event_name \
         WHERE COUNT_STAR > 0 AND EVENT_NAME NOT LIKE 'wait/io/table/%' AND EVENT_NAME <> 'idle'",
    )?;
    let mut found = Vec::new();
    for row in 0..rows.len() {
        let event = rows.text(row, 0)?;
        let Some(kind) = counted_kind(event) else { continue };
        found.push(CountedWait {
            kind,
            class: "Wait".into(),
            event: event.into(),
            count: rows.float(row, 1)?,
            total_ms: Some(rows.float(row, 2)?),
            signal_ms: None,
        });
    }
    Ok(found)
}

fn blocked(rows: &Rows, row: usize) -> Result<BlockedSession> {
    let (command, state) = (text(rows, row, 7)?, text(rows, row, 8)?);
    let doing = if command == "Sleep" { "idle in transaction" } else { state };
    Ok(BlockedSession {
        session: rows.int(row, 0)?,
        application: shortened(text(rows, row, 1)?),
        waits_for: text(rows, row, 2)?.replace('`', ""),
        waited_ms: rows.optional(row, 3, Rows::float)?,
        statement: masked(text(rows, row, 4)?, LONGEST_STATEMENT),
        blocker: rows.int(row, 5)?,
        blocker_application: shortened(text(rows, row, 6)?),
        blocker_doing: doing.to_owned(),
        blocker_transaction_ms: rows.optional(row, 9, Rows::float)?,
        blocker_statement: masked(text(rows, row, 10)?, LONGEST_STATEMENT),
    })
}
