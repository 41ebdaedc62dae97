//! Closing the books of a point: the window as it was, and whether the counts of everybody agree.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kelvin_database::Session;
use kelvin_measure::event::{KindCounts, SeriesRole, Window};
use kelvin_measure::invariant::{Invariant, LOAD_GENERATOR, counts_agree, littles_law};
use kelvin_measure::{Counters, Nanos, Totals};
use kelvin_observe::ThreadTimes;
use kelvin_workload::Workload;

use super::generator::Generator;
use super::schedule::Schedule;
use super::tally::Tally;
use super::user::{Shared, UserCounter};
use super::window_edges::{Edge, Readings};
use crate::heartbeat::{Gap, check_generator_ran};

/// The sums of all users' counters.
pub(super) fn sums(counters: &[Counters]) -> Vec<u64> {
    let mut sums = vec![0; counters.first().map_or(0, Counters::len)];
    for user in counters {
        user.sum_into(&mut sums);
    }
    sums
}

/// The server's count after the last user has ended. The monitor's connection may have died with a server
/// that was restarted in the run; one new connection is tried.
pub(super) fn final_count(
    shared: &Shared,
    workload: &dyn Workload,
    monitor: &mut Box<dyn Session>,
) -> kelvin_database::Result<u64> {
    if let Ok(count) = workload.headline_count(&mut **monitor) {
        return Ok(count);
    }
    *monitor = shared.connect()?;
    workload.headline_count(&mut **monitor)
}

/// How far, as a share of the window, CPU times may have been read from its edges to be those of the window.
const MOST_APART: f64 = 0.05;

/// When a user ended; 0 when it did not write that down.
fn ended_at(book: &Counters) -> Nanos {
    sums(std::slice::from_ref(book))[UserCounter::EndedAt as usize]
}

/// Everything that the last figures are made of.
pub(super) struct PointAccounting<'a> {
    pub(super) point: u32,
    pub(super) users: u32,
    pub(super) shared: &'a Shared,
    pub(super) totals: &'a Totals,
    pub(super) books: &'a [Counters],
    pub(super) tally: &'a Tally,
    /// None when there was no time to wait for them.
    pub(super) readings: Option<&'a Readings>,
    /// The arrivals of an open loop.
    pub(super) schedule: Option<&'a Schedule>,
    /// What ended an event loop early.
    pub(super) broken_loop: Option<String>,
    /// When the process was held up.
    pub(super) gaps: &'a [Gap],
    /// Whether it may be by other work on the machine.
    pub(super) accept_noise: bool,
    /// Headline transactions in the busiest second.
    pub(super) busiest: u64,
}

impl PointAccounting<'_> {
    /// The window as it was, not as it was planned.
    pub(super) fn window(&self) -> Window {
        let close = match self.shared.close.load(Ordering::Acquire) {
            // By count it closes with the last user, also with one who gave up without a connection.
            u64::MAX => self.last_user().max(self.totals.last_end).max(self.shared.open),
            close => close,
        };
        let elapsed = close.saturating_sub(self.shared.open);
        let resolved = self.unresolved(elapsed).is_none();
        let difference = |counter: fn(&Edge) -> Option<u64>| {
            let Readings { open, close, .. } = self.readings?;
            Edge::difference(open.as_ref(), close.as_ref(), counter)
        };
        let threads = self.threads();
        let delay = |threads: Vec<ThreadTimes>| threads.iter().map(|t| t.delay.as_nanos() as u64).sum();
        Window {
            point: self.point,
            users: self.users,
            elapsed,
            idle: self.idle(close),
            client_headline: self.headline(&self.totals.measured),
            server_headline: difference(|edge| edge.headline),
            server_transactions: difference(|edge| edge.transactions),
            client_cpu: difference(|edge| Some(edge.client_cpu)).filter(|_| resolved).unwrap_or(0),
            client_run_delay: threads.filter(|_| resolved).map(delay),
            schedule: self
                .schedule
                .map(|schedule| schedule.window(close, sums(self.books)[UserCounter::Unended as usize])),
        }
    }

    /// Committed headline transactions out of these series.
    fn headline(&self, kinds: &[KindCounts]) -> u64 {
        self.shared.headline_of(kinds).map(|kind| kind.committed).sum()
    }

    /// Time within the window that users did not spend in good transactions. A user who reached its count, or
    /// gave up, before the window closed is idle from then on.
    fn idle(&self, close: Nanos) -> Nanos {
        let ended_early: Nanos = self
            .books
            .iter()
            .map(|book| {
                let ended = ended_at(book);
                if ended == 0 { 0 } else { close.saturating_sub(ended.max(self.shared.open)) }
            })
            .sum();
        sums(self.books)[UserCounter::Idle as usize] + ended_early
    }

    /// When the last user ended; 0 when none has written that down.
    fn last_user(&self) -> Nanos {
        self.books.iter().map(ended_at).max().unwrap_or(0)
    }

    /// Why the CPU times are not those of the window: they are read by a thread that may come late, which in a short window
    /// is a large part of it.
    fn unresolved(&self, elapsed: Nanos) -> Option<String> {
        let Readings { open, close, .. } = self.readings?;
        let between = close.as_ref()?.read_at.saturating_sub(open.as_ref()?.read_at);
        let apart = between.abs_diff(elapsed) as f64;
        (apart > MOST_APART * elapsed as f64).then(|| {
            let ms = |nanos: Nanos| nanos as f64 / 1e6;
            format!("its CPU time was read over {:.1} ms, the window took {:.1} ms", ms(between), ms(elapsed))
        })
    }

    /// Checks what must hold. When not every user has ended, that is said, and what rests on it is not checked.
    pub(super) fn invariants(
        &self,
        window: &Window,
        ended: bool,
        server: Option<(u64, kelvin_database::Result<u64>)>,
    ) -> Vec<Invariant> {
        let at_work = self.users.saturating_sub(self.shared.ended.load(Ordering::Acquire));
        let broken = self.broken_loop.is_some();
        let panicked = self.shared.panicked.load(Ordering::Acquire);
        let evidence = match &self.broken_loop {
            Some(error) => error.clone(),
            None if panicked => "a user's thread panicked".into(),
            None => format!("{at_work} of {} are still waiting for the database", self.users),
        };
        let in_order = ended && !panicked && !broken;
        let mut invariants = vec![Invariant::new("all users ended normally", in_order, evidence)];
        if !invariants[0].holds {
            return invariants;
        }
        invariants.extend(self.totals.invariants(self.shared.pushed.load(Ordering::Acquire)));
        invariants.push(counts_agree(
            "the collector kept up with the users",
            ("waits for space in a ring buffer", self.shared.ring_full.load(Ordering::Acquire)),
            ("allowed", 0),
            0,
        ));
        let failed = self.totals.transactions(&self.totals.all).map(|kind| kind.failed).sum();
        invariants.push(counts_agree(
            "every failed transaction has an error",
            ("failed transactions", failed),
            ("errors that ended a transaction", self.tally.final_errors()),
            0,
        ));
        invariants.extend(self.littles_law(window));
        invariants.extend(self.every_arrival(window));
        invariants.extend(self.generator_ran(window));
        invariants.extend(self.generator(window));
        invariants.extend(server.map(|(before, after)| self.whole_load(before, after)));
        invariants.extend(self.window_against_server(window));
        invariants
    }

    /// What the reader of the result should know besides its figures.
    pub(super) fn notes(&self) -> Vec<String> {
        let waits = self.shared.busy_waits.load(Ordering::Acquire);
        let busy =
            (waits > 0).then(|| format!("the users waited {waits} times because the database was busy"));
        let cut_off = sums(self.books)[UserCounter::CutOff as usize];
        let cut_off = (cut_off > 0).then(|| {
            format!(
                "{cut_off} transaction{} cut off by the end during a retry and not counted as completed or \
                failed",
                if cut_off == 1 { " was" } else { "s were" }
            )
        });
        busy.into_iter().chain(cut_off).chain(self.tally.notes_left_out()).collect()
    }

    /// What this process's threads got within the window.
    fn threads(&self) -> Option<Vec<ThreadTimes>> {
        let Readings { open, close, .. } = self.readings?;
        let ended = self.shared.ended_threads.lock().unwrap_or_else(PoisonError::into_inner);
        Edge::threads(open.as_ref(), close.as_ref(), &ended)
    }

    fn generator_ran(&self, window: &Window) -> Option<Invariant> {
        (window.elapsed > 0)
            .then(|| check_generator_ran(self.gaps, self.shared.open, window.elapsed, self.accept_noise))
    }

    fn generator(&self, window: &Window) -> Option<Invariant> {
        if let Some(why) = self.unresolved(window.elapsed).filter(|_| window.elapsed > 0) {
            return Some(Invariant::not_judged(LOAD_GENERATOR, why));
        }
        let lag = self.totals.measured_of(|role| role == SeriesRole::Lag).latency;
        let service = self.totals.measured_of(|role| role == SeriesRole::Transaction).latency;
        let loops = self.shared.loops.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let threads = self.threads().unwrap_or_default();
        let known: Vec<Duration> =
            threads.iter().filter(|thread| loops.contains(&thread.id)).map(|thread| thread.run).collect();
        let generator = Generator {
            elapsed: Duration::from_nanos(window.elapsed),
            cpu: Duration::from_nanos(window.client_cpu),
            embedded: self.shared.engine.capabilities().embedded,
            loops: (known.len() == loops.len()).then_some(&known),
            lag: self.schedule.map(|_| (&lag, &service)),
        };
        (window.elapsed > 0 && window.client_cpu > 0).then(|| generator.judge())
    }

    fn littles_law(&self, window: &Window) -> Option<Invariant> {
        if window.elapsed == 0 {
            return None;
        }
        let book = sums(self.books);
        let measured = self.totals.transactions(&self.totals.measured);
        let latencies: u128 = measured.map(|kind| kind.latency.sum()).sum();
        let in_window = latencies + u128::from(book[UserCounter::BeforeClose as usize]);
        let in_window = in_window.saturating_sub(u128::from(book[UserCounter::BeforeOpen as usize]));
        let user_time = window.elapsed as f64 * f64::from(self.users);
        let busy = 1.0 - window.idle as f64 / user_time;
        Some(littles_law(self.users, busy, in_window as f64 / 1e9, window.elapsed as f64 / 1e9))
    }

    /// Each arrival of the window must have come to one end.
    fn every_arrival(&self, window: &Window) -> Option<Invariant> {
        let schedule = window.schedule?;
        let responses = self.totals.measured_of(|role| matches!(role, SeriesRole::Response { .. }));
        let ended = responses.good() + responses.failed;
        Some(counts_agree(
            "every arrival in the window ended, was refused, waited, or was cut off at its end",
            ("due", schedule.due),
            ("total of these", ended + schedule.refused + schedule.waiting + schedule.cut_off),
            0,
        ))
    }

    /// The strict comparison: from before the first user to after the last, the server must have counted
    /// exactly what the users saw committed; only a commit whose answer was lost with its connection may be
    /// in one count and not in the other.
    fn whole_load(&self, before: u64, after: kelvin_database::Result<u64>) -> Invariant {
        let name = "over the whole load, server and users counted the same commits";
        let committed = self.headline(&self.totals.all);
        match after {
            Ok(after) => counts_agree(
                name,
                ("committed by the users", committed),
                ("counted by the server", after.saturating_sub(before)),
                sums(self.books)[UserCounter::Unknown as usize],
            ),
            Err(error) => Invariant::new(
                name,
                false,
                format!("{committed} committed by the users; reading the server's count failed: {error}"),
            ),
        }
    }

    /// Between the window's edges, where transactions are in flight and the server is read a moment late.
    fn window_against_server(&self, window: &Window) -> Option<Invariant> {
        let server = window.server_headline?;
        let Readings { open, close, .. } = self.readings?;
        let late: Nanos = [open, close].into_iter().flatten().map(|edge| edge.late).sum();
        let unknown = sums(self.books)[UserCounter::Unknown as usize];
        // At twice the rate of the busiest second, since a burst may be shorter than a second; a window may be, too.
        let mean = window.client_headline as f64 * 1e9 / window.elapsed.max(1) as f64;
        let while_reading = (2.0 * mean.max(self.busiest as f64) * late as f64 / 1e9).ceil() as u64;
        Some(counts_agree(
            "in the window, server and client counts agree, allowing for transactions in flight at the edges",
            ("counted by the client", window.client_headline),
            ("counted by the server", server),
            2 * u64::from(self.users) + while_reading + unknown,
        ))
    }
}
