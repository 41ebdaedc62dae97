//! The tenants of a scenario as they were stored: what each did in which second, and when its load was on.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_measure::event::{Event, LoadPart, Phase, SeriesRole, Step, Stretch};
use kelvin_measure::observation::Observation;
use kelvin_measure::{CensoredTimes, Histogram, Nanos, SECOND, Source, SourceId};
use kelvin_store::{Result, StoredRun};
use serde::Serialize;

use crate::class::{Class, is_client};
use crate::evidence::{Sessions, Span};

/// A tenant's whole load, second by second.
#[derive(Debug, Clone, Default)]
pub struct TenantSeries {
    /// Its source.
    pub source: SourceId,
    /// Its name.
    pub name: String,
    /// The stretches of time in which its load was on, in their order.
    pub stretches: Vec<Stretch>,
    /// By second of the scenario's clock.
    pub seconds: BTreeMap<i64, TenantSecond>,
    /// What the sessions of its database did; none where nobody saw that.
    pub waits: Option<TenantWaits>,
}

/// What the sessions of a tenant's database did.
#[derive(Debug, Clone, Default)]
pub struct TenantWaits {
    sessions: Sessions,
    /// When the scenario's clock began, on the clock of who looked.
    origin: Nanos,
    /// Other tenants on the same database.
    shared_with: Vec<String>,
}

impl TenantWaits {
    /// The average sessions of clients by class over these seconds, which follow each other.
    fn by_class(&self, seconds: &[i64]) -> Option<Vec<(Class, f64)>> {
        let at = |second: i64| self.origin.saturating_add_signed(second.saturating_mul(SECOND as i64));
        let span = Span { from: at(*seconds.first()?), to: at(seconds.last()? + 1) };
        let active = self.sessions.active(span, is_client);
        (active.looks > 0).then(|| {
            let of = active.by(Class::from_wait_group);
            of.into_iter().filter_map(|(class, sessions)| Some((class?, sessions))).collect()
        })
    }

    /// What they did before and after a change, the largest difference first.
    pub(crate) fn compare(&self, before: &[i64], after: &[i64]) -> Option<WaitChanges> {
        let (before, after) = (self.by_class(before)?, self.by_class(after)?);
        let of = |all: &[(Class, f64)], class: Class| {
            all.iter().find(|(one, _)| *one == class).map_or(0.0, |(_, sessions)| *sessions)
        };
        let known: BTreeSet<Class> = before.iter().chain(&after).map(|(class, _)| *class).collect();
        let each = |class: Class| WaitChange {
            class: class.label().into(),
            before: of(&before, class),
            after: of(&after, class),
        };
        let mut classes: Vec<WaitChange> = known.into_iter().map(each).collect();
        classes.sort_by(|a, b| b.rise().abs().total_cmp(&a.rise().abs()));
        Some(WaitChanges { classes, shared_with: self.shared_with.clone() })
    }
}

/// What the sessions of a tenant's database did before a step and after it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct WaitChanges {
    /// By class, the largest difference first.
    pub classes: Vec<WaitChange>,
    /// Other tenants on the same database, whose sessions are among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared_with: Vec<String>,
}

/// The average number of sessions in a class of activity, before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitChange {
    /// The class by its name for people: "log", "data reads", "CPU".
    pub class: String,
    /// Before the step.
    pub before: f64,
    /// After it.
    pub after: f64,
}

impl WaitChange {
    /// By how many sessions it rose.
    pub fn rise(&self) -> f64 {
        self.after - self.before
    }
}

/// One second of a tenant.
#[derive(Debug, Clone, Default)]
pub struct TenantSecond {
    /// Committed and rolled back, or I/Os done.
    pub good: u64,
    /// Failed for good.
    pub failed: u64,
    /// Service times.
    pub service: Histogram,
    /// Response times; empty in a closed loop.
    pub response: Histogram,
    /// Arrivals that were to start in it; none where they were not counted.
    pub due: Option<u64>,
    /// Those of them that were refused.
    pub refused: u64,
    /// Arrivals that waited at its end.
    pub waiting: u64,
}

/// The sums of some seconds of a tenant.
#[derive(Debug, Clone, Default)]
pub struct TenantSums {
    /// How many seconds.
    pub seconds: u64,
    /// Committed and rolled back, or I/Os done.
    pub good: u64,
    /// Failed for good.
    pub failed: u64,
    /// Times as clients see them: response times in an open loop, else service times.
    pub times: Histogram,
    /// Arrivals that were to start; none in a closed loop.
    pub due: Option<f64>,
    /// Arrivals refused.
    pub refused: u64,
    /// By how many the queue was longer at the end than at the beginning.
    pub queued: u64,
}

impl TenantSums {
    /// All that asked.
    pub fn arrivals(&self) -> u64 {
        self.good + self.unanswered()
    }

    /// All that got no good answer.
    pub fn unanswered(&self) -> u64 {
        self.failed + self.refused + self.queued
    }

    /// A percentile of the times in nanoseconds, with what got no good answer beyond all of them; none where it lies there.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let times = CensoredTimes::with_unanswered(&self.times, self.unanswered() as f64);
        times.percentile(percent).filter(|value| !value.at_least).map(|value| value.value)
    }

    /// The share of the scheduled arrivals that were done; none in a closed loop, and where none was scheduled.
    pub fn held(&self) -> Option<f64> {
        self.due.filter(|due| *due > 0.0).map(|due| self.good as f64 / due)
    }
}

impl TenantSeries {
    /// The tenants of a stored scenario, in the order of their sources; none of another run.
    ///
    /// # Errors
    /// When the stored run is damaged.
    pub fn all(run: &StoredRun) -> Result<Vec<Self>> {
        let named = |(id, source): (SourceId, &Source)| {
            let tenant = Self { source: id, name: source.tenant.clone()?, ..Self::default() };
            Some((id, tenant))
        };
        let mut found: BTreeMap<SourceId, Self> = run.sources().filter_map(named).collect();
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut origin = 0;
        let roles: Vec<SeriesRole> = run.info.kinds.iter().map(|kind| kind.role).collect();
        for sourced in run.sourced_events() {
            let sourced = sourced?;
            if let Event::Phase { phase: Phase::Measure, at, .. } = sourced.event {
                origin = at;
            }
            let Some(tenant) = found.get_mut(&sourced.source_id) else { continue };
            match sourced.event {
                Event::Stretch(stretch) => tenant.stretches.push(stretch),
                Event::Second(second) if second.part == LoadPart::Measured => {
                    let own = tenant.seconds.entry(second.second).or_default();
                    for (kind, role) in second.kinds.iter().zip(&roles) {
                        match role {
                            SeriesRole::Transaction => {
                                own.good += kind.good();
                                own.failed += kind.failed;
                                own.service.add(&kind.latency);
                            }
                            SeriesRole::Response { .. } => own.response.add(&kind.latency),
                            SeriesRole::Statement { .. } | SeriesRole::Lag => {}
                        }
                    }
                }
                Event::Arrivals(arrivals) => {
                    let own = tenant.seconds.entry(arrivals.second).or_default();
                    *own.due.get_or_insert(0) += arrivals.due;
                    own.refused += arrivals.refused;
                    own.waiting = arrivals.waiting.unwrap_or(own.waiting);
                }
                Event::Observed(Observation::WaitGroups { first, groups }) => {
                    tenant.waits.get_or_insert_default().sessions.declare(first, &groups);
                }
                Event::Observed(Observation::Waits(waits)) => {
                    tenant.waits.get_or_insert_default().sessions.take(&waits);
                }
                _ => {}
            }
        }
        let mut found: Vec<Self> = found.into_values().collect();
        share_waits(&mut found, run, origin);
        Ok(found)
    }

    /// Whether its load was on for the whole of a second.
    pub fn is_at_work(&self, second: i64) -> bool {
        self.stretch_at(second).is_some()
    }

    /// The stretch that holds the whole of a second.
    fn stretch_at(&self, second: i64) -> Option<&Stretch> {
        let (from, to) = edges(second);
        self.stretches.iter().find(|one| i128::from(one.from) <= from && to <= i128::from(one.to))
    }

    /// Whether its load was on in any part of a second.
    pub fn touches(&self, second: i64) -> bool {
        let (from, to) = edges(second);
        self.stretches.iter().any(|one| i128::from(one.from) < to && from < i128::from(one.to))
    }

    /// The sums of those seconds, of all in which its load was on throughout, for which `of` holds.
    pub fn sums(&self, of: impl Fn(i64) -> bool) -> TenantSums {
        let mut sums = TenantSums::default();
        let times = self.times();
        let (mut before, mut after) = (None, 0);
        for (&second, own) in
            self.seconds.iter().filter(|(second, _)| self.is_at_work(**second) && of(**second))
        {
            sums.seconds += 1;
            sums.good += own.good;
            sums.failed += own.failed;
            sums.refused += own.refused;
            sums.times.add(times(own));
            before.get_or_insert_with(|| self.seconds.get(&(second - 1)).map_or(0, |last| last.waiting));
            after = own.waiting;
            // Where nobody counted the arrivals, those that the schedule asked for.
            let scheduled = || self.stretch_at(second)?.schedule.map(|schedule| schedule.rate);
            if let Some(due) = own.due.map(|due| due as f64).or_else(scheduled) {
                *sums.due.get_or_insert(0.0) += due;
            }
        }
        sums.queued = after.saturating_sub(before.unwrap_or(0));
        sums
    }

    /// The times of a second as clients see them: response times in an open loop, else service times.
    pub(crate) fn times(&self) -> impl Fn(&TenantSecond) -> &Histogram {
        let responds = self.seconds.values().any(|own| !own.response.is_empty());
        move |own| if responds { &own.response } else { &own.service }
    }
}

/// Gives what was seen of a database to each tenant on it.
fn share_waits(tenants: &mut [TenantSeries], run: &StoredRun, origin: Nanos) {
    let database = |id: SourceId| {
        let mut sources = run.sources();
        sources.find(|(one, _)| *one == id).and_then(|(_, source)| source.database.clone())
    };
    let databases: Vec<Option<String>> = tenants.iter().map(|tenant| database(tenant.source)).collect();
    let names: Vec<String> = tenants.iter().map(|tenant| tenant.name.clone()).collect();
    let seen: Vec<Option<TenantWaits>> = tenants.iter_mut().map(|tenant| tenant.waits.take()).collect();
    for (index, tenant) in tenants.iter_mut().enumerate() {
        let same = |other: &usize| databases[*other] == databases[index] && databases[index].is_some();
        let on_it: Vec<usize> = (0..names.len()).filter(same).collect();
        let waits = on_it.iter().find_map(|other| seen[*other].clone());
        tenant.waits = waits.map(|waits| TenantWaits {
            origin,
            shared_with: on_it
                .iter()
                .filter(|other| **other != index)
                .map(|other| names[*other].clone())
                .collect(),
            ..waits
        });
    }
}

/// The edges of a second, in nanoseconds.
fn edges(second: i64) -> (i128, i128) {
    let from = i128::from(second) * i128::from(SECOND);
    (from, from + i128::from(SECOND))
}

/// The steps of a stored scenario, in their order.
///
/// # Errors
/// When the stored run is damaged.
pub fn steps(run: &StoredRun) -> Result<Vec<Step>> {
    let mut found = Vec::new();
    for event in run.events() {
        if let Event::Step(step) = event? {
            found.push(step);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{WaitGroup, WaitKind, WaitSamples};

    use super::*;

    #[test]
    fn waits_are_compared_over_the_seconds_of_each_side() {
        let group = |kind, backend: &str| WaitGroup { kind, backend: backend.into(), ..WaitGroup::default() };
        let mut waits =
            TenantWaits { origin: 7 * SECOND, shared_with: vec!["dss".into()], ..TenantWaits::default() };
        let groups = [
            group(WaitKind::Log, "client backend"),
            group(WaitKind::Cpu, "client backend"),
            group(WaitKind::DataWrite, "checkpointer"),
        ];
        waits.sessions.declare(0, &groups);
        for second in 0..20_u64 {
            // Ten looks a second: half a session on a CPU, and from the tenth second on two in the log.
            let log = if second < 10 { 0 } else { 20 };
            let at = (7 + second) * SECOND + SECOND / 2;
            let seen = vec![(0, log), (1, 5), (2, 10)];
            waits.sessions.take(&WaitSamples { at, looks: 10, seen, ..WaitSamples::default() });
        }
        let sides = |before: [i64; 2], after: [i64; 2]| {
            waits.compare(
                &(before[0]..before[1]).collect::<Vec<_>>(),
                &(after[0]..after[1]).collect::<Vec<_>>(),
            )
        };
        let found = sides([1, 9], [11, 19]).unwrap();
        let classes: Vec<(&str, f64, f64)> =
            found.classes.iter().map(|one| (one.class.as_str(), one.before, one.after)).collect();
        assert_eq!(classes, [("log", 0.0, 2.0), ("CPU", 0.5, 0.5)]);
        assert_eq!(found.shared_with, ["dss"]);
        assert_eq!(sides([1, 9], [30, 40]), None, "nobody looked then");
    }
}
