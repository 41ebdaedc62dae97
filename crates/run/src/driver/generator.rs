//! The load generator: drives some of a point's users on this host. It connects them, starts them at a given
//! time, drains their samples into seconds, and finally reports its counts and its use of the host. The point
//! merges the seconds of all generators and compares the result with the server's counters.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

use kelvin_database::{Engine, Error, Session};
use kelvin_measure::event::{KindCounts, SeriesRole};
use kelvin_measure::{
    Collector, Counters, Event, LogFormat, Logged, Nanos, Random, Recorder, Sink, SourceId, TransactionLog,
    recorder, second_from,
};
use kelvin_users::arrivals::{Arrivals, Process, Queue};
use kelvin_users::{
    Ending, ResolvedThreading, Schedule, Shared, Tally, User, UserCounter, UserPool, UserReport,
};
use kelvin_workload::{TransactionKind, UserRange, VirtualUser, Workload};

use super::client_cpu::ClientCpuReader;
use super::generator_report::{GeneratorReport, ended_at, sums};
use super::load_times::LoadTimes;
use super::{MOST_THREADS, Point, THINKING, open_files};
use crate::control::Change;
use crate::error::RunError;
use crate::heartbeat::Heartbeat;
use crate::series::series;
use crate::spec::Threading;

/// A user with its connection, before its thread exists.
struct ConnectedUser {
    user: Box<dyn VirtualUser>,
    session: Box<dyn Session>,
}

/// A generator with connected users that wait for the start.
pub(super) struct ArmedGenerator<'a> {
    point: &'a Point<'a>,
    source: SourceId,
    engine: Arc<dyn Engine>,
    workload: Arc<dyn Workload>,
    range: UserRange,
    connected: Vec<ConnectedUser>,
}

impl<'a> ArmedGenerator<'a> {
    /// Opens every user's connection, one after another.
    pub(super) fn connect(
        point: &'a Point<'a>,
        (source, range): (SourceId, UserRange),
        engine: &Arc<dyn Engine>,
        workload: &Arc<dyn Workload>,
        sink: &mut dyn Sink,
    ) -> Result<Self, RunError> {
        open_files::allow(range.count())?;
        let mut connected = Vec::with_capacity(range.count() as usize);
        let mut reported = point.clock.now();
        let users = workload.users(range, point.load.seed, point.clock);
        for (number, mut user) in (u64::from(range.first()) + 1..).zip(users) {
            if point.stop.requested() {
                return Err(RunError::Interrupted);
            }
            let of =
                |error: Error| error.context(&format!("user {number} of {} cannot connect", range.total()));
            let mut session = kelvin_users::connect(&**engine, point.load.timeout.duration()).map_err(of)?;
            user.prepare(&mut *session).map_err(of)?;
            connected.push(ConnectedUser { user, session });
            if point.clock.now() - reported > 500_000_000 {
                reported = point.clock.now();
                let (done, total) = (connected.len() as u64, u64::from(range.count()));
                sink.event(&Event::Progress { what: "users connected".into(), done, total, rows: 0 })?;
            }
        }
        let (engine, workload) = (Arc::clone(engine), Arc::clone(workload));
        Ok(Self { point, source, engine, workload, range, connected })
    }

    /// Starts the users' threads, which wait for the start time themselves.
    pub(super) fn start(self, times: LoadTimes, sink: &mut dyn Sink) -> Result<Generator, RunError> {
        let Self { point, source, engine, workload, range, connected } = self;
        let (load, count) = (point.load, range.count());
        let LoadTimes { begin, open, close, end } = times;
        let arrivals =
            point.rate.map(|rate| Arrivals::new(load.seed, load.arrivals, rate, begin).of_users(range));
        let limit = range.share_of(load.queue);
        let queue = arrivals
            .clone()
            .map(|arrivals| Arc::new(Queue::new(arrivals, limit, end).with_window(open, close)));
        let share = f64::from(count) / f64::from(range.total().max(1));
        let schedule = point.rate.zip(queue.clone()).zip(arrivals).map(|((rate, queue), arrivals)| {
            Schedule::new(point.index, rate * share, (begin, open), queue, arrivals)
        });
        let kinds = workload.kinds();
        let shared = Arc::new(shared_state(point, &engine, kinds, range, times, queue));
        // With timed statements a transaction has several samples.
        let samples = if kinds.iter().any(|kind| kind.statement_of.is_some()) { 8 } else { 1 };
        let capacity = (1_000_000 / count.max(1) as usize).clamp(64, 8192) * samples;
        let (recorders, rings): (Vec<Recorder>, Vec<_>) = (0..count).map(|_| recorder(capacity)).unzip();
        let (reporter, reports) = mpsc::channel();
        let roles: Vec<SeriesRole> =
            series(kinds, point.rate.is_some()).into_iter().map(|series| series.role).collect();
        let log = transaction_log(point, range, &roles)?;
        let planned = (close != u64::MAX).then_some(close);
        let collector = Collector::new(point.index, roles, rings, begin, open, planned).logging(log);
        let heartbeat = Heartbeat::start(point.clock.clone())?;
        let cpu = ClientCpuReader::start(Arc::clone(&shared))?;
        let counters: Vec<_> = (0..count).map(|_| Counters::new(workload.counters().len())).collect();
        let books: Vec<_> = (0..count).map(|_| Counters::new(UserCounter::LENGTH)).collect();
        let mut users = Vec::with_capacity(connected.len());
        for (index, (ConnectedUser { user, session }, recorder)) in
            connected.into_iter().zip(recorders).enumerate()
        {
            let number = range.first() + index as u32;
            users.push(User {
                number,
                shared: Arc::clone(&shared),
                work: user,
                session,
                recorder,
                counters: counters[index].clone(),
                book: books[index].clone(),
                reports: reporter.clone(),
                random: Random::part(load.seed, THINKING, u64::from(number)),
                ending: Ending(Arc::clone(&shared)),
            });
        }
        let threading = threading(point, count, &*engine, &*workload);
        let text = format!("{}{}", point.label(), threading.describe(count));
        let note = Event::Note { point: point.index, second: second_from(open, begin), text };
        sink.event_from(source, &note)?;
        let users = UserPool::start(users, threading, &shared, point.stop).map_err(|error| {
            RunError::Start(format!("cannot start a thread for the virtual users: {error}"))
        })?;
        let tally = Tally::new(point.index, open);
        let point = point.index;
        Ok(Generator {
            point,
            source,
            shared,
            users,
            schedule,
            collector,
            tally,
            reports,
            counters,
            books,
            cpu,
            heartbeat,
            busiest: 0,
            seed: load.seed,
            process: load.arrivals,
            rates: AtomicU64::new(0),
        })
    }
}

/// The state that the users of a range share.
fn shared_state(
    point: &Point<'_>,
    engine: &Arc<dyn Engine>,
    kinds: &[TransactionKind],
    range: UserRange,
    times: LoadTimes,
    queue: Option<Arc<Queue>>,
) -> Shared {
    let load = point.load;
    Shared {
        engine: Arc::clone(engine),
        clock: point.clock.clone(),
        begin: times.begin,
        began: AtomicU64::new(u64::MAX),
        open: times.open,
        close: AtomicU64::new(times.close),
        end: AtomicU64::new(times.end),
        transactions: load.transactions.map(std::num::NonZeroU64::get),
        at_work: AtomicU32::new(users_at_first(point)),
        changes: point.control.is_some(),
        range,
        queue,
        think_time: load.think_time,
        headline: kinds.iter().map(|kind| kind.headline).collect(),
        ended_threads: Mutex::new(Vec::new()),
        loops: Mutex::new(Vec::new()),
        retries: load.retries,
        timeout: load.timeout.duration(),
        reports_plans: point.observed,
        stop: point.stop.clone(),
        ended: AtomicU32::new(0),
        gave_up: AtomicU32::new(0),
        pushed: AtomicU64::new(0),
        ring_full: AtomicU64::new(0),
        busy_waits: AtomicU64::new(0),
        panicked: AtomicBool::new(false),
        cancels: (0..range.count()).map(|_| Mutex::new(None)).collect(),
    }
}

/// How many users are active until a timeline changes it.
fn users_at_first(point: &Point<'_>) -> u32 {
    let asked = point.load.points().first().map(|&(users, _)| users);
    asked.filter(|_| point.control.is_some()).unwrap_or(u32::MAX)
}

/// How users are run: as requested, otherwise the cheaper way. An embedded database blocks the thread that
/// calls it.
fn threading(
    point: &Point<'_>,
    users: u32,
    engine: &dyn Engine,
    workload: &dyn Workload,
) -> ResolvedThreading {
    let loops = match point.load.users_on {
        Threading::Threads => false,
        Threading::Loops => true,
        Threading::Auto => point.most_users > MOST_THREADS,
    };
    if loops && engine.capabilities().waits_in_fibers && !workload.blocks_threads() {
        ResolvedThreading::loops_for(users)
    } else {
        ResolvedThreading::Threads
    }
}

/// The log of every transaction, if requested.
fn transaction_log(
    point: &Point<'_>,
    range: UserRange,
    roles: &[SeriesRole],
) -> Result<Option<TransactionLog>, RunError> {
    let Some(file) = &point.load.transaction_log else { return Ok(None) };
    let format = if file.as_pgbench {
        LogFormat::Pgbench { rate: point.rate.is_some(), retries: point.load.retries > 0 }
    } else {
        LogFormat::Csv
    };
    let transactions = roles.iter().map(|role| *role == SeriesRole::Transaction).collect();
    let moment = (point.clock.now(), jiff::Timestamp::now().as_nanosecond());
    let opened = std::fs::OpenOptions::new().append(true).open(&file.path);
    let users = range.first()..range.first() + range.count();
    let log = opened
        .and_then(|opened| TransactionLog::start(opened, format, point.index, (users, transactions), moment));
    let refused = |error| RunError::Start(format!("cannot write {}: {error}", file.path.display()));
    log.map(Some).map_err(refused)
}

/// A running generator.
pub(super) struct Generator {
    point: u32,
    source: SourceId,
    shared: Arc<Shared>,
    users: UserPool,
    schedule: Option<Schedule>,
    collector: Collector,
    tally: Tally,
    reports: Receiver<UserReport>,
    counters: Vec<Counters>,
    books: Vec<Counters>,
    cpu: ClientCpuReader,
    heartbeat: Heartbeat,
    /// Headline transactions of the busiest second so far.
    busiest: u64,
    /// The seed of the arrivals after a change of the rate, with the number of changes.
    seed: u64,
    process: Process,
    rates: AtomicU64,
}

impl Generator {
    /// Emits the complete seconds.
    pub(super) fn emit(&mut self, now: Nanos, sink: &mut dyn Sink) -> Result<(), RunError> {
        for second in self.collector.drain(now) {
            self.note_headline(&second.kinds);
            sink.event_from(self.source, &Event::Second(second))?;
        }
        self.tally.take(&self.reports);
        if let Some(schedule) = &mut self.schedule {
            for event in schedule.complete(now, self.shared.close.load(Ordering::Acquire)) {
                sink.event_from(self.source, &event)?;
            }
        }
        for event in self.tally.complete(self.collector.second_of(now)) {
            sink.event_from(self.source, &event)?;
        }
        Ok(())
    }

    fn note_headline(&mut self, kinds: &[KindCounts]) {
        let good = self.shared.headline_of(kinds).map(KindCounts::good).sum();
        self.busiest = self.busiest.max(good);
    }

    /// Drains the users' samples so that no ring overflows, without emitting anything.
    pub(super) fn take_samples(&mut self) {
        self.collector.take_samples();
    }

    /// The sums of the users' audit counters so far.
    pub(super) fn counters(&self) -> Vec<u64> {
        sums(&self.counters)
    }

    /// Whether all users have ended.
    pub(super) fn all_ended(&self) -> bool {
        self.shared.all_ended()
    }

    /// Whether a user's thread panicked.
    pub(super) fn panicked(&self) -> bool {
        self.shared.panicked.load(Ordering::Acquire)
    }

    /// When a window that was to close at `close` can be closed: in a closed loop at `close` itself.
    pub(super) fn closes_at(&self, close: Nanos) -> Nanos {
        self.shared.queue.as_ref().map_or(close, |queue| queue.close(close))
    }

    /// Ends window and load at `close`, which must not be in the future.
    pub(super) fn close(&mut self, close: Nanos) {
        self.collector.close_window(close);
        self.shared.close(close);
    }

    /// Ends window and load at these times, the first of which may be in the future.
    pub(super) fn end_at(&mut self, times: LoadTimes) {
        self.collector.close_window(times.close);
        if let Some(queue) = &self.shared.queue {
            queue.close_window(times.close, times.end);
        }
        self.shared.end_at(times.close, times.end);
        self.users.wake();
    }

    /// Applies a change of the load from `now` on.
    pub(super) fn change(&self, change: Change, now: Nanos) {
        match (change, &self.shared.queue) {
            (Change::Rate(rate), Some(queue)) => {
                let number = self.rates.fetch_add(1, Ordering::Relaxed) + 1;
                let users = self.shared.range;
                queue.change(now, |begin| {
                    Arrivals::changed(self.seed, self.process, rate, begin, number).of_users(users)
                });
            }
            (Change::Users(users), _) => self.shared.at_work.store(users, Ordering::Release),
            _ => return,
        }
        self.users.wake();
    }

    /// Ends the load when its seconds can no longer be delivered.
    pub(super) fn abandon(&self, now: Nanos) {
        self.shared.close(now);
    }

    /// Whether arrivals of the window still wait for a user at `now`, while the load continues and users are
    /// active.
    pub(super) fn is_followed(&self, now: Nanos) -> bool {
        let goes_on = !self.all_ended() && now < self.shared.end.load(Ordering::Acquire);
        goes_on && self.shared.queue.as_ref().is_some_and(|queue| queue.window(now).waiting > 0)
    }

    /// Whether the load continues after the window, as in an open loop.
    pub(super) fn is_open_loop(&self) -> bool {
        self.shared.queue.is_some()
    }

    /// Ends the load of an open loop: users begin no more transactions.
    pub(super) fn end_arrivals(&self, now: Nanos) {
        if let Some(queue) = &self.shared.queue {
            self.shared.end.fetch_min(queue.end(now), Ordering::AcqRel);
        }
    }

    /// Wakes sleeping users to check whether the window has closed.
    pub(super) fn wake(&self) {
        self.cpu.wake();
        self.users.wake();
    }

    /// Cancels whatever the users' connections are running.
    pub(super) fn cancel_all(&self) {
        self.shared.cancel_all();
    }

    /// Emits the remaining seconds and returns the report. `ended` means that all users have ended; with
    /// `hurry` it does not wait for a reading of the CPU time.
    pub(super) fn finish(
        mut self,
        ended: bool,
        hurry: bool,
        sink: &mut dyn Sink,
    ) -> Result<GeneratorReport, RunError> {
        let source = self.source;
        if let Some(log) = self.collector.take_log() {
            let text = match log.finish() {
                Ok(Logged { written, left_out: 0 }) => format!("transaction log: {written} transactions"),
                Ok(Logged { written, left_out }) => format!(
                    "transaction log: {written} transactions; {left_out} more are missing because the disk \
                    was too slow"
                ),
                Err(error) => format!("the transaction log is incomplete: {error}"),
            };
            sink.event_from(source, &Event::Note { point: self.point, second: 0, text })?;
        }
        let Self { shared, users, mut schedule, collector, mut tally, reports, .. } = self;
        let gaps = self.heartbeat.finish();
        let broken_loop = if ended { users.join() } else { None };
        let (rest, totals) = collector.finish();
        let mut busiest = self.busiest;
        for second in rest {
            busiest = busiest.max(shared.headline_of(&second.kinds).map(KindCounts::good).sum());
            sink.event_from(source, &Event::Second(second))?;
        }
        tally.take(&reports);
        let close = shared.close.load(Ordering::Acquire);
        if let Some(schedule) = &mut schedule {
            for event in schedule.complete(close, close) {
                sink.event_from(source, &event)?;
            }
        }
        for event in tally.complete(i64::MAX).into_iter().chain(tally.prepared_statements()) {
            sink.event_from(source, &event)?;
        }
        let user_sums = sums(&self.books);
        let ended_threads = shared.ended_threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let loops = shared.loops.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let count = shared.range.count();
        let began = shared.began.load(Ordering::Acquire);
        Ok(GeneratorReport {
            source,
            host: None,
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as f64,
            begin: shared.begin,
            began: (began != u64::MAX).then_some(began),
            at_work: count.saturating_sub(shared.ended.load(Ordering::Acquire)),
            gave_up: shared.gave_up.load(Ordering::Acquire),
            panicked: shared.panicked.load(Ordering::Acquire),
            broken_loop,
            open: shared.open,
            close: (close != u64::MAX).then_some(close),
            pushed: shared.pushed.load(Ordering::Acquire),
            ring_full: shared.ring_full.load(Ordering::Acquire),
            busy_waits: shared.busy_waits.load(Ordering::Acquire),
            ended_at: self.books.iter().map(ended_at).collect(),
            arrivals: schedule
                .map(|schedule| schedule.window(close, user_sums[UserCounter::Unended as usize])),
            user_sums,
            counters: sums(&self.counters),
            errors: tally.errors(),
            final_errors: tally.final_errors(),
            last_error: tally.last_message(),
            notes_left_out: tally.notes_left_out(),
            cpu: self.cpu.finish(hurry, &ended_threads),
            loops,
            gaps,
            busiest,
            totals,
        })
    }
}
