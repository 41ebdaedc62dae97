//! Reading the server's counters every second, and taking stock at the edges.

use std::time::Duration;

use kelvin_database::Rows;
use kelvin_measure::Nanos;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{Absent, Metric, Observation, Observer, When};

use super::counters::Counters;
use super::link::{Link, Once};
use super::settings::Settings;
use super::statements::Statements;
use super::{Plan, relations, settings};
use crate::watch::{Feed, Stage, Watcher};

/// A row of counters and when it was read.
#[derive(Debug, Clone)]
struct Read {
    at: Nanos,
    values: Vec<f64>,
}

/// Reads the counters.
pub(super) struct Figures {
    link: Link,
    interval: Duration,
    ask: Once,
    counters: Counters,
    settings: Settings,
    statements: Statements,
    first: u32,
    last: Option<Read>,
    /// The connection of the last reading: counters of another life are not compared.
    generation: u32,
    /// Tables may have been made since they were told of.
    built: bool,
    /// When the statements' texts are to be told; none within a window.
    texts_due: Option<Nanos>,
}

/// From the beginning of a ramp-up to the texts of the statements in it: a live view has no other, and the window is
/// to have nothing in it that is heavier than a reading. A shorter ramp-up has none.
const TEXTS_AFTER: Nanos = 2_000_000_000;

impl Figures {
    pub(super) fn new(link: Link, plan: &Plan) -> Self {
        Self {
            counters: Counters::of(link.about.version),
            interval: plan.figures,
            ask: Once::default(),
            settings: Settings::default(),
            statements: Statements::new(plan.statements, plan.create_extension),
            first: 0,
            last: None,
            generation: link.generation,
            built: false,
            texts_due: None,
            link,
        }
    }

    fn read(&mut self, feed: &Feed) -> Result<Read, String> {
        let before = feed.now();
        let counters = &self.counters;
        let rows = self.ask.run(&mut self.link, |_| counters.sql())?;
        let at = before + (feed.now() - before) / 2;
        let value = |column| match rows.is_null(0, column) {
            Ok(true) => Ok(f64::NAN),
            Ok(false) => rows.float(0, column),
            Err(error) => Err(error),
        };
        let values = (0..self.counters.width()).map(value).collect::<Result<_, _>>();
        Ok(Read { at, values: values.map_err(|error: kelvin_database::Error| error.to_string())? })
    }

    fn relations(&mut self, when: When, feed: &mut Feed) -> Result<(), String> {
        let (relations, database_bytes) =
            self.link.with(|session, server| relations::read(session, server.version))?;
        feed.send(Observation::Relations { when, relations, database_bytes });
        Ok(())
    }

    fn absent(&self) -> Vec<Absent> {
        let mut absent = Vec::new();
        for (setting, what) in [
            ("track_io_timing", "postgres.blocks.read_ms, .write_ms"),
            ("track_wal_io_timing", "postgres.wal.write_ms, .sync_ms"),
        ] {
            // Where there is no such setting the counters are not there either.
            if self.settings.values.contains_key(setting) && !self.settings.is_on(setting) {
                absent.push(Absent {
                    what: what.into(),
                    why: format!("{setting} is off; set it on (pg_test_timing measures its overhead)"),
                });
            }
        }
        if self.link.about.version < super::sql::V14 {
            absent.push(Absent {
                what: "postgres.wal, except .bytes".into(),
                why: "PostgreSQL counts them since 14".into(),
            });
        }
        if self.link.about.version < super::sql::V16 {
            absent.push(Absent {
                what: "postgres.io".into(),
                why: "PostgreSQL has pg_stat_io since 16".into(),
            });
        }
        if !self.link.about.rights.all_settings {
            absent.push(Absent {
                what: "settings data_directory, shared_preload_libraries and others".into(),
                why: "only superusers see them; GRANT pg_monitor (or pg_read_all_settings) TO the role"
                    .into(),
            });
        }
        absent
    }
}

impl Watcher for Figures {
    fn name(&self) -> String {
        "postgres figures".into()
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, feed: &mut Feed) {
        let lost = |feed: &mut Feed, what: &str, why| {
            feed.send(Observation::Lost(Absent { what: what.into(), why }));
        };
        let mut absent = Vec::new();
        match self.link.with(|session, server| settings::read(session, server.version)) {
            Ok(found) => self.settings = found,
            Err(why) => lost(feed, "settings", why),
        }
        absent.extend(self.absent());
        absent.extend(self.statements.begin(&mut self.link));
        let metric = |counter: &super::counters::Counter| Metric {
            name: counter.name.into(),
            unit: counter.unit.into(),
            help: counter.help.into(),
        };
        self.first = feed.declare(Observer {
            source: "postgres".into(),
            metrics: self.counters.counters.iter().map(metric).collect(),
            absent,
            ..Observer::default()
        });
        feed.send(Observation::Settings { values: self.settings.values.clone() });
        if let Err(why) = self.relations(When::Before, feed) {
            lost(feed, "relations", why);
        }
    }

    fn look(&mut self, feed: &mut Feed) -> Result<(), String> {
        let read = self.read(feed).inspect_err(|_| self.last = None)?;
        let same = self.generation == self.link.generation;
        self.generation = self.link.generation;
        if let Some(last) = self.last.replace(read.clone()).filter(|_| same) {
            let seconds = (read.at - last.at) as f64 / 1e9;
            let settings = &self.settings;
            let rates = self.counters.rates(&last.values, &read.values, seconds, |name| settings.is_on(name));
            feed.reading(self.first, rates);
        }
        if self.texts_due.is_some_and(|due| feed.now() >= due) {
            self.texts_due = None;
            let texts = self.statements.so_far(&mut self.link)?;
            if !texts.is_empty() {
                feed.send(Observation::StatementTexts { texts });
            }
        }
        Ok(())
    }

    fn stage(&mut self, stage: Stage, feed: &mut Feed) -> Result<(), String> {
        match stage.phase {
            Phase::Build => self.built = true,
            Phase::Connect if std::mem::take(&mut self.built) => self.relations(When::Before, feed)?,
            Phase::RampUp => {
                self.statements.begin_load(&mut self.link)?;
                self.texts_due = Some(feed.now() + TEXTS_AFTER);
            }
            Phase::Measure => {
                self.texts_due = None;
                self.statements.open(&mut self.link)?;
            }
            Phase::Stop => {
                if let Some((statements, total_ms)) = self.statements.close(&mut self.link)? {
                    feed.send(Observation::Statements { point: stage.point, statements, total_ms });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, feed: &mut Feed) -> Result<(), String> {
        if !self.link.is_up() {
            // As the sessions' watcher does.
            return Err("the connection was lost".into());
        }
        self.look(feed)?;
        self.relations(When::After, feed)
    }
}

/// A field that may be NULL.
pub(super) fn optional<T>(
    rows: &Rows,
    row: usize,
    column: usize,
    read: impl Fn(&Rows, usize, usize) -> kelvin_database::Result<T>,
) -> kelvin_database::Result<Option<T>> {
    if rows.is_null(row, column)? { Ok(None) } else { read(rows, row, column).map(Some) }
}
