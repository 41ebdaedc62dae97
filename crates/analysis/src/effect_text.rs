//! Effects as text for people.

use kelvin_measure::text::{plain_percent, signed_percent};

use crate::fit::Estimate;

/// A relative effect with its interval: "+1.23 % (95 %: +0.80 to +1.66)".
pub fn format_effect(estimate: &Estimate, confidence: f64) -> String {
    let bare = |part: f64| signed_percent(part).trim_end_matches(" %").to_owned();
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!(
                "{} ({}: {} to {})",
                signed_percent(estimate.value),
                plain_percent(confidence),
                bare(low),
                bare(high)
            )
        }
        _ => format!("{} (no interval)", signed_percent(estimate.value)),
    }
}
