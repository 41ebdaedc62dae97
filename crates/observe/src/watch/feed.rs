//! The channel that takes observations out of a watcher.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

use kelvin_measure::observation::{Observation, Observer, Reading, WaitGroup};
use kelvin_measure::{Clock, Nanos};

/// Numbers dealt out over all watchers of a run.
#[derive(Debug, Default)]
pub(super) struct Counts {
    metrics: AtomicU32,
    groups: AtomicU32,
    occurrences: AtomicU32,
    /// Observations that nobody took in time.
    pub(super) dropped: AtomicU32,
}

/// Takes what a watcher sees. When nobody takes it any more it is let go, and counted.
#[derive(Debug, Clone)]
pub struct Feed {
    out: SyncSender<Observation>,
    clock: Clock,
    counts: Arc<Counts>,
}

impl Feed {
    pub(super) fn new(out: SyncSender<Observation>, clock: Clock, counts: Arc<Counts>) -> Self {
        Self { out, clock, counts }
    }

    /// A feed outside of a watch, and what is handed to it: for whoever calls a watcher by hand, on a clock of choice.
    pub fn detached(clock: Clock) -> (Self, Receiver<Observation>) {
        let (out, seen) = mpsc::sync_channel(super::MOST_WAITING);
        (Self::new(out, clock, Arc::default()), seen)
    }

    /// The time on the run's clock.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Announces an observer's metrics and returns the index of the first: `observer.first` is set here.
    pub fn declare(&mut self, mut observer: Observer) -> u32 {
        let first = self.counts.metrics.fetch_add(observer.metrics.len() as u32, Ordering::Relaxed);
        observer.first = first;
        self.send(Observation::Observer(observer));
        first
    }

    /// Announces states of sessions and returns the index of the first.
    pub fn groups(&mut self, groups: Vec<WaitGroup>) -> u32 {
        let first = self.counts.groups.fetch_add(groups.len() as u32, Ordering::Relaxed);
        self.send(Observation::WaitGroups { first, groups });
        first
    }

    /// A number for an occurrence.
    pub fn occurrence(&mut self) -> u32 {
        self.counts.occurrences.fetch_add(1, Ordering::Relaxed)
    }

    /// Values of the metrics from `first` on, as of now.
    pub fn reading(&mut self, first: u32, values: Vec<f32>) {
        let at = self.now();
        self.send(Observation::Reading(Reading { at, first, values }));
    }

    /// Hands an observation on.
    pub fn send(&mut self, observation: Observation) {
        // Full or closed: the reader is gone or stuck, and the load must not wait for it.
        if self.out.try_send(observation).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
