//! The live view on standard error: on a terminal a progress bar and a line that is overwritten, otherwise
//! plain lines.

use kelvin_measure::text::whole;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kelvin_lab::live::Live;
use kelvin_measure::event::Phase;
use kelvin_measure::{Event, Sink, SinkError, SourceId};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId};

use super::fields::Fields;
use super::note;
use super::status::Status;

/// How often a line of progress is printed if no bar can be drawn.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// Bars and status lines.
pub(super) struct Terminal {
    /// Whether lines can be overwritten.
    interactive: bool,
    bar: Option<ProgressBar>,
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
            bar: None,
            what: String::new(),
            since: Instant::now(),
            printed: None,
            status: Status::default(),
            ramp_up: 0,
        }
    }

    /// The bar; created when first needed.
    fn bar(&mut self) -> &ProgressBar {
        self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        })
    }

    fn line(&mut self, text: String) {
        if self.interactive {
            self.bar().set_message(text);
            self.bar().tick();
        } else {
            note(&text);
        }
    }

    fn fields(&mut self, fields: Fields) {
        let columns =
            self.interactive.then(|| rustix::termios::tcgetwinsize(std::io::stderr()).ok()).flatten();
        let columns = columns.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        self.line(match columns {
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
        let due = self.printed.is_none_or(|at| at.elapsed() >= PLAIN_INTERVAL) || done == total;
        if !self.interactive && !due {
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
                    self.line("checking the consistency conditions".into());
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
        match &self.bar {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.what.clear();
    }
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
