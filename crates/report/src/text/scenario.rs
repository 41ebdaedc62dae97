//! The steps of a scenario, and the effects of tenants on each other.

use kelvin_diagnose::bands::BandShare;
use kelvin_diagnose::interference::{Interference, InterferenceVerdict, RelativeChange};
use kelvin_diagnose::tenants::WaitChanges;
use kelvin_measure::text::{NONE, decimal, fixed_change, fixed_percent, ms, plural, rate, whole};

use super::{BOLD, Page, RED};
use crate::RunReport;

/// Number of rows in the summary at the end of a run.
const FEW: usize = 6;

/// A ratio from here on is printed as a factor, not in per cent.
const MANY_TIMES: f64 = 10.0;

/// Number of printed wait classes.
const FEW_CLASSES: usize = 4;

/// An increase by fewer sessions is not mentioned in a sentence.
const WORTH_NAMING: f64 = 0.1;

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
                    fixed_percent(Some(before), 1),
                    fixed_percent(Some(after), 1)
                ));
            }
            for band in &one.bands {
                let name = format!("in band, {} s", band.width_s);
                let (before, after) = (share(band.before), share(band.after));
                let (low, high) = (rate(Some(band.low)), rate(Some(band.high)));
                // 95 % of Poisson arrivals lie in this range.
                self.line(&format!("  {name:<14}{before:>12}{after:>12}   {low} to {high} /s"));
            }
            if let Some(waits) = &one.waits {
                self.waits(waits);
            }
        }
    }

    /// The largest changes in the waits of the tenant's sessions.
    fn waits(&mut self, waits: &WaitChanges) {
        let shared = match waits.shared_with.as_slice() {
            [] => String::new(),
            others => format!("; with those of {}", others.join(", ")),
        };
        self.wrapped("  ", &format!("sessions of its database, before and after{shared}:"));
        for one in waits.classes.iter().take(FEW_CLASSES) {
            let figure = |sessions: f64| decimal(Some(sessions));
            let (before, after) = (figure(one.before), figure(one.after));
            self.line(&format!("  {:<14}{before:>12}{after:>12}", one.class));
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

    /// One sentence each, for the summary at the end of a run.
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
        let figures = [("throughput", &one.throughput), ("p50", &one.p50_us), ("p99", &one.p99_us)];
        let (changed, same): (Vec<_>, Vec<_>) =
            figures.into_iter().partition(|(_, change)| change.is_shown());
        let list = |figures: &[(&str, &RelativeChange)]| {
            figures.iter().filter_map(|(name, change)| part(name, change)).collect::<Vec<_>>().join(", ")
        };
        let rest = Some(list(&same)).filter(|rest| !rest.is_empty());
        format!(
            "{}{}",
            list(&changed),
            rest.map_or_else(String::new, |rest| format!("; not shown to change: {rest}"))
        )
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
        InterferenceVerdict::TooShort => "too few seconds before or after it for a comparison".to_owned(),
    };
    let held = match one.rate_held() {
        Some((true, false)) => "; the rate was held before, but not after",
        Some((false, true)) => "; the rate was not held before",
        _ => "",
    };
    let waited = waited(one).filter(|_| one.verdict == InterferenceVerdict::Worse);
    format!("{lead}: {rest}{held}{}", waited.unwrap_or_default())
}

/// "; its sessions waited for log: 0.4 before, 3.1 after".
fn waited(one: &Interference) -> Option<String> {
    let classes = &one.waits.as_ref()?.classes;
    let most = classes.iter().max_by(|a, b| a.rise().total_cmp(&b.rise()))?;
    (most.rise() >= WORTH_NAMING).then(|| {
        let figure = |sessions: f64| decimal(Some(sessions));
        let (before, after) = (figure(most.before), figure(most.after));
        format!("; sessions of its database in {}: {before} before, {after} after", most.class)
    })
}

/// "94 % of 30".
fn share(share: BandShare) -> String {
    format!("{:.0} % of {}", share.inside as f64 / share.points.max(1) as f64 * 100.0, share.points)
}

/// One line per change in the waits of its sessions, and in the share of points in their bands.
pub(crate) fn details(one: &Interference) -> Vec<String> {
    let bands = one.bands.iter().map(|band| {
        let (low, high) = (rate(Some(band.low)), rate(Some(band.high)));
        let (before, after) = (share(band.before), share(band.after));
        format!("{} s points within {low} to {high}: {before} → {after}", band.width_s)
    });
    let classes = one.waits.iter().flat_map(|waits| waits.classes.iter().take(FEW_CLASSES)).map(|class| {
        let figure = |sessions: f64| decimal(Some(sessions));
        format!("sessions in {}: {} → {}", class.class, figure(class.before), figure(class.after))
    });
    let shared = one.waits.iter().filter(|waits| !waits.shared_with.is_empty());
    let shared = shared.map(|waits| format!("the database is also that of {}", waits.shared_with.join(", ")));
    bands.chain(classes).chain(shared).collect()
}

/// "-12.3 %" for a ratio; "×27" for a large one.
pub(crate) fn percent(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio) if ratio < MANY_TIMES => fixed_change(ratio, 1),
        Some(ratio) => format!("×{}", whole(ratio.round() as u64)),
        None => NONE.into(),
    }
}

/// "-14.0 to -10.1 %".
pub(crate) fn interval(change: &RelativeChange) -> Option<String> {
    let low = change.low?;
    let high = change.high.map_or_else(|| "no upper end".to_owned(), |high| percent(Some(high)));
    let same = change.high.is_some_and(|high| high < MANY_TIMES);
    let low = percent(Some(low));
    let low = if same { low.trim_end_matches(" %") } else { &low };
    Some(format!("{low} to {high}"))
}
