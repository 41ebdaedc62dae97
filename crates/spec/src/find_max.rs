//! The search for the highest rate that meets an objective. It chooses the next rate from the trials so far; it runs
//! nothing and has no clock.
//!
//! The rate doubles until a trial fails (or, when the first one fails, halves until one passes), then the gap between
//! the highest rate that passed and the lowest that failed is bisected on a logarithmic scale until it is within the
//! resolution. The remaining rate has to pass a second time, in a separate trial: it is the highest of several noisy
//! trials and therefore likely to have been lucky (the optimiser's curse).
//!
//! A failure outweighs a pass: a rate that ever failed, and every rate above one that failed, is excluded, and the
//! search continues below. Its answer can be too low because of an unlucky trial, and is never above a rate that
//! failed.

use crate::Rates;

/// The result of a trial at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Whether the objective was met.
    pub holds: bool,
    /// Good transactions per second.
    pub achieved: f64,
    /// The verdict as text.
    pub why: String,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    start: f64,
    /// The lowest rate to try.
    lowest: f64,
    /// Ratio of the lowest that failed to the highest that held at which the search ends.
    resolution: f64,
    budget: usize,
    trials: Vec<(f64, Trial)>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEnd {
    /// Not yet: there is a next rate.
    Underway,
    /// The next higher rate within the resolution failed.
    Resolved,
    /// The highest rate that was to be tried still held.
    Highest,
    /// Not even the lowest rate held.
    NothingHolds,
    /// The trials were used up before.
    OutOfTrials,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxRateResult {
    /// The highest rate that held, with no failure at or below it; none when no rate did.
    pub highest: Option<f64>,
    /// Good transactions per second in the latest trial at that rate.
    pub achieved: Option<f64>,
    /// Whether it held twice.
    pub confirmed: bool,
    /// The lowest rate that failed.
    pub lowest_failed: Option<f64>,
    /// Rates that passed although they, or a lower rate, failed in another trial, in ascending order: the measured
    /// system is not steady there, and longer trials are advisable.
    pub unstable: Vec<f64>,
    /// How it ended.
    pub ended: SearchEnd,
}

impl Search {
    /// The default resolution, in percent.
    pub const RESOLUTION: f64 = 5.0;

    /// The trials of a run's search: 17 doublings lead from 100 a second to [`Rates::HIGHEST`], a gap of two takes
    /// 10 more to close to the finest resolution, and the rest are for noise and the confirmation.
    pub const BUDGET: usize = 40;

    /// No rate below the start divided by this is tried: if so little load is too much, the rate is not the cause.
    const DEPTH: f64 = 1024.0;

    /// A search that starts at `start`, never goes beyond [`Rates::HIGHEST`], ends when the rate is known to
    /// `resolution_percent`, and makes at most `budget` trials. Rates are in arrivals per second.
    pub fn new(start: f64, resolution_percent: f64, budget: usize) -> Result<Self, String> {
        if !(start > 0.0 && start <= Rates::HIGHEST) {
            return Err(format!("a search cannot start at {start} arrivals per second"));
        }
        if !(0.1..=100.0).contains(&resolution_percent) {
            return Err(format!("a resolution of {resolution_percent} % is not between 0.1 % and 100 %"));
        }
        if budget < 2 {
            return Err("a search needs at least 2 trials: one to find the rate and one to confirm it".into());
        }
        let resolution = 1.0 + resolution_percent / 100.0;
        Ok(Self { start, lowest: start / Self::DEPTH, resolution, budget, trials: Vec::new() })
    }

    /// Tries no rate below `rate`, where a trial could not be judged.
    #[must_use]
    pub fn not_below(mut self, rate: f64) -> Self {
        self.lowest = self.lowest.max(rate).min(self.start);
        self
    }

    /// The rate to try next; none when the search has ended.
    pub fn next(&self) -> Option<f64> {
        self.decide().ok()
    }

    /// Adds the result of a trial, even at a rate that the search did not choose.
    pub fn add_trial(&mut self, rate: f64, trial: Trial) {
        self.trials.push((rate, trial));
    }

    /// The trials in their order.
    pub fn trials(&self) -> &[(f64, Trial)] {
        &self.trials
    }

    /// The result so far.
    pub fn outcome(&self) -> MaxRateResult {
        let failed = self.lowest_failed();
        let highest = self.highest();
        let mut unstable: Vec<f64> = self.held().filter(|&rate| failed.is_some_and(|f| rate >= f)).collect();
        unstable.sort_unstable_by(f64::total_cmp);
        unstable.dedup();
        let latest = self.trials.iter().rev().find(|(rate, _)| Some(*rate) == highest);
        MaxRateResult {
            highest,
            achieved: latest.map(|(_, trial)| trial.achieved),
            confirmed: highest.is_some_and(|rate| self.confirmed(rate)),
            lowest_failed: failed,
            unstable,
            ended: self.decide().err().unwrap_or(SearchEnd::Underway),
        }
    }

    /// The next rate, or why there is none.
    fn decide(&self) -> Result<f64, SearchEnd> {
        let left = self.budget.saturating_sub(self.trials.len());
        let (highest, failed) = (self.highest(), self.lowest_failed());
        let wish = match (highest, failed) {
            (None, None) => Ok(self.start),
            (None, Some(failed)) if failed <= self.lowest => Err(SearchEnd::NothingHolds),
            (None, Some(failed)) => Ok((failed / 2.0).max(self.lowest)),
            (Some(highest), None) if highest >= Rates::HIGHEST => self.confirm(highest, SearchEnd::Highest),
            (Some(highest), None) => Ok((highest * 2.0).min(Rates::HIGHEST)),
            (Some(highest), Some(failed)) if failed <= highest * self.resolution => {
                self.confirm(highest, SearchEnd::Resolved)
            }
            (Some(highest), Some(failed)) => Ok(between(highest, failed)),
        };
        match (wish, highest) {
            (Err(ended), _) => Err(ended),
            (Ok(_), _) if left == 0 => Err(SearchEnd::OutOfTrials),
            // A rate that passed twice is preferred to a higher one that passed once.
            (Ok(_), Some(highest)) if left == 1 && !self.confirmed(highest) => Ok(highest),
            (Ok(rate), _) => Ok(rate),
        }
    }

    fn confirm(&self, rate: f64, ended: SearchEnd) -> Result<f64, SearchEnd> {
        if self.confirmed(rate) { Err(ended) } else { Ok(rate) }
    }

    fn confirmed(&self, rate: f64) -> bool {
        self.held().filter(|&held| held == rate).count() > 1
    }

    fn held(&self) -> impl Iterator<Item = f64> + '_ {
        self.trials.iter().filter(|(_, trial)| trial.holds).map(|(rate, _)| *rate)
    }

    /// The highest rate that held below everything that failed.
    fn highest(&self) -> Option<f64> {
        let failed = self.lowest_failed().unwrap_or(f64::INFINITY);
        self.held().filter(|&rate| rate < failed).max_by(f64::total_cmp)
    }

    fn lowest_failed(&self) -> Option<f64> {
        self.trials.iter().filter(|(_, trial)| !trial.holds).map(|(rate, _)| *rate).min_by(f64::total_cmp)
    }
}

/// The geometric mean, to four digits where that is still between the two: people will read and repeat it.
fn between(low: f64, high: f64) -> f64 {
    let middle = (low * high).sqrt();
    let digit = 10_f64.powf(middle.log10().floor() - 3.0);
    let short = (middle / digit).round() * digit;
    // Whole thousandths, so that a power of ten adds no digits.
    let short = if digit >= 1.0 { short.round() } else { short };
    if short > low && short < high { short } else { middle }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Random;
    use proptest::prelude::*;

    use super::*;

    fn trial(rate: f64, holds: bool) -> Trial {
        Trial { holds, achieved: rate, why: String::new() }
    }

    /// Runs a search to its end against a system that holds by `holds`.
    fn run(mut search: Search, mut holds: impl FnMut(f64) -> bool) -> (MaxRateResult, Vec<f64>) {
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            assert!(rates.len() < 200, "it does not end: {rates:?}");
            rates.push(rate);
            let held = holds(rate);
            search.add_trial(rate, trial(rate, held));
        }
        (search.outcome(), rates)
    }

    #[test]
    fn it_doubles_then_closes_in_and_confirms() {
        let search = Search::new(1000.0, 5.0, 30).unwrap();
        let (found, rates) = run(search, |rate| rate <= 5_300.0);
        assert_eq!(rates[..5], [1000.0, 2000.0, 4000.0, 8000.0, 5657.0]);
        let highest = found.highest.unwrap();
        assert!(highest <= 5_300.0 && highest * 1.05 > 5_300.0, "{found:?}");
        assert_eq!(rates[rates.len() - 1], highest);
        assert!(found.confirmed && found.unstable.is_empty() && found.ended == SearchEnd::Resolved);
        assert!(rates.len() <= 10, "{rates:?}");
    }

    #[test]
    fn a_first_rate_that_fails_is_halved() {
        let search = Search::new(1000.0, 5.0, 30).unwrap();
        let (found, rates) = run(search, |rate| rate <= 130.0);
        assert_eq!(rates[..5], [1000.0, 500.0, 250.0, 125.0, 176.8]);
        assert!((124.0..=130.0).contains(&found.highest.unwrap()), "{found:?}");

        let (found, rates) = run(Search::new(1024.0, 5.0, 30).unwrap(), |_| false);
        assert_eq!((found.highest, found.ended), (None, SearchEnd::NothingHolds));
        assert_eq!((rates.len(), found.lowest_failed), (11, Some(1.0)));

        let search = Search::new(1000.0, 5.0, 30).unwrap().not_below(300.0);
        let (found, rates) = run(search, |_| false);
        assert_eq!((rates, found.ended), (vec![1000.0, 500.0, 300.0], SearchEnd::NothingHolds));
    }

    #[test]
    fn the_highest_allowed_rate_is_tried_itself_and_confirmed() {
        let start = Rates::HIGHEST / 3.0;
        let (found, rates) = run(Search::new(start, 5.0, 30).unwrap(), |_| true);
        assert_eq!(rates, [start, start * 2.0, Rates::HIGHEST, Rates::HIGHEST]);
        assert_eq!(
            (found.highest, found.ended, found.confirmed),
            (Some(Rates::HIGHEST), SearchEnd::Highest, true)
        );
    }

    #[test]
    fn a_rate_that_held_and_then_fails_is_unstable_and_left() {
        // 4000 holds at first only: everything from 3900 on fails from the fifth trial on.
        let mut count = 0;
        let (found, _) = run(Search::new(1000.0, 5.0, 40).unwrap(), |rate| {
            count += 1;
            rate < 3900.0 || (count <= 3 && rate <= 4000.0)
        });
        assert_eq!((found.unstable, found.lowest_failed.is_some_and(|f| f <= 4000.0)), (vec![4000.0], true));
        assert!(found.confirmed && found.highest.is_some_and(|r| (3700.0..3900.0).contains(&r)));
    }

    #[test]
    fn the_last_trial_confirms_instead_of_looking_higher() {
        let (found, rates) = run(Search::new(1000.0, 5.0, 4).unwrap(), |rate| rate < 1e6);
        assert_eq!(rates, [1000.0, 2000.0, 4000.0, 4000.0]);
        assert_eq!(
            (found.highest, found.confirmed, found.ended),
            (Some(4000.0), true, SearchEnd::OutOfTrials)
        );
        let (found, _) = run(Search::new(1000.0, 5.0, 3).unwrap(), |_| false);
        assert_eq!((found.highest, found.ended), (None, SearchEnd::OutOfTrials));
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        for (start, resolution, budget) in [
            (0.0, 5.0, 10),
            (f64::NAN, 5.0, 10),
            (1e9, 5.0, 10),
            (100.0, 0.0, 10),
            (100.0, f64::NAN, 10),
            (100.0, 5.0, 1),
        ] {
            assert!(Search::new(start, resolution, budget).is_err(), "{start} {resolution} {budget}");
        }
    }

    proptest! {
        #[test]
        fn a_sharp_threshold_is_found_within_the_resolution(
            start in 1.0..100_000.0_f64, ratio in 0.01..50.0_f64, resolution in 0.5..50.0_f64
        ) {
            let threshold = (start * ratio).min(9e6);
            let search = Search::new(start, resolution, 100).unwrap();
            let (found, rates) = run(search, |rate| rate <= threshold);
            let highest = found.highest.unwrap();
            prop_assert!(highest <= threshold && highest * (1.0 + resolution / 100.0) >= threshold * 0.999_999);
            prop_assert!(found.confirmed && found.ended == SearchEnd::Resolved && rates.len() < 35);
        }

        #[test]
        fn under_noise_it_ends_and_never_names_what_failed(
            seed: u64, threshold in 10.0..1e6_f64, softness in 0.0..0.3_f64, budget in 2_usize..60
        ) {
            // The chance to hold falls from 1 to 0 around the threshold.
            let mut random = Random::part(seed, 1, 1);
            let mut search = Search::new(1000.0, 5.0, budget).unwrap();
            while let Some(rate) = search.next() {
                prop_assert!(rate > 0.0 && rate <= Rates::HIGHEST);
                let held = rate.ln() < threshold.ln() + softness * (2.0 * random.unit() - 1.0);
                search.add_trial(rate, trial(rate, held));
                prop_assert!(search.trials().len() <= budget);
            }
            let found = search.outcome();
            prop_assert!(found.ended != SearchEnd::Underway);
            if let Some(highest) = found.highest {
                prop_assert!(search.trials().iter().all(|(rate, t)| t.holds || *rate > highest));
                prop_assert!(highest.ln() < threshold.ln() + softness);
                if found.ended == SearchEnd::Resolved {
                    prop_assert!(found.confirmed && found.lowest_failed.unwrap() <= highest * 1.05 * 1.000_001);
                    // One step of the resolution below the softness every trial passes.
                    prop_assert!(highest.ln() > threshold.ln() - softness - 0.05);
                }
            }
            for rate in &found.unstable {
                prop_assert!(search.trials().iter().any(|(r, t)| r == rate && t.holds));
                prop_assert!(found.lowest_failed.is_some_and(|f| f <= *rate));
            }
        }
    }
}
