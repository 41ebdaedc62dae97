//! The live view on standard error: on a terminal a line that is overwritten, otherwise plain lines.

use std::time::{Duration, Instant};

use kelvin_lab::live::Live;
use kelvin_measure::event::Phase;
use kelvin_measure::text::{cut, whole};
use kelvin_measure::{Event, Sink, SinkError, SourceId};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId};

use super::fields::Fields;
use super::status::Status;
use super::{note, overwrite, terminal_size};

/// How often progress is shown if the line can be overwritten, and if it cannot.
const OVERWRITTEN_INTERVAL: Duration = Duration::from_millis(50);
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// Status lines.
pub(super) struct Terminal {
    /// Whether lines can be overwritten.
    interactive: bool,
    /// The line that the next one overwrites.
    shown: Option<String>,
    what: String,
    since: Instant,
    printed: Option<Instant>,
    status: Status,
    ramp_up: u64,
}

impl Terminal {
    pub(super) fn new(interactive: bool) -> Self {
        Self {
            interactive,
            shown: None,
            what: String::new(),
            since: Instant::now(),
            printed: None,
            status: Status::default(),
            ramp_up: 0,
        }
    }

    fn line(&mut self, text: &str) {
        if self.interactive {
            // The rest of a longer line would begin another one, which is not overwritten.
            let text = cut(text, columns().unwrap_or(usize::MAX));
            overwrite(&text);
            self.shown = Some(text);
        } else {
            note(text);
        }
    }

    fn fields(&mut self, fields: Fields) {
        let columns = if self.interactive { columns() } else { None };
        self.line(&match columns {
            Some(columns) => fields.fit(columns),
            None => fields.join(),
        });
    }

    fn progress(&mut self, what: &str, done: u64, total: u64, rows: u64) {
        if self.what != what {
            self.what = what.into();
            self.since = Instant::now();
            self.printed = None;
        }
        let interval = if self.interactive { OVERWRITTEN_INTERVAL } else { PLAIN_INTERVAL };
        let due = self.printed.is_none_or(|at| at.elapsed() >= interval) || done == total;
        if !due {
            return;
        }
        self.printed = Some(Instant::now());
        let fields = progress_fields(what, done, total, rows, self.since.elapsed());
        self.fields(fields);
    }
}

impl Sink for Terminal {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Phase { phase, at, users, planned, .. } => {
                self.status.phase(*phase, *at, *users, *planned);
                if matches!(phase, Phase::CheckBefore | Phase::CheckAfter) {
                    self.what.clear();
                    self.line("checking the consistency conditions");
                }
            }
            Event::Progress { what, done, total, rows } => self.progress(what, *done, *total, *rows),
            Event::Arrivals(arrivals) => self.status.arrivals(arrivals),
            Event::Errors(errors) => self.status.errors(errors.count),
            Event::Second(second) => {
                if let Some(fields) = self.status.second(second, self.ramp_up) {
                    self.fields(fields);
                }
            }
            Event::Source { .. } => self.status.declare_source(),
            Event::Note { text, .. } => self.message(text),
            Event::Step(step) if step.annotated => self.message(&step.line()),
            _ => {}
        }
        Ok(())
    }
}

impl Live for Terminal {
    fn begin(&mut self, _id: RunId, info: &NewRun, spec: &Spec) {
        self.status = Status::new(&info.workload, &info.headline, info.headline_per, info.kinds.clone());
        self.ramp_up = spec.load.ramp_up.nanos().div_ceil(1_000_000_000);
    }

    fn message(&mut self, text: &str) {
        if self.shown.is_some() {
            overwrite("");
        }
        note(text);
        if let Some(shown) = &self.shown {
            overwrite(shown);
        }
    }

    fn end(&mut self) {
        if self.shown.take().is_some() {
            overwrite("");
        }
        self.what.clear();
    }
}

fn columns() -> Option<usize> {
    terminal_size(std::io::stderr()).map(|(columns, _)| columns)
}

/// "warehouses loaded 3/10 · 1,234,567 rows · 456,789 rows/s · 12 s left".
fn progress_fields(what: &str, done: u64, total: u64, rows: u64, elapsed: Duration) -> Fields {
    let seconds = elapsed.as_secs_f64();
    let mut fields = Fields::default();
    fields.push(0, format!("{what} {}/{}", whole(done), whole(total)));
    if rows > 0 {
        fields.push(3, format!("{} rows", whole(rows)));
        if seconds >= 1.0 {
            fields.push(2, format!("{} rows/s", whole((rows as f64 / seconds) as u64)));
        }
    }
    if done > 0 && done < total && seconds >= 2.0 {
        let left = seconds / done as f64 * (total - done) as f64;
        fields.push(1, format!("{} s left", whole(left.ceil() as u64)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_rate_and_time_left_once_they_can_be_known() {
        let fields = progress_fields("warehouses loaded", 2, 10, 1_000_000, Duration::from_secs(4));
        assert_eq!(fields.join(), "warehouses loaded 2/10 · 1,000,000 rows · 250,000 rows/s · 16 s left");
        assert_eq!(progress_fields("indexes", 0, 2, 0, Duration::ZERO).join(), "indexes 0/2");
    }
}
