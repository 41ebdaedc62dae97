//! The watcher of one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, Session};
use kelvin_measure::Nanos;
use kelvin_measure::observation::{
    CaptureTime, Metric, Observation, Observer, Occurrence, UnavailableMetrics,
};

use super::contents::{self, MOST_READ};
use super::wal_follower::{Follower, Step};
use super::wal_index::WalIndex;
use crate::metric;
use crate::watch::{Feed, Watcher};

/// Interval between two samples of the WAL.
const LOOK: Duration = Duration::from_millis(20);

/// A checkpoint that took this long is reported separately. SQLite makes twenty a second under load; the shorter ones are in
/// the rate only.
const SLOW_CHECKPOINT: Nanos = 100_000_000;

/// Bytes before each page in the log.
const FRAME_HEADER: u64 = 24;

const METRICS: [(&str, &str, &str); 6] = [
    ("sqlite.wal.bytes", "B", "size of the WAL file, which does not shrink"),
    ("sqlite.wal.pending", "B", "WAL not yet checkpointed into the database"),
    (metric::EMBEDDED_LOG_BYTES, "B/s", "written to the WAL"),
    ("sqlite.checkpoints", "1/s", "checkpoints completed"),
    (metric::WRITER_QUEUE, "s/s", "average number of writers queued in this process"),
    ("sqlite.database.bytes", "B", "size of the database file, without the WAL"),
];

/// Watches an SQLite file through the engine whose users load it.
pub(super) struct SqliteWatcher {
    engine: Arc<dyn Engine>,
    interval: Duration,
    made: Option<Made>,
}

struct Made {
    /// Keeps the wal-index mapped. Idle except for its first and final observations.
    session: Box<dyn Session>,
    path: PathBuf,
    index: Option<WalIndex>,
    follower: Follower,
    /// Bytes of a page, from the log.
    page: u64,
    pending: u64,
    /// Number of the checkpoint under way.
    first: u32,
    last: Option<Reading>,
}

/// The counters at one reading.
#[derive(Clone, Copy)]
struct Reading {
    at: Nanos,
    written: u64,
    checkpoints: u64,
    queued: Option<Duration>,
}

impl SqliteWatcher {
    pub(super) fn new(engine: Arc<dyn Engine>, interval: Duration) -> Self {
        Self { engine, interval, made: None }
    }

    fn open(&self) -> kelvin_database::Result<(Box<dyn Session>, PathBuf)> {
        let mut session = self.engine.connect()?;
        // The wal-index is mapped at the first reading.
        session.query("SELECT count(*) FROM sqlite_schema")?;
        let path = session.query("SELECT file FROM pragma_database_list WHERE name = 'main'")?;
        let path = PathBuf::from(path.text(0, 0)?);
        Ok((session, path))
    }
}

impl Watcher for SqliteWatcher {
    fn name(&self) -> String {
        "sqlite".into()
    }

    fn interval(&self) -> Duration {
        self.interval.min(LOOK)
    }

    fn begin(&mut self, feed: &mut Feed) {
        let mut absent = vec![UnavailableMetrics {
            what: "sqlite.cache".into(),
            why: "sqlite3_db_status() reports a connection's cache hits and misses, but the driver \
                  (rusqlite) has no safe call for it; see the page faults and the device reads instead"
                .into(),
        }];
        let mut observer = Observer { source: "sqlite".into(), ..Observer::default() };
        let (session, path) = match self.open() {
            Ok(opened) => opened,
            Err(error) => {
                absent.push(UnavailableMetrics { what: "sqlite".into(), why: error.to_string() });
                feed.declare(Observer { absent, ..observer });
                return;
            }
        };
        let index = WalIndex::find(&path);
        if let Err(why) = &index {
            for what in ["sqlite.wal.written", "sqlite.wal.pending", "sqlite.checkpoints"] {
                absent.push(UnavailableMetrics { what: what.into(), why: why.clone() });
            }
        }
        if self.engine.queued().is_none() {
            absent.push(UnavailableMetrics {
                what: "sqlite.busy".into(),
                why: "this engine has no queue".into(),
            });
        }
        if bytes(&path, "") > MOST_READ {
            let why = format!(
                "reading the sizes reads the whole file, which kelvin does only up to {} MiB",
                MOST_READ >> 20
            );
            absent.push(UnavailableMetrics { what: "sizes of tables and indexes".into(), why });
        }
        observer.metrics = METRICS
            .iter()
            .map(|(name, unit, help)| Metric {
                name: (*name).into(),
                unit: (*unit).into(),
                help: (*help).into(),
            })
            .collect();
        let first = feed.declare(Observer { absent, ..observer });
        let mut made = Made {
            session,
            path,
            index: index.ok(),
            follower: Follower::default(),
            page: 0,
            pending: 0,
            first,
            last: None,
        };
        match contents::settings(made.session.as_mut()) {
            Ok(values) => feed.send(Observation::Settings { values }),
            Err(error) => feed.send(lost("settings", &error.to_string())),
        }
        if let Err(why) = made.relations(CaptureTime::Before, feed) {
            feed.send(lost("sizes of tables and indexes", &why));
        }
        self.made = Some(made);
    }

    fn sample(&mut self, feed: &mut Feed) -> Result<(), String> {
        let Some(made) = &mut self.made else { return Ok(()) };
        let followed = made.follow(feed);
        let due = made.last.is_none_or(|last| {
            // Half an interval early is nearer than half an interval late.
            feed.now() + (LOOK / 2).as_nanos() as Nanos >= last.at + self.interval.as_nanos() as Nanos
        });
        if due {
            made.read(self.engine.as_ref(), feed);
        }
        followed
    }

    fn end(&mut self, feed: &mut Feed) -> Result<(), String> {
        let Some(mut made) = self.made.take() else { return Ok(()) };
        made.follow(feed)?;
        made.relations(CaptureTime::After, feed)
    }
}

impl Made {
    /// Looks at the log.
    fn follow(&mut self, feed: &mut Feed) -> Result<(), String> {
        let Some(index) = &self.index else { return Ok(()) };
        let log = match index.read() {
            Ok(Some(log)) => log,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.index = None;
                return Err(why);
            }
        };
        let frame = u64::from(log.page) + FRAME_HEADER;
        self.page = u64::from(log.page);
        self.pending = u64::from(log.frames.saturating_sub(log.moved)) * frame;
        let page = log.page;
        self.follower.take_state(feed.now(), log, |step| {
            let Step::Ended { from, to, moved } = step else { return };
            if to.saturating_sub(from) < SLOW_CHECKPOINT {
                return;
            }
            let figures = [
                ("frames".to_owned(), f64::from(moved)),
                ("bytes".to_owned(), f64::from(moved) * f64::from(page)),
            ];
            let id = feed.occurrence();
            feed.send(Observation::Occurrence(Occurrence {
                id,
                kind: "checkpoint".into(),
                subject: "wal".into(),
                from,
                to: Some(to),
                figures: BTreeMap::from(figures),
            }));
        });
        Ok(())
    }

    /// Sends one value a metric.
    fn read(&mut self, engine: &dyn Engine, feed: &mut Feed) {
        let now = Reading {
            at: feed.now(),
            written: self.follower.written,
            checkpoints: self.follower.checkpoints,
            queued: engine.queued(),
        };
        let last = self.last.replace(now);
        let seconds = last.map_or(0.0, |last| (now.at - last.at) as f64 / 1e9);
        let rate = |of: &dyn Fn(&Reading) -> Option<f64>| match last {
            Some(last) if seconds > 0.0 => {
                of(&now).zip(of(&last)).map_or(f64::NAN, |(n, l)| (n - l) / seconds)
            }
            _ => f64::NAN,
        };
        let frame = (self.page + FRAME_HEADER) as f64;
        let seen = self.index.is_some();
        let seen = |value: f64| if seen { value } else { f64::NAN };
        let values = [
            bytes(&self.path, "-wal") as f64,
            seen(self.pending as f64),
            seen(rate(&|r| Some(r.written as f64 * frame))),
            seen(rate(&|r| Some(r.checkpoints as f64))),
            rate(&|r| r.queued.map(|queued| queued.as_secs_f64())),
            bytes(&self.path, "") as f64,
        ];
        feed.reading(self.first, values.iter().map(|&value| value as f32).collect());
    }

    fn relations(&mut self, when: CaptureTime, feed: &mut Feed) -> Result<(), String> {
        let database_bytes = bytes(&self.path, "");
        if database_bytes > MOST_READ {
            return Ok(());
        }
        let relations = contents::relations(self.session.as_mut()).map_err(|error| error.to_string())?;
        feed.send(Observation::Relations { when, relations, database_bytes });
        Ok(())
    }
}

fn lost(what: &str, why: &str) -> Observation {
    Observation::Lost(UnavailableMetrics { what: what.into(), why: why.into() })
}

/// The size of a file beside the database; 0 when there is none. It is asked for and not opened.
fn bytes(path: &Path, suffix: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(name).map_or(0, |metadata| metadata.len())
}
