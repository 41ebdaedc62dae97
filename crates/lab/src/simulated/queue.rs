//! An open loop against a simulated server with known properties: Poisson arrivals, exponential service times, as
//! many servers as users (M/M/c), on a simulated clock. Arrivals, queue, collector and store are those of real runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kelvin_measure::event::{
    ArrivalSchedule, Event, LoadPart, Phase, RatePeriod, SeriesRole, Status, Window,
};
use kelvin_measure::{
    Bounded, Collector, Nanos, Random, SECOND, Sample, Sink, SinkError, TransactionOutcome, recorder,
};
use kelvin_stats::percentile::Interval;
use kelvin_store::{NewRun, Store};

use kelvin_run::arrivals::{Arrivals, Claim, Process, Queue};
use kelvin_run::driver::overrun_limit;

/// Domain of the random numbers for service times.
const SERVICE: u64 = 0x5e41;

/// The load.
#[derive(Debug, Clone, Copy)]
pub struct Servers {
    /// Servers, each with one user.
    pub servers: u32,
    /// Arrivals per second.
    pub rate: f64,
    /// The share of time that a server is busy, below 1.
    pub utilisation: f64,
    /// Seconds before the window.
    pub ramp_up: u64,
    /// Seconds of the window.
    pub window: u64,
}

/// The results of a run, and the true value.
#[derive(Debug, Clone, Copy)]
pub struct Reported {
    /// The p99 of the response time in nanoseconds, as every command reports it.
    pub p99: Option<Bounded>,
    /// Its interval within the run.
    pub interval: Option<Interval>,
    /// The p99 of the same arrivals in nanoseconds, each followed to its end however late that is.
    pub followed: f64,
    /// Arrivals that were waiting when the window closed.
    pub waited: u64,
    /// Arrivals that never started.
    pub never_begun: u64,
}

impl Servers {
    /// Mean service time in seconds.
    fn service(self) -> f64 {
        f64::from(self.servers) * self.utilisation / self.rate
    }

    /// P(response > `t` seconds) in the steady state: an exponential service time after a wait that a share C of the
    /// arrivals has (Erlang 1917), also exponential.
    fn beyond(self, t: f64) -> f64 {
        let (c, load) = (self.servers, f64::from(self.servers) * self.utilisation);
        let b = (1..=c).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
        let waits = b / (1.0 - self.utilisation * (1.0 - b));
        let mu = 1.0 / self.service();
        let theta = f64::from(c) * mu - self.rate;
        let both = (theta * (-mu * t).exp() - mu * (-theta * t).exp()) / (theta - mu);
        (1.0 - waits) * (-mu * t).exp() + waits * both
    }

    /// The p99 of the steady state in nanoseconds.
    pub fn p99(self) -> f64 {
        let (mut low, mut high) = (0.0, 1e3);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if self.beyond(middle) > 0.01 { low = middle } else { high = middle }
        }
        1e9 * low
    }

    /// Makes a run.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub fn run(self, seed: u64, store: &Store) -> Result<Reported, SinkError> {
        let open = self.ramp_up * SECOND;
        let close = open + self.window * SECOND;
        let end = close + overrun_limit(std::time::Duration::from_secs(self.window)).as_nanos() as u64;
        let arrivals = Arrivals::new(seed, Process::Poisson, self.rate, 0);
        let queue = Queue::new(arrivals.clone(), u64::MAX, end).with_window(open, close);
        let roles = vec![SeriesRole::Transaction, SeriesRole::Response { of: 0 }, SeriesRole::Lag];
        let (mut user, ring) = recorder(4096);
        let mut collector = Collector::new(0, roles, vec![ring], 0, open, Some(close));
        let mut random = Random::part(seed, SERVICE, 0);
        let mut free: BinaryHeap<Reverse<Nanos>> = (0..self.servers).map(|_| Reverse(0)).collect();
        let mut pushed = 0_u64;
        while let Some(Reverse(now)) = free.pop() {
            // The driver ends a load in the same way.
            if now >= end || now >= close && queue.window(now).waiting == 0 {
                break;
            }
            let Claim::Serve { at, .. } = queue.claim(now) else { break };
            let (start, service) = (now.max(at), self.draw(&mut random));
            let sample = Sample::closed(start + service, service, 0, TransactionOutcome::Committed, 0);
            user.record(Sample { late: start - at, awaited: now <= at, ..sample });
            free.push(Reverse(start + service));
            pushed += 1;
            if pushed.is_multiple_of(2048) {
                collector.take_samples();
            }
        }
        let books = queue.window(end);
        let schedule = ArrivalSchedule {
            rate: self.rate,
            due: books.due,
            refused: books.refused,
            waiting: books.waiting,
            waiting_at_close: queue.waiting_at_close(),
            cut_off: 0,
            longest: books.longest,
        };
        let (p99, interval) = self.stored(store, collector, schedule)?;
        Ok(Reported {
            p99,
            interval,
            followed: self.followed(seed, arrivals, (open, close)),
            waited: schedule.waited(),
            never_begun: schedule.never_begun(),
        })
    }

    fn draw(self, random: &mut Random) -> Nanos {
        random.exponential(self.service() * 1e9) as Nanos
    }

    /// Stores the results and reads them back.
    fn stored(
        self,
        store: &Store,
        collector: Collector,
        schedule: ArrivalSchedule,
    ) -> Result<(Option<Bounded>, Option<Interval>), SinkError> {
        let kinds =
            kelvin_run::series(&[kelvin_workload::TransactionKind::transaction("service", true)], true);
        let mut writer = store.begin_run(&NewRun {
            workload: "script".into(),
            target: "simulated".into(),
            label: None,
            spec_toml: String::new(),
            command: String::new(),
            seed: 0,
            random_algorithm: String::new(),
            kelvin_version: String::new(),
            kinds,
            headline: "tps".into(),
            headline_per: RatePeriod::Second,
            counter_names: Vec::new(),
            notes: Vec::new(),
            environment: serde_json::Value::Null,
            started: jiff::Timestamp::UNIX_EPOCH,
        })?;
        let users = self.servers;
        writer.event(&Event::Phase { point: 0, phase: Phase::Measure, at: 0, users, planned: None })?;
        let (seconds, _) = collector.finish();
        let mut headline = 0;
        for second in seconds {
            headline += if second.part == LoadPart::Measured { second.kinds[0].committed } else { 0 };
            writer.event(&Event::Second(second))?;
        }
        writer.event(&Event::Window(Window {
            point: 0,
            users,
            elapsed: self.window * SECOND,
            idle: 0,
            client_headline: headline,
            server_headline: None,
            server_transactions: None,
            client_cpu: 0,
            client_run_delay: None,
            schedule: Some(schedule),
        }))?;
        writer.event(&Event::Finished { status: Status::Complete, error: None })?;
        let id = writer.id();
        drop(writer);
        let figures = store.load(id)?.point_statistics(0)?;
        Ok((figures.times().percentile(99.0), figures.interval(99.0)))
    }

    /// The p99 of the arrivals in the window, all of them followed to the end, with the same service times in the
    /// same order.
    fn followed(self, seed: u64, mut arrivals: Arrivals, (open, close): (Nanos, Nanos)) -> f64 {
        let mut random = Random::part(seed, SERVICE, 0);
        let mut free: BinaryHeap<Reverse<Nanos>> = (0..self.servers).map(|_| Reverse(0)).collect();
        let mut times = Vec::new();
        loop {
            let at = arrivals.advance();
            if at >= close {
                break;
            }
            let start = free.pop().map_or(at, |Reverse(free)| free.max(at));
            let end = start + self.draw(&mut random);
            free.push(Reverse(end));
            if at >= open {
                times.push(end - at);
            }
        }
        times.sort_unstable();
        let rank = (0.99 * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).map_or(f64::NAN, |time| *time as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_a1_the_p99_of_a_busy_queue_is_that_of_its_arrivals_followed_to_their_end() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path().join("k.db")).unwrap();
        let (mut waited, mut covered) = (0, 0);
        for seed in 1..=10 {
            for utilisation in [0.75, 0.94] {
                let load = Servers { servers: 4, rate: 500.0, utilisation, ramp_up: 5, window: 10 };
                let found = load.run(seed, &store).unwrap();
                let p99 = found.p99.unwrap();
                assert!(
                    !p99.at_least && (p99.value / found.followed - 1.0).abs() < 0.003,
                    "{seed}: {found:?}"
                );
                assert_eq!(found.never_begun, 0);
                waited += u32::from(found.waited > 0);
                let interval = found.interval.unwrap();
                let known = load.p99();
                covered += u32::from(interval.low <= known && interval.high.is_none_or(|high| known <= high));
            }
        }
        assert!(waited >= 6, "{waited} of 20 runs closed while arrivals waited");
        assert!(covered >= 16, "{covered} of 20 intervals hold the steady state's p99");
    }

    #[test]
    fn the_steady_state_is_erlangs() {
        // One server: the response time is exponential with mean 1/(mu - lambda).
        let one = Servers { servers: 1, rate: 50.0, utilisation: 0.5, ramp_up: 0, window: 0 };
        assert!((one.p99() / (100_f64.ln() / 50.0 * 1e9) - 1.0).abs() < 1e-9);
    }
}
