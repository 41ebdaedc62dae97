//! The texts of a load (rates, objectives, sweeps): any text is refused or read, and what was read prints as a
//! text that says the same.

#![no_main]

use kelvin_run::spec::{Rates, Slo, Sweep};
use libfuzzer_sys::fuzz_target;

fn round_trip<T>(text: &str) -> Option<T>
where
    T: std::str::FromStr<Err = String> + std::fmt::Display + std::fmt::Debug + PartialEq,
{
    let read: T = text.parse().ok()?;
    let again: T = read.to_string().parse().expect("a printed text is read again");
    assert_eq!(again, read);
    Some(read)
}

fuzz_target!(|text: &str| {
    if let Some(rates) = round_trip::<Rates>(text) {
        let points = rates.points(1);
        assert!(!points.is_empty() && points.iter().all(|rate| rate.is_finite() && *rate > 0.0));
    }
    if let Some(sweep) = round_trip::<Sweep>(text) {
        let numbers = sweep.numbers();
        assert!(numbers.len() >= 4 && numbers.iter().all(|number| *number > 0));
    }
    round_trip::<Slo>(text);
});
