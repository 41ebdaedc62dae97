//! A run is started without the command: data are made, the run is kept, judged and shown.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kelvin_lab::live::{Live, RunSummary};
use kelvin_lab::store_bench::{HistoryKey, RunOrigin, StoreBench, StoreBenchError};
use kelvin_measure::event::{LoadPart, Status};
use kelvin_measure::{Event, Sink, SinkError, SourceId};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId, RunState, Store};
use kelvin_workload::Stop;

/// Remembers what it is shown.
#[derive(Default)]
struct Seen {
    begun: Vec<i64>,
    measured_seconds: u32,
    messages: Vec<String>,
    judged: Vec<(i64, RunState)>,
}

impl Sink for Seen {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        if let Event::Second(second) = event {
            self.measured_seconds += u32::from(second.part == LoadPart::Measured);
        }
        Ok(())
    }
}

impl Live for Seen {
    fn begin(&mut self, id: RunId, _info: &NewRun, _spec: &Spec) {
        self.begun.push(id.0);
    }

    fn message(&mut self, text: &str) {
        self.messages.push(text.into());
    }

    fn judged(&mut self, summary: &RunSummary<'_>) {
        self.judged.push((summary.run, summary.judgement.state));
    }

    fn end(&mut self) {}
}

fn spec(text: &str) -> Spec {
    Spec::parse(text, "test").unwrap()
}

fn origin() -> RunOrigin {
    RunOrigin { command: String::new(), prompt: |_| Ok(None) }
}

#[test]
fn a_run_is_made_kept_and_shown_without_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("kelvin.db")).unwrap();
    let mut spec = spec(
        "workload = \"tproc-c\"\ntarget = \"sqlite\"\naccept-noise = true\n[load]\nusers = 1\nramp-up = \"0s\"\nduration = \"1s\"\n",
    );
    let (mut live, stop) = (Seen::default(), Stop::new());
    let history = HistoryKey { branch: "main".into(), testbed: Some("here".into()) };
    let mut bench = StoreBench::new(&store, &mut live, &stop, origin()).in_history(Some(history));
    let done = bench.run(&mut spec, vec!["a note".into()], None, None).unwrap();

    assert_eq!(done.stored.status, Status::Complete);
    assert!(done.stored.info.command.is_empty());
    assert!(done.stored.info.notes.contains(&"a note".into()), "{:?}", done.stored.info.notes);
    let id = done.stored.id.0;
    assert_eq!((live.begun, live.judged), (vec![id], vec![(id, done.judged.run.state)]));
    assert!(live.measured_seconds >= 1 && live.messages.iter().any(|text| text.starts_with("built in ")));
    assert!(store.load(done.stored.id).unwrap().failed() == 0);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("kelvin.db")).unwrap();
    let (mut live, stop) = (Seen::default(), Stop::new());
    let mut bench = StoreBench::new(&store, &mut live, &stop, origin());
    let mut never = spec("workload = \"tproc-c\"\ntarget = \"sqlite\"\nbuild = \"never\"\n");
    let refused = bench.run(&mut never, Vec::new(), None, None).map(drop).unwrap_err();
    assert!(matches!(refused, StoreBenchError::Refused(_)), "{refused:?}");
    let mut endless = spec(
        "workload = \"tproc-h\"\ntarget = \"sqlite\"\n[tproc-h]\nprofile = \"hammerdb\"\nquery-sets = 0\n",
    );
    let refused = bench.run(&mut endless, Vec::new(), None, None).map(drop).unwrap_err();
    assert!(refused.to_string().contains("query-sets = 0"), "{refused:?}");
    assert!(live.begun.is_empty() && live.judged.is_empty());
}
