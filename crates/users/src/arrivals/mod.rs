//! The schedule of an open loop: when each transaction is meant to start, decided before the clock starts.

mod queue;

use kelvin_measure::{Nanos, Random};
use kelvin_workload::UserRange;

pub use kelvin_spec::Process;
pub use queue::{Change, Claim, Queue, QueueTally, Refused};

/// Domain of [`Random::part`] for arrivals: "arrivals" in ASCII. No workload draws from it, so that the same
/// seed gives the same schedule whatever the users do with theirs.
const DOMAIN: u64 = 0x6172_7269_7661_6c73;

/// Binary places of a nanosecond in which Poisson arrivals are added up.
const PLACES: u32 = 32;

/// Mean gap beyond which nothing arrives in any run: 584 years, the range of the clock.
const LONGEST_GAP: f64 = u64::MAX as f64;

/// The intended times of an open loop, in order and without end.
///
/// The time of arrival i (from 0) follows from seed, process, rate, beginning and i alone: not from the clock,
/// the number of users or anything the database does. Uniform arrival i is at begin + i/rate, the first at the
/// beginning itself, so that any whole number of gaps holds exactly rate × length of them. Poisson arrival i is
/// at begin + (e₀ + … + eᵢ)/rate with unit exponentials e by inversion from a separate stream; the same
/// seed at another rate is the same pattern, stretched.
///
/// Neither drifts: a uniform time is computed from i, and Poisson gaps are added in integers of 2⁻³² ns, so
/// that the sum of 10¹⁰ gaps is off by less than 2 ns, however far it is from the beginning.
#[derive(Debug, Clone)]
pub struct Arrivals {
    process: Process,
    random: Random,
    begin: Nanos,
    /// Mean gap in nanoseconds.
    gap: f64,
    /// Index of the arrival that comes next.
    index: u64,
    /// Poisson: time since the beginning, in units of 2⁻³² ns.
    elapsed: u128,
    /// Which of them are this generator's; none where all are.
    share: Option<Share>,
}

/// The arrivals of one of several generators. The arrivals are dealt to the users of all generators, in rounds in which each
/// user has one: arrival i is the one of user (i × stride) mod users, so that each generator's arrivals are spread over the
/// round. Whoever is free serves them, as with one generator; the users only decide which generator that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    users: UserRange,
    stride: u32,
    /// The user that the next arrival is dealt to.
    user: u32,
}

impl Share {
    fn new(users: UserRange) -> Self {
        let total = users.total().max(1);
        // The golden section spreads a part of the users best; without a common divisor a round has all of them.
        let near = (f64::from(total) * 0.618_033_988_749_895) as u32;
        let stride = (near.max(1)..=total).find(|&stride| common_divisor(stride, total) == 1).unwrap_or(1);
        Self { users, stride, user: 0 }
    }

    /// Whether the next arrival is this generator's.
    fn deal(&mut self) -> bool {
        let own = (self.users.first()..self.users.first() + self.users.count()).contains(&self.user);
        let next = u64::from(self.user) + u64::from(self.stride);
        self.user = (next % u64::from(self.users.total().max(1))) as u32;
        own
    }

    fn of_all(self) -> f64 {
        f64::from(self.users.count()) / f64::from(self.users.total().max(1))
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Arrivals {
    /// The schedule from `begin` on at `rate_per_second`. A rate that is not above 0 has no arrivals.
    pub fn new(seed: u64, process: Process, rate_per_second: f64, begin: Nanos) -> Self {
        let gap = if rate_per_second > 0.0 { (1e9 / rate_per_second).min(LONGEST_GAP) } else { LONGEST_GAP };
        Self { process, random: Random::part(seed, DOMAIN, 0), begin, gap, index: 0, elapsed: 0, share: None }
    }

    /// Those of them that the generator of these users serves: the arrivals of all generators are together the whole
    /// schedule, each arrival once. To be asked for before the first arrival is taken.
    #[must_use]
    pub fn of_users(self, users: UserRange) -> Self {
        let share = (users.count() < users.total()).then(|| Share::new(users));
        Self { share, ..self }
    }

    /// The schedule from `begin` on behind the `number`th change of a rate, from 1: of random values of its own, so that it
    /// follows from these alone as well.
    pub fn changed(seed: u64, process: Process, rate_per_second: f64, begin: Nanos, number: u64) -> Self {
        Self {
            random: Random::part(seed, DOMAIN, number),
            ..Self::new(seed, process, rate_per_second, begin)
        }
    }

    /// Arrivals a second, of this generator.
    pub fn rate(&self) -> f64 {
        1e9 / self.gap * self.share.map_or(1.0, Share::of_all)
    }

    /// The intended time of the next arrival.
    #[inline]
    pub fn advance(&mut self) -> Nanos {
        if self.share.is_none() { self.next_of_all() } else { self.next_of_share() }
    }

    /// The next arrival that is dealt to this generator; none ever without users.
    fn next_of_share(&mut self) -> Nanos {
        if self.share.is_none_or(|share| share.users.count() == 0) {
            return Nanos::MAX;
        }
        loop {
            let at = self.next_of_all();
            if self.share.as_mut().is_none_or(Share::deal) {
                return at;
            }
        }
    }

    #[inline]
    fn next_of_all(&mut self) -> Nanos {
        let since_begin = match self.process {
            Process::Poisson => {
                let gap = self.random.exponential(self.gap) * (1_u64 << PLACES) as f64;
                // Rounded rather than cut, so that the error of a gap is 0 on average.
                self.elapsed = self.elapsed.saturating_add(gap.round() as u128);
                u64::try_from(self.elapsed >> PLACES).unwrap_or(u64::MAX)
            }
            Process::Uniform if self.gap >= LONGEST_GAP => u64::MAX,
            // Cast from above 2⁶⁴, it is the end of the clock.
            Process::Uniform => (self.index as f64 * self.gap).round() as u64,
        };
        self.index += 1;
        self.begin.saturating_add(since_begin)
    }
}

impl Iterator for Arrivals {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        Some(self.advance())
    }
}

#[cfg(test)]
mod tests {
    use kelvin_stats::kolmogorov;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn uniform_arrivals_are_evenly_spaced_for_ever() {
        let mut thirds = Arrivals::new(1, Process::Uniform, 3.0, 1000);
        let first: Vec<Nanos> = thirds.by_ref().take(4).collect();
        assert_eq!(first, [1000, 333_334_333, 666_667_667, 1_000_001_000]);
        for rate in [7.0, 999.9, 12_345.678, 1e7] {
            let last = 5_000_000;
            let at = Arrivals::new(1, Process::Uniform, rate, 0).nth(last).unwrap();
            let exact = last as f64 * 1e9 / rate;
            assert!((at as f64 - exact).abs() <= 1.0 + exact * 3e-16, "{rate}: {at} for {exact}");
        }
    }

    #[test]
    fn poisson_gaps_are_exponential_and_unrelated() {
        const N: usize = 100_000;
        for (seed, rate) in [(1, 1000.0), (2, 37.5), (3, 50_000.0)] {
            let times: Vec<Nanos> = Arrivals::new(seed, Process::Poisson, rate, 5_000).take(N + 1).collect();
            let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e9).collect();
            let found = kolmogorov::one_sample(&gaps, |x| 1.0 - (-rate * x).exp()).unwrap();
            assert!(found.p > 0.01, "seed {seed}, {rate}/s: {found:?}");
            let mean = gaps.iter().sum::<f64>() / N as f64;
            let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>();
            for lag in 1..=10 {
                let covariance: f64 =
                    gaps.iter().zip(&gaps[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum();
                // Uncorrelated, it varies by 1/√n: 4 of them in 30 looks are one in five hundred.
                let correlation = covariance / variance;
                assert!(correlation.abs() < 4.0 / (N as f64).sqrt(), "lag {lag}: {correlation}");
            }
        }
    }

    #[test]
    fn the_mean_gap_of_ten_million_arrivals_does_not_drift() {
        const N: usize = 10_000_000;
        // The same gaps, added with Kahan's compensation: as good as exact.
        let rate = 12_345.678;
        let mut random = Random::part(11, DOMAIN, 0);
        let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
        for _ in 0..N {
            let term = random.exponential(1e9 / rate) - lost;
            let next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        let last = Arrivals::new(11, Process::Poisson, rate, 0).nth(N - 1).unwrap();
        assert!((last as f64 - sum).abs() <= 1.0, "{last} against {sum}");
        // By chance alone the mean of so many varies by 1/√n = 3.2e-4; the comparison above is what shows that
        // the sum adds nothing to that.
        let mean = last as f64 / N as f64 * rate / 1e9;
        assert!((mean - 1.0).abs() < 4.0 / (N as f64).sqrt(), "{mean}");
    }

    #[test]
    fn the_schedule_is_the_seeds_and_stretches_with_the_rate() {
        let take = |seed, rate| -> Vec<Nanos> {
            Arrivals::new(seed, Process::Poisson, rate, 0).take(1000).collect()
        };
        assert_eq!(take(1, 1000.0), take(1, 1000.0));
        assert_ne!(take(1, 1000.0), take(2, 1000.0));
        for (fast, slow) in take(1, 1000.0).iter().zip(take(1, 500.0)) {
            assert!(slow.abs_diff(2 * fast) <= 2, "{fast} {slow}");
        }
    }

    proptest! {
        #[test]
        fn the_arrivals_of_all_generators_are_those_of_one(
            seed: u64, uniform: bool, changed: bool, users in 1_u32..300, generators in 1_u32..9, begin in 0..u64::MAX / 2
        ) {
            const N: usize = 400;
            let process = if uniform { Process::Uniform } else { Process::Poisson };
            let schedule = || {
                if changed {
                    Arrivals::changed(seed, process, 12_345.6, begin, 1)
                } else {
                    Arrivals::new(seed, process, 12_345.6, begin)
                }
            };
            let mut whole: Vec<Nanos> = schedule().take(N).collect();
            let end = whole[N - 1];
            whole.retain(|at| *at < end);
            let (mut together, mut rate) = (Vec::new(), 0.0);
            for index in 0..generators {
                let users = UserRange::share(users, index, generators).unwrap();
                let own = schedule().of_users(users);
                rate += own.rate();
                let own: Vec<Nanos> = own.take_while(|at| *at < end).collect();
                // Of each round of all users a generator has as many as it has users.
                let expected = N as f64 * f64::from(users.count()) / f64::from(users.total());
                prop_assert!((own.len() as f64 - expected).abs() <= f64::from(users.count()) + 1.0, "{}", own.len());
                together.extend(own);
            }
            together.sort_unstable();
            prop_assert_eq!(together, whole);
            prop_assert!((rate - schedule().rate()).abs() < 1e-6);
        }

        #[test]
        fn times_never_go_back_and_nothing_overflows(
            seed: u64, uniform: bool, rate in proptest::num::f64::ANY, begin: u64
        ) {
            let process = if uniform { Process::Uniform } else { Process::Poisson };
            let mut last = 0;
            for at in Arrivals::new(seed, process, rate, begin).take(200) {
                prop_assert!(at >= last && at >= begin);
                last = at;
            }
        }
    }
}
