//! The steps of a scenario, and what the tenants did to each other.

use kelvin_diagnose::interference::{Interference, InterferenceVerdict, RelativeChange};
use kelvin_measure::text::{ms, plural, rate};

use super::{BOLD, Page, RED};
use crate::RunReport;

/// Rows of the summary at a run's end.
const FEW: usize = 6;

impl Page {
    /// The timeline, and each tenant before and after each change.
    pub(super) fn scenario(&mut self, report: &RunReport) {
        let Some(scenario) = &report.scenario else { return };
        self.line("");
        self.line("timeline:");
        for step in &scenario.steps {
            self.wrapped(&format!("{:>9.1} s  ", step.at as f64 / 1e9), &step.text);
        }
        self.line("");
        for one in &scenario.interference {
            let colour = if one.verdict == InterferenceVerdict::Worse { RED } else { "" };
            self.wrapped_in(colour, "", &sentence(one));
            self.change("throughput /s", &one.throughput, rate);
            self.change("p50 ms", &one.p50_us, ms);
            self.change("p99 ms", &one.p99_us, ms);
            if let Some((before, after)) = one.held {
                self.line(&format!(
                    "  {:<14}{:>12}{:>12}",
                    "rate held",
                    format!("{:.1} %", before * 100.0),
                    format!("{:.1} %", after * 100.0)
                ));
            }
        }
    }

    fn change(&mut self, name: &str, change: &RelativeChange, text: fn(Option<f64>) -> String) {
        let interval = interval(change)
            .map_or_else(|| "no interval: too few seconds".to_owned(), |ends| format!("95 %: {ends}"));
        self.line(&format!(
            "  {name:<14}{:>12}{:>12}{:>10}   {interval}",
            text(change.before),
            text(change.after),
            percent(change.ratio)
        ));
    }

    /// The same in a sentence for each, at a run's end.
    pub(super) fn interference(&mut self, report: &RunReport) {
        let Some(scenario) = &report.scenario else { return };
        let (known, short): (Vec<&Interference>, Vec<&Interference>) =
            scenario.interference.iter().partition(|one| one.verdict != InterferenceVerdict::TooShort);
        for one in known.iter().take(FEW) {
            let colour = if one.verdict == InterferenceVerdict::Worse { RED } else { BOLD };
            self.wrapped_in(colour, "", &sentence(one));
        }
        let more = known.len().saturating_sub(FEW);
        if more > 0 {
            self.line(&format!("{more} more comparisons: kelvin show"));
        }
        if !short.is_empty() {
            let words = plural(short.len(), "comparison has", "comparisons have");
            self.line(&format!("{} {words} too few seconds before or after the step", short.len()));
        }
    }
}

/// "oltp at \"start dss\" (60 s): throughput -12.3 % (-14.0 to -10.1), p99 +80 % (+60 to +110)".
pub(crate) fn sentence(one: &Interference) -> String {
    let lead = format!("{} at \"{}\" ({:.0} s)", one.tenant, one.text, one.at_s);
    let changes = || {
        let part = |name: &str, change: &RelativeChange| {
            let ends = interval(change).map_or_else(String::new, |ends| format!(" ({ends})"));
            change.ratio.map(|_| format!("{name} {}{ends}", percent(change.ratio)))
        };
        let parts = [part("throughput", &one.throughput), part("p50", &one.p50_us), part("p99", &one.p99_us)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let rest = match one.verdict {
        InterferenceVerdict::Worse => format!("worse: {}", changes()),
        InterferenceVerdict::Better => format!("better: {}", changes()),
        InterferenceVerdict::NotShown { throughput_percent, p99_percent } => {
            let part =
                |name: &str, most: Option<f64>| most.map(|most| format!("{name} by at most {most:.1} %"));
            let parts = [part("throughput lower", throughput_percent), part("p99 higher", p99_percent)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!("no interference shown: {}", parts.join(", "))
        }
        InterferenceVerdict::TooShort => "too few seconds before or after it to say anything".to_owned(),
    };
    let held = match one.rate_held() {
        Some((true, false)) => "; the rate was held before and not after",
        Some((false, true)) => "; the rate was not held before",
        _ => "",
    };
    format!("{lead}: {rest}{held}")
}

/// "-12.3 %" of a ratio.
pub(crate) fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0))
}

/// "-14.0 to -10.1 %".
pub(crate) fn interval(change: &RelativeChange) -> Option<String> {
    let low = change.low?;
    let high = change
        .high
        .map_or_else(|| "no upper end".to_owned(), |high| format!("{:+.1} %", (high - 1.0) * 100.0));
    Some(format!("{:+.1} to {high}", (low - 1.0) * 100.0))
}
