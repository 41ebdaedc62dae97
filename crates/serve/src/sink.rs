//! The sink for a run's events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use kelvin_measure::{Event, Sink, SinkError, SourceId};

use crate::state::{RunInfo, State};

/// Takes a run's events. An event waits for a lock that a scrape holds while it copies the state. Each series
/// of a second takes about 50 µs for its histogram.
#[derive(Debug)]
pub struct MetricsSink {
    state: Arc<Mutex<State>>,
}

impl MetricsSink {
    pub(crate) fn new(state: Arc<Mutex<State>>) -> Self {
        Self { state }
    }

    /// Starts a run: all counters start from zero.
    pub fn begin(&mut self, info: RunInfo) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).begin(info);
    }
}

impl Sink for MetricsSink {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).event(event, Instant::now());
        Ok(())
    }
}
