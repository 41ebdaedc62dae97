//! What a generator says at its end: sums, no samples, so that several can be merged and one can come from another host.

use std::time::Duration;

use kelvin_measure::event::{ArrivalSchedule, SeriesRole};
use kelvin_measure::invariant::{Invariant, LOAD_GENERATOR};
use kelvin_measure::{Counters, Nanos, SourceId, Totals};
use kelvin_observe::ThreadTimes;

use super::client_cpu::ClientCpu;
use super::saturation::GeneratorLoad;
use super::user::UserCounter;
use crate::heartbeat::Gap;

/// How far, as a share of the window, CPU times may have been read from its edges to be those of the window.
const MOST_APART: f64 = 0.05;

/// The sums of all users' counters.
pub(super) fn sums(counters: &[Counters]) -> Vec<u64> {
    let mut sums = vec![0; counters.first().map_or(0, Counters::len)];
    for user in counters {
        user.sum_into(&mut sums);
    }
    sums
}

/// When a user ended; 0 when it did not write that down.
pub(super) fn ended_at(book: &Counters) -> Nanos {
    sums(std::slice::from_ref(book))[UserCounter::EndedAt as usize]
}

/// What a generator did, over everything and over the window, and what it took of its host.
pub(super) struct GeneratorReport {
    pub(super) source: SourceId,
    /// Users who did not come back from the database.
    pub(super) at_work: u32,
    /// Users who ended because nothing worked any more.
    pub(super) gave_up: u32,
    /// Whether a user's thread panicked.
    pub(super) panicked: bool,
    /// What ended an event loop early.
    pub(super) broken_loop: Option<String>,
    /// When the window opened, and when it closed; none where that is the end of the last user.
    pub(super) open: Nanos,
    pub(super) close: Option<Nanos>,
    /// Counts and histograms.
    pub(super) totals: Totals,
    /// Samples that the users handed over.
    pub(super) pushed: u64,
    /// How often users had to wait because the collector did not keep up.
    pub(super) ring_full: u64,
    /// How often users waited because the database was busy, where the engine counts that.
    pub(super) busy_waits: u64,
    /// What the users wrote down about their time, by [`UserCounter`]; of the last the sum means nothing.
    pub(super) user_sums: Vec<u64>,
    /// When each user ended; 0 when it did not write that down.
    pub(super) ended_at: Vec<Nanos>,
    /// The sums of the audit counters.
    pub(super) counters: Vec<u64>,
    /// Errors, those that ended a transaction, the newest one's message, and how many notes of them were left out.
    pub(super) errors: u64,
    pub(super) final_errors: u64,
    pub(super) last_error: Option<String>,
    pub(super) notes_left_out: Option<String>,
    /// The arrivals of an open loop.
    pub(super) arrivals: Option<ArrivalSchedule>,
    /// What the process took within the window; none when there was no time to wait for that.
    pub(super) cpu: Option<ClientCpu>,
    /// The threads of the event loops, by the kernel's numbers.
    pub(super) loops: Vec<i32>,
    /// When the process was held up.
    pub(super) gaps: Vec<Gap>,
    /// Headline transactions in the busiest second.
    pub(super) busiest: u64,
}

impl GeneratorReport {
    /// A sum of the users'.
    pub(super) fn user_sum(&self, counter: UserCounter) -> u64 {
        self.user_sums[counter as usize]
    }

    /// When the last user, or the last sample of the window, ended.
    pub(super) fn last_end(&self) -> Nanos {
        // A user who gave up without a connection counts, too.
        self.ended_at.iter().copied().max().unwrap_or(0).max(self.totals.last_end)
    }

    /// Time within the window, which closed at `close`, that users did not spend in good transactions. A user who reached its
    /// count, or gave up, before the window closed is idle from then on.
    pub(super) fn idle(&self, close: Nanos) -> Nanos {
        let early = |&ended: &Nanos| if ended == 0 { 0 } else { close.saturating_sub(ended.max(self.open)) };
        self.user_sum(UserCounter::Idle) + self.ended_at.iter().map(early).sum::<Nanos>()
    }

    /// CPU time of the process within the window of this length; 0 when it is not known.
    pub(super) fn cpu_time(&self, elapsed: Nanos) -> Nanos {
        self.resolved_cpu(elapsed).and_then(|cpu| cpu.time).unwrap_or(0)
    }

    /// Time that the process's threads were ready to run and had no CPU; none where that is not known.
    pub(super) fn run_delay(&self, elapsed: Nanos) -> Option<Nanos> {
        let threads = self.resolved_cpu(elapsed)?.threads.as_ref()?;
        Some(threads.iter().map(|thread: &ThreadTimes| thread.delay.as_nanos() as u64).sum())
    }

    fn resolved_cpu(&self, elapsed: Nanos) -> Option<&ClientCpu> {
        self.cpu.as_ref().filter(|_| self.unresolved(elapsed).is_none())
    }

    /// Why the CPU times are not those of the window: they are read by a thread that may come late, which in a short window
    /// is a large part of it.
    fn unresolved(&self, elapsed: Nanos) -> Option<String> {
        let between = self.cpu.as_ref()?.between;
        let apart = between.abs_diff(elapsed) as f64;
        (apart > MOST_APART * elapsed as f64).then(|| {
            let ms = |nanos: Nanos| nanos as f64 / 1e6;
            format!("its CPU time covers {:.1} ms, but the window took {:.1} ms", ms(between), ms(elapsed))
        })
    }

    /// Whether the generator was the bottleneck in a window of this length; none if unknown. `embedded` says that
    /// the database is part of the process.
    pub(super) fn saturation(&self, elapsed: Nanos, embedded: bool) -> Option<Invariant> {
        if elapsed == 0 {
            return None;
        }
        if let Some(why) = self.unresolved(elapsed) {
            return Some(Invariant::not_judged(LOAD_GENERATOR, why));
        }
        let cpu = self.cpu_time(elapsed);
        let lag = self.totals.measured_of(|role| role == SeriesRole::Lag).latency;
        let service = self.totals.measured_of(|role| role == SeriesRole::Transaction).latency;
        let threads = self.cpu.as_ref().and_then(|cpu| cpu.threads.as_deref()).unwrap_or_default();
        let known: Vec<Duration> = threads
            .iter()
            .filter(|thread| self.loops.contains(&thread.id))
            .map(|thread| thread.run)
            .collect();
        let generator = GeneratorLoad {
            elapsed: Duration::from_nanos(elapsed),
            cpu: Duration::from_nanos(cpu),
            embedded,
            loops: (known.len() == self.loops.len()).then_some(&known),
            lag: self.arrivals.map(|_| (&lag, &service)),
        };
        (cpu > 0).then(|| generator.judge())
    }
}
