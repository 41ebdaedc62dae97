//! When requests arrive: their rate, and how bursty they are.

use kelvin_measure::Nanos;
use serde::Serialize;

/// Lengths of windows, in milliseconds.
const SCALES: [u64; 5] = [1, 10, 100, 1000, 10_000];
/// Fewer windows of a scale say nothing about its variance.
const LEAST_WINDOWS: u64 = 10;

/// Arrivals of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Arrivals {
    /// Requests per second, over the whole trace.
    pub rate: f64,
    /// Variance over mean of the arrivals in windows of so many milliseconds: 1 for Poisson arrivals at every scale, 0
    /// for a clock's.
    pub dispersion: Vec<Dispersion>,
    /// The busiest window over the mean one.
    pub peak_to_mean: Option<f64>,
    /// Milliseconds of that window.
    pub peak_window: Option<u64>,
    /// The share of all requests in the busiest tenth of the windows.
    pub busiest_tenth: Option<f64>,
}

/// The index of dispersion at a scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dispersion {
    /// The window, in milliseconds.
    pub window: u64,
    /// Variance over mean.
    pub index: f64,
}

/// Of times in ascending order, over a trace of this length. `resolution` is the unit of the times.
pub(super) fn arrivals(times: &[Nanos], begin: Nanos, lasts: Nanos, resolution: Nanos) -> Arrivals {
    let mut found = Arrivals::default();
    if times.is_empty() || lasts == 0 {
        return found;
    }
    found.rate = times.len() as f64 / (lasts as f64 / 1e9);
    for window in SCALES {
        let width = window * 1_000_000;
        let windows = lasts / width;
        if width < resolution || windows < LEAST_WINDOWS {
            continue;
        }
        let counts = counts(times, begin, width, windows);
        let mean = counts.iter().map(|count| f64::from(*count)).sum::<f64>() / windows as f64;
        if mean == 0.0 {
            continue;
        }
        let squares: f64 = counts.iter().map(|count| (f64::from(*count) - mean).powi(2)).sum();
        let squares = squares + (windows - counts.len() as u64) as f64 * mean.powi(2);
        let index = squares / (windows - 1) as f64 / mean;
        found.dispersion.push(Dispersion { window, index });
        // The peak is given for a second, or for the longest window below it.
        if window <= 1000 {
            let most = counts.iter().max().copied().unwrap_or(0);
            found.peak_to_mean = Some(f64::from(most) / mean);
            found.peak_window = Some(window);
            let mut sorted = counts;
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let tenth = usize::try_from(windows.div_ceil(10)).unwrap_or(usize::MAX);
            let all: u64 = sorted.iter().map(|count| u64::from(*count)).sum();
            let most: u64 = sorted.iter().take(tenth).map(|count| u64::from(*count)).sum();
            found.busiest_tenth = Some(most as f64 / all as f64);
        }
    }
    found
}

/// Arrivals in each of the windows that has any, in their order: a trace of few requests may be of many windows.
fn counts(times: &[Nanos], begin: Nanos, width: Nanos, windows: u64) -> Vec<u32> {
    let mut counts = Vec::new();
    let mut last = None;
    for time in times {
        let window = time.saturating_sub(begin) / width;
        // The last window is not whole and is left out.
        if window >= windows {
            break;
        }
        if last != Some(window) {
            counts.push(0_u32);
            last = Some(window);
        }
        if let Some(count) = counts.last_mut() {
            *count += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use kelvin_measure::{Random, SECOND};

    use super::*;

    #[test]
    fn a_clock_poisson_arrivals_and_bursts_are_distinguished() {
        let clock: Vec<Nanos> = (0..100_000).map(|n| n * 1_000_000).collect();
        let steady = arrivals(&clock, 0, 100 * SECOND, 1);
        assert!(steady.dispersion.iter().all(|one| one.index < 0.01), "{steady:?}");
        assert!((steady.rate - 1000.0).abs() < 0.1 && steady.peak_to_mean.unwrap() < 1.01);

        let mut random = Random::part(3, 0, 0);
        let mut at = 0.0;
        let mut poisson = Vec::new();
        while at < 100e9 {
            poisson.push(at as Nanos);
            at += random.exponential(1e6);
        }
        let found = arrivals(&poisson, 0, 100 * SECOND, 1);
        assert_eq!(found.dispersion.len(), 5);
        // With 10 windows of 10 s the index scatters by half.
        assert!(found.dispersion.iter().take(4).all(|one| (0.6..1.5).contains(&one.index)), "{found:?}");

        // All of a second's requests within its first 50 ms.
        let bursts: Vec<Nanos> = (0..100_000).map(|n| n / 1000 * SECOND + n % 1000 * 50_000).collect();
        let found = arrivals(&bursts, 0, 100 * SECOND, 1);
        let at = |window| found.dispersion.iter().find(|one| one.window == window).unwrap().index;
        assert!(at(100) > 100.0 && at(1000) < 1.0, "{found:?}");
    }

    #[test]
    fn windows_without_arrivals_count_and_cost_nothing() {
        // Half of 500 years with two requests in the first second, as of a damaged clock.
        let years = 500 * 365 * 86_400;
        let found = arrivals(&[0, 1, years / 4 * SECOND], 0, years / 2 * SECOND, 1);
        let windows = (years / 2) as f64;
        let second = found.dispersion.iter().find(|one| one.window == 1000).unwrap();
        // Variance over mean of 2, 1 and zeros: with so many of these (2² + 1²) / 3.
        assert!((second.index - 5.0 / 3.0).abs() < 1e-6, "{second:?}");
        assert!((found.peak_to_mean.unwrap() / (2.0 * windows / 3.0) - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.busiest_tenth, found.dispersion.len()), (Some(1.0), 5));
    }

    #[test]
    fn what_the_times_cannot_say_is_not_said() {
        let seconds: Vec<Nanos> = (0..100).map(|n| n * SECOND).collect();
        let found = arrivals(&seconds, 0, 100 * SECOND, SECOND);
        assert_eq!(found.dispersion.iter().map(|one| one.window).collect::<Vec<_>>(), [1000, 10_000]);
        assert_eq!(arrivals(&[], 0, SECOND, 1), Arrivals::default());
        assert_eq!(arrivals(&[0], 0, 0, 1).rate, 0.0);
    }
}
