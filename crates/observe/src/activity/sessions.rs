//! Adding up what the watcher of the sessions sends.

use std::collections::{BTreeMap, HashMap};

use kelvin_measure::declare;
use kelvin_measure::observation::{Observation, UnavailableMetrics, WaitGroup};

/// Sessions by the index of their state, summed over samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// Samples taken.
    pub looks: u64,
    /// Sessions seen, by state.
    pub seen: BTreeMap<u32, u64>,
}

impl SampleCounts {
    /// What was counted after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let seen = self.seen.iter().filter_map(|(group, seen)| {
            let grown = seen - earlier.seen.get(group).copied().unwrap_or(0);
            (grown > 0).then_some((*group, grown))
        });
        Self { looks: self.looks - earlier.looks, seen: seen.collect() }
    }
}

/// The states that were seen, how often, and the statements in them.
#[derive(Debug, Default)]
pub struct SessionSamples {
    groups: Vec<WaitGroup>,
    counts: SampleCounts,
    texts: HashMap<i64, String>,
    absent: Vec<UnavailableMetrics>,
}

impl SessionSamples {
    /// Takes what is of sessions in an observation.
    pub fn take(&mut self, observation: &Observation) {
        match observation {
            Observation::WaitGroups { first, groups } => {
                declare(&mut self.groups, *first, groups);
            }
            Observation::Waits(waits) => {
                self.counts.looks += u64::from(waits.looks);
                for (group, sessions) in &waits.seen {
                    *self.counts.seen.entry(*group).or_default() += u64::from(*sessions);
                }
            }
            Observation::StatementTexts { texts } => self.texts.extend(texts.iter().cloned()),
            Observation::Observer(observer) => self.absent.extend(observer.absent.iter().cloned()),
            Observation::Lost(absent) => self.absent.push(absent.clone()),
            _ => {}
        }
    }

    /// All that was counted so far.
    pub fn counts(&self) -> &SampleCounts {
        &self.counts
    }

    /// States with the sessions counted in them.
    pub fn states<'a>(&'a self, counts: &'a SampleCounts) -> impl Iterator<Item = (&'a WaitGroup, u64)> {
        counts.seen.iter().filter_map(|(group, seen)| Some((self.groups.get(*group as usize)?, *seen)))
    }

    /// The statements of the sessions, by identifier, without their values.
    pub fn texts(&self) -> &HashMap<i64, String> {
        &self.texts
    }

    /// What could not be seen, and why.
    pub fn absent(&self) -> &[UnavailableMetrics] {
        &self.absent
    }
}
