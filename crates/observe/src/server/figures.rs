//! Reading a server's counters every second, and taking stock at the edges.

use std::collections::BTreeMap;
use std::time::Duration;

use kelvin_measure::Nanos;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{
    CaptureTime, Metric, Observation, Observer, Relation, StatementTotals, UnavailableMetrics,
};

use super::link::Link;
use crate::watch::{Feed, Stage, Watcher};
use crate::watch_plan::WatchPlan;

/// From the beginning of a ramp-up to the texts of the statements in it: a live view has no other, and the window is
/// to have nothing in it that is heavier than a reading. A shorter ramp-up has none.
const TEXTS_AFTER: Nanos = 2_000_000_000;

/// Longer texts of statements are cut: a run's observations stay small.
pub(crate) const LONGEST_TEXT: usize = 4000;

/// What a live view shows of a statement's text, in characters.
pub(crate) const SHORT_TEXT: usize = 240;

/// A reading and when it was made: in the middle of the asking.
pub(crate) type Timed<R> = (Nanos, R);

/// What an engine reports by its counters. Every method queries the server over `link`; errors are texts for users.
pub(crate) trait CounterSource: Send + 'static {
    /// What a connection knows about its server.
    type Server: Send;
    /// One reading of all counters.
    type Reading: Send;
    /// The engine, as the names of its metrics begin.
    const NAME: &'static str;

    /// The settings by name.
    fn settings(&mut self, link: &mut Link<Self::Server>) -> Result<&BTreeMap<String, String>, String>;

    /// Finds out which counters and statements can be seen. Returns what cannot, and why; and a first reading where one was
    /// needed.
    fn begin(
        &mut self,
        link: &mut Link<Self::Server>,
        feed: &mut Feed,
    ) -> (Vec<UnavailableMetrics>, Option<Timed<Self::Reading>>);

    /// The metrics, in the order of [`CounterSource::values`].
    fn metrics(&self) -> Vec<Metric>;

    /// Reads the counters.
    fn read(&mut self, link: &mut Link<Self::Server>) -> Result<Self::Reading, String>;

    /// Values of the metrics from two readings of one life of the server; NaN for what is not known.
    fn values(
        &mut self,
        server: &Self::Server,
        before: &Timed<Self::Reading>,
        after: &Timed<Self::Reading>,
        feed: &mut Feed,
    ) -> Vec<f32>;

    /// The largest relations, and the size of the database in bytes.
    fn relations(&mut self, link: &mut Link<Self::Server>) -> Result<(Vec<Relation>, u64), String>;

    /// The load of a point begins.
    fn begin_load(&mut self, link: &mut Link<Self::Server>) -> Result<(), String>;

    /// The texts, at most [`SHORT_TEXT`] long, of the statements that took the most time since the load began.
    fn statements_so_far(&self, link: &mut Link<Self::Server>) -> Result<Vec<(i64, String)>, String>;

    /// The window opens.
    fn open_window(&mut self, link: &mut Link<Self::Server>) -> Result<(), String>;

    /// The window is closed: the statements that took the most time in it, and the time of all in milliseconds.
    fn close_window(
        &mut self,
        link: &mut Link<Self::Server>,
    ) -> Result<Option<(Vec<StatementTotals>, f64)>, String>;
}

/// Reads the counters of one server.
pub(crate) struct Figures<C: CounterSource> {
    link: Link<C::Server>,
    source: C,
    interval: Duration,
    first: u32,
    last: Option<Timed<C::Reading>>,
    /// The connection of the last reading: counters of another life are not compared.
    generation: u32,
    /// Tables may have been created since they were reported.
    built: bool,
    /// When the statements' texts are to be reported; none within a window.
    texts_due: Option<Nanos>,
}

impl<C: CounterSource> Figures<C> {
    pub(crate) fn new(link: Link<C::Server>, plan: &WatchPlan, source: C) -> Self {
        Self {
            source,
            interval: plan.figures,
            first: 0,
            last: None,
            generation: link.generation,
            built: false,
            texts_due: None,
            link,
        }
    }

    fn relations(&mut self, when: CaptureTime, feed: &mut Feed) -> Result<(), String> {
        let (relations, database_bytes) = self.source.relations(&mut self.link)?;
        feed.send(Observation::Relations { when, relations, database_bytes });
        Ok(())
    }
}

/// A reading with its time.
pub(crate) fn timed<R>(feed: &Feed, read: impl FnOnce() -> Result<R, String>) -> Result<Timed<R>, String> {
    let before = feed.now();
    let reading = read()?;
    Ok((before + (feed.now() - before) / 2, reading))
}

/// Something is not there that should be.
pub(crate) fn lost(feed: &mut Feed, what: &str, why: String) {
    feed.send(Observation::Lost(UnavailableMetrics { what: what.into(), why }));
}

impl<C: CounterSource> Watcher for Figures<C> {
    fn name(&self) -> String {
        format!("{} figures", C::NAME)
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, feed: &mut Feed) {
        let values = self.source.settings(&mut self.link).cloned().unwrap_or_else(|why| {
            lost(feed, "settings", why);
            BTreeMap::new()
        });
        let (absent, reading) = self.source.begin(&mut self.link, feed);
        self.last = reading;
        self.first = feed.declare(Observer {
            source: C::NAME.into(),
            metrics: self.source.metrics(),
            absent,
            ..Observer::default()
        });
        feed.send(Observation::Settings { values });
        if let Err(why) = self.relations(CaptureTime::Before, feed) {
            lost(feed, "relations", why);
        }
    }

    fn sample(&mut self, feed: &mut Feed) -> Result<(), String> {
        let before = self.last.take();
        let now = timed(feed, || self.source.read(&mut self.link))?;
        let same = self.generation == self.link.generation;
        self.generation = self.link.generation;
        if let Some(before) = before.filter(|_| same) {
            let values = self.source.values(&self.link.about, &before, &now, feed);
            feed.reading(self.first, values);
        }
        self.last = Some(now);
        if self.texts_due.is_some_and(|due| feed.now() >= due) {
            self.texts_due = None;
            let texts = self.source.statements_so_far(&mut self.link)?;
            if !texts.is_empty() {
                feed.send(Observation::StatementTexts { texts });
            }
        }
        Ok(())
    }

    fn stage(&mut self, stage: Stage, feed: &mut Feed) -> Result<(), String> {
        match stage.phase {
            Phase::Build => self.built = true,
            Phase::Connect if std::mem::take(&mut self.built) => self.relations(CaptureTime::Before, feed)?,
            Phase::RampUp => {
                self.source.begin_load(&mut self.link)?;
                self.texts_due = Some(feed.now() + TEXTS_AFTER);
            }
            Phase::Measure => {
                self.texts_due = None;
                self.source.open_window(&mut self.link)?;
            }
            Phase::Stop => {
                if let Some((statements, total_ms)) = self.source.close_window(&mut self.link)? {
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
        self.sample(feed)?;
        self.relations(CaptureTime::After, feed)
    }
}
