//! Looking at the sessions: what each does or waits for, and how many do.

use std::collections::BTreeMap;
use std::time::Duration;

use kelvin_database::{Error, Rows};
use kelvin_measure::Nanos;
use kelvin_measure::observation::{Absent, Metric, Observation, Observer, Occurrence, WaitGroup, WaitKind};

use super::link::{Link, Observers, Server};
use super::state::{Seen, state};
use super::thread::Threads;
use super::{Plan, locks, sql};
use crate::waits::Counted;
use crate::watch::{Feed, Stage, Watcher};

const SECOND: Nanos = 1_000_000_000;

/// InnoDB renews what it shows of transactions only when nobody has read it for 0.1 s: looks that come sooner would see the same
/// transactions for ever.
const BETWEEN_LOOKS: Duration = Duration::from_millis(120);

/// Sessions summed over the looks of a second.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    active: u32,
    waiting: u32,
    idle_in_transaction: u32,
}

/// Looks at the sessions.
pub(super) struct Sessions {
    link: Link,
    interval: Duration,
    observers: Observers,
    counted: Counted,
    /// The server's threads, where they may be read.
    threads: Option<Threads>,
    /// Whether the last look saw a session wait for a row: only then the locks are asked for.
    row_waits: bool,
    sums: Sums,
    /// Index of our metrics.
    first: u32,
    /// The last look that was answered.
    looked: Option<Nanos>,
    /// When the last event was sent.
    sent: Nanos,
    server: Server,
    connected: bool,
    apart: bool,
}

impl Sessions {
    pub(super) fn new(link: Link, plan: &Plan, process: Option<u32>, observers: Observers) -> Self {
        observers.set(0, link.about.connection);
        Self {
            interval: (Duration::from_secs(1) / plan.looks).max(BETWEEN_LOOKS),
            observers,
            counted: Counted::default(),
            threads: process.and_then(Threads::of),
            row_waits: false,
            sums: Sums::default(),
            first: 0,
            looked: None,
            sent: 0,
            server: link.about.clone(),
            connected: true,
            apart: plan.apart,
            link,
        }
    }

    fn absent(&self) -> Vec<Absent> {
        let mut absent = Vec::new();
        let mut add = |what: &str, why: &str| absent.push(Absent { what: what.into(), why: why.into() });
        if !self.server.transactions {
            add(
                "sessions of other accounts, row locks and transactions that wait for their client",
                "the account may not see them; GRANT PROCESS ON *.* TO it",
            );
        }
        if self.server.waits {
            return absent;
        }
        let by_default = if self.server.mariadb {
            "performance_schema is off or records no waits (MariaDB's default)"
        } else {
            "performance_schema records no waits of sessions (MySQL's default: the consumer events_waits_current is off)"
        };
        let (what, why) = if self.threads.is_some() {
            ("latches by name", "the server's threads show that they wait for each other, and not for what")
        } else {
            (
                "data reads and latches of sessions",
                "the server's threads cannot be read (run kelvin beside the server, as its user or as root); such time is counted \
                 as CPU where the session's state is one in which it works",
            )
        };
        add(what, &format!("{by_default}; {why}"));
        absent
    }

    /// One look's rows into the sums.
    fn count(&mut self, rows: &Rows) -> Result<(), Error> {
        for row in 0..rows.len() {
            let seen = Seen {
                command: text(rows, row, 2)?,
                state: text(rows, row, 3)?,
                transaction: text(rows, row, 5)?,
                wait: optional(rows, row, 7, Rows::text)?,
                thread: None,
            };
            // A session that waits for a row is known without its thread.
            let asked = seen.command == "Sleep" || seen.transaction != "LOCK WAIT";
            let thread = optional(rows, row, 4, Rows::int)?.filter(|_| asked);
            let thread = thread.zip(self.threads.as_ref()).and_then(|(thread, of)| of.doing(thread));
            let state = state(&Seen { thread, ..seen });
            match state.kind {
                WaitKind::IdleInTransaction => self.sums.idle_in_transaction += 1,
                kind => {
                    self.sums.active += 1;
                    self.sums.waiting += u32::from(kind != WaitKind::Cpu);
                    self.row_waits |= kind == WaitKind::RowLock;
                }
            }
            let user = text(rows, row, 1)?;
            let backend = match seen.command {
                command if command.starts_with("Binlog Dump") => "binlog sender".to_owned(),
                _ if user == "system user" => "replication applier".to_owned(),
                _ if self.apart && user != self.server.user => {
                    format!("client backend ({})", user.chars().take(40).collect::<String>())
                }
                _ => "client backend".to_owned(),
            };
            self.counted.session(WaitGroup {
                backend,
                kind: state.kind,
                class: state.class.into(),
                event: state.event.into(),
                query: optional(rows, row, 6, Rows::int)?,
            });
        }
        Ok(())
    }

    fn look_at_sessions(&mut self, feed: &mut Feed) -> Result<(), String> {
        // Also lost where another of our statements met its end.
        self.lose_if_down(feed);
        let observers = &self.observers;
        let asked = self.link.with(|session, server| {
            observers.set(0, server.connection);
            session.query(&sql::sessions(server, observers))
        });
        let rows = match asked {
            Ok(rows) => rows,
            Err(why) => {
                self.lose_if_down(feed);
                return Err(why);
            }
        };
        if !std::mem::replace(&mut self.connected, true) {
            self.back_again(feed);
        }
        self.looked = Some(feed.now());
        self.row_waits = false;
        self.count(&rows).map_err(|error| error.to_string())?;
        self.counted.looked(feed);
        Ok(())
    }

    /// The second's figures.
    fn send(&mut self, feed: &mut Feed) {
        let looks = self.counted.looks();
        if looks == 0 {
            return;
        }
        let sums = std::mem::take(&mut self.sums);
        let average = |sum: u32| sum as f32 / looks as f32;
        feed.reading(
            self.first,
            vec![average(sums.active), average(sums.waiting), average(sums.idle_in_transaction)],
        );
        self.counted.send(feed);
        self.sent = feed.now();
    }

    fn lose_if_down(&mut self, feed: &mut Feed) {
        if self.link.is_up() || !std::mem::take(&mut self.connected) {
            return;
        }
        self.send(feed);
        // The next life has another process.
        self.threads = None;
    }

    /// The server answers again: another life of it is a restart.
    fn back_again(&mut self, feed: &mut Feed) {
        let before = std::mem::replace(&mut self.server, self.link.about.clone());
        if self.server.is_same_life(&before) {
            return;
        }
        let now = feed.now();
        let id = feed.occurrence();
        feed.send(Observation::Occurrence(Occurrence {
            id,
            kind: "restart".into(),
            subject: "server".into(),
            from: self.looked.unwrap_or(now),
            to: Some(now),
            figures: BTreeMap::new(),
        }));
        self.sent = now;
    }
}

impl Watcher for Sessions {
    fn name(&self) -> String {
        "mysql sessions".into()
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, feed: &mut Feed) {
        let gauge = |name: &str, help: &str| Metric {
            name: format!("mysql.sessions.{name}"),
            unit: "1".into(),
            help: help.into(),
        };
        self.first = feed.declare(Observer {
            source: "mysql".into(),
            metrics: vec![
                gauge("active", "sessions that run a statement, average over the looks"),
                gauge("waiting", "of those, the ones that were not seen on a CPU"),
                gauge("idle_in_transaction", "sessions whose transaction waits for its client"),
            ],
            absent: self.absent(),
            ..Observer::default()
        });
        self.sent = feed.now();
    }

    fn look(&mut self, feed: &mut Feed) -> Result<(), String> {
        self.look_at_sessions(feed)?;
        // Half a look early is nearer than half a look late.
        if feed.now() + self.interval.as_nanos() as Nanos / 2 < self.sent + SECOND {
            return Ok(());
        }
        // What the sessions waited for is sent whatever becomes of the locks: an account may not see them all.
        let locks = if self.row_waits {
            locks::look(&mut self.link, &mut self.counted, feed)
        } else {
            self.counted.looked_at_locks();
            Ok(())
        };
        self.send(feed);
        locks
    }

    fn stage(&mut self, _stage: Stage, _feed: &mut Feed) -> Result<(), String> {
        Ok(())
    }

    fn end(&mut self, feed: &mut Feed) -> Result<(), String> {
        self.send(feed);
        // Connecting to a server that hangs would outlast the patience of who waits for us.
        if self.link.is_up() { Ok(()) } else { Err("the connection was lost".into()) }
    }
}

/// A text field; empty for NULL.
pub(super) fn text(rows: &Rows, row: usize, column: usize) -> Result<&str, Error> {
    Ok(optional(rows, row, column, Rows::text)?.unwrap_or_default())
}

/// A field that may be NULL.
pub(super) fn optional<'a, T>(
    rows: &'a Rows,
    row: usize,
    column: usize,
    read: impl Fn(&'a Rows, usize, usize) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    if rows.is_null(row, column)? { Ok(None) } else { read(rows, row, column).map(Some) }
}
