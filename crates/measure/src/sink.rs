//! Consumers of a run's events: the store, the live view, an endpoint.

use crate::{Event, SourceId};

/// Why a consumer of events could not take one: the disk under the store is full, for example.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// A consumer of a run's events.
pub trait Sink {
    /// Takes an event of a source.
    ///
    /// # Errors
    /// When it cannot be stored. That ends the run: a load whose results are lost is pointless.
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError>;

    /// The same of this process.
    ///
    /// # Errors
    /// Those of [`Sink::event_from`].
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.event_from(SourceId::LOCAL, event)
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        (**self).event_from(source, event)
    }
}

/// Both, in their order: the second receives only events that the first accepted.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        self.0.event_from(source, event)?;
        self.1.event_from(source, event)
    }
}
