//! What the server's counters, settings, statements and tables are.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::observation::{Metric, Observation, Relation, StatementTotals, UnavailableMetrics};

use super::counters::{self, Counters, Table};
use super::flushing::Flushing;
use super::link::{Link, Server};
use super::statements::Statements;
use super::{WatchPlan, relations, settings};
use crate::metric;
use crate::server::figures::{CounterSource, Timed, lost, timed};
use crate::server::link::{FIGURES, Observers};
use crate::watch::Feed;

/// Reads the counters.
pub(super) struct MysqlCounters {
    observers: Observers,
    settings: BTreeMap<String, String>,
    counters: Counters,
    statements: Statements,
    flushing: Flushing,
}

impl MysqlCounters {
    pub(super) fn new(plan: &WatchPlan, observers: Observers) -> Self {
        Self {
            observers,
            settings: BTreeMap::new(),
            counters: Counters::default(),
            statements: Statements::new(plan),
            flushing: Flushing::default(),
        }
    }

    /// Furious flushing, by the checkpoint's age.
    fn flushing(&mut self, before: Nanos, at: Nanos, age: Option<f32>, limit: Option<f64>, feed: &mut Feed) {
        if let Some((age, limit)) = age.zip(limit) {
            let changed = self.flushing.age(f64::from(age), limit, before, at, || feed.occurrence());
            if let Some(one) = changed {
                feed.send(Observation::Occurrence(one));
            }
        }
    }
}

impl CounterSource for MysqlCounters {
    type Server = Server;
    type Reading = Table;
    const NAME: &'static str = "mysql";

    fn settings(&mut self, link: &mut Link) -> Result<&BTreeMap<String, String>, String> {
        self.settings = link.with(|session, _| settings::read(session))?;
        Ok(&self.settings)
    }

    /// Which counters there are is known by a reading.
    fn begin(&mut self, link: &mut Link, feed: &mut Feed) -> (Vec<UnavailableMetrics>, Option<Timed<Table>>) {
        let reading = timed(feed, || self.read(link)).map_err(|why| lost(feed, "mysql figures", why)).ok();
        if let Some((_, table)) = &reading {
            self.counters = counters::known(table);
        }
        let flushes = self.settings.get("innodb_flush_log_at_trx_commit").map(String::as_str);
        counters::settle(&mut self.counters, matches!(flushes, Some("1" | "3")));
        let mut absent: Vec<UnavailableMetrics> = counters::absent(&self.counters, &link.about)
            .into_iter()
            .map(|(what, why)| UnavailableMetrics { what: what.into(), why })
            .collect();
        absent.extend(self.statements.begin(link));
        let unreadable = link.with(|session, _| Ok(relations::unreadable(session))).unwrap_or_default();
        absent
            .extend(unreadable.into_iter().map(|(what, why)| UnavailableMetrics { what: what.into(), why }));
        // Without performance_schema it is among what that has.
        if link.about.performance_schema && link.with(relations::are_counted) == Ok(false) {
            absent.push(UnavailableMetrics {
                what: counters::USES.into(),
                why: "the instrument wait/io/table/sql/handler of performance_schema is off; turn it on"
                    .into(),
            });
        }
        (absent, reading)
    }

    fn metrics(&self) -> Vec<Metric> {
        self.counters.metrics().collect()
    }

    fn read(&mut self, link: &mut Link) -> Result<Table, String> {
        self.statements.collect(link);
        let observers = &self.observers;
        link.with(|session, server| {
            observers.set(FIGURES, server.connection);
            counters::read(session, server)
        })
    }

    fn values(
        &mut self,
        server: &Server,
        (then, before): &Timed<Table>,
        (now, after): &Timed<Table>,
        feed: &mut Feed,
    ) -> Vec<f32> {
        let values = self.counters.values(before, after, (now - then) as f64 / 1e9);
        let index = self.counters.counters.iter().position(|one| one.name == metric::CHECKPOINT_AGE);
        let age = index.and_then(|index| values.get(index).copied()).filter(|age| !age.is_nan());
        self.flushing(*then, *now, age, counters::limit(after, server), feed);
        values
    }

    fn relations(&mut self, link: &mut Link) -> Result<(Vec<Relation>, u64), String> {
        link.with(|session, server| relations::read(session, server))
    }

    fn begin_load(&mut self, link: &mut Link) -> Result<(), String> {
        self.statements.begin_load(link)
    }

    fn statements_so_far(&self, link: &mut Link) -> Result<Vec<(i64, String)>, String> {
        self.statements.so_far(link)
    }

    fn open_window(&mut self, link: &mut Link) -> Result<(), String> {
        self.statements.open(link)
    }

    fn close_window(&mut self, link: &mut Link) -> Result<Option<(Vec<StatementTotals>, f64)>, String> {
        self.statements.close(link)
    }
}
