//! A virtual user: decides, executes, times, retries, reconnects. It runs in a separate thread or as a fiber;
//! its waits go through `kelvin_fiber`, which supports both.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kelvin_database::{Cancel, Engine, ErrorClass, Session, TransactionControl};
use kelvin_measure::event::KindCounts;
use kelvin_measure::{Clock, Counters, Nanos, Random, Recorder, Sample, TransactionOutcome};
use kelvin_observe::ThreadTimes;
use kelvin_spec::ThinkTime;
use kelvin_workload::{Stop, UserRange, VirtualUser};

use crate::arrivals::{Claim, Queue};
use crate::report::UserReport;

/// A user with this many consecutive failures gives up although it is connected: the table is missing or the
/// disk is full, and further errors of the same kind add nothing.
const MOST_FAILURES_IN_A_ROW: u32 = 100;

/// The pause between attempts to reconnect is doubled from the first to the last of these values.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A user without a connection for this long gives up; a restarting server takes much less.
const LONGEST_OUTAGE: Duration = Duration::from_mins(5);

/// The number of users that report at their end how their prepared statements were planned. All execute the
/// same statements.
const USERS_WITH_PLANS: u32 = 4;

/// A new connection with the run's time limit of statements.
pub fn connect(engine: &dyn Engine, timeout: Duration) -> kelvin_database::Result<Box<dyn Session>> {
    let mut session = engine.connect()?;
    session.set_timeout(Some(timeout))?;
    Ok(session)
}

/// The headline series of `kinds`, as marked in `headline`.
pub fn headline_of<'a>(headline: &[bool], kinds: &'a [KindCounts]) -> impl Iterator<Item = &'a KindCounts> {
    kinds.iter().zip(headline).filter(|(_, counts)| **counts).map(|(kind, _)| kind)
}

/// Waits until `deadline`, which may move, or until `over` returns true.
pub fn wait_until(clock: &Clock, deadline: impl Fn() -> Nanos, over: impl Fn() -> bool) {
    loop {
        let now = clock.now();
        let until = deadline();
        if now >= until || over() {
            return;
        }
        std::thread::park_timeout(Duration::from_nanos((until - now).min(100_000_000)));
    }
}

/// The state that all users share.
pub struct Shared {
    /// The database.
    pub engine: Arc<dyn Engine>,
    /// The run's clock.
    pub clock: Clock,
    /// Planned start of the users.
    pub begin: Nanos,
    /// Actual start of the first user; `u64::MAX` before that.
    pub began: AtomicU64,
    /// When the window opens.
    pub open: Nanos,
    /// When the window closes; set to an earlier time when the run is stopped early. `u64::MAX` when it ends
    /// by count.
    pub close: AtomicU64,
    /// From here on users begin no more transactions: with the window's end, or in an open loop later, so
    /// that waiting arrivals can be served.
    pub end: AtomicU64,
    /// Number of transactions of each user, when the run ends by count.
    pub transactions: Option<u64>,
    /// Number of active users of all generators; users with higher numbers are idle.
    pub at_work: AtomicU32,
    /// Whether a timeline may change rate or users.
    pub changes: bool,
    /// The users that this generator drives.
    pub range: UserRange,
    /// The queue of an open loop; `None` in a closed loop.
    pub queue: Option<Arc<Queue>>,
    /// Waiting time between transactions, in addition to the workload's own.
    pub think_time: Option<ThinkTime>,
    /// Whether the headline counts a kind, for each of the workload's kinds.
    pub headline: Vec<bool>,
    /// How often a transaction is retried.
    pub retries: u16,
    /// Time limit of a statement.
    pub timeout: Duration,
    /// Whether users report at their end how their prepared statements were planned.
    pub reports_plans: bool,
    /// Requests an early end.
    pub stop: Stop,
    /// Users who have ended.
    pub ended: AtomicU32,
    /// Users who ended because of permanent failure.
    pub gave_up: AtomicU32,
    /// Samples that ended users passed to the collector.
    pub pushed: AtomicU64,
    /// How often users had to wait because the collector did not keep up.
    pub ring_full: AtomicU64,
    /// How often users waited because the database was busy, where the engine counts that.
    pub busy_waits: AtomicU64,
    /// The final CPU times of ended user threads.
    pub ended_threads: Mutex<Vec<ThreadTimes>>,
    /// The kernel's thread numbers of the event loops.
    pub loops: Mutex<Vec<i32>>,
    /// Whether a user's thread panicked: a defect of Kelvin that invalidates all results.
    pub panicked: AtomicBool,
    /// A handle for each user's connection that cancels what it is running.
    pub cancels: Vec<Mutex<Option<Box<dyn Cancel>>>>,
}

impl Shared {
    /// The headline series of `kinds`.
    pub fn headline_of<'a>(&'a self, kinds: &'a [KindCounts]) -> impl Iterator<Item = &'a KindCounts> {
        headline_of(&self.headline, kinds)
    }

    /// Stores the CPU times of the calling thread, which is about to end.
    pub fn keep_times(&self) {
        self.ended_threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(kelvin_observe::thread_times());
    }

    /// Registers a thread as that of an event loop.
    pub fn add_loop(&self, thread: i32) {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Ends window and load at `close`.
    pub fn close(&self, close: Nanos) {
        self.close.store(close, Ordering::Release);
        self.end.fetch_min(close, Ordering::AcqRel);
    }

    /// Ends the window at `close` and the load at `end`, both of which may be in the future.
    pub fn end_at(&self, close: Nanos, end: Nanos) {
        self.close.store(close, Ordering::Release);
        self.end.fetch_min(end, Ordering::AcqRel);
    }

    /// Whether all users have ended.
    pub fn all_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) == self.range.count()
    }

    /// Waits until `deadline`, which may move, or until all users have ended.
    pub fn wait_until(&self, deadline: impl Fn() -> Nanos) {
        wait_until(&self.clock, deadline, || self.all_ended() || self.stop.is_immediate());
    }

    /// Cancels whatever the users' connections are running, from separate threads, since a request to an
    /// unreachable server blocks.
    pub fn cancel_all(self: &Arc<Self>) {
        const AT_ONCE: usize = 16;
        for offset in 0..AT_ONCE.min(self.cancels.len()) {
            let shared = Arc::clone(self);
            // Without a thread, the user's own time limit remains.
            let _ = std::thread::Builder::new().name("cancel".into()).spawn(move || {
                for handle in shared.cancels.iter().skip(offset).step_by(AT_ONCE) {
                    // Taken out of the lock, so that a user who reconnects now need not wait for the network.
                    let cancel = handle.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if let Some(cancel) = cancel {
                        let _ = cancel.cancel();
                    }
                }
            });
        }
    }

    /// The part of the time from `from` to `to` that lies in the window.
    fn within_window(&self, from: Nanos, to: Nanos) -> Nanos {
        let close = self.close.load(Ordering::Acquire);
        to.min(close).saturating_sub(from.max(self.open))
    }
}

/// What a user records about its time, as indexes of a [`Counters`]. All are in nanoseconds except `Unknown`,
/// `Unended` and `CutOff`, which are counts.
#[derive(Debug, Clone, Copy)]
pub enum UserCounter {
    /// Time in the window spent keying, thinking, reconnecting, or on transactions that failed.
    Idle,
    /// Of transactions that ended in the window: the time before it opened.
    BeforeOpen,
    /// Of transactions that ended after the window: the time before it closed.
    BeforeClose,
    /// Headline transactions whose commit was lost with its connection, or whose answer was unintelligible.
    /// They may have been committed.
    Unknown,
    /// Arrivals of the window that were taken but have no end, because the user could no longer start or
    /// retry them.
    Unended,
    /// Transactions, also of closed loops, that failed with a retryable error when the run was over.
    CutOff,
    /// When the user ended.
    EndedAt,
}

impl UserCounter {
    /// The number of counters.
    pub const LENGTH: usize = 7;
}

/// How a transaction started.
#[derive(Debug, Clone, Copy)]
struct Start {
    at: Nanos,
    /// How long after the intended start.
    late: Nanos,
    /// Whether the user was waiting at the intended start.
    awaited: bool,
}

impl Start {
    fn sample(self, end: Nanos, kind: u16, outcome: TransactionOutcome, retries: u16) -> Sample {
        let Self { at, late, awaited } = self;
        Sample { end, service: end - at, late, kind, outcome, retries, awaited }
    }
}

/// A user that is ready to run.
pub struct User {
    /// Its number among the users of all generators.
    pub number: u32,
    /// The state shared with the other users.
    pub shared: Arc<Shared>,
    /// Decides and executes its transactions.
    pub work: Box<dyn VirtualUser>,
    /// Its connection.
    pub session: Box<dyn Session>,
    /// Takes the user's samples.
    pub recorder: Recorder,
    /// The workload's counters.
    pub counters: Counters,
    /// Its [`UserCounter`]s.
    pub book: Counters,
    /// Takes the user's errors and notes.
    pub reports: Sender<UserReport>,
    /// Draws the think times.
    pub random: Random,
    /// Reports the user's end.
    pub ending: Ending,
}

/// Reports that a user has ended, even if it panicked or never ran; otherwise the driver would wait forever.
pub struct Ending(pub Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.panicked.store(true, Ordering::Release);
        }
        self.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

impl User {
    /// Runs until the load ends, the count is reached, or a stop is requested. Calls `ending` before the
    /// user's end is visible to others.
    pub fn run(mut self, ending: impl FnOnce()) {
        self.register_cancel();
        let shared = Arc::clone(&self.shared);
        let mut now = shared.clock.now();
        while now < shared.begin {
            kelvin_fiber::sleep(Duration::from_nanos(shared.begin - now));
            now = shared.clock.now();
        }
        shared.began.fetch_min(now, Ordering::AcqRel);
        // A late start of the thread counts as idle.
        self.book.add(UserCounter::Idle as usize, shared.within_window(shared.begin, now));
        let mut transactions = 0;
        let mut failures_in_a_row = 0;
        while !self.done(now, transactions) && !self.work.has_ended() {
            if shared.changes {
                now = self.rest(now);
                if self.done(now, transactions) {
                    break;
                }
            }
            let claim = shared.queue.as_ref().map(|queue| queue.claim(now));
            let arrival = match claim {
                None => None,
                Some(Claim::Serve { at, .. }) => Some(at),
                Some(Claim::End) => {
                    // Closing the session now would affect the results of others.
                    now = self.pause_until(now, shared.end.load(Ordering::Acquire));
                    break;
                }
            };
            let next = self.work.next();
            // Generating the inputs does not count as the database's time.
            let drawn = shared.clock.now();
            self.book.add(UserCounter::Idle as usize, shared.within_window(now, drawn));
            let begins = arrival.unwrap_or(drawn + next.keying.as_nanos() as u64);
            now = match claim {
                Some(claim) if shared.changes => match self.await_arrival(drawn, claim) {
                    (now, true) => now,
                    // The schedule was replaced.
                    (taken_back, false) => {
                        now = taken_back;
                        continue;
                    }
                },
                _ => self.pause_until(drawn, begins),
            };
            if self.done(now, transactions) {
                if arrival.is_some_and(|at| at < shared.close.load(Ordering::Acquire)) {
                    self.book.add(UserCounter::Unended as usize, 1);
                }
                break;
            }
            let start = Start {
                at: now,
                late: arrival.map_or(0, |at| now.saturating_sub(at)),
                awaited: arrival.is_some_and(|at| drawn <= at),
            };
            let (end, good) = self.transaction(next.kind, start);
            now = end;
            transactions += 1;
            failures_in_a_row = if good { 0 } else { failures_in_a_row + 1 };
            if failures_in_a_row >= MOST_FAILURES_IN_A_ROW {
                self.give_up(&format!("after {failures_in_a_row} consecutive failures"));
                break;
            }
            if self.reached_count(transactions) || self.work.has_ended() {
                // The window ends with the last transaction, so later time is not measured.
                break;
            }
            if self.session.is_broken() {
                let lost_at = now;
                let connected;
                (now, connected) = self.reconnect(lost_at);
                if !connected && !self.done(now, transactions) {
                    self.give_up(&format!(
                        "after {:.0} s without a connection",
                        (now - lost_at) as f64 / 1e9
                    ));
                    break;
                }
            } else if !good {
                now = self.pause(now, Duration::from_millis(u64::from(failures_in_a_row)));
            }
            let thinking = next.thinking + self.think();
            now = self.pause(now, thinking);
        }
        self.book.add(UserCounter::EndedAt as usize, now);
        shared.pushed.fetch_add(self.recorder.pushed(), Ordering::AcqRel);
        shared.ring_full.fetch_add(self.recorder.full(), Ordering::AcqRel);
        shared.busy_waits.fetch_add(self.session.busy_waits(), Ordering::AcqRel);
        self.report_plans();
        ending();
        drop(self.ending);
    }

    /// Reports how the prepared statements were planned. Not in a run by count, whose window is still open
    /// for other users, and not when an immediate stop is requested.
    fn report_plans(&mut self) {
        let shared = &self.shared;
        let is_asked = shared.reports_plans && self.number - shared.range.first() < USERS_WITH_PLANS;
        // A user who gives up may end within the window.
        let has_closed = shared.clock.now() >= shared.close.load(Ordering::Acquire);
        let is_over = has_closed && shared.transactions.is_none() && !shared.stop.is_immediate();
        if is_asked && is_over && !self.session.is_broken() && !self.session.in_transaction() {
            // The run is valid without them.
            if let Ok(plans) = self.session.prepared_plans() {
                let _ = self.reports.send(UserReport::Plans(plans));
            }
        }
    }

    fn think(&mut self) -> Duration {
        self.shared.think_time.map_or(Duration::ZERO, |think_time| think_time.draw(&mut self.random))
    }

    /// Whether the user has to end. A requested stop moves the end of window and load, so that users and
    /// collector stop at the same time.
    fn done(&self, now: Nanos, transactions: u64) -> bool {
        now >= self.shared.end.load(Ordering::Acquire) || self.reached_count(transactions)
    }

    /// Whether it is too late to retry a transaction.
    fn ends(&self) -> bool {
        self.shared.stop.requested() || self.done(self.shared.clock.now(), 0)
    }

    /// Whether the user has executed all its transactions, in a run that ends by count.
    fn reached_count(&self, transactions: u64) -> bool {
        self.shared.transactions.is_some_and(|limit| transactions >= limit)
    }

    /// Executes one transaction with its retries. Returns when it ended, and whether it succeeded.
    fn transaction(&mut self, kind: u16, start: Start) -> (Nanos, bool) {
        let mut retries = 0;
        loop {
            match self.work.execute(&mut *self.session) {
                Ok(outcome) => return (self.good(kind, start, retries, outcome), true),
                Err(error) => {
                    let lost = self.session.is_broken() || error.class() == ErrorClass::ConnectionLost;
                    let retryable = !lost && error.class().is_retryable() && retries < self.shared.retries;
                    let mut cut_off = retryable && self.ends();
                    let again = retryable && !cut_off && self.roll_back().is_ok();
                    // Only the server's answer proves that nothing was committed. An unintelligible answer
                    // may have been a success.
                    let unknown = lost || error.code().0.is_empty();
                    if unknown && self.shared.headline[usize::from(kind)] {
                        self.book.add(UserCounter::Unknown as usize, 1);
                    }
                    let end = self.shared.clock.now();
                    // Sending fails only if the driver itself has failed.
                    let _ = self.reports.send(UserReport::Failure {
                        at: end,
                        kind: Some(kind),
                        retried: again || cut_off,
                        error,
                    });
                    if again {
                        retries += 1;
                        self.step_aside(retries);
                        cut_off = self.ends();
                        if !cut_off {
                            continue;
                        }
                    } else if !lost {
                        // A failing rollback breaks the session, which is checked next.
                        let _ = self.roll_back();
                    }
                    if cut_off {
                        self.cut_off(start);
                    } else {
                        self.recorder.record(start.sample(end, kind, TransactionOutcome::Failed, retries));
                    }
                    self.book.add(UserCounter::Idle as usize, self.shared.within_window(start.at, end));
                    return (end, false);
                }
            }
        }
    }

    /// Counts a transaction that is not retried because the run ends. It is neither completed nor failed.
    fn cut_off(&self, start: Start) {
        self.book.add(UserCounter::CutOff as usize, 1);
        let intended = start.at.saturating_sub(start.late);
        let window = self.shared.open..self.shared.close.load(Ordering::Acquire);
        if self.shared.queue.is_some() && window.contains(&intended) {
            self.book.add(UserCounter::Unended as usize, 1);
        }
    }

    fn good(&mut self, kind: u16, start: Start, retries: u16, outcome: TransactionOutcome) -> Nanos {
        let end = self.shared.clock.now();
        self.recorder.record(start.sample(end, kind, outcome, retries));
        for statement in self.work.statement_times() {
            let (end, took) = (statement.end, statement.took);
            self.recorder.record(Sample::closed(end, took, statement.kind, TransactionOutcome::Committed, 0));
        }
        let start = start.at;
        let close = self.shared.close.load(Ordering::Acquire);
        if end >= close {
            self.book.add(UserCounter::BeforeClose as usize, self.shared.within_window(start, end));
        } else if end >= self.shared.open {
            self.work.count(&self.counters);
            if start < self.shared.open {
                self.book.add(UserCounter::BeforeOpen as usize, self.shared.open - start);
            }
        }
        end
    }

    fn roll_back(&mut self) -> kelvin_database::Result<()> {
        if self.session.in_transaction() {
            self.session.control(TransactionControl::Rollback)?;
        }
        Ok(())
    }

    fn give_up(&self, why: &str) {
        self.shared.gave_up.fetch_add(1, Ordering::AcqRel);
        self.note(format!("user {} gave up {why}", self.number + 1));
    }

    /// Waits before a retry, longer each time and differently for each user, so that colliding transactions
    /// do not collide again. The first retry is immediate. The wait is part of the service time.
    fn step_aside(&self, retries: u16) {
        if retries > 1 {
            let spread = 250 + u64::from(self.number).wrapping_mul(0x9e37_79b9) % 500;
            kelvin_fiber::sleep(Duration::from_micros(spread << retries.min(8)));
        }
    }

    /// Reconnects, with growing pauses, until it succeeds, the run ends, or the outage is too long. Returns
    /// the time, and whether there is a connection.
    fn reconnect(&mut self, lost_at: Nanos) -> (Nanos, bool) {
        self.note(format!("user {} lost its connection", self.number + 1));
        let mut pause = FIRST_PAUSE;
        let mut now = lost_at;
        while !self.done(now, 0) && now - lost_at < LONGEST_OUTAGE.as_nanos() as u64 {
            now = self.pause(now, pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            let connected = connect(&*self.shared.engine, self.shared.timeout).and_then(|mut session| {
                self.work.prepare(&mut *session)?;
                Ok(session)
            });
            let tried = self.shared.clock.now();
            self.book.add(UserCounter::Idle as usize, self.shared.within_window(now, tried));
            now = tried;
            match connected {
                Ok(session) => {
                    self.session = session;
                    self.register_cancel();
                    let seconds = (now - lost_at) as f64 / 1e9;
                    self.note(format!("user {} reconnected after {seconds:.1} s", self.number + 1));
                    return (now, true);
                }
                Err(error) => {
                    let _ =
                        self.reports.send(UserReport::Failure { at: now, kind: None, retried: true, error });
                }
            }
        }
        (now, false)
    }

    /// Waits, and counts the wait as idle time. Ends early when the load ends.
    fn pause(&mut self, from: Nanos, length: Duration) -> Nanos {
        self.pause_until(from, from.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)))
    }

    fn pause_until(&mut self, from: Nanos, until: Nanos) -> Nanos {
        if until <= from {
            return from;
        }
        let mut now = from;
        while now < until && !self.done(now, 0) {
            let wait = until.min(self.shared.end.load(Ordering::Acquire)).saturating_sub(now);
            kelvin_fiber::park(Duration::from_nanos(wait.max(1000)));
            now = self.shared.clock.now();
        }
        self.book.add(UserCounter::Idle as usize, self.shared.within_window(from, now));
        now
    }

    /// Waits for a claimed arrival, or until the load is over. Returns the time, and whether the arrival is still
    /// this user's: false if a change of the rate has taken it back.
    fn await_arrival(&mut self, from: Nanos, claim: Claim) -> (Nanos, bool) {
        let (Some(queue), Claim::Serve { at, changes }) = (self.shared.queue.clone(), claim) else {
            return (from, false);
        };
        let mut now = from;
        while now < at && !self.done(now, 0) && queue.confirms(at, changes, now) {
            let wait = at.min(self.shared.end.load(Ordering::Acquire)).saturating_sub(now);
            kelvin_fiber::park(Duration::from_nanos(wait.max(1000)));
            now = self.shared.clock.now();
        }
        self.book.add(UserCounter::Idle as usize, self.shared.within_window(from, now));
        (now, queue.confirms(at, changes, now))
    }

    /// Waits while the timeline wants fewer users than this user's number.
    fn rest(&mut self, from: Nanos) -> Nanos {
        let mut now = from;
        while self.number >= self.shared.at_work.load(Ordering::Acquire) && !self.done(now, 0) {
            let wait = self.shared.end.load(Ordering::Acquire).saturating_sub(now);
            kelvin_fiber::park(Duration::from_nanos(wait.max(1000)));
            now = self.shared.clock.now();
        }
        self.book.add(UserCounter::Idle as usize, self.shared.within_window(from, now));
        now
    }

    fn note(&self, text: String) {
        let _ = self.reports.send(UserReport::Note { at: self.shared.clock.now(), text });
    }

    fn register_cancel(&self) {
        if let Some(place) = self.shared.cancels.get((self.number - self.shared.range.first()) as usize) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.session.cancel());
        }
    }
}
