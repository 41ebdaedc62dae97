//! `--json`: every event as a line on standard output, and a final line with the run's state.

use std::io::Write;

use kelvin_measure::{Event, Sink, SinkError, SourceId};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId};
use serde::Serialize;

use kelvin_lab::live::{Live, RunSummary};

/// The line after the last event of a run.
#[derive(Serialize)]
struct Last<'a> {
    event: &'static str,
    #[serde(flatten)]
    summary: &'a RunSummary<'a>,
}

/// An event in the format of [`kelvin_measure::SourcedEvent`].
#[derive(Serialize)]
pub(super) struct Line<'a> {
    #[serde(skip_serializing_if = "SourceId::is_local")]
    pub(super) source_id: SourceId,
    #[serde(flatten)]
    pub(super) event: &'a Event,
}

fn line(what: &impl Serialize) {
    if let Ok(mut line) = serde_json::to_vec(what) {
        line.push(b'\n');
        // A closed pipe does not end the run: the store has everything.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// Prints events as they occur.
pub(super) struct Json;

impl Sink for Json {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        line(&Line { source_id: source, event });
        Ok(())
    }
}

impl Live for Json {
    fn begin(&mut self, id: RunId, _info: &NewRun, _spec: &Spec) {
        line(&serde_json::json!({ "event": "begin", "run": id }));
    }

    fn judged(&mut self, summary: &RunSummary<'_>) {
        line(&Last { event: "summary", summary });
    }

    fn message(&mut self, _text: &str) {}

    fn end(&mut self) {}
}
