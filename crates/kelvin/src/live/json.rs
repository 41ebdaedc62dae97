//! `--json`: every event as one line on standard output.

use std::io::Write;

use kelvin_lab::Spec;
use kelvin_measure::Event;
use kelvin_store::{NewRun, RunId};

use super::Live;

/// Writes events as they come.
pub(super) struct Json;

impl Live for Json {
    fn begin(&mut self, _id: RunId, _info: &NewRun, _spec: &Spec) {}

    fn event(&mut self, event: &Event) {
        if let Ok(mut line) = serde_json::to_vec(event) {
            line.push(b'\n');
            // A reader that has gone away does not end the run: the store keeps everything.
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(&line).and_then(|()| out.flush());
        }
    }

    fn say(&mut self, _text: &str) {}

    fn end(&mut self) {}
}
