//! The arrivals of an open loop: when each transaction is intended to start, determined before the clock
//! starts.

mod queue;

use kelvin_measure::{Nanos, Random};
use kelvin_workload::UserRange;

pub use kelvin_spec::Process;
pub use queue::{Change, Claim, Queue, QueueTally, Refused};

/// Domain of [`Random::part`] for arrivals: "arrivals" in ASCII. No workload draws from it, so that a seed
/// gives the same schedule whatever random numbers the users draw.
const DOMAIN: u64 = 0x6172_7269_7661_6c73;

/// Binary places of a nanosecond in the sum of Poisson gaps.
const PLACES: u32 = 32;

/// A mean gap without arrivals in any run: 584 years, the range of the clock.
const LONGEST_GAP: f64 = u64::MAX as f64;

/// The intended start times of an open loop, in order and without end.
///
/// The time of arrival i (from 0) depends only on seed, process, rate, beginning and i: not on the clock, the
/// number of users or the database. Uniform arrival i is at begin + i/rate; the first is at the beginning
/// itself, so that a period of a whole number of gaps has exactly rate × length arrivals. Poisson arrival i
/// is at begin + (e₀ + … + eᵢ)/rate with unit exponentials e, drawn by inversion from a separate stream. With
/// another rate the same seed gives the same pattern, stretched.
///
/// Neither process drifts. A uniform time is computed from i. Poisson gaps are added in integers of 2⁻³² ns,
/// so that the sum of 10¹⁰ gaps has an error of less than 2 ns, at any distance from the beginning.
#[derive(Debug, Clone)]
pub struct Arrivals {
    process: Process,
    random: Random,
    begin: Nanos,
    /// Mean gap in nanoseconds.
    gap: f64,
    /// Index of the next arrival.
    index: u64,
    /// For Poisson arrivals: time since the beginning, in units of 2⁻³² ns.
    elapsed: u128,
    /// This generator's share of the arrivals; `None` for all of them.
    share: Option<Share>,
}

/// The share of one of several generators. Arrivals are dealt to the users of all generators in rounds, one
/// for each user: arrival i goes to user (i × stride) mod users, so that each generator's arrivals are spread
/// over the round. This only selects the generator; any free user of the generator serves the arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    users: UserRange,
    stride: u32,
    /// The user to whom the next arrival is dealt.
    user: u32,
}

impl Share {
    fn new(users: UserRange) -> Self {
        let total = users.total().max(1);
        // Strides near the golden section spread a range of users best; without a common divisor a round
        // covers all users.
        let near = (f64::from(total) * 0.618_033_988_749_895) as u32;
        let stride = (near.max(1)..=total).find(|&stride| common_divisor(stride, total) == 1).unwrap_or(1);
        Self { users, stride, user: 0 }
    }

    /// Whether the next arrival is this generator's; advances to the next user.
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
    /// The schedule from `begin` on, at `rate_per_second`. It has no arrivals unless the rate is above 0.
    pub fn new(seed: u64, process: Process, rate_per_second: f64, begin: Nanos) -> Self {
        let gap = if rate_per_second > 0.0 { (1e9 / rate_per_second).min(LONGEST_GAP) } else { LONGEST_GAP };
        Self { process, random: Random::part(seed, DOMAIN, 0), begin, gap, index: 0, elapsed: 0, share: None }
    }

    /// The arrivals that the generator of these users serves. Together the generators serve the whole
    /// schedule, each arrival once. Must be called before the first arrival is taken.
    #[must_use]
    pub fn of_users(self, users: UserRange) -> Self {
        let share = (users.count() < users.total()).then(|| Share::new(users));
        Self { share, ..self }
    }

    /// The schedule from `begin` on after change `number` of the rate, counted from 1. Each number has
    /// separate random values, so that the schedule depends only on these parameters.
    pub fn changed(seed: u64, process: Process, rate_per_second: f64, begin: Nanos, number: u64) -> Self {
        Self {
            random: Random::part(seed, DOMAIN, number),
            ..Self::new(seed, process, rate_per_second, begin)
        }
    }

    /// Arrivals per second of this generator.
    pub fn rate(&self) -> f64 {
        1e9 / self.gap * self.share.map_or(1.0, Share::of_all)
    }

    /// The intended time of the next arrival.
    #[inline]
    pub fn advance(&mut self) -> Nanos {
        if self.share.is_none() { self.next_of_all() } else { self.next_of_share() }
    }

    /// The next arrival of this generator's share; without users there is none.
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
                // Rounded rather than truncated, so that the mean error of a gap is 0.
                self.elapsed = self.elapsed.saturating_add(gap.round() as u128);
                u64::try_from(self.elapsed >> PLACES).unwrap_or(u64::MAX)
            }
            Process::Uniform if self.gap >= LONGEST_GAP => u64::MAX,
            // The cast saturates at the end of the clock.
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
                // Without correlation its standard deviation is 1/√n: with probability 0.002 one of 30 is
                // beyond 4/√n.
                let correlation = covariance / variance;
                assert!(correlation.abs() < 4.0 / (N as f64).sqrt(), "lag {lag}: {correlation}");
            }
        }
    }

    #[test]
    fn the_mean_gap_of_ten_million_arrivals_does_not_drift() {
        const N: usize = 10_000_000;
        // The same gaps, added with Kahan's compensated summation, which is practically exact.
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
        // By chance the mean of n gaps varies by 1/√n = 3.2e-4. That the sum adds no error is shown by the
        // comparison above.
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
                // In each round a generator has as many arrivals as users.
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
