//! What the server's counters, settings, statements and relations are.

use std::collections::BTreeMap;

use crate::metric;
use kelvin_measure::observation::{Metric, Relation, StatementTotals, UnavailableMetrics};

use super::counters::Counters;
use super::link::{Link, Once, Server};
use super::settings::{self, Settings};
use super::statements::Statements;
use super::{WatchPlan, relations};
use crate::server::figures::{CounterSource, Timed};
use crate::watch::Feed;

/// Reads the counters.
pub(super) struct PostgresCounters {
    ask: Once,
    counters: Counters,
    settings: Settings,
    statements: Statements,
}

impl PostgresCounters {
    pub(super) fn new(plan: &WatchPlan, version: i64) -> Self {
        Self {
            counters: Counters::for_version(version),
            ask: Once::default(),
            settings: Settings::default(),
            statements: Statements::new(plan),
        }
    }

    fn absent(&self, server: &Server) -> Vec<UnavailableMetrics> {
        let mut absent = Vec::new();
        for (setting, what) in [
            ("track_io_timing", "postgres.blocks.read_ms, .write_ms"),
            ("track_wal_io_timing", "postgres.wal.write_ms, .sync_ms"),
        ] {
            // Where there is no such setting the counters are not there either.
            if self.settings.values.contains_key(setting) && !self.settings.is_on(setting) {
                absent.push(UnavailableMetrics {
                    what: what.into(),
                    why: format!("{setting} is off; turn it on (pg_test_timing measures its overhead)"),
                });
            }
        }
        if server.version < super::sql::V14 {
            absent.push(UnavailableMetrics {
                what: "postgres.wal, except .bytes".into(),
                why: "available since PostgreSQL 14".into(),
            });
        }
        if server.version < super::sql::V16 {
            absent.push(UnavailableMetrics {
                what: metric::BACKEND_IO.into(),
                why: "pg_stat_io is available since PostgreSQL 16".into(),
            });
        }
        if !server.rights.all_settings {
            absent.push(UnavailableMetrics {
                what: "settings data_directory, shared_preload_libraries and others".into(),
                why: "only superusers can see them; GRANT pg_monitor (or pg_read_all_settings) TO the role"
                    .into(),
            });
        }
        absent
    }
}

impl CounterSource for PostgresCounters {
    type Server = Server;
    /// One row; NaN for NULL.
    type Reading = Vec<f64>;
    const NAME: &'static str = "postgres";

    fn settings(&mut self, link: &mut Link) -> Result<&BTreeMap<String, String>, String> {
        self.settings = link.with(|session, server| settings::read(session, server.version))?;
        Ok(&self.settings.values)
    }

    fn begin(
        &mut self,
        link: &mut Link,
        _feed: &mut Feed,
    ) -> (Vec<UnavailableMetrics>, Option<Timed<Vec<f64>>>) {
        let mut absent = self.absent(&link.about);
        absent.extend(self.statements.begin(link));
        (absent, None)
    }

    fn metrics(&self) -> Vec<Metric> {
        let metric = |counter: &super::counters::Counter| Metric {
            name: counter.name.into(),
            unit: counter.unit.into(),
            help: counter.help.into(),
        };
        self.counters.counters.iter().map(metric).collect()
    }

    fn read(&mut self, link: &mut Link) -> Result<Vec<f64>, String> {
        self.statements.collect(link);
        let counters = &self.counters;
        let rows = self.ask.run(link, |_| counters.sql())?;
        let value = |column| Ok(rows.optional(0, column, kelvin_database::Rows::float)?.unwrap_or(f64::NAN));
        let values: kelvin_database::Result<_> = (0..self.counters.width()).map(value).collect();
        values.map_err(|error| error.to_string())
    }

    fn values(
        &mut self,
        _server: &Server,
        (then, before): &Timed<Vec<f64>>,
        (now, after): &Timed<Vec<f64>>,
        _feed: &mut Feed,
    ) -> Vec<f32> {
        let seconds = (now - then) as f64 / 1e9;
        self.counters.rates(before, after, seconds, |name| self.settings.is_on(name))
    }

    fn relations(&mut self, link: &mut Link) -> Result<(Vec<Relation>, u64), String> {
        link.with(|session, server| relations::read(session, server.version))
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
