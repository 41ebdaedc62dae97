//! The end that a run's events go into.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use kelvin_measure::{Event, Sink, SinkError, SourceId};

use crate::state::{RunInfo, State};

/// Takes a run's events. Each costs a lock that a scrape holds for the time of a copy, and a second of a load as long as
/// its histograms take to be walked through, some 50 µs a series.
#[derive(Debug)]
pub struct MetricsSink {
    state: Arc<Mutex<State>>,
}

impl MetricsSink {
    pub(crate) fn new(state: Arc<Mutex<State>>) -> Self {
        Self { state }
    }

    /// A run begins: all counters start from zero.
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
