//! What each session does or waits for.

use kelvin_database::{Error, Rows};
use kelvin_measure::Nanos;
use kelvin_measure::observation::{Blocker, UnavailableMetrics, WaitGroup, WaitKind};

use super::link::{Link, Server};
use super::other_programs::OtherPrograms;
use super::samples::Samples;
use super::state::{Seen, state};
use super::thread::Threads;
use super::{WatchPlan, locks, sql};
use crate::server::link::{Observers, SESSIONS};
use crate::server::sessions::{SentTexts, SessionSource, Tally};
use crate::server::shortened;
use crate::watch::Feed;

/// Looks at the sessions.
pub(super) struct MysqlSessions {
    observers: Observers,
    rows: Rows,
    /// The server's threads, where they may be read.
    threads: Option<Threads>,
    apart: bool,
    others: OtherPrograms,
    /// The statements whose texts were sent; none where they are not asked for.
    sent: Option<SentTexts>,
    /// Statements as they were sent by clients, which stay in this process.
    samples: Samples,
}

impl MysqlSessions {
    pub(super) fn new(
        plan: &WatchPlan,
        process: Option<u32>,
        observers: Observers,
        samples: Samples,
    ) -> Self {
        Self {
            observers,
            rows: Rows::new(),
            threads: process.and_then(Threads::of_process),
            apart: plan.apart,
            others: OtherPrograms::default(),
            sent: plan.texts.then(SentTexts::default),
            samples,
        }
    }

    fn absent(&self, server: &Server) -> Vec<UnavailableMetrics> {
        let mut absent = Vec::new();
        let mut add =
            |what: &str, why: &str| absent.push(UnavailableMetrics { what: what.into(), why: why.into() });
        if !server.transactions {
            add(
                "sessions of other accounts, row locks and transactions that wait for their client",
                "the account cannot see them; GRANT PROCESS ON *.* TO it",
            );
        }
        if server.waits {
            return absent;
        }
        let by_default = if server.mariadb {
            "performance_schema is off or does not record waits (MariaDB's default)"
        } else {
            "performance_schema does not record waits (MySQL's default: the consumer events_waits_current \
             is off)"
        };
        let (what, why) = if self.threads.is_some() {
            (
                "latches by name",
                "the server's threads show only that they wait for a latch, not for which one",
            )
        } else {
            (
                "data reads and latches of sessions",
                "the server's threads cannot be read (run kelvin on the server's host as the server's user \
                 or root); these waits are counted as CPU if the session's state indicates work",
            )
        };
        add(what, &format!("{by_default}; {why}"));
        absent
    }
}

impl SessionSource for MysqlSessions {
    type Server = Server;
    const NAME: &'static str = "mysql";
    const WAITING: &'static str = "active sessions that were not on a CPU";

    fn is_same_life(before: &Server, now: &Server) -> bool {
        now.is_same_life(before)
    }

    fn begin(&mut self, link: &mut Link) -> Vec<UnavailableMetrics> {
        self.absent(&link.about)
    }

    fn ask(&mut self, link: &mut Link) -> Result<(), String> {
        let (observers, others, apart) = (&self.observers, &mut self.others, self.apart);
        let texts = self.sent.is_some();
        self.rows = link.with(|session, server| {
            observers.set(SESSIONS, server.connection);
            if apart {
                let _refused = others.mark(session, server);
            }
            let rows = session.query(&sql::sessions(server, observers, texts))?;
            if apart {
                others.meet(session, server, &rows)?;
            }
            Ok(rows)
        })?;
        Ok(())
    }

    fn count(
        &mut self,
        server: &Server,
        tally: &mut Tally,
        _now: Nanos,
        feed: &mut Feed,
    ) -> Result<(), Error> {
        let rows = &self.rows;
        for row in 0..rows.len() {
            let seen = Seen {
                command: text(rows, row, 2)?,
                state: text(rows, row, 3)?,
                transaction: text(rows, row, 5)?,
                wait: rows.optional(row, 7, Rows::text)?,
                thread: None,
            };
            // A session that waits for a row is known without its thread.
            let asked = seen.command == "Sleep" || seen.transaction != "LOCK WAIT";
            let thread = rows.optional(row, 4, Rows::int)?.filter(|_| asked);
            let thread = thread.zip(self.threads.as_ref()).and_then(|(thread, of)| of.doing(thread));
            let state = state(&Seen { thread, ..seen });
            match state.kind {
                WaitKind::IdleInTransaction => tally.idle_in_transaction(),
                kind => {
                    tally.active(kind != WaitKind::Cpu);
                    if kind == WaitKind::RowLock {
                        tally.waits_for_lock();
                    }
                }
            }
            let user = text(rows, row, 1)?;
            let connection = rows.int(row, 0)?;
            let backend = match seen.command {
                command if command.starts_with("Binlog Dump") => "binlog sender".to_owned(),
                _ if user == "system user" => "replication applier".to_owned(),
                _ if self.apart && user != server.user => {
                    format!("client backend ({})", shortened(user))
                }
                _ if self.apart && OtherPrograms::is_foreign(server, connection) => {
                    format!("client backend ({})", self.others.name(connection))
                }
                _ => "client backend".to_owned(),
            };
            let mut query = rows.optional(row, 6, Rows::int)?;
            if let Some(sent) = &mut self.sent {
                let (normalised, as_sent) = (text(rows, row, 8)?, text(rows, row, 9)?);
                match query {
                    Some(query) if !normalised.is_empty() => sent.normalised(query, normalised, feed),
                    _ => query = sent.sampled(query, as_sent, feed),
                }
                self.samples.keep(query, as_sent);
            }
            tally.session(WaitGroup {
                backend,
                kind: state.kind,
                class: state.class.into(),
                event: state.event.into(),
                query,
                object: None,
            });
        }
        Ok(())
    }

    fn row_waiters(&mut self, link: &mut Link) -> Result<Vec<(String, u32)>, String> {
        locks::row_waiters(link)
    }

    fn blockers(&mut self, link: &mut Link) -> Result<Vec<Blocker>, String> {
        locks::blockers(link)
    }

    /// The next life has another process.
    fn lost(&mut self, _at: Nanos, _feed: &mut Feed) {
        self.threads = None;
    }
}

/// A text field; empty for NULL.
pub(super) fn text(rows: &Rows, row: usize, column: usize) -> Result<&str, Error> {
    Ok(rows.optional(row, column, Rows::text)?.unwrap_or_default())
}
