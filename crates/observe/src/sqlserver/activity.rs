//! What a SQL Server counts and who waits for whom, for whoever asks without a load.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, Result, Rows};
use kelvin_measure::observation::UnavailableMetrics;

use super::link::{Link, connect};
use super::pages::{Tables, locked};
use super::sessions::SqlServerSessions;
use super::shown_text::shown;
use super::wait_types::{poison, wait_type};
use super::{counters, latches, sql, statements};
use crate::activity::{
    Activity, BlockedSession, ServerActivity, ServerReading, StatementCounters, StatementPlan,
    StatementReading,
};
use crate::server;
use crate::server::link::{FIGURES, Observers, SESSIONS};
use crate::server::sessions::Sessions;
use crate::server::shortened;
use crate::watch_plan::WatchPlan;

/// A statement of who waits and of who is waited for is cut after so many characters.
const LONGEST_STATEMENT: usize = 400;

/// Connects to the server twice: one connection samples the sessions.
pub(crate) fn activity(engine: &Arc<dyn Engine>, plan: &WatchPlan) -> Result<Activity> {
    let (sessions, link) = server::links(engine, plan, connect)?;
    let observers = Observers::default();
    observers.set(SESSIONS, sessions.about.connection);
    observers.set(FIGURES, link.about.connection);
    let looks = SqlServerSessions::new(plan, observers);
    Ok(Activity {
        sessions: Box::new(Sessions::new(sessions, Duration::from_secs(1) / plan.looks, looks)),
        server: Box::new(SqlServerActivity { link, tables: Tables::default(), procedures: HashMap::new() }),
    })
}

struct SqlServerActivity {
    link: Link,
    tables: Tables,
    /// Of the last reading of the statements.
    procedures: HashMap<i64, String>,
}

impl ServerActivity for SqlServerActivity {
    fn product(&mut self) -> std::result::Result<String, String> {
        Ok(self.link.about.product())
    }

    fn absent(&mut self) -> Vec<UnavailableMetrics> {
        // What cannot be seen of the sessions is reported with them.
        latches::absent(&self.link.about).collect()
    }

    fn read(&mut self) -> std::result::Result<ServerReading, String> {
        self.link.with(|session, server| {
            Ok(ServerReading {
                waits: counters::waits(session, &sql::waits(server))?,
                files: counters::files(session, server)?.into_iter().map(|(_, file)| file).collect(),
                latches: latches::read(session, server)?,
            })
        })
    }

    fn blocked(&mut self) -> std::result::Result<Vec<BlockedSession>, String> {
        let mut found: Vec<BlockedSession> = self.link.with(|session, _| {
            let rows = session.query(&sql::blocked())?;
            (0..rows.len()).map(|row| blocked(&rows, row)).collect()
        })?;
        let resources: Vec<&str> = found.iter().map(|one| one.waits_for.as_str()).collect();
        let tables = self.tables.names_of(&mut self.link, &resources)?;
        for (one, table) in found.iter_mut().zip(tables) {
            one.waits_for = locked(&one.waits_for, &table);
        }
        Ok(found)
    }

    fn poison(&self, _class: &str, event: &str) -> Option<&'static str> {
        poison(event)
    }

    /// The statement's hash, as `sys.dm_exec_query_stats` has it.
    fn query_id(&self, query: i64) -> String {
        format!("{query:016X}")
    }

    fn statement_counters(&mut self) -> std::result::Result<StatementCounters, String> {
        let since = self.link.with(|session, _| {
            let rows = session.query(sql::COUNTED_SINCE)?;
            rows.optional(0, 0, |rows, row, column| rows.text(row, column).map(str::to_owned))
        })?;
        Ok(StatementCounters {
            since: since.map(|since| format!("{since} (server's time; evicted plans are not included)")),
            cpu: true,
            sampled_by_id: true,
            reads: "pages read from files",
            writes: "pages changed",
            absent: Vec::new(),
        })
    }

    fn statements(&mut self) -> std::result::Result<StatementReading, String> {
        let reading = self.link.with(statements::read)?;
        self.procedures = reading.procedures;
        Ok(reading.sums)
    }

    fn texts(&mut self, queries: &[i64]) -> std::result::Result<HashMap<i64, String>, String> {
        let mut texts: HashMap<i64, String> =
            queries.iter().filter_map(|query| Some((*query, self.procedures.get(query)?.clone()))).collect();
        // A list of thousands of numbers would be no statement to send.
        for part in queries.chunks(200) {
            let cached = self.link.with(|session, _| statements::cached(session, part, false))?;
            texts.extend(cached.into_iter().map(|(query, cached)| (query, cached.text)));
        }
        Ok(texts)
    }

    /// The server keeps the plan that it uses: nothing is planned, whoever wrote the statement.
    fn plan(&mut self, query: i64, _others: bool) -> std::result::Result<StatementPlan, String> {
        if self.procedures.contains_key(&query) {
            return Err("a procedure has a plan for each of its statements".into());
        }
        let (cached, faster) = self.link.with(|session, server| {
            let cached = statements::cached(session, &[query], true)?.remove(&query);
            let faster =
                if server.query_store { statements::faster(session, &[query])?.remove(&query) } else { None };
            Ok((cached, faster))
        })?;
        let cached = cached.ok_or("the server no longer has it in its plan cache")?;
        let mut plan = cached.plan.ok_or(
            "the server provides no plan of it (it is too large, or not a \
            query)",
        )?;
        if let Some(faster) = faster {
            plan.text = format!("{}\n{}", faster.sentence(), plan.text);
            plan.faster = Some(faster);
        }
        let mut files = vec![("txt", format!("{}\n", plan.text))];
        files.extend(cached.file.map(|file| ("sqlplan", file)));
        Ok(StatementPlan { plan, files })
    }
}

fn blocked(rows: &Rows, row: usize) -> Result<BlockedSession> {
    let text = |column| -> Result<&str> { Ok(rows.optional(row, column, Rows::text)?.unwrap_or_default()) };
    let doing = match text(7)? {
        "running" | "runnable" => "CPU".to_owned(),
        "idle in transaction" => "idle in transaction".to_owned(),
        wait => format!("{} {wait}", wait_type(wait).category),
    };
    Ok(BlockedSession {
        session: rows.int(row, 0)?,
        application: shortened(text(1)?),
        waits_for: text(2)?.to_owned(),
        waited_ms: rows.optional(row, 3, Rows::float)?,
        statement: shown(text(4)?, LONGEST_STATEMENT),
        blocker: rows.int(row, 5)?,
        blocker_application: shortened(text(6)?),
        blocker_doing: doing,
        blocker_transaction_ms: rows.optional(row, 8, Rows::float)?,
        blocker_statement: shown(text(9)?, LONGEST_STATEMENT),
    })
}
