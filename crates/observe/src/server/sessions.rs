//! Looking at the sessions of a server: what each does or waits for, how many do, and who holds the rows that others wait for.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use kelvin_database::{Error, Rows};
use kelvin_measure::observation::{
    Blocker, Metric, Observation, Observer, Occurrence, UnavailableMetrics, WaitGroup,
};
use kelvin_measure::{Nanos, SECOND};

use super::figures::LONGEST_TEXT;
use super::link::Link;
use super::statement_text::{hash, masked};
use super::waits::Counted;
use crate::watch::{Feed, Stage, Watcher};

/// Maximum number of statements that are distinguished and whose texts are sent.
const MOST_TEXTS: usize = 4096;

/// Those who wait for one holder that are named.
pub(crate) const NAMED: usize = 16;

/// The number of reported holders, those with the most waiters.
const MOST: usize = 3;

/// What an engine reports about its sessions. Errors are texts for users.
pub(crate) trait SessionSource: Send + 'static {
    /// What a connection knows about its server.
    type Server: Clone + Send;
    /// The engine, as the names of its metrics begin.
    const NAME: &'static str;
    /// Which of the sessions that run a statement count as waiting.
    const WAITING: &'static str;

    /// Whether the server has not been started again from one connection to the next.
    fn is_same_life(before: &Self::Server, now: &Self::Server) -> bool;

    /// Before the first sample: what is unavailable, and why.
    fn begin(&mut self, link: &mut Link<Self::Server>) -> Vec<UnavailableMetrics>;

    /// The metrics are declared.
    fn begun(&mut self, _link: &mut Link<Self::Server>, _feed: &mut Feed) {}

    /// Asks for the sessions and keeps the answer.
    fn ask(&mut self, link: &mut Link<Self::Server>) -> Result<(), String>;

    /// Counts the sessions of the answer.
    fn count(
        &mut self,
        server: &Self::Server,
        tally: &mut Tally,
        now: Nanos,
        feed: &mut Feed,
    ) -> Result<(), Error>;

    /// The sample is complete; `previous` is when the one before it was.
    fn looked(
        &mut self,
        _link: &mut Link<Self::Server>,
        _previous: Nanos,
        _now: Nanos,
        _feed: &mut Feed,
    ) -> Result<(), String> {
        Ok(())
    }

    /// How many sessions wait for rows, by relation.
    fn row_waiters(&mut self, link: &mut Link<Self::Server>) -> Result<Vec<(String, u32)>, String>;

    /// Who holds what others wait for.
    fn blockers(&mut self, link: &mut Link<Self::Server>) -> Result<Vec<Blocker>, String>;

    /// A second's figures were sent.
    fn second(&mut self, _link: &mut Link<Self::Server>, _feed: &mut Feed) -> Result<(), String> {
        Ok(())
    }

    /// A phase of the run began.
    fn stage(
        &mut self,
        _stage: Stage,
        _link: &mut Link<Self::Server>,
        _feed: &mut Feed,
    ) -> Result<(), String> {
        Ok(())
    }

    /// The connection is lost; the last answered sample was `at`.
    fn lost(&mut self, at: Nanos, feed: &mut Feed);

    /// The load has ended.
    fn end(&mut self, _link: &mut Link<Self::Server>, _feed: &mut Feed) -> Result<(), String> {
        Ok(())
    }
}

/// Sessions summed over the samples of a second.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counted: Counted,
    active: u32,
    waiting: u32,
    idle_in_transaction: u32,
    /// Whether the last sample had a session waiting for a lock. If not, the locks are not queried: they are the most expensive
    /// query. Only the last sample decides, so that seconds with waits are not sampled more often than others.
    lock_waits: bool,
}

impl Tally {
    /// A session in this state.
    pub(crate) fn session(&mut self, group: WaitGroup) {
        self.counted.session(group);
    }

    /// It runs a statement.
    pub(crate) fn active(&mut self, waits: bool) {
        self.active += 1;
        self.waiting += u32::from(waits);
    }

    /// Its transaction waits for its client.
    pub(crate) fn idle_in_transaction(&mut self) {
        self.idle_in_transaction += 1;
    }

    /// It waits for a lock.
    pub(crate) fn waits_for_lock(&mut self) {
        self.lock_waits = true;
    }
}

/// Looks at the sessions of one server.
pub(crate) struct Sessions<S: SessionSource> {
    link: Link<S::Server>,
    source: S,
    interval: Duration,
    tally: Tally,
    /// Index of our metrics.
    first: u32,
    /// The last answered sample.
    looked: Option<Nanos>,
    /// When the last event was sent.
    sent: Nanos,
    server: S::Server,
    connected: bool,
}

impl<S: SessionSource> Sessions<S> {
    pub(crate) fn new(link: Link<S::Server>, interval: Duration, source: S) -> Self {
        Self {
            source,
            interval,
            tally: Tally::default(),
            first: 0,
            looked: None,
            sent: 0,
            server: link.about.clone(),
            connected: true,
            link,
        }
    }

    fn look_at_sessions(&mut self, feed: &mut Feed) -> Result<(), String> {
        // Also lost where another of our statements met its end.
        self.lose_if_down(feed);
        if let Err(why) = self.source.ask(&mut self.link) {
            self.lose_if_down(feed);
            return Err(why);
        }
        if !std::mem::replace(&mut self.connected, true) {
            self.back_again(feed);
        }
        let now = feed.now();
        let previous = self.looked.replace(now).unwrap_or(now);
        self.tally.lock_waits = false;
        self.source.count(&self.server, &mut self.tally, now, feed).map_err(|error| error.to_string())?;
        self.tally.counted.looked(feed);
        self.source.looked(&mut self.link, previous, now, feed)
    }

    /// Who waits for rows, of which relation, and who holds them.
    fn look_at_locks(&mut self, feed: &mut Feed) -> Result<(), String> {
        let waiters = self.source.row_waiters(&mut self.link)?;
        for (relation, sessions) in &waiters {
            self.tally.counted.rows(relation, *sessions);
        }
        self.tally.counted.looked_at_locks();
        // Also without waiters for rows: tables, advisory locks and extensions of files are waited for, too.
        let blockers = self.source.blockers(&mut self.link)?;
        // Between two looks at the table they may have gone.
        if !blockers.is_empty() {
            feed.send(Observation::Blocking { at: feed.now(), blockers });
        }
        Ok(())
    }

    /// The second's figures.
    fn send(&mut self, feed: &mut Feed) {
        let looks = self.tally.counted.looks();
        if looks == 0 {
            return;
        }
        let mut average =
            |sum: fn(&mut Tally) -> &mut u32| std::mem::take(sum(&mut self.tally)) as f32 / looks as f32;
        let values = vec![
            average(|tally| &mut tally.active),
            average(|tally| &mut tally.waiting),
            average(|tally| &mut tally.idle_in_transaction),
        ];
        feed.reading(self.first, values);
        self.tally.counted.send(feed);
        self.sent = feed.now();
    }

    fn lose_if_down(&mut self, feed: &mut Feed) {
        if self.link.is_up() || !std::mem::take(&mut self.connected) {
            return;
        }
        self.send(feed);
        let at = self.looked.unwrap_or_else(|| feed.now());
        self.source.lost(at, feed);
    }

    /// The server answers again: another life of it is a restart.
    fn back_again(&mut self, feed: &mut Feed) {
        let before = std::mem::replace(&mut self.server, self.link.about.clone());
        if S::is_same_life(&before, &self.server) {
            return;
        }
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
}

impl<S: SessionSource> Watcher for Sessions<S> {
    fn name(&self) -> String {
        format!("{} sessions", S::NAME)
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn begin(&mut self, feed: &mut Feed) {
        let absent = self.source.begin(&mut self.link);
        let gauge = |name: &str, help: &str| Metric {
            name: format!("{}.sessions.{name}", S::NAME),
            unit: "1".into(),
            help: help.into(),
        };
        self.first = feed.declare(Observer {
            source: S::NAME.into(),
            metrics: vec![
                gauge("active", "sessions running a statement, averaged over the samples"),
                gauge("waiting", S::WAITING),
                gauge("idle_in_transaction", "sessions idle in transaction"),
            ],
            absent,
            ..Observer::default()
        });
        self.source.begun(&mut self.link, feed);
        self.sent = feed.now();
    }

    fn sample(&mut self, feed: &mut Feed) -> Result<(), String> {
        self.look_at_sessions(feed)?;
        // Half an interval early is nearer than half an interval late.
        if feed.now() + self.interval.as_nanos() as Nanos / 2 < self.sent + SECOND {
            return Ok(());
        }
        // What the sessions waited for is sent whatever becomes of the locks: a role may not see them all.
        let locks = if self.tally.lock_waits {
            self.look_at_locks(feed)
        } else {
            self.tally.counted.looked_at_locks();
            Ok(())
        };
        self.send(feed);
        self.source.second(&mut self.link, feed)?;
        locks
    }

    fn stage(&mut self, stage: Stage, feed: &mut Feed) -> Result<(), String> {
        self.source.stage(stage, &mut self.link, feed)
    }

    fn end(&mut self, feed: &mut Feed) -> Result<(), String> {
        self.send(feed);
        if !self.link.is_up() {
            // Connecting to a server that hangs would outlast the patience of who waits for us.
            return Err("the connection was lost".into());
        }
        self.source.end(&mut self.link, feed)
    }
}

/// The statements of sampled sessions, each sent once.
#[derive(Debug, Default)]
pub(crate) struct SentTexts {
    known: HashSet<i64>,
}

impl SentTexts {
    /// A session runs this text as its client sent it. Returns the statement's identifier: the server's, or where it gives none
    /// that of the text without its values.
    pub(crate) fn sampled(&mut self, query: Option<i64>, text: &str, feed: &mut Feed) -> Option<i64> {
        if query.is_some_and(|query| self.known.contains(&query)) || text.is_empty() {
            return query;
        }
        let masked = masked(text, LONGEST_TEXT);
        let query = query.unwrap_or_else(|| hash(&masked));
        self.send(query, masked, feed);
        Some(query)
    }

    /// The same of a text that the server has normalised.
    pub(crate) fn normalised(&mut self, query: i64, text: &str, feed: &mut Feed) {
        if !self.known.contains(&query) {
            self.send(query, text.chars().take(LONGEST_TEXT).collect(), feed);
        }
    }

    fn send(&mut self, query: i64, text: String, feed: &mut Feed) {
        if self.known.len() < MOST_TEXTS && self.known.insert(query) {
            feed.send(Observation::StatementTexts { texts: vec![(query, text)] });
        }
    }
}

/// Rows of a relation's name and how many sessions wait for its rows.
pub(crate) fn waiters(rows: &Rows) -> Result<Vec<(String, u32)>, Error> {
    (0..rows.len()).map(|row| Ok((rows.text(row, 0)?.to_owned(), rows.int(row, 1)? as u32))).collect()
}

/// Numbers of sessions, with blanks between them.
pub(crate) fn session_numbers(list: &str) -> Vec<i64> {
    list.split(' ').filter_map(|number| number.parse().ok()).collect()
}

/// Those who wait for nobody themselves.
pub(crate) fn first_of_queue(mut blockers: Vec<Blocker>) -> Vec<Blocker> {
    let waiting: BTreeSet<i64> = blockers.iter().flat_map(|one| one.waiting.iter().copied()).collect();
    blockers.retain(|one| !waiting.contains(&one.pid));
    blockers.truncate(MOST);
    for one in &mut blockers {
        one.waiters = one.waiting.len() as u32;
        one.waiting.truncate(NAMED);
    }
    blockers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_of_a_queue_are_reported() {
        let one = |pid, waiting: &[i64]| Blocker { pid, waiting: waiting.to_vec(), ..Blocker::default() };
        let found = first_of_queue(vec![one(1, &[2, 3, 4]), one(2, &[3, 4]), one(3, &[4]), one(9, &[8])]);
        assert_eq!(found.iter().map(|one| one.pid).collect::<Vec<_>>(), [1, 9]);
    }
}
