//! The tenants of a scenario as they were stored: what each did in which second, and when its load was on.

use std::collections::BTreeMap;

use kelvin_measure::event::{Event, LoadPart, SeriesRole, Step, Stretch};
use kelvin_measure::{CensoredTimes, Histogram, SECOND, Source, SourceId};
use kelvin_store::{Result, StoredRun};

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
        let roles: Vec<SeriesRole> = run.info.kinds.iter().map(|kind| kind.role).collect();
        for sourced in run.sourced_events() {
            let sourced = sourced?;
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
                _ => {}
            }
        }
        Ok(found.into_values().collect())
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
