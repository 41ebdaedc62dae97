//! The timed driver: one point of a run, that is, one number of users.
//!
//! Users connect in one sequence before the clock starts, ramp up, are measured, and end the transaction they
//! are in. The thread that calls [`Point::run`] drains their samples, emits the events, closes the window,
//! and then the books.

mod accounting;
mod generator;
mod open_files;
mod schedule;
mod tally;
mod user;
mod user_pool;
mod window_edges;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelvin_database::{Engine, Error, Session};
use kelvin_measure::event::{AuditLine, KindCounts, Phase, SeriesRole, Window};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::{
    Clock, Collector, Counters, Event, LogFormat, Logged, Nanos, Random, Recorder, Totals, TransactionLog,
    recorder, second_from,
};
use kelvin_workload::{Stop, UserRange, VirtualUser, Workload};

use crate::arrivals::{Arrivals, Queue};
use crate::heartbeat::Heartbeat;
use crate::run::{RunError, Sink};
use crate::series::series;
use crate::spec::{Load, Threading};
use schedule::Schedule;
use tally::{Tally, UserReport};
use user::{Ending, Shared, User, UserCounter};
use user_pool::UserPool;
use window_edges::WindowEdges;

/// How often the samples are drained. Small against a second, large against the cost of a wake-up.
const TICK: Duration = Duration::from_millis(50);

/// Time between two looks at whether everything of the window has begun.
const FOLLOW_TICK: Duration = Duration::from_millis(2);

/// The users' first statement comes this long after the last connection, so that all are waiting by then.
const HEAD_START: Duration = Duration::from_millis(50);

/// And this much longer for each user, whose thread has to be made first.
const HEAD_START_EACH: Duration = Duration::from_micros(100);

/// How much longer than a statement's time-out a user may take to end before its statement is interrupted.
const PATIENCE: Duration = Duration::from_secs(5);

/// Up to so many users a thread each is cheaper than event loops, or as cheap (`cargo xtask bench users`).
const MOST_THREADS: u32 = 3;

/// Domain of [`Random::part`] for think times: "thinking" in ASCII.
const THINKING: u64 = 0x7468_696e_6b69_6e67;

/// What a point measured.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// The window and its headline counts.
    pub window: Window,
    /// Counts and histograms.
    pub totals: Totals,
    /// The self-audit.
    pub audit: Vec<AuditLine>,
    /// What was checked.
    pub invariants: Vec<Invariant>,
    /// Errors counted, also those of transactions that were repeated.
    pub errors: u64,
    /// The last error of a user, when all of them gave up.
    pub gave_up: Option<String>,
    /// Whether somebody asked to stop.
    pub interrupted: bool,
}

impl PointResult {
    /// Good transactions of all types a second, over the measured window.
    pub fn throughput(&self) -> f64 {
        let good: u64 = self.totals.transactions(&self.totals.measured).map(KindCounts::good).sum();
        if self.window.elapsed == 0 { 0.0 } else { good as f64 * 1e9 / self.window.elapsed as f64 }
    }

    /// Whether every invariant holds; a point in which one does not is void.
    pub fn holds(&self) -> bool {
        self.invariants.iter().all(|invariant| invariant.holds)
    }
}

/// One point, ready to run.
#[derive(Debug)]
pub struct Point<'a> {
    /// Its index in the run.
    pub index: u32,
    /// Virtual users.
    pub users: u32,
    /// The most users of any point of the run: all of them run on the same ground, or their curve would have a
    /// step of ours in it.
    pub most_users: u32,
    /// Arrivals a second of an open loop; none for a closed one.
    pub rate: Option<f64>,
    /// Ramp-up, duration, seed and limits.
    pub load: &'a Load,
    /// Whether other work on the machine is taken for good, also where it keeps this process from running.
    pub accept_noise: bool,
    /// The run's clock.
    pub clock: &'a Clock,
    /// Asks for an early end.
    pub stop: &'a Stop,
}

/// A user with its connection, before its thread.
struct Connected {
    user: Box<dyn VirtualUser>,
    session: Box<dyn Session>,
}

/// A point under way.
struct Underway {
    shared: Arc<Shared>,
    crew: UserPool,
    schedule: Option<Schedule>,
    collector: Collector,
    tally: Tally,
    reports: Receiver<UserReport>,
    counters: Vec<Counters>,
    books: Vec<Counters>,
    edges: WindowEdges,
    heartbeat: Heartbeat,
    /// Headline transactions of the busiest second so far.
    busiest: u64,
}

impl Underway {
    /// Hands out what is complete.
    fn emit(&mut self, now: Nanos, sink: &mut dyn Sink) -> Result<(), RunError> {
        for second in self.collector.drain(now) {
            let good = self.shared.headline_of(&second.kinds).map(KindCounts::good).sum();
            self.busiest = self.busiest.max(good);
            sink.event(&Event::Second(second))?;
        }
        self.tally.take(&self.reports);
        if let Some(schedule) = &mut self.schedule {
            for event in schedule.complete(now, self.shared.close.load(Ordering::Acquire)) {
                sink.event(&event)?;
            }
        }
        for event in self.tally.complete(self.collector.second_of(now)) {
            sink.event(&event)?;
        }
        Ok(())
    }
}

/// How long, at most, an open loop goes on behind its window so that what waited for a user then can begin: a tenth of the
/// window, from one second to thirty. A queue that takes longer to serve was growing, and what is left of it has no answer.
pub fn overrun_limit(window: Duration) -> Duration {
    (window / 10).clamp(Duration::from_secs(1), Duration::from_secs(30))
}

impl Point<'_> {
    /// Connects, loads, measures. An error means that the point could not start or its events could not be
    /// kept; what goes wrong with the database while it runs is part of the result.
    pub fn run(
        &self,
        engine: &Arc<dyn Engine>,
        workload: &Arc<dyn Workload>,
        sink: &mut dyn Sink,
    ) -> Result<PointResult, RunError> {
        let mut monitor = engine.connect()?;
        monitor.set_timeout(Some(self.load.timeout.duration()))?;
        let counts = workload.counts_on_server();
        let before = if counts { Some(workload.headline_count(&mut *monitor)?) } else { None };
        open_files::allow(self.users)?;
        let connected = self.connect(engine, &**workload, sink)?;
        let mut underway = self.start(engine, workload, connected, monitor, sink)?;
        let driven = self.drive(&mut underway, sink);
        if driven.is_err() {
            // Nobody hears us any more: end the load in order, then say so.
            underway.shared.close(self.clock.now());
        }
        self.follow(&mut underway);
        let ended = self.wait_for_users(&mut underway);
        driven?;
        self.close(underway, ended, &**workload, before, sink)
    }

    /// Opens every user's connection, one after another.
    fn connect(
        &self,
        engine: &Arc<dyn Engine>,
        workload: &dyn Workload,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Connected>, RunError> {
        self.phase(sink, Phase::Connect, self.clock.now(), None)?;
        let mut connected = Vec::with_capacity(self.users as usize);
        let mut told = self.clock.now();
        for (index, mut user) in
            workload.users(UserRange::all(self.users), self.load.seed, self.clock).into_iter().enumerate()
        {
            if self.stop.requested() {
                return Err(RunError::Interrupted);
            }
            let number = index as u64 + 1;
            let of = |error: Error| error.context(&format!("user {number} of {} cannot connect", self.users));
            let mut session = engine.connect().map_err(of)?;
            session.set_timeout(Some(self.load.timeout.duration())).map_err(of)?;
            user.prepare(&mut *session).map_err(of)?;
            connected.push(Connected { user, session });
            if self.clock.now() - told > 500_000_000 {
                told = self.clock.now();
                let (done, total) = (number, u64::from(self.users));
                sink.event(&Event::Progress { what: "users connected".into(), done, total, rows: 0 })?;
            }
        }
        Ok(connected)
    }

    /// Starts the clock and the users' threads.
    fn start(
        &self,
        engine: &Arc<dyn Engine>,
        workload: &Arc<dyn Workload>,
        connected: Vec<Connected>,
        monitor: Box<dyn Session>,
        sink: &mut dyn Sink,
    ) -> Result<Underway, RunError> {
        let by_count = self.load.transactions.is_some();
        let begin = self.clock.now() + (HEAD_START + HEAD_START_EACH * self.users).as_nanos() as u64;
        let open = begin + if by_count { 0 } else { self.load.ramp_up.nanos() };
        let close = (!by_count).then(|| open + self.load.duration.nanos());
        let arrivals = self.rate.map(|rate| Arrivals::new(self.load.seed, self.load.arrivals, rate, begin));
        let close_at = close.unwrap_or(u64::MAX);
        let end = if self.rate.is_some() {
            close_at.saturating_add(overrun_limit(self.load.duration.duration()).as_nanos() as u64)
        } else {
            close_at
        };
        let queue = arrivals
            .clone()
            .map(|arrivals| Arc::new(Queue::new(arrivals, self.load.queue, end).with_window(open, close_at)));
        let schedule =
            self.rate.zip(queue.clone()).zip(arrivals).map(|((rate, queue), arrivals)| {
                Schedule::new(self.index, rate, (begin, open), queue, arrivals)
            });
        let shared = Arc::new(Shared {
            engine: Arc::clone(engine),
            clock: self.clock.clone(),
            begin,
            open,
            close: AtomicU64::new(close_at),
            end: AtomicU64::new(end),
            transactions: self.load.transactions.map(std::num::NonZeroU64::get),
            users: self.users,
            queue,
            think_time: self.load.think_time,
            headline: workload.kinds().iter().map(|kind| kind.headline).collect(),
            ended_threads: Mutex::new(Vec::new()),
            loops: Mutex::new(Vec::new()),
            retries: self.load.retries,
            timeout: self.load.timeout.duration(),
            stop: self.stop.clone(),
            ended: AtomicU32::new(0),
            gave_up: AtomicU32::new(0),
            pushed: AtomicU64::new(0),
            ring_full: AtomicU64::new(0),
            busy_waits: AtomicU64::new(0),
            panicked: AtomicBool::new(false),
            cancels: (0..self.users).map(|_| Mutex::new(None)).collect(),
        });
        // Statements of their own are several samples a transaction.
        let samples = if workload.kinds().iter().any(|kind| kind.statement_of.is_some()) { 8 } else { 1 };
        let capacity = (1_000_000 / self.users.max(1) as usize).clamp(64, 8192) * samples;
        let (recorders, rings): (Vec<Recorder>, Vec<_>) = (0..self.users).map(|_| recorder(capacity)).unzip();
        let (reporter, reports) = mpsc::channel();
        let roles: Vec<SeriesRole> =
            series(workload.kinds(), self.rate.is_some()).into_iter().map(|series| series.role).collect();
        let log = self.log(&roles)?;
        let collector = Collector::new(self.index, roles, rings, begin, open, close).logging(log);
        let heartbeat = Heartbeat::start(self.clock.clone())?;
        let edges = WindowEdges::start(Arc::clone(&shared), Arc::clone(workload), monitor)?;
        let counters: Vec<_> = (0..self.users).map(|_| Counters::new(workload.counters().len())).collect();
        let books: Vec<_> = (0..self.users).map(|_| Counters::new(UserCounter::LENGTH)).collect();
        let mut users = Vec::with_capacity(connected.len());
        for (index, (Connected { user, session }, recorder)) in
            connected.into_iter().zip(recorders).enumerate()
        {
            users.push(User {
                index: index as u32,
                shared: Arc::clone(&shared),
                work: user,
                session,
                recorder,
                counters: counters[index].clone(),
                book: books[index].clone(),
                reports: reporter.clone(),
                random: Random::part(self.load.seed, THINKING, index as u64),
                ending: Ending(Arc::clone(&shared)),
            });
        }
        let ground = self.ground(&**engine, &**workload);
        let text = format!("{}{}", self.place(), ground.describe(self.users));
        sink.event(&Event::Note { point: self.index, second: second_from(open, begin), text })?;
        let crew = UserPool::start(users, ground, &shared, self.stop)?;
        let first = if open > begin { Phase::RampUp } else { Phase::Measure };
        let planned = if open > begin { Some(open - begin) } else { close.map(|close| close - open) };
        self.phase(sink, first, begin, planned)?;
        let tally = Tally::new(self.index, open);
        Ok(Underway {
            shared,
            crew,
            schedule,
            collector,
            tally,
            reports,
            counters,
            books,
            edges,
            heartbeat,
            busiest: 0,
        })
    }

    /// The file of every transaction, where one was asked for.
    fn log(&self, roles: &[SeriesRole]) -> Result<Option<TransactionLog>, RunError> {
        let Some(file) = &self.load.transaction_log else { return Ok(None) };
        let format = if file.as_pgbench {
            LogFormat::Pgbench { rate: self.rate.is_some(), retries: self.load.retries > 0 }
        } else {
            LogFormat::Csv
        };
        let transactions = roles.iter().map(|role| *role == SeriesRole::Transaction).collect();
        let moment = (self.clock.now(), jiff::Timestamp::now().as_nanosecond());
        let opened = std::fs::OpenOptions::new().append(true).open(&file.path);
        let log = opened.and_then(|opened| {
            TransactionLog::start(opened, format, self.index, (self.users, transactions), moment)
        });
        let refused = |error| RunError::Start(format!("cannot write {}: {error}", file.path.display()));
        log.map(Some).map_err(refused)
    }

    /// What tells the point from others of its run.
    fn place(&self) -> String {
        self.rate.map_or_else(String::new, |rate| {
            format!("{} arrivals per second, ", (rate * 100.0).round() / 100.0)
        })
    }

    /// What the users run on: as asked for, or what costs less. An embedded database blocks the thread that asks.
    fn ground(&self, engine: &dyn Engine, workload: &dyn Workload) -> user_pool::ResolvedThreading {
        let loops = match self.load.users_on {
            Threading::Threads => false,
            Threading::Loops => true,
            Threading::Auto => self.most_users > MOST_THREADS,
        };
        if loops && engine.capabilities().waits_in_fibers && !workload.blocks_threads() {
            user_pool::ResolvedThreading::loops_for(self.users)
        } else {
            user_pool::ResolvedThreading::Threads
        }
    }

    /// Drains and emits until the window has closed, by time, by count, or because somebody asked.
    fn drive(&self, underway: &mut Underway, sink: &mut dyn Sink) -> Result<(), RunError> {
        let shared = Arc::clone(&underway.shared);
        let mut measuring = shared.open == shared.begin;
        let mut counted_until = 0;
        loop {
            std::thread::sleep(TICK);
            let now = self.clock.now();
            // Read before draining: whoever has ended by then has handed over everything.
            let all_ended = shared.all_ended();
            let planned = shared.close.load(Ordering::Acquire);
            if !measuring && now >= shared.open {
                measuring = true;
                self.phase(sink, Phase::Measure, shared.open, Some(planned.saturating_sub(shared.open)))?;
            }
            let stopped = self.stop.requested() || shared.panicked.load(Ordering::Acquire);
            let closing = stopped || now >= planned || all_ended;
            // A window that closes as planned has been closed from the start, and an open loop goes on behind it.
            if closing && now < planned && self.load.transactions.is_none() || stopped {
                let close = now.min(planned);
                let close = shared.queue.as_ref().map_or(close, |queue| queue.close(close));
                underway.collector.close_window(close);
                shared.close(close);
            }
            underway.emit(now, sink)?;
            let second = underway.collector.second_of(now);
            if measuring && second > counted_until {
                counted_until = second;
                let values = accounting::sums(&underway.counters);
                sink.event(&Event::Counters { point: self.index, values })?;
            }
            if closing {
                return self.phase(sink, Phase::Stop, now.min(planned), None);
            }
        }
    }

    /// In an open loop goes on with the load until every arrival of the window has begun, or [`follow`] has passed: those
    /// that wait for a user when the window closes are among the longest, and percentiles without them would be too low.
    fn follow(&self, underway: &mut Underway) {
        let shared = Arc::clone(&underway.shared);
        let Some(queue) = &shared.queue else { return };
        let mut waited = true;
        while waited && !shared.all_ended() && !self.stop.requested() {
            let now = self.clock.now();
            if now >= shared.end.load(Ordering::Acquire) {
                break;
            }
            // One look more than it takes: what was taken a moment ago has begun by then.
            waited = queue.window(now).waiting > 0;
            underway.collector.take_samples();
            std::thread::sleep(FOLLOW_TICK);
        }
        let end = queue.end(self.clock.now());
        shared.end.fetch_min(end, Ordering::AcqRel);
    }

    /// Waits for every user to end the transaction it is in. Whoever takes too long, or everybody once
    /// somebody asked twice, is interrupted. Returns whether all have ended.
    fn wait_for_users(&self, underway: &mut Underway) -> bool {
        let shared = &underway.shared;
        underway.edges.wake();
        underway.crew.wake();
        let patience = (self.load.timeout.duration() + PATIENCE).as_nanos() as u64;
        let since = self.clock.now();
        let mut interrupted_at = None;
        while !shared.all_ended() {
            let now = self.clock.now();
            match interrupted_at {
                None if self.stop.is_immediate() || now > since + patience => {
                    interrupted_at = Some(now);
                    shared.cancel_all();
                }
                // Interrupted and still not back: the connection is beyond reach, its thread is left behind.
                Some(at) if now > at + PATIENCE.as_nanos() as u64 => return false,
                _ => {}
            }
            // A stopped run must not overflow a ring that nobody drains.
            underway.collector.take_samples();
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Closes the books: the window, the counts on both sides, the invariants, the audit.
    fn close(
        &self,
        underway: Underway,
        ended: bool,
        workload: &dyn Workload,
        before: Option<u64>,
        sink: &mut dyn Sink,
    ) -> Result<PointResult, RunError> {
        let Underway {
            shared,
            crew,
            mut schedule,
            mut collector,
            mut tally,
            reports,
            counters,
            books,
            edges,
            heartbeat,
            mut busiest,
        } = underway;
        let gaps = heartbeat.finish();
        let broken_loop = if ended { crew.join() } else { None };
        if let Some(log) = collector.take_log() {
            let text = match log.finish() {
                Ok(Logged { written, left_out: 0 }) => format!("transaction log: {written} transactions"),
                Ok(Logged { written, left_out }) => format!(
                    "transaction log: {written} transactions; {left_out} more are missing because the disk \
                    was too slow"
                ),
                Err(error) => format!("the transaction log is incomplete: {error}"),
            };
            sink.event(&Event::Note { point: self.index, second: 0, text })?;
        }
        let (rest, totals) = collector.finish();
        for second in rest {
            busiest = busiest.max(shared.headline_of(&second.kinds).map(KindCounts::good).sum());
            sink.event(&Event::Second(second))?;
        }
        tally.take(&reports);
        if let Some(schedule) = &mut schedule {
            let close = shared.close.load(Ordering::Acquire);
            for event in schedule.complete(close, close) {
                sink.event(&event)?;
            }
        }
        for event in tally.complete(i64::MAX) {
            sink.event(&event)?;
        }
        let counters = accounting::sums(&counters);
        sink.event(&Event::Counters { point: self.index, values: counters.clone() })?;
        let hurry = self.stop.is_immediate();
        let mut readings = edges.finish(hurry);
        let after = readings
            .as_mut()
            .filter(|_| !hurry && before.is_some())
            .map(|readings| accounting::final_count(&shared, workload, &mut readings.monitor));
        let closing = accounting::PointAccounting {
            point: self.index,
            users: self.users,
            shared: &shared,
            totals: &totals,
            books: &books,
            tally: &tally,
            readings: readings.as_ref(),
            schedule: schedule.as_ref(),
            broken_loop,
            gaps: &gaps,
            accept_noise: self.accept_noise,
            busiest,
        };
        let window = closing.window();
        sink.event(&Event::Window(window.clone()))?;
        let invariants = closing.invariants(&window, ended, before.zip(after));
        for invariant in &invariants {
            sink.event(&Event::Invariant { point: self.index, invariant: invariant.clone() })?;
        }
        for gap in &gaps {
            sink.event(&gap.note(self.index, shared.open))?;
        }
        for text in closing.notes() {
            sink.event(&Event::Note { point: self.index, second: 0, text })?;
        }
        let audit = workload.audit(&counters, self.users);
        // What never opened its window is not judged.
        if window.elapsed > 0 {
            sink.event(&Event::Audit { point: self.index, lines: audit.clone() })?;
        }
        let gave_up = (shared.gave_up.load(Ordering::Acquire) == self.users)
            .then(|| tally.last_message().unwrap_or("every user gave up").to_owned());
        let interrupted = self.stop.requested();
        Ok(PointResult { window, totals, audit, invariants, errors: tally.errors(), gave_up, interrupted })
    }

    fn phase(
        &self,
        sink: &mut dyn Sink,
        phase: Phase,
        at: Nanos,
        planned: Option<Nanos>,
    ) -> Result<(), RunError> {
        sink.event(&Event::Phase { point: self.index, phase, at, users: self.users, planned })?;
        Ok(())
    }
}
