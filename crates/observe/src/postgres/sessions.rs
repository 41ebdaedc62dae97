//! What each session waits for, and what the server does on its own account.

use crate::metric;
use kelvin_database::{Error, Rows};
use kelvin_measure::Nanos;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{Blocker, Observation, UnavailableMetrics};

use super::checkpoints::Checkpoints;
use super::link::{Link, Once, Server};
use super::locks::Locks;
use super::server_log::Log;
use super::vacuums::Vacuums;
use super::wait_kind::wait_group;
use super::{WatchPlan, logged_plans, sql};
use crate::server::figures::lost;
use crate::server::horizon::Horizon;
use crate::server::sessions::{SentTexts, SessionSource, Tally};
use crate::server::shortened;
use crate::watch::{Feed, Stage};

/// Looks at the sessions.
pub(super) struct PostgresSessions {
    ask: Once,
    locks: Locks,
    ask_horizon: Once,
    horizon: Horizon,
    checkpoints: Checkpoints,
    checkpointer_is_busy: bool,
    /// The server's log, where it can be read.
    log: Option<Log>,
    vacuums: Vacuums,
    /// The server's time less the run's, in seconds.
    offset: f64,
    apart: bool,
    /// The application name of the load's sessions, if others' are distinguished.
    own: Option<String>,
    /// The statements whose texts were sent; none where they are not asked for.
    sent: Option<SentTexts>,
}

impl PostgresSessions {
    pub(super) fn new(plan: &WatchPlan, log: Option<Log>) -> Self {
        let mut checkpoints = Checkpoints::default();
        checkpoints.has_log(log.is_some());
        Self {
            log,
            ask: Once::default(),
            locks: Locks::default(),
            ask_horizon: Once::default(),
            horizon: Horizon::default(),
            checkpoints,
            checkpointer_is_busy: false,
            vacuums: Vacuums::default(),
            offset: 0.0,
            apart: plan.apart,
            own: None,
            sent: plan.texts.then(SentTexts::default),
        }
    }

    fn absent(&self, link: &mut Link) -> Vec<UnavailableMetrics> {
        let mut absent = Vec::new();
        let mut add =
            |what: &str, why: &str| absent.push(UnavailableMetrics { what: what.into(), why: why.into() });
        if !link.about.rights.all_stats {
            add(
                "sessions of other roles, checkpointer, walwriter, background writer and autovacuum workers",
                "the role cannot see them; GRANT pg_monitor (or pg_read_all_stats) TO it. Until then, only \
                 the ends of vacuums are visible, and checkpoint starts are accurate to a second unless the \
                 log shows them",
            );
        }
        // Who asks for the sessions' statements asks for no checkpoints.
        if self.log.is_none() && self.sent.is_none() {
            add(
                "reasons for checkpoints",
                "log_checkpoints is off, or the server's log cannot be read here; whether WAL size \
                 (max_wal_size) or a command requested a checkpoint is unknown",
            );
        }
        if let Some(why) = logged_plans::unread(link, self.log.is_some()) {
            add("rows of plans in the server's log", &why);
        }
        let asked = link.with(|session, _| {
            let rows = session.query(
                "SELECT /* kelvin observer */ current_setting('track_activities'), \
                 coalesce(current_setting('compute_query_id', true), ''), \
                 current_setting('pg_stat_statements.max', true) IS NOT NULL",
            )?;
            Ok((rows.text(0, 0)? == "on", rows.text(0, 1)?.to_owned(), rows.int(0, 2)? == 1))
        });
        if let Ok((tracked, query_id, preloaded)) = asked {
            if !tracked {
                add("states of sessions", "track_activities is off; turn it on");
            }
            match query_id.as_str() {
                _ if link.about.version < sql::V14 => {
                    add(
                        "statements of sessions",
                        "pg_stat_activity has query identifiers since PostgreSQL 14",
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

    fn read_checkpoints(&mut self, link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        let before = feed.now();
        let clock = self.checkpoints.read(link, feed)?;
        let middle = before + (feed.now() - before) / 2;
        self.offset = clock - middle as f64 / 1e9;
        Ok(())
    }

    fn take_stock(&mut self, link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        let clock = feed.now() as f64 / 1e9 + self.offset;
        self.vacuums.take_stock(link, clock, feed)
    }
}

impl SessionSource for PostgresSessions {
    type Server = Server;
    const NAME: &'static str = "postgres";
    const WAITING: &'static str = "active sessions in a wait event";

    fn is_same_life(before: &Server, now: &Server) -> bool {
        before.life == now.life
    }

    fn begin(&mut self, link: &mut Link) -> Vec<UnavailableMetrics> {
        if self.apart {
            // The name that a connection like the users' comes with; ours has another since.
            let own = link.with(|session, _| {
                let rows = session.query(
                    "SELECT /* kelvin observer */ reset_val FROM pg_settings WHERE name = 'application_name'",
                )?;
                Ok(rows.text(0, 0)?.to_owned())
            });
            self.own = own.ok();
        }
        self.absent(link)
    }

    fn begun(&mut self, link: &mut Link, feed: &mut Feed) {
        let readings = self.read_checkpoints(link, feed).and_then(|()| self.take_stock(link, feed));
        if let Err(why) = readings {
            lost(feed, metric::CHECKPOINTS, why);
        }
    }

    fn ask(&mut self, link: &mut Link) -> Result<(), String> {
        let texts = self.sent.is_some();
        self.ask.run(link, |version| sql::sessions(version, texts)).map(|_| ())
    }

    fn count(
        &mut self,
        _server: &Server,
        tally: &mut Tally,
        now: Nanos,
        feed: &mut Feed,
    ) -> Result<(), Error> {
        self.checkpointer_is_busy = false;
        let rows = self.ask.rows();
        for row in 0..rows.len() {
            let backend = rows.text(row, 1)?;
            let optional = |column| rows.optional(row, column, Rows::text);
            let (state, class, event) = (optional(2)?, optional(3)?, optional(4)?);
            let idle_in_transaction = state.is_some_and(|state| state.starts_with("idle in transaction"));
            match backend {
                "checkpointer" => self.checkpointer_is_busy = true,
                "autovacuum worker" => {
                    if let Some(text) = optional(6)? {
                        let began = rows.optional(row, 7, Rows::float)?;
                        let clock = now as f64 / 1e9 + self.offset;
                        let ago = began.map_or(0.0, |began| clock - began);
                        self.vacuums.worker(rows.int(row, 0)?, text, ago, feed);
                    }
                }
                "client backend" if idle_in_transaction => tally.idle_in_transaction(),
                "client backend" | "parallel worker" => tally.active(class.is_some()),
                _ => {}
            }
            if class == Some("Lock") {
                tally.waits_for_lock();
            }
            let class = if idle_in_transaction { "Idle in transaction" } else { class.unwrap_or("CPU") };
            let application = optional(8)?;
            let foreign = application.zip(self.own.as_deref()).is_some_and(|(found, own)| found != own);
            let backend = match application {
                Some(name) if foreign => format!("{backend} ({})", shortened(name)),
                _ => backend.to_owned(),
            };
            let mut query = rows.optional(row, 5, Rows::int)?;
            if let (Some(sent), Some(text)) = (&mut self.sent, optional(9)?) {
                query = sent.sampled(query, text, feed);
            }
            tally.session(wait_group(&backend, class, event.unwrap_or_default(), query));
        }
        Ok(())
    }

    fn looked(
        &mut self,
        link: &mut Link,
        previous: Nanos,
        now: Nanos,
        feed: &mut Feed,
    ) -> Result<(), String> {
        self.vacuums.looked(previous, feed);
        for line in self.log.as_mut().map(Log::read).unwrap_or_default() {
            let occurrence = self.checkpoints.logged(&line, previous, now, &mut || feed.occurrence());
            feed.send(Observation::Occurrence(occurrence));
        }
        if let Some(log) = &mut self.log {
            for wrong in log.plans.news(now, &mut || feed.occurrence()) {
                feed.send(Observation::Occurrence(wrong));
            }
        }
        if self.checkpoints.take_sample(self.checkpointer_is_busy, previous, now) {
            self.read_checkpoints(link, feed)?;
        }
        Ok(())
    }

    fn row_waiters(&mut self, link: &mut Link) -> Result<Vec<(String, u32)>, String> {
        self.locks.row_waiters(link)
    }

    fn blockers(&mut self, link: &mut Link) -> Result<Vec<Blocker>, String> {
        self.locks.blockers(link)
    }

    fn second(&mut self, link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        self.read_checkpoints(link, feed)?;
        self.horizon.compare(self.ask_horizon.run(link, |_| sql::horizon())?, feed)
    }

    fn stage(&mut self, stage: Stage, link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        if matches!(stage.phase, Phase::Measure | Phase::Stop) { self.take_stock(link, feed) } else { Ok(()) }
    }

    fn lost(&mut self, at: Nanos, feed: &mut Feed) {
        self.checkpoints.lost();
        // The next life may write elsewhere.
        self.log = None;
        self.vacuums.lost(at, feed);
        self.horizon.ended(at, feed);
    }

    fn end(&mut self, link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        let outcome = self.read_checkpoints(link, feed).and_then(|()| self.take_stock(link, feed));
        self.vacuums.lost(feed.now(), feed);
        self.horizon.ended(feed.now(), feed);
        outcome
    }
}
