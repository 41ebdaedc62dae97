//! A generator's report at its end: sums without samples, so that several reports can be merged, also from
//! other hosts.

use std::time::Duration;

use kelvin_measure::event::{ArrivalSchedule, KindCounts, SeriesRole};
use kelvin_measure::invariant::{Invariant, LOAD_GENERATOR};
use kelvin_measure::{Counters, Histogram, Nanos, SourceId, Totals};
use kelvin_observe::ThreadTimes;
use serde::{Deserialize, Serialize};

use super::client_cpu::ClientCpu;
use super::load_times::{LoadTimes, shifted};
use super::saturation::GeneratorLoad;
use crate::heartbeat::Gap;
use kelvin_users::UserCounter;

/// How far CPU times may be read from the window's edges to count as those of the window, as a share of the
/// window.
const MOST_APART: f64 = 0.05;

/// The upper limit of each count and each sum of nanoseconds of one generator: with ten thousand users, 1.3
/// days.
const LARGEST: u64 = 1 << 60;

/// The sums of all users' counters.
pub(super) fn sums(counters: &[Counters]) -> Vec<u64> {
    let mut sums = vec![0; counters.first().map_or(0, Counters::len)];
    for user in counters {
        user.sum_into(&mut sums);
    }
    sums
}

/// When a user ended; 0 if it recorded no end.
pub(super) fn ended_at(book: &Counters) -> Nanos {
    sums(std::slice::from_ref(book))[UserCounter::EndedAt as usize]
}

/// What a generator did, over the whole load and over the window, and its use of the host. Times are of its
/// own clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GeneratorReport {
    #[serde(skip)]
    pub(super) source: SourceId,
    /// The host's name; `None` for this host.
    #[serde(skip)]
    pub(super) host: Option<String>,
    /// CPUs that it may use.
    pub(super) cpus: f64,
    /// When the users were to begin, and when the first one did; `None` if none has begun.
    pub(super) begin: Nanos,
    pub(super) began: Option<Nanos>,
    /// Users whose last call to the database has not returned.
    pub(super) at_work: u32,
    /// Users who ended because of permanent failure.
    pub(super) gave_up: u32,
    /// Whether a user's thread panicked.
    pub(super) panicked: bool,
    /// The error that ended an event loop early.
    pub(super) broken_loop: Option<String>,
    /// When the window opened, and when it closed; `None` where it closes with the last user's end.
    pub(super) open: Nanos,
    pub(super) close: Option<Nanos>,
    /// Counts and histograms.
    pub(super) totals: Totals,
    /// Samples that the users passed to the collector.
    pub(super) pushed: u64,
    /// How often users had to wait because the collector did not keep up.
    pub(super) ring_full: u64,
    /// How often users waited because the database was busy, where the engine counts that.
    pub(super) busy_waits: u64,
    /// What the users recorded of their time, by [`UserCounter`]. The sum of the last counter has no meaning.
    pub(super) user_sums: Vec<u64>,
    /// When each user ended; 0 if it recorded no end.
    pub(super) ended_at: Vec<Nanos>,
    /// The sums of the audit counters.
    pub(super) counters: Vec<u64>,
    /// All errors, those that ended a transaction, the newest error's message, and a remark on notes that
    /// were omitted.
    pub(super) errors: u64,
    pub(super) final_errors: u64,
    pub(super) last_error: Option<String>,
    pub(super) notes_left_out: Option<String>,
    /// The arrivals of an open loop; `None` in a closed loop.
    pub(super) arrivals: Option<ArrivalSchedule>,
    /// CPU time of the process within the window; `None` when there was no time to wait for the readings.
    pub(super) cpu: Option<ClientCpu>,
    /// The kernel's thread numbers of the event loops.
    pub(super) loops: Vec<i32>,
    /// When the process was held up.
    pub(super) gaps: Vec<Gap>,
    /// Headline transactions in the busiest second.
    pub(super) busiest: u64,
}

impl GeneratorReport {
    /// Transactions committed over the whole load, of all types.
    pub fn committed(&self) -> u64 {
        self.totals.transactions(&self.totals.all).map(|kind: &KindCounts| kind.committed).sum()
    }

    /// Latencies of the window as clients see them: response times in an open loop, otherwise service times.
    pub(super) fn times(&self) -> Histogram {
        let open_loop = self.totals.roles.contains(&SeriesRole::Lag);
        let of = |role| match role {
            SeriesRole::Response { .. } => open_loop,
            SeriesRole::Transaction => !open_loop,
            SeriesRole::Statement { .. } | SeriesRole::Lag => false,
        };
        self.totals.measured_of(of).latency
    }

    /// How much later than planned the first user began.
    pub fn late(&self) -> Option<Nanos> {
        Some(self.began?.saturating_sub(self.begin))
    }

    /// The report of a lost generator, of which only the seconds and audit counters are known.
    pub(super) fn of_lost(times: LoadTimes, seconds: Totals, counters: Vec<u64>) -> Self {
        Self {
            source: SourceId::LOCAL,
            host: None,
            cpus: 0.0,
            begin: times.begin,
            began: None,
            // What is unknown follows from the host being lost.
            at_work: 0,
            gave_up: 0,
            panicked: false,
            broken_loop: None,
            open: times.open,
            close: (times.close != Nanos::MAX).then_some(times.close),
            totals: seconds,
            pushed: 0,
            ring_full: 0,
            busy_waits: 0,
            user_sums: vec![0; UserCounter::LENGTH],
            ended_at: Vec::new(),
            counters,
            errors: 0,
            final_errors: 0,
            last_error: None,
            notes_left_out: None,
            arrivals: None,
            cpu: None,
            loops: Vec::new(),
            gaps: Vec::new(),
            busiest: 0,
        }
    }

    /// The report of a host whose I/O jobs have ended. It has only the start; the host reports its window
    /// separately.
    pub(crate) fn of_jobs(
        (times, began): (LoadTimes, Option<Nanos>),
        totals: Totals,
        (bytes, failed): (Vec<u64>, u64),
        workers: u32,
        broken: Option<String>,
    ) -> Self {
        Self {
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as f64,
            began,
            broken_loop: broken,
            close: None,
            ended_at: vec![0; workers as usize],
            errors: failed,
            final_errors: failed,
            ..Self::of_lost(times, totals, bytes)
        }
    }

    /// The error that ended it early.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken_loop.as_deref()
    }

    /// The sums of the audit counters.
    pub(crate) fn counters(&self) -> &[u64] {
        &self.counters
    }

    /// Counts and histograms.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The same report, labelled with another host.
    pub(super) fn of_host(self, source: SourceId, host: &str) -> Self {
        Self { source, host: Some(host.to_owned()), ..self }
    }

    /// Refuses a report with other series, another number of audit counters or another number of users.
    pub(super) fn check(&self, roles: &[SeriesRole], counters: usize, users: u32) -> Result<(), String> {
        let series = [self.totals.roles.len(), self.totals.measured.len(), self.totals.all.len()];
        let lengths = [self.user_sums.len(), self.counters.len(), self.ended_at.len()];
        if self.totals.roles != roles || series != [roles.len(); 3] {
            return Err("its report contains other series".into());
        }
        if lengths != [UserCounter::LENGTH, counters, users as usize] {
            return Err("its report contains other users or counters".into());
        }
        if self.numbers().any(|number| number > LARGEST) || self.at_work > users || self.gave_up > users {
            return Err("its report contains an impossible number".into());
        }
        Ok(())
    }

    /// `sum` with all numbers of this report added; `None` if that exceeds 64 bits.
    pub(super) fn added_to(&self, sum: u64) -> Option<u64> {
        self.numbers().try_fold(sum, u64::checked_add)
    }

    /// A report of the same series and counters in which every count is 0.
    pub(super) fn without_counts(self, times: LoadTimes) -> Self {
        Self::of_lost(times, Totals::new(self.totals.roles), vec![0; self.counters.len()])
    }

    /// All numbers of the report that are added to those of other hosts.
    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let counts = |kind: &KindCounts| {
            [kind.committed, kind.rolled_back, kind.failed, kind.retries, kind.latency.count()]
        };
        let kinds = self.totals.all.iter().chain(&self.totals.measured).flat_map(counts);
        let cpu = self.cpu.iter().flat_map(|cpu| [cpu.time.unwrap_or(0), cpu.between]);
        let threads = self.cpu.iter().flat_map(|cpu| cpu.threads.iter().flatten());
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let threads = threads.flat_map(move |thread: &ThreadTimes| [nanos(thread.run), nanos(thread.delay)]);
        let single = [
            self.totals.samples,
            self.pushed,
            self.ring_full,
            self.busy_waits,
            self.errors,
            self.final_errors,
            self.busiest,
        ];
        // The end of the last user is a point in time, not a sum.
        let sums = self.user_sums.iter().enumerate().filter(|(i, _)| *i != UserCounter::EndedAt as usize);
        kinds
            .chain(cpu)
            .chain(threads)
            .chain(single)
            .chain(sums.map(|(_, sum)| *sum))
            .chain(self.counters.iter().copied())
    }

    /// The report converted to a clock on which the window opened at `open`.
    pub(super) fn on_clock_that_opened(mut self, open: Nanos) -> Self {
        let by = i128::from(open) - i128::from(self.open);
        let known = self.ended_at.iter_mut().chain([&mut self.totals.last_end]).filter(|at| **at != 0);
        known.for_each(|at| *at = shifted(*at, by));
        for gap in &mut self.gaps {
            (gap.from, gap.to) = (shifted(gap.from, by), shifted(gap.to, by));
        }
        (self.begin, self.open) = (shifted(self.begin, by), open);
        self.began = self.began.map(|at| shifted(at, by));
        self.close = self.close.map(|at| shifted(at, by));
        self
    }

    /// The sum of a counter over all users.
    pub(super) fn user_sum(&self, counter: UserCounter) -> u64 {
        self.user_sums[counter as usize]
    }

    /// When the last user, or the last sample of the window, ended.
    pub(super) fn last_end(&self) -> Nanos {
        // A user who gave up without a connection counts, too.
        self.ended_at.iter().copied().max().unwrap_or(0).max(self.totals.last_end)
    }

    /// The latest point in time of the load that the report contains.
    pub(super) fn latest(&self) -> Nanos {
        let others = [self.close, self.began, Some(self.begin)];
        others.into_iter().flatten().fold(self.last_end(), Nanos::max)
    }

    /// Time within the window, which closed at `close`, that users did not spend in good transactions. A user who reached its
    /// count, or gave up, before the window closed is idle from then on.
    pub(super) fn idle(&self, close: Nanos) -> Nanos {
        let early = |&ended: &Nanos| if ended == 0 { 0 } else { close.saturating_sub(ended.max(self.open)) };
        self.ended_at.iter().map(early).fold(self.user_sum(UserCounter::Idle), Nanos::saturating_add)
    }

    /// CPU time of the process within a window of length `elapsed`; 0 when unknown.
    pub(super) fn cpu_time(&self, elapsed: Nanos) -> Nanos {
        self.resolved_cpu(elapsed).and_then(|cpu| cpu.time).unwrap_or(0)
    }

    /// Time that the process's threads were ready to run but had no CPU; `None` when unknown.
    pub(super) fn run_delay(&self, elapsed: Nanos) -> Option<Nanos> {
        let threads = self.resolved_cpu(elapsed)?.threads.as_ref()?;
        Some(threads.iter().map(|thread: &ThreadTimes| thread.delay.as_nanos() as u64).sum())
    }

    fn resolved_cpu(&self, elapsed: Nanos) -> Option<&ClientCpu> {
        self.cpu.as_ref().filter(|_| self.unresolved(elapsed).is_none())
    }

    /// Why the CPU times are not those of the window: the thread that reads them may be late, which matters
    /// in a short window.
    fn unresolved(&self, elapsed: Nanos) -> Option<String> {
        let between = self.cpu.as_ref()?.between;
        let apart = between.abs_diff(elapsed) as f64;
        (apart > MOST_APART * elapsed as f64).then(|| {
            let ms = |nanos: Nanos| nanos as f64 / 1e6;
            format!("its CPU time covers {:.1} ms, but the window took {:.1} ms", ms(between), ms(elapsed))
        })
    }

    /// Whether the generator was the bottleneck in a window of length `elapsed`; `None` if unknown.
    /// `embedded` means that the database is part of the process.
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
            cpus: self.cpus,
            cpu: Duration::from_nanos(cpu),
            embedded,
            loops: (known.len() == self.loops.len()).then_some(&known),
            lag: self.arrivals.map(|_| (&lag, &service)),
        };
        (cpu > 0).then(|| generator.judge())
    }
}
