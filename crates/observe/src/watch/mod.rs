//! Observation during a run: each [`Watcher`] in a separate thread, all of their observations in one stream on the
//! run's clock.
//!
//! [`Watch::start`] opens the watchers' connections before the users', so that a server that places connections by
//! their order places the users as it would without Kelvin's observers. Observations wait in a channel until the owner
//! of the event sink takes them ([`Watch::take`]); [`Watch::finish`] lets each watcher sample once more and ends them.

mod feed;
mod host;
mod other_processes;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_measure::event::Phase;
use kelvin_measure::observation::{Observation, UnavailableMetrics};
use kelvin_measure::{Clock, Nanos};

pub use feed::Feed;
pub use host::HostWatcher;

/// Observations that may wait to be taken. A reader that far behind has stopped, and older observations would only use
/// up the load's memory.
const MOST_WAITING: usize = 100_000;

/// How long a watcher may take for its last sample before it is abandoned.
const PATIENCE: Duration = Duration::from_secs(15);

/// The progress of a run, for watchers that read counters at the window's edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// The point of the run.
    pub point: u32,
    /// The phase that began.
    pub phase: Phase,
}

/// A thread that observes one thing.
pub trait Watcher: Send {
    /// Its name, for messages: "host", "postgres sessions".
    fn name(&self) -> String;

    /// Interval between two samples.
    fn interval(&self) -> Duration;

    /// Names its metrics, before the first sample.
    fn begin(&mut self, feed: &mut Feed);

    /// Takes a sample. An error is reported once ([`Observation::Lost`]), and the watcher is called again at its next turn.
    fn sample(&mut self, feed: &mut Feed) -> Result<(), String>;

    /// A phase of the run began. Called between samples, within milliseconds of it.
    fn stage(&mut self, _stage: Stage, _feed: &mut Feed) -> Result<(), String> {
        Ok(())
    }

    /// The load has ended: final observations.
    fn end(&mut self, _feed: &mut Feed) -> Result<(), String> {
        Ok(())
    }
}

enum Order {
    Stage(Stage),
    End,
}

struct Hand {
    name: String,
    orders: mpsc::Sender<Order>,
    thread: JoinHandle<()>,
}

/// Running watchers.
pub struct Watch {
    hands: Vec<Hand>,
    seen: Receiver<Observation>,
    counts: Arc<feed::Counts>,
}

impl Watch {
    /// Starts a thread for each watcher.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(watchers: Vec<Box<dyn Watcher>>, clock: &Clock) -> std::io::Result<Self> {
        Self::counting(watchers, clock, Arc::default())
    }

    /// The same for watchers of something else in the same run: no two indexes of both are the same.
    ///
    /// # Errors
    /// Those of [`Watch::start`].
    pub fn start_beside(&self, watchers: Vec<Box<dyn Watcher>>, clock: &Clock) -> std::io::Result<Self> {
        Self::counting(watchers, clock, Arc::clone(&self.counts))
    }

    fn counting(
        watchers: Vec<Box<dyn Watcher>>,
        clock: &Clock,
        counts: Arc<feed::Counts>,
    ) -> std::io::Result<Self> {
        let (sender, seen) = mpsc::sync_channel(MOST_WAITING);
        let mut hands = Vec::with_capacity(watchers.len());
        for watcher in watchers {
            let (orders, received) = mpsc::channel();
            let name = watcher.name();
            let feed = Feed::new(SyncSender::clone(&sender), clock.clone(), Arc::clone(&counts));
            let thread = std::thread::Builder::new()
                .name(thread_name(&name))
                .stack_size(512 * 1024)
                .spawn(move || work(watcher, feed, &received))?;
            hands.push(Hand { name, orders, thread });
        }
        Ok(Self { hands, seen, counts })
    }

    /// Informs every watcher that a phase began.
    pub fn stage(&self, stage: Stage) {
        for hand in &self.hands {
            // A watcher that has ended receives nothing more.
            let _ended = hand.orders.send(Order::Stage(stage));
        }
    }

    /// Observations that have not been taken yet, in the order of each watcher.
    pub fn take(&self) -> impl Iterator<Item = Observation> + '_ {
        // A bound, so that watchers cannot hold their reader.
        self.seen.try_iter().take(MOST_WAITING)
    }

    /// Ends the watchers, waits for their final observations (up to 15 seconds, passed to `each`), and names those that
    /// did not end.
    ///
    /// # Errors
    /// That of `each`; the watchers end nevertheless.
    pub fn finish<E>(self, mut each: impl FnMut(Observation) -> Result<(), E>) -> Result<(), E> {
        for hand in &self.hands {
            let _ended = hand.orders.send(Order::End);
        }
        let deadline = std::time::Instant::now() + PATIENCE;
        let mut all_said = false;
        let mut result = Ok(());
        let mut take = |observation| {
            if result.is_ok() {
                result = each(observation);
            }
        };
        while std::time::Instant::now() < deadline {
            let all_ended = self.hands.iter().all(|hand| hand.thread.is_finished());
            match self.seen.recv_timeout(Duration::from_millis(5)) {
                Ok(observation) => take(observation),
                // All of them have let go of their feeds: they end, whether or not the system has noticed yet.
                Err(RecvTimeoutError::Disconnected) => {
                    all_said = true;
                    break;
                }
                Err(RecvTimeoutError::Timeout) if all_ended => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.seen.try_iter().for_each(&mut take);
        for hand in self.hands.iter().filter(|hand| !all_said && !hand.thread.is_finished()) {
            let why = format!("it did not stop within {} s", PATIENCE.as_secs());
            take(Observation::Lost(UnavailableMetrics { what: hand.name.clone(), why }));
        }
        let dropped = self.counts.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let why = format!("{dropped} observations were dropped because they were not read in time");
            take(Observation::Lost(UnavailableMetrics { what: "observations".into(), why }));
        }
        result
    }
}

/// The name of a watcher's thread, so that its cost is visible from outside: without the engine's name, because the system keeps
/// 15 characters.
fn thread_name(watcher: &str) -> String {
    format!("see {}", watcher.rsplit(' ').next().unwrap_or(watcher))
}

/// A watcher's thread: samples at regular times; phases are announced in between.
fn work(mut watcher: Box<dyn Watcher>, mut feed: Feed, orders: &Receiver<Order>) {
    let interval = watcher.interval().as_nanos() as Nanos;
    let name = watcher.name();
    let mut silent = false;
    let mut judge = |result: Result<(), String>, feed: &mut Feed| match result {
        Ok(()) => silent = false,
        // Otherwise a server that is down would report that ten times a second.
        Err(_) if silent => {}
        Err(why) => {
            silent = true;
            feed.send(Observation::Lost(UnavailableMetrics { what: name.clone(), why }));
        }
    };
    watcher.begin(&mut feed);
    let mut due = feed.now();
    loop {
        let now = feed.now();
        if now >= due {
            let looked = watcher.sample(&mut feed);
            judge(looked, &mut feed);
            // A sample that took longer than the interval skips the missed turns.
            let now = feed.now();
            due += interval * ((now.saturating_sub(due)) / interval + 1);
            continue;
        }
        match orders.recv_timeout(Duration::from_nanos(due - now)) {
            Ok(Order::Stage(stage)) => {
                let result = watcher.stage(stage, &mut feed);
                judge(result, &mut feed);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => {
                let ended = watcher.end(&mut feed);
                judge(ended, &mut feed);
                return;
            }
        }
    }
}
