//! Hosts and databases elsewhere: any Prometheus endpoint, asked once an interval, its figures under the names that
//! the samplers here give to theirs, with the endpoint before them: `db1:9100/host.cpu.total.user`.
//!
//! Understood are `node_exporter`, `postgres_exporter` and Intel's `pcm-sensor-server` (pcm-exporter), one or several
//! behind one endpoint. Metrics without a name here are left out and counted.

mod endpoint;
mod hardware;
mod node;
mod page;
mod postgres;
mod scraped_metrics;
#[cfg(test)]
mod tests;
pub mod text;

use std::collections::HashMap;
use std::time::Duration;

use kelvin_measure::Nanos;
use kelvin_measure::observation::{Metric, Observation, Observer, Reading, UnavailableMetrics};

use crate::watch::{Feed, Watcher};
use endpoint::Endpoint;
pub use endpoint::UrlError;
use page::Page;
use scraped_metrics::{Figure, ScrapedMetrics};

/// The most that one endpoint may name: devices that come and go, as those of containers do, would else be declared
/// and stored without end. A host of a thousand CPUs has some 15,000 figures.
const MOST_NAMES: usize = 20_000;

/// And how often it may name new ones.
const MOST_BLOCKS: usize = 64;

/// Scrapes an endpoint at an interval.
#[derive(Debug)]
pub struct ScrapeWatcher {
    endpoint: Endpoint,
    interval: Duration,
    mapping: Mapping,
    declared: Declared,
    last: Option<Nanos>,
    /// Whether the omission was reported.
    reported: bool,
}

impl ScrapeWatcher {
    /// A watcher of `url`: `host[:port][/path]` or `http[s]://[user@]host[:port][/path]`, where the path is `/metrics`
    /// unless given. A user's password comes from the environment variable `KELVIN_SCRAPE_PASSWORD`, goes to the endpoint
    /// and nowhere else. Nothing is asked yet.
    ///
    /// # Errors
    /// When it is no such URL, has a password in it, or names a user without one in the environment.
    pub fn new(url: &str, interval: Duration) -> Result<Self, UrlError> {
        Self::with_password(url, std::env::var("KELVIN_SCRAPE_PASSWORD").ok().as_deref(), interval)
    }

    /// The same with the password of the user whom the URL names.
    ///
    /// # Errors
    /// When it is no such URL, has a password in it, or names a user and there is no password.
    pub fn with_password(url: &str, password: Option<&str>, interval: Duration) -> Result<Self, UrlError> {
        Ok(Self {
            endpoint: Endpoint::parse(url, password)?,
            interval,
            mapping: Mapping::default(),
            declared: Declared::default(),
            last: None,
            reported: false,
        })
    }

    /// Host and port as they were given: what stands before the names of its figures.
    pub fn address(&self) -> &str {
        self.endpoint.label()
    }

    /// Asks once whether it answers and has figures that are known here. Nothing of the answer is kept.
    ///
    /// # Errors
    /// When it cannot be reached within five seconds, answers with something else, or has nothing that is known here.
    pub fn probe(&self) -> Result<(), String> {
        let text = self.endpoint.get()?;
        self.take(&mut Mapping::default(), &text, f64::NAN).map(|_| ())
    }

    /// The figures of an answer, and how many there were and were of no use.
    fn take(
        &self,
        mapping: &mut Mapping,
        text: &str,
        seconds: f64,
    ) -> Result<(Vec<Figure>, (usize, usize)), String> {
        let place = self.endpoint.shown();
        let (figures, counted) = mapping
            .take(text, seconds)
            .map_err(|error| format!("the response of {place} is not in Prometheus' text format: {error}"))?;
        if figures.is_empty() {
            return Err(format!(
                "{place}: Kelvin uses none of its {} metrics: name a node_exporter, a postgres_exporter or \
                 a pcm-sensor-server",
                counted.0
            ));
        }
        Ok((figures, counted))
    }

    fn scrape(&mut self, feed: &mut Feed) -> Result<(), String> {
        let asked = feed.now();
        let text = match self.endpoint.get() {
            Ok(text) => text,
            Err(why) => {
                // What the counters did over the gap belongs to no interval.
                self.mapping.figures.clear();
                self.last = None;
                return Err(why);
            }
        };
        // Exporters read their counters between the question and the answer.
        let at = asked.midpoint(feed.now());
        let seconds = self.last.map_or(f64::NAN, |last| Duration::from_nanos(at - last).as_secs_f64());
        self.last = Some(at);
        let place = self.endpoint.shown().to_owned();
        let mut mapping = std::mem::take(&mut self.mapping);
        let taken = self.take(&mut mapping, &text, seconds);
        self.mapping = mapping;
        let (figures, (all, unused)) = taken?;
        let (new, refused) = self.declared.new_ones(&figures);
        let too_many =
            (refused && !std::mem::replace(&mut self.declared.reported, true)).then(|| UnavailableMetrics {
                what: format!("{}: new metrics", self.endpoint.label()),
                why: format!(
                    "its metric names keep changing: after {MOST_NAMES} names, or {MOST_BLOCKS} additions \
                     of names, new ones are ignored; have the exporter exclude short-lived devices"
                ),
            });
        let first = !std::mem::replace(&mut self.reported, true);
        let absent = (first && unused > 0).then(|| UnavailableMetrics {
            what: self.endpoint.label().to_owned(),
            why: format!("{unused} of its {all} metrics have no counterpart in Kelvin and are ignored"),
        });
        if !new.is_empty() || absent.is_some() || too_many.is_some() {
            let label = self.endpoint.label();
            let metrics = new.iter().map(|figure| Metric {
                name: format!("{label}/{}", figure.name),
                unit: figure.unit.into(),
                help: figure.help.into(),
            });
            let observer = Observer {
                source: place,
                first: 0,
                metrics: metrics.collect(),
                absent: absent.into_iter().chain(too_many).collect(),
                places: Vec::new(),
            };
            let names = new.iter().map(|figure| figure.name.clone()).collect();
            let first = feed.declare(observer);
            self.declared.add(first, names);
        }
        for reading in self.declared.readings(at, &figures) {
            feed.send(Observation::Reading(reading));
        }
        Ok(())
    }
}

impl Watcher for ScrapeWatcher {
    fn name(&self) -> String {
        self.endpoint.shown().to_owned()
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, _feed: &mut Feed) {
        // The first scrape names the metrics.
    }

    fn sample(&mut self, feed: &mut Feed) -> Result<(), String> {
        self.scrape(feed)
    }
}

/// From a text to figures.
#[derive(Debug, Default)]
struct Mapping {
    figures: ScrapedMetrics,
    disks: node::Disks,
}

impl Mapping {
    /// The figures, and how many there were in the text and how many of them were of no use.
    fn take(&mut self, text: &str, seconds: f64) -> Result<(Vec<Figure>, (usize, usize)), text::Malformed> {
        let page = Page::parse(text)?;
        self.figures.begin(seconds);
        node::map(&page, &mut self.figures, &mut self.disks);
        postgres::map(&page, &mut self.figures);
        hardware::map(&page, &mut self.figures);
        Ok((self.figures.end(), page.count()))
    }
}

/// What was announced: blocks of metrics, each with the index of its first.
#[derive(Debug, Default)]
struct Declared {
    blocks: Vec<(u32, usize)>,
    places: HashMap<String, (usize, usize)>,
    /// Whether the excess was reported.
    reported: bool,
}

impl Declared {
    /// Those that are to be announced, and whether there are more than may be.
    fn new_ones<'a>(&self, figures: &'a [Figure]) -> (Vec<&'a Figure>, bool) {
        let room =
            if self.blocks.len() < MOST_BLOCKS { MOST_NAMES.saturating_sub(self.places.len()) } else { 0 };
        let mut new = figures.iter().filter(|figure| !self.places.contains_key(&figure.name));
        let taken = new.by_ref().take(room).collect();
        (taken, new.next().is_some())
    }

    fn add(&mut self, first: u32, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let block = self.blocks.len();
        self.blocks.push((first, names.len()));
        self.places.extend(names.into_iter().enumerate().map(|(i, name)| (name, (block, i))));
    }

    /// One for each block; what was not found this time is unknown.
    fn readings(&self, at: Nanos, figures: &[Figure]) -> Vec<Reading> {
        let mut readings: Vec<Reading> = self
            .blocks
            .iter()
            .map(|&(first, count)| Reading { at, first, values: vec![f32::NAN; count] })
            .collect();
        for figure in figures {
            if let Some(&(block, i)) = self.places.get(&figure.name) {
                readings[block].values[i] = figure.value as f32;
            }
        }
        readings.retain(|reading| !reading.values.is_empty());
        readings
    }
}
