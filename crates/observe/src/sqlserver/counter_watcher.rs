//! What the server's counters, settings, statements and tables are.

use std::collections::BTreeMap;

use kelvin_measure::observation::{Metric, Observation, Relation, StatementTotals, UnavailableMetrics};

use super::checkpoints::Checkpoints;
use super::counters::{self, Counters, Table};
use super::link::{Link, Server};
use super::several::Several;
use super::statements::Statements;
use super::{latches, relations, settings};
use crate::server::figures::{CounterSource, Timed, lost, timed};
use crate::server::link::{FIGURES, Observers};
use crate::watch::Feed;
use crate::watch_plan::WatchPlan;

/// Reads the counters.
pub(super) struct SqlServerCounters {
    observers: Observers,
    settings: BTreeMap<String, String>,
    counters: Counters,
    several: Several,
    statements: Statements,
    checkpoints: Checkpoints,
    loaded: bool,
}

impl SqlServerCounters {
    pub(super) fn new(plan: &WatchPlan, observers: Observers) -> Self {
        Self {
            observers,
            settings: BTreeMap::new(),
            counters: Counters::default(),
            several: Several::default(),
            statements: Statements::new(plan.statements),
            checkpoints: Checkpoints::default(),
            loaded: false,
        }
    }
}

impl CounterSource for SqlServerCounters {
    type Server = Server;
    type Reading = Table;
    const NAME: &'static str = "sqlserver";

    fn settings(&mut self, link: &mut Link) -> Result<&BTreeMap<String, String>, String> {
        self.settings = link.with(|session, _| settings::read(session))?;
        Ok(&self.settings)
    }

    /// Which counters there are is known by a reading.
    fn begin(&mut self, link: &mut Link, feed: &mut Feed) -> (Vec<UnavailableMetrics>, Option<Timed<Table>>) {
        let reading =
            timed(feed, || self.read(link)).map_err(|why| lost(feed, "sqlserver figures", why)).ok();
        if let Some((_, table)) = &reading {
            self.counters = counters::known(table);
            self.several = Several::present_in(table);
        }
        let refused = link.with(|session, _| Ok(relations::unreadable(session))).unwrap_or_default();
        let absent = Statements::begin(&link.about).chain(latches::absent(&link.about)).chain(refused);
        (absent.collect(), reading)
    }

    fn metrics(&self) -> Vec<Metric> {
        self.counters.metrics().chain(self.several.metrics()).collect()
    }

    fn read(&mut self, link: &mut Link) -> Result<Table, String> {
        let observers = &self.observers;
        link.with(|session, server| {
            observers.set(FIGURES, server.connection);
            counters::read(session, server, &observers.list())
        })
    }

    fn values(
        &mut self,
        _server: &Server,
        (then, before): &Timed<Table>,
        (now, after): &Timed<Table>,
        feed: &mut Feed,
    ) -> Vec<f32> {
        let seconds = (now - then) as f64 / 1e9;
        let pages = |table: &Table| table.get("Checkpoint pages/sec").copied();
        if let Some((before, after)) = pages(before).zip(pages(after)) {
            let changed = self.checkpoints.wrote(after - before, *then, || feed.occurrence());
            if let Some(one) = changed {
                feed.send(Observation::Occurrence(one));
            }
        }
        let mut values = self.counters.values(before, after, seconds);
        values.extend(self.several.values(before, after, seconds, self.loaded));
        values
    }

    fn relations(&mut self, link: &mut Link) -> Result<(Vec<Relation>, u64), String> {
        link.with(relations::read)
    }

    fn begin_load(&mut self, link: &mut Link) -> Result<(), String> {
        self.loaded = true;
        self.statements.begin_load(link)
    }

    fn statements_so_far(&self, link: &mut Link) -> Result<Vec<(i64, String)>, String> {
        self.statements.so_far(link)
    }

    fn open_window(&mut self, link: &mut Link) -> Result<(), String> {
        self.loaded = true;
        self.statements.open(link)
    }

    fn close_window(&mut self, link: &mut Link) -> Result<Option<(Vec<StatementTotals>, f64)>, String> {
        self.statements.close(link)
    }
}
