//! The load of each of several sources: generators, tenants, hosts.

use std::collections::BTreeMap;

use kelvin_measure::event::{LoadPart, Second, SeriesRole, Step, StepKind};
use kelvin_measure::{Histogram, Nanos, SECOND, Source, SourceId};

use super::{Load, Timeline};

/// One source, in the point so far.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// Headline transactions of its newest second.
    now: u64,
    /// Headline transactions of the window.
    pub(crate) headline: u64,
    /// Errors of any kind.
    pub(crate) errors: u64,
    latency: Histogram,
    newest: Option<i64>,
    /// For a tenant: when its load was switched on, since the window opened; none while it is off.
    on_since: Option<Nanos>,
    /// For how long it was on before that.
    on_before: Nanos,
    /// Whether a step has switched it on or off.
    has_turns: bool,
}

/// The state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// It has not sent a second yet.
    Starting,
    /// It is active, with this many headline transactions in its newest second.
    Running(u64),
    /// It is more than a second behind other sources.
    Silent,
    /// Its load has ended.
    Stopped,
}

impl Lane {
    /// Its state if the newest second of all sources is `newest`. Sources report a second one after another,
    /// so a lane may be one second behind.
    pub(crate) fn state(&self, newest: Option<i64>) -> LaneState {
        match (self.newest, newest) {
            _ if self.has_turns && self.on_since.is_none() => LaneState::Stopped,
            (None, _) => LaneState::Starting,
            (Some(of_lane), Some(newest)) if of_lane + 1 < newest => LaneState::Silent,
            (Some(_), _) => LaneState::Running(self.now),
        }
    }

    /// For how many seconds a tenant's load was on, if the newest second of all sources is `newest`.
    pub(crate) fn seconds_on(&self, newest: Option<i64>) -> f64 {
        let now = newest.map_or(0, |newest| u64::try_from(newest + 1).unwrap_or(0) * SECOND);
        let on = self.on_since.map_or(0, |since| now.saturating_sub(since));
        (self.on_before + on) as f64 / SECOND as f64
    }

    fn step(&mut self, kind: StepKind, at: Nanos) {
        self.has_turns = true;
        if kind == StepKind::Start {
            self.on_since.get_or_insert(at);
        } else if let Some(since) = self.on_since.take() {
            self.on_before += at.saturating_sub(since);
        }
    }

    /// The 95th percentile of the latency over the window.
    pub(crate) fn p95(&self) -> Option<Nanos> {
        self.latency.percentile(95.0)
    }
}

/// The sources of load, each in a separate lane, if a source other than this process was declared.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    declared: BTreeMap<SourceId, Source>,
    lanes: BTreeMap<SourceId, (Lane, Timeline)>,
}

impl Lanes {
    pub(super) fn declare(&mut self, id: SourceId, source: &Source) {
        self.declared.insert(id, source.clone());
    }

    /// Starts a new point.
    pub(super) fn restart(&mut self) {
        self.lanes.values_mut().for_each(|(lane, _)| *lane = Lane::default());
    }

    /// Switches the loads of tenants on or off.
    pub(super) fn step(&mut self, step: &Step) {
        if !matches!(step.kind, StepKind::Start | StepKind::Stop) {
            return;
        }
        let named = |source: &Source| source.tenant.as_ref().is_some_and(|name| step.tenants.contains(name));
        for (id, _) in self.declared.iter().filter(|(_, source)| named(source)) {
            self.lanes.entry(*id).or_default().0.step(step.kind, step.at);
        }
    }

    fn of(&mut self, source: SourceId) -> Option<&mut (Lane, Timeline)> {
        (!self.declared.is_empty()).then(|| self.lanes.entry(source).or_default())
    }

    /// Adds a second of a source, which is already in the total `sum`, at its position on the run's clock.
    pub(super) fn second(&mut self, source: SourceId, second: &Second, sum: &Load, at: Option<Nanos>) {
        // For a tenant all transactions count, as in its report.
        let is_tenant = self.declared.get(&source).is_some_and(|source| source.tenant.is_some());
        let Some((lane, timeline)) = self.of(source) else { return };
        let mut headline = 0;
        for (series, counts) in sum.series.iter().zip(&second.kinds) {
            let counted = series.role == SeriesRole::Transaction && series.headline;
            if counted {
                headline += if is_tenant { counts.good() } else { counts.committed };
            }
            if sum.shows(series.role) && series.role.counts_in(second.part) {
                lane.latency.add(&counts.latency);
            }
        }
        if second.part == LoadPart::Measured {
            lane.headline += headline;
        }
        if second.part != LoadPart::Tail {
            let this = Some(second.second);
            // The total omits a last fraction of a second.
            if lane.newest <= this && this <= sum.newest() {
                let before = if lane.newest == this { lane.now } else { 0 };
                (lane.newest, lane.now) = (this, before + headline);
            }
            if let Some(at) = at {
                let column = timeline.column_at(at);
                column.part = Some(second.part);
                column.headline += headline;
            }
        }
    }

    pub(super) fn errors(&mut self, source: SourceId, count: u64) {
        if let Some((lane, _)) = self.of(source) {
            lane.errors += count;
        }
    }

    /// The lanes with their names; empty if there is only one and it is not a tenant.
    pub(crate) fn loaded(&self) -> Vec<(String, &Lane, &Timeline)> {
        let name = |id: SourceId| self.declared.get(&id).cloned().unwrap_or_default().describe(id);
        let loaded =
            self.lanes.iter().filter(|(_, (lane, timeline))| !timeline.is_empty() || lane.errors > 0);
        let lanes: Vec<_> = loaded.map(|(id, (lane, timeline))| (name(*id), lane, timeline)).collect();
        let is_tenant = self.declared.values().any(|source| source.tenant.is_some());
        if lanes.len() > 1 || is_tenant { lanes } else { Vec::new() }
    }
}
