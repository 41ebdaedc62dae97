//! The state of the view's thread: the model, and the evidence for findings. Tests replay stored runs through
//! it.

use kelvin_diagnose::{Context, Evidence};
use kelvin_measure::observation::Observation;
use kelvin_measure::{Event, SourceId};
use kelvin_run::Spec;
use kelvin_run::spec::Work;
use kelvin_store::{NewRun, RunId};

use super::model::{Looked, Model, ViewHeader};

/// Largest number of watcher values and session samples in the evidence: about 100 MB.
const MOST_EVIDENCE: usize = 20_000_000;

/// Messages to the view.
pub(in super::super) enum Message {
    /// The load is about to start: its context, and the number of points if planned.
    Begin(Box<Context>, Option<usize>),
    /// An event of a source.
    Event(SourceId, Box<Event>),
    /// A message for the user.
    Say(String),
    /// This many events were lost before this message.
    Dropped(u64),
    /// The view ends.
    End,
}

impl Message {
    /// The start of a run.
    pub(super) fn begin(id: RunId, info: &NewRun, spec: &Spec) -> Self {
        let points = match &spec.work {
            Work::Io(io) => Some(io.phases() as usize),
            _ => (!spec.load.find_max).then(|| spec.load.points().len()),
        };
        Self::Begin(Box::new(Context::from_stored_run(id, info)), points)
    }
}

/// The state built from the messages.
pub(super) struct ViewState {
    pub(super) model: Model,
    evidence: Option<Evidence>,
    /// The size of the evidence.
    held: usize,
}

impl ViewState {
    pub(super) fn new(about: ViewHeader) -> Self {
        Self { model: Model::new(about), evidence: None, held: 0 }
    }

    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Begin(context, points) => {
                self.model.begin(&context, points);
                self.evidence = Some(Evidence::new(*context));
            }
            Message::Event(source, event) => {
                self.model.event(source, &event);
                self.keep(source, &event);
            }
            Message::Say(text) => self.model.say(&text),
            Message::Dropped(count) => self.model.dropped += count,
            Message::End => {}
        }
    }

    /// Adds an event to the evidence, up to the view's limit.
    fn keep(&mut self, source: SourceId, event: &Event) {
        let Some(evidence) = &mut self.evidence else { return };
        self.held += match event {
            Event::Observed(Observation::Reading(reading)) => reading.values.len() + 8,
            Event::Observed(Observation::Waits(waits)) => 2 * waits.seen.len() + 8,
            Event::Observed(_) => 64,
            _ => 16,
        };
        if self.held > MOST_EVIDENCE {
            // Findings from incomplete evidence would be wrong.
            self.evidence = None;
            self.model.findings.clear();
            self.model.looked = Looked::Frozen;
        } else {
            evidence.event_from(source, event);
        }
    }

    /// Evaluates the findings; returns whether there was a point to evaluate.
    pub(super) fn diagnose(&mut self) -> bool {
        let Some(evidence) = self.evidence.as_ref().filter(|evidence| evidence.points().next().is_some())
        else {
            return false;
        };
        self.model.findings = kelvin_diagnose::findings_for(evidence);
        self.model.findings.retain(kelvin_diagnose::Finding::is_shown);
        self.model.looked = Looked::UpToDate;
        true
    }
}
