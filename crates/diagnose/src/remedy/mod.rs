//! Remedies: changes that may remove what a finding names, as data, so that they can be listed, applied and proved.
//!
//! Each has a bound by Amdahl's law (CACM 1967; the share of the time that it can take away) and says whether TPC-C's rules allow
//! it. A bound is no forecast: whether the change helps is for a comparison to show.

mod host;
mod indexes;
mod predicates;
mod settings;
mod statistics;
mod tables;

use kelvin_measure::observation::WaitKind;
use serde::Serialize;

use crate::{Change, Effect, EffectBasis, Evidence, Finding, is_client};

/// A change that may help.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Remedy {
    /// The finding from which it comes; "waits" for one that follows from what the sessions waited for.
    pub finding: &'static str,
    /// What it is, in one line: "max_wal_size = 4GB".
    pub title: String,
    /// What is changed.
    pub change: Change,
    /// Why it may help, with the figures.
    pub reason: String,
    /// What it can take away at most.
    pub effect: Effect,
    /// Whether TPC-C's rules allow it.
    pub rules: Rules,
}

/// Whether a change is allowed in a TPC-C run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "rules", rename_all = "kebab-case")]
pub enum Rules {
    /// Allowed: physical design and settings that keep the transactions' properties are the tester's choice.
    Allowed,
    /// Not allowed.
    Forbidden {
        /// The rule.
        why: &'static str,
    },
}

impl Remedy {
    /// How much the throughput of a closed loop can gain at most, as a share of it: 1 / (1 − s) − 1; none where the bound is not
    /// known, or where nothing else would be left. It is a bound if the other transactions do not wait for what the statement itself
    /// uses or holds.
    pub fn gain(&self) -> Option<f64> {
        let Effect::Bounded { high, of, .. } = &self.effect else { return None };
        let of_time = matches!(
            of,
            EffectBasis::TransactionTime
                | EffectBasis::StatementTime
                | EffectBasis::Throughput
                | EffectBasis::Figure
        );
        (of_time && *high < 1.0).then(|| 1.0 / (1.0 - high) - 1.0)
    }

    /// Whether TPC-C's rules allow it.
    pub fn is_allowed(&self) -> bool {
        self.rules == Rules::Allowed
    }
}

pub use settings::rules_of_setting;

/// A bound below this is not worth a comparison: the smallest change that `kelvin ab` calls one.
const LEAST: f64 = 0.01;

/// In the place of the finding, for a change that the waits suggest and no finding names.
const WAITS: &str = "waits";
/// The same for a change that the host's counters suggest.
const HOST: &str = "host";

/// A larger gain says only that nearly all the time is spent on what the change is about: such bounds do not rank changes.
pub const LARGE_GAIN: f64 = 10.0;

/// The share of the time that corresponds to that gain.
const LARGE_SHARE: f64 = LARGE_GAIN / (1.0 + LARGE_GAIN);

/// The remedies for what a run shows, by their bound, the largest first; those with an unknown bound last. Bounds beyond
/// [`LARGE_GAIN`] are equal. Of remedies with equal bounds, those that a finding names come first, and those that TPC-C's rules
/// forbid last. `found` are its findings.
pub fn remedies(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    let mut all = indexes::remedies(evidence);
    all.extend(tables::remedies(evidence, found));
    all.extend(statistics::remedies(evidence));
    all.extend(settings::remedies(evidence, found));
    all.extend(host::remedies(evidence, found));
    all.retain(|one| one.effect.high().is_none_or(|high| high >= LEAST));
    // A missing bound is no small one, but it cannot be ranked.
    let bound = |one: &Remedy| one.effect.high().map_or(-1.0, |high| high.min(LARGE_SHARE));
    let is_general = |one: &Remedy| [WAITS, HOST].contains(&one.finding);
    let tie = |one: &Remedy| (is_general(one), !one.is_allowed());
    all.sort_by(|a, b| bound(b).total_cmp(&bound(a)).then_with(|| tie(a).cmp(&tie(b))));
    let mut seen = Vec::new();
    all.retain(|one| {
        let new = !seen.contains(&one.change);
        seen.push(one.change.clone());
        new
    });
    all
}

/// The finding of this name, the one with the largest effect where there are several.
fn finding<'a>(found: &'a [Finding], id: &str) -> Option<&'a Finding> {
    let effect = |finding: &&Finding| finding.effect.high().unwrap_or(0.0);
    found.iter().filter(|one| one.id == id).max_by(|a, b| effect(a).total_cmp(&effect(b)))
}

/// The share of the active sessions' time in waits of these kinds, at the point where it is largest; none where no session was seen.
fn waited_share(evidence: &Evidence, kinds: &[WaitKind]) -> Option<f64> {
    let share = |point: u32| {
        let active = evidence.active(point, is_client);
        let waited = active.groups.iter().filter(|(group, _)| kinds.contains(&group.kind));
        let waited: f64 = waited.map(|(_, sessions)| sessions).sum();
        (active.sessions() > 0.0).then(|| waited / active.sessions())
    };
    evidence.points().filter_map(|point| share(point.point)).reduce(f64::max)
}

#[cfg(test)]
mod tests;
