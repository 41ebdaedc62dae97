//! Counts during the run that its final sums do not contain.

use super::counters::Reading;
use super::facts::StorageFacts;
use super::targets;
use kelvin_fio::event::{IoEvent, IoWatcher, WorkerState};
use kelvin_host::SystemTree;

impl StorageFacts {
    /// Processes an event of the run. [`StorageFacts::watching`] calls it for each event.
    pub fn event(&mut self, event: &IoEvent<'_>) {
        match event {
            IoEvent::State { state: WorkerState::Created, .. } => self.created(),
            IoEvent::State { state: WorkerState::RampUp | WorkerState::Running, .. } => self.begin(),
            IoEvent::Layout { .. } => self.watched.laid_out = true,
            IoEvent::Tick(tick) => self.watched.take(tick),
            _ => {}
        }
        self.watched.look();
    }

    /// A watcher that passes everything to `inner` and counts it here.
    pub fn watching<'a>(&'a mut self, inner: &'a mut dyn IoWatcher) -> Watching<'a> {
        Watching { facts: self, inner }
    }

    /// The first worker is about to begin: everything before was layout. Must not take long, since the worker waits.
    fn created(&mut self) {
        if self.watched.created {
            return;
        }
        self.watched.created = true;
        if self.watched.laid_out {
            targets::stored_again(&mut self.targets);
        }
        self.watched.begun = Some(Reading::without_others(&SystemTree::default()));
    }

    /// The first worker begins its I/O.
    fn begin(&mut self) {
        if self.watched.running {
            return;
        }
        self.created();
        self.watched.running = true;
        // The worker has dropped the cached pages of its files.
        targets::cached_again(&mut self.targets);
        if let Some(begun) = &mut self.watched.begun {
            begun.add_others(&SystemTree::default());
        }
    }
}

/// See [`StorageFacts::watching`].
pub struct Watching<'a> {
    facts: &'a mut StorageFacts,
    inner: &'a mut dyn IoWatcher,
}

impl IoWatcher for Watching<'_> {
    fn event(&mut self, event: &IoEvent<'_>) {
        self.facts.event(event);
        self.inner.event(event);
    }

    fn idle(&mut self) {
        self.facts.watched.look();
        self.inner.idle();
    }
}
