//! Reading the server's counters every second, and taking stock at the edges.

use std::time::Duration;

use kelvin_measure::Nanos;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{Absent, Metric, Observation, Observer, When};

use super::counters::{self, Counters, Table};
use super::flushing::Flushing;
use super::link::{Link, Observers};
use super::statements::Statements;
use super::{Plan, relations, settings};
use crate::metric;
use crate::watch::{Feed, Stage, Watcher};

/// From the beginning of a ramp-up to the texts of the statements in it: the window is to have nothing in it that is heavier than
/// a reading.
const TEXTS_AFTER: Nanos = 2_000_000_000;

/// Reads the counters.
pub(super) struct Figures {
    link: Link,
    interval: Duration,
    observers: Observers,
    counters: Counters,
    statements: Statements,
    flushing: Flushing,
    first: u32,
    last: Option<(Nanos, Table)>,
    /// The connection of the last reading: counters of another life are not compared.
    generation: u32,
    /// Tables may have been made since they were told of.
    built: bool,
    /// When the statements' texts are to be told; none within a window.
    texts_due: Option<Nanos>,
}

impl Figures {
    pub(super) fn new(link: Link, plan: &Plan, observers: Observers) -> Self {
        observers.set(1, link.about.connection);
        Self {
            interval: plan.figures,
            observers,
            counters: Counters::default(),
            statements: Statements::new(plan.statements),
            flushing: Flushing::default(),
            first: 0,
            last: None,
            generation: link.generation,
            built: false,
            texts_due: None,
            link,
        }
    }

    fn read(&mut self, feed: &Feed) -> Result<(Nanos, Table), String> {
        let before = feed.now();
        let observers = &self.observers;
        let table = self.link.with(|session, server| {
            observers.set(1, server.connection);
            counters::read(session, server)
        })?;
        Ok((before + (feed.now() - before) / 2, table))
    }

    fn relations(&mut self, when: When, feed: &mut Feed) -> Result<(), String> {
        let (relations, database_bytes) = self.link.with(|session, _| relations::read(session))?;
        feed.send(Observation::Relations { when, relations, database_bytes });
        Ok(())
    }

    /// Furious flushing, by the checkpoint's age.
    fn flushing(&mut self, before: Nanos, at: Nanos, values: &[f32], table: &Table, feed: &mut Feed) {
        let index = self.counters.counters.iter().position(|one| one.name == metric::CHECKPOINT_AGE);
        let age = index.and_then(|index| values.get(index)).filter(|age| !age.is_nan());
        let limit = counters::limit(table, &self.link.about);
        if let Some((age, limit)) = age.zip(limit) {
            let told = self.flushing.age(f64::from(*age), limit, before, at, || feed.occurrence());
            if let Some(one) = told {
                feed.send(Observation::Occurrence(one));
            }
        }
    }
}

impl Watcher for Figures {
    fn name(&self) -> String {
        "mysql figures".into()
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, feed: &mut Feed) {
        let lost = |feed: &mut Feed, what: &str, why| {
            feed.send(Observation::Lost(Absent { what: what.into(), why }));
        };
        let values = self.link.with(|session, _| settings::read(session)).unwrap_or_else(|why| {
            lost(feed, "settings", why);
            std::collections::BTreeMap::new()
        });
        match self.read(feed) {
            Ok(read) => {
                self.counters = Counters::of(&read.1);
                self.last = Some(read);
            }
            Err(why) => lost(feed, "mysql figures", why),
        }
        let flushes = values.get("innodb_flush_log_at_trx_commit").map(String::as_str);
        counters::settle(&mut self.counters, matches!(flushes, Some("1" | "3")));
        let mut absent: Vec<Absent> = counters::absent(&self.counters, &self.link.about)
            .into_iter()
            .map(|(what, why)| Absent { what: what.into(), why })
            .collect();
        absent.extend(self.statements.begin(&mut self.link));
        let metric = |counter: &counters::Counter| Metric {
            name: counter.name.into(),
            unit: counter.unit.into(),
            help: counter.help.into(),
        };
        self.first = feed.declare(Observer {
            source: "mysql".into(),
            metrics: self.counters.counters.iter().map(metric).collect(),
            absent,
            ..Observer::default()
        });
        feed.send(Observation::Settings { values });
        if let Err(why) = self.relations(When::Before, feed) {
            lost(feed, "relations", why);
        }
    }

    fn look(&mut self, feed: &mut Feed) -> Result<(), String> {
        let (at, table) = self.read(feed).inspect_err(|_| self.last = None)?;
        let same = self.generation == self.link.generation;
        self.generation = self.link.generation;
        if let Some((before, last)) = self.last.take().filter(|_| same) {
            let values = self.counters.values(&last, &table, (at - before) as f64 / 1e9);
            self.flushing(before, at, &values, &table, feed);
            feed.reading(self.first, values);
        }
        self.last = Some((at, table));
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
