//! Closing the books of a point: the window as it was, and whether the counts of everybody agree.

use std::sync::atomic::Ordering;

use kelvin_database::Session;
use kelvin_measure::event::{KindCounts, Window};
use kelvin_measure::invariant::{Invariant, counts_agree, littles_law};
use kelvin_measure::{Counters, Nanos, Totals};
use kelvin_workload::Workload;

use super::edges::{Edge, Readings};
use super::tally::Tally;
use super::user::{Book, Shared};

/// Index of the transaction type that the headline figure counts.
pub(super) fn headline(workload: &dyn Workload) -> usize {
    workload.kinds().iter().position(|kind| kind.headline).unwrap_or(0)
}

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

/// Everything that the last figures are made of.
pub(super) struct Closing<'a> {
    pub(super) point: u32,
    pub(super) users: u32,
    pub(super) shared: &'a Shared,
    pub(super) totals: &'a Totals,
    pub(super) books: &'a [Counters],
    pub(super) tally: &'a Tally,
    pub(super) readings: &'a Readings,
    pub(super) headline: usize,
}

impl Closing<'_> {
    /// The window as it was, not as it was planned.
    pub(super) fn window(&self) -> Window {
        let close = match self.shared.close.load(Ordering::Acquire) {
            u64::MAX => self.totals.last_end.max(self.shared.open),
            close => close,
        };
        let Readings { open, close: closed, .. } = self.readings;
        let difference =
            |counter: fn(&Edge) -> Option<u64>| Edge::difference(open.as_ref(), closed.as_ref(), counter);
        Window {
            point: self.point,
            users: self.users,
            elapsed: close.saturating_sub(self.shared.open),
            idle: self.idle(close),
            client_headline: self.totals.measured[self.headline].committed,
            server_headline: difference(|edge| edge.headline),
            server_transactions: difference(|edge| edge.transactions),
            client_cpu: difference(|edge| Some(edge.client_cpu)).unwrap_or(0),
        }
    }

    /// Time within the window that users did not spend in good transactions. A user who reached its count, or
    /// gave up, before the window closed is idle from then on.
    fn idle(&self, close: Nanos) -> Nanos {
        let ended_early: Nanos = self
            .books
            .iter()
            .map(|book| {
                let ended = sums(std::slice::from_ref(book))[Book::EndedAt as usize];
                if ended == 0 { 0 } else { close.saturating_sub(ended.max(self.shared.open)) }
            })
            .sum();
        sums(self.books)[Book::Idle as usize] + ended_early
    }

    /// Checks what must hold. Meaningful only when every user has ended.
    pub(super) fn invariants(
        &self,
        window: &Window,
        before: u64,
        after: kelvin_database::Result<u64>,
    ) -> Vec<Invariant> {
        let mut invariants = self.totals.invariants(self.shared.pushed.load(Ordering::Acquire));
        let failed = |counts: &[KindCounts]| counts.iter().map(|kind| kind.failed).sum();
        invariants.push(counts_agree(
            "every failed transaction has its error",
            ("failed transactions", failed(&self.totals.all)),
            ("errors that ended one", self.tally.final_errors()),
            0,
        ));
        invariants.extend(self.littles_law(window));
        invariants.push(self.whole_load(before, after));
        invariants.extend(self.window_against_server(window));
        invariants
    }

    fn littles_law(&self, window: &Window) -> Option<Invariant> {
        if window.elapsed == 0 {
            return None;
        }
        let book = sums(self.books);
        let latencies: u128 = self.totals.measured.iter().map(|kind| kind.latency.sum()).sum();
        let in_window = latencies + u128::from(book[Book::BeforeClose as usize]);
        let in_window = in_window.saturating_sub(u128::from(book[Book::BeforeOpen as usize]));
        let user_time = window.elapsed as f64 * f64::from(self.users);
        let busy = 1.0 - window.idle as f64 / user_time;
        Some(littles_law(self.users, busy, in_window as f64 / 1e9, window.elapsed as f64 / 1e9))
    }

    /// The strict comparison: from before the first user to after the last, the server must have counted
    /// exactly what the users saw committed; only a commit whose answer was lost with its connection may be
    /// in one count and not in the other.
    fn whole_load(&self, before: u64, after: kelvin_database::Result<u64>) -> Invariant {
        let name = "over the whole load the server counted what the users saw committed";
        let committed = self.totals.all[self.headline].committed;
        match after {
            Ok(after) => counts_agree(
                name,
                ("committed by the users", committed),
                ("counted by the server", after.saturating_sub(before)),
                sums(self.books)[Book::Unknown as usize],
            ),
            Err(error) => Invariant {
                name: name.into(),
                holds: false,
                evidence: format!("{committed} committed by the users; the server's count failed: {error}"),
            },
        }
    }

    /// Between the window's edges, where transactions are in flight and the server is read a moment late.
    fn window_against_server(&self, window: &Window) -> Option<Invariant> {
        let server = window.server_headline?;
        let late: Nanos =
            [&self.readings.open, &self.readings.close].into_iter().flatten().map(|e| e.late).sum();
        let per_nanosecond = window.client_headline as f64 / window.elapsed.max(1) as f64;
        let unknown = sums(self.books)[Book::Unknown as usize];
        // Twice the mean rate, since the rate of the moment may be above it.
        let while_reading = (2.0 * per_nanosecond * late as f64).ceil() as u64;
        Some(counts_agree(
            "in the window the server counted what the client did, within what was in flight at the edges",
            ("counted by the client", window.client_headline),
            ("counted by the server", server),
            2 * u64::from(self.users) + while_reading + unknown,
        ))
    }
}
