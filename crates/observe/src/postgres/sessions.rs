//! Looking at the sessions: what each waits for, how many do, and what the server does on its own account.

use std::collections::BTreeMap;
use std::time::Duration;

use kelvin_database::{Error, Rows};
use kelvin_measure::Nanos;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{Absent, Metric, Observation, Observer, Occurrence};

use super::checkpoints::Checkpoints;
use super::link::{Life, Link, Once};
use super::locks::Locks;
use super::log::Log;
use super::vacuums::Vacuums;
use super::wait_kind::wait_group;
use super::{Plan, sql};
use crate::waits::Counted;
use crate::watch::{Feed, Stage, Watcher};

const SECOND: Nanos = 1_000_000_000;

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
    ask: Once,
    counted: Counted,
    locks: Locks,
    /// Whether the last look saw a session wait for a lock. Where none does, the list of all locks, which every backend has a
    /// part of, is not asked for: it was the dearest of what is asked (0.5 to 2 ms with room for 2200 connections, while the
    /// lock table is held). By the last look alone, so that seconds with waits are not looked at more often than others.
    lock_waits: bool,
    checkpoints: Checkpoints,
    /// The server's log, where it can be read.
    log: Option<Log>,
    vacuums: Vacuums,
    sums: Sums,
    /// Index of our metrics.
    first: u32,
    /// The last look that was answered.
    looked: Option<Nanos>,
    /// When the last event was sent.
    sent: Nanos,
    /// The server's time less the run's, in seconds.
    offset: f64,
    life: Life,
    connected: bool,
    apart: bool,
    /// What the load's sessions call their application, when others' are told apart.
    own: Option<String>,
}

impl Sessions {
    pub(super) fn new(link: Link, plan: &Plan, log: Option<Log>) -> Self {
        let mut checkpoints = Checkpoints::default();
        checkpoints.has_log(log.is_some());
        Self {
            log,
            interval: Duration::from_secs(1) / plan.looks,
            life: link.about.life.clone(),
            link,
            connected: true,
            ask: Once::default(),
            counted: Counted::default(),
            locks: Locks::default(),
            lock_waits: false,
            checkpoints,
            vacuums: Vacuums::default(),
            sums: Sums::default(),
            first: 0,
            looked: None,
            sent: 0,
            offset: 0.0,
            apart: plan.apart,
            own: None,
        }
    }

    fn absent(&mut self) -> Vec<Absent> {
        let mut absent = Vec::new();
        let mut add = |what: &str, why: &str| absent.push(Absent { what: what.into(), why: why.into() });
        if !self.link.about.rights.all_stats {
            add(
                "sessions of other roles, checkpointer, walwriter, background writer and autovacuum workers",
                "the role may not see them; GRANT pg_monitor (or pg_read_all_stats) TO it. Vacuums are then known by \
                 their ends, and beginnings of checkpoints to a second unless the log tells them",
            );
        }
        if self.log.is_none() {
            add(
                "reasons of checkpoints",
                "log_checkpoints is off, or the server's log cannot be read here; whether the log's size \
                 (max_wal_size) or a command requested one is not known",
            );
        }
        let asked = self.link.with(|session, _| {
            let rows = session.query(
                "/* kelvin observer */ SELECT current_setting('track_activities'), \
                 coalesce(current_setting('compute_query_id', true), ''), \
                 current_setting('pg_stat_statements.max', true) IS NOT NULL",
            )?;
            Ok((rows.text(0, 0)? == "on", rows.text(0, 1)?.to_owned(), rows.int(0, 2)? == 1))
        });
        if let Ok((tracked, query_id, preloaded)) = asked {
            if !tracked {
                add("states of sessions", "track_activities is off; set it on");
            }
            match query_id.as_str() {
                _ if self.link.about.version < sql::V14 => {
                    add(
                        "statements of sessions",
                        "PostgreSQL has query identifiers in pg_stat_activity since 14",
                    );
                }
                "off" => add("statements of sessions", "compute_query_id is off; set it to auto or on"),
                "auto" if !preloaded => add(
                    "statements of sessions",
                    "compute_query_id is auto, which means off unless pg_stat_statements is preloaded; set it to on",
                ),
                _ => {}
            }
        }
        absent
    }

    /// One look's rows into the sums.
    fn count(&mut self, rows: &Rows, now: Nanos, feed: &mut Feed) -> Result<bool, Error> {
        let mut checkpointer_is_busy = false;
        for row in 0..rows.len() {
            let backend = rows.text(row, 1)?;
            let optional =
                |column| if rows.is_null(row, column)? { Ok(None) } else { rows.text(row, column).map(Some) };
            let (state, class, event) = (optional(2)?, optional(3)?, optional(4)?);
            let idle_in_transaction = state.is_some_and(|state| state.starts_with("idle in transaction"));
            match backend {
                "checkpointer" => checkpointer_is_busy = true,
                "autovacuum worker" => {
                    if let Some(text) = optional(6)? {
                        let began = if rows.is_null(row, 7)? { None } else { Some(rows.float(row, 7)?) };
                        let clock = now as f64 / 1e9 + self.offset;
                        let ago = began.map_or(0.0, |began| clock - began);
                        self.vacuums.worker(rows.int(row, 0)?, text, ago, feed);
                    }
                }
                "client backend" if idle_in_transaction => self.sums.idle_in_transaction += 1,
                "client backend" | "parallel worker" => {
                    self.sums.active += 1;
                    self.sums.waiting += u32::from(class.is_some());
                }
                _ => {}
            }
            self.lock_waits |= class == Some("Lock");
            let class = if idle_in_transaction { "Idle in transaction" } else { class.unwrap_or("CPU") };
            let application = optional(8)?;
            let foreign = application.zip(self.own.as_deref()).is_some_and(|(found, own)| found != own);
            let backend = match application {
                Some(name) if foreign => format!("{backend} ({})", name.chars().take(40).collect::<String>()),
                _ => backend.to_owned(),
            };
            let query = if rows.is_null(row, 5)? { None } else { Some(rows.int(row, 5)?) };
            self.counted.session(wait_group(&backend, class, event.unwrap_or_default(), query));
        }
        Ok(checkpointer_is_busy)
    }

    fn look_at_sessions(&mut self, feed: &mut Feed) -> Result<(), String> {
        // Also lost where another of our statements met its end.
        self.lose_if_down(feed);
        let asked = self.ask.run(&mut self.link, sql::sessions).map(|_| ());
        if let Err(why) = asked {
            self.lose_if_down(feed);
            return Err(why);
        }
        if !std::mem::replace(&mut self.connected, true) {
            self.back_again(feed);
        }
        let now = feed.now();
        let previous = self.looked.replace(now).unwrap_or(now);
        self.lock_waits = false;
        let ask = std::mem::take(&mut self.ask);
        let counted = self.count(ask.rows(), now, feed);
        self.ask = ask;
        let busy = counted.map_err(|error| error.to_string())?;
        self.counted.looked(feed);
        self.vacuums.looked(previous, feed);
        for line in self.log.as_mut().map(Log::read).unwrap_or_default() {
            let told = self.checkpoints.logged(&line, previous, now, &mut || feed.occurrence());
            feed.send(Observation::Occurrence(told));
        }
        if self.checkpoints.look(busy, previous, now) {
            self.read_checkpoints(feed)?;
        }
        Ok(())
    }

    fn read_checkpoints(&mut self, feed: &mut Feed) -> Result<(), String> {
        let before = feed.now();
        let clock = self.checkpoints.read(&mut self.link, feed)?;
        let middle = before + (feed.now() - before) / 2;
        self.offset = clock - middle as f64 / 1e9;
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
        let at = self.looked.unwrap_or_else(|| feed.now());
        self.checkpoints.lost();
        // The next life may write elsewhere.
        self.log = None;
        self.vacuums.lost(at, feed);
    }

    /// The server answers again: another life of it is a restart.
    fn back_again(&mut self, feed: &mut Feed) {
        if self.link.about.life == self.life {
            return;
        }
        self.life = self.link.about.life.clone();
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

    fn take_stock(&mut self, feed: &mut Feed) -> Result<(), String> {
        let clock = feed.now() as f64 / 1e9 + self.offset;
        self.vacuums.take_stock(&mut self.link, clock, feed)
    }
}

impl Watcher for Sessions {
    fn name(&self) -> String {
        "postgres sessions".into()
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, feed: &mut Feed) {
        if self.apart {
            // The name that a connection like the users' comes with; ours has another since.
            let own = self.link.with(|session, _| {
                let rows = session.query(
                    "/* kelvin observer */ SELECT reset_val FROM pg_settings WHERE name = 'application_name'",
                )?;
                Ok(rows.text(0, 0)?.to_owned())
            });
            self.own = own.ok();
        }
        let absent = self.absent();
        let gauge = |name: &str, help: &str| Metric {
            name: format!("postgres.sessions.{name}"),
            unit: "1".into(),
            help: help.into(),
        };
        self.first = feed.declare(Observer {
            source: "postgres".into(),
            metrics: vec![
                gauge("active", "sessions that run a statement, average over the looks"),
                gauge("waiting", "of those, the ones that wait for something that the server names"),
                gauge("idle_in_transaction", "sessions whose transaction waits for its client"),
            ],
            absent,
            ..Observer::default()
        });
        let readings = self.read_checkpoints(feed).and_then(|()| self.take_stock(feed));
        if let Err(why) = readings {
            feed.send(Observation::Lost(Absent { what: "postgres.checkpoints".into(), why }));
        }
        self.sent = feed.now();
    }

    fn look(&mut self, feed: &mut Feed) -> Result<(), String> {
        self.look_at_sessions(feed)?;
        // Half a look early is nearer than half a look late.
        let full = feed.now() + self.interval.as_nanos() as Nanos / 2 >= self.sent + SECOND;
        if full {
            // What the sessions waited for is sent whatever becomes of the locks: a role may not see them all.
            let locks = if self.lock_waits {
                self.locks.look(&mut self.link, &mut self.counted, feed)
            } else {
                self.counted.looked_at_locks();
                Ok(())
            };
            self.send(feed);
            self.read_checkpoints(feed)?;
            return locks;
        }
        Ok(())
    }

    fn stage(&mut self, stage: Stage, feed: &mut Feed) -> Result<(), String> {
        if matches!(stage.phase, Phase::Measure | Phase::Stop) { self.take_stock(feed) } else { Ok(()) }
    }

    fn end(&mut self, feed: &mut Feed) -> Result<(), String> {
        self.send(feed);
        if !self.link.is_up() {
            // Connecting to a server that hangs would outlast the patience of who waits for us.
            return Err("the connection was lost".into());
        }
        let outcome = self.read_checkpoints(feed).and_then(|()| self.take_stock(feed));
        self.vacuums.lost(feed.now(), feed);
        outcome
    }
}
