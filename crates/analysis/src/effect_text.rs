//! Effects as people read them.

use crate::fit::Estimate;

/// A part as a signed percentage: "+1.23 %".
pub fn signed_percent(part: f64) -> String {
    let percent = part * 100.0;
    // What rounds to nothing has no sign.
    let percent = if percent.abs() < 0.005 { 0.0 } else { percent };
    if !percent.is_finite() {
        "–".into()
    } else if percent.abs() < 9.995 {
        format!("{percent:+.2} %")
    } else {
        format!("{percent:+.1} %")
    }
}

/// A part as a percentage without a sign: "1.5 %".
pub fn plain_percent(part: f64) -> String {
    let text = format!("{:.2}", part * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

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

/// A probability: "0.031", "< 0.001".
pub fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => "< 0.001".into(),
        Some(p) => format!("{p:.3}"),
        None => "–".into(),
    }
}

/// "1 block", "6 blocks".
pub fn count(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}
