//! Texts that repeated runs and comparisons share.

use std::time::Duration;

use kelvin_lab::repeat::{GroupRun, RunNoise};
use kelvin_measure::text::{bounded, duration, significant_or_none, trimmed_percent};
use kelvin_run::Spec;

/// "about 2 min for the load alone", from the specification.
pub(crate) fn describe_duration(spec: &Spec, runs: u32) -> String {
    let Some(each) = spec.planned() else { return "their duration is known after the first".into() };
    format!("about {} for the load alone", duration((each * runs).as_secs_f64()))
}

/// "run 12: 45,210 NOPM", and whether it is void.
pub(crate) fn describe_run(row: &GroupRun, figure: Option<&str>) -> String {
    let figure = row.figure(figure);
    let value = bounded(figure.and_then(kelvin_diagnose::KeyFigure::bounded), significant_or_none);
    let name = figure.map_or("", |figure| figure.name.as_str());
    let void = row.void.as_ref().map_or(String::new(), |why| format!(", {why}"));
    format!("run {}: {value} {name}{void}", row.run)
}

pub(crate) fn failed(error: &str) -> String {
    format!("a run could not be completed and counts as void: {error}")
}

pub(crate) fn time_left(left: Duration) -> String {
    if left.is_zero() { String::new() } else { format!(" · about {} left", duration(left.as_secs_f64())) }
}

/// A share with its sign: "+0.85 %".
pub(crate) fn change(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "-" } else { "+" }, trimmed_percent(share.abs()))
}

/// A probability in a sentence: "p = 0.031".
pub(crate) fn describe_p(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

/// The text for accepted noise whose cost is unknown.
pub(crate) const ACCEPTED_UNKNOWN: &str = "accepted (--accept-noise): its cost is not known";

/// Whether a specification, in TOML, accepts noise.
pub(crate) fn accepts_noise(spec: &str) -> bool {
    Spec::parse(spec, "the plan").is_ok_and(|spec| spec.accept_noise)
}

/// The cost of other processes' CPU use for the runs.
pub(crate) fn noise_text(noise: &RunNoise) -> String {
    let accepted = if noise.accepted { "accepted (--accept-noise): " } else { "" };
    let runs = if noise.runs == 1 {
        "the run's result".into()
    } else {
        format!("a run's result, {} on average", trimmed_percent(noise.estimate))
    };
    format!("{accepted}foreign CPU explains up to {} of {runs}", trimmed_percent(noise.high))
}
