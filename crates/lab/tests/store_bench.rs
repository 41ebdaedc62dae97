//! Runs without the command-line program: data is created, and the run is stored, judged and shown.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use kelvin_lab::live::{Live, RunSummary};
use kelvin_lab::store_bench::{HistoryKey, RunOrigin, StoreBench, StoreBenchError};
use kelvin_measure::event::{LoadPart, Second, Status};
use kelvin_measure::{Event, Sink, SinkError, SourceId, SourcedEvent};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId, RunState, Store};
use kelvin_workload::Stop;

/// Records what it is shown.
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

/// Holds the store's only write lock from the start of a run until all its seconds have arrived, so that the
/// committing thread is blocked as on a disk that does not answer. The thread that forwards events releases the lock;
/// a run that waits for a commit before that fails.
struct StalledDisk {
    store: PathBuf,
    lock: Option<rusqlite::Connection>,
    seen: Vec<SourcedEvent>,
}

impl Sink for StalledDisk {
    fn event_from(&mut self, source_id: SourceId, event: &Event) -> Result<(), SinkError> {
        self.seen.push(SourcedEvent { source_id, event: event.clone() });
        if matches!(event, Event::Window(_)) {
            let lock = self.lock.take().unwrap();
            let stored = "SELECT (SELECT count(*) FROM second) + (SELECT count(*) FROM event)";
            let stored: i64 = lock.query_row(stored, [], |row| row.get(0)).unwrap();
            assert_eq!(stored, 0, "nothing was committed while the load was on");
        }
        Ok(())
    }
}

impl Live for StalledDisk {
    fn begin(&mut self, _id: RunId, _info: &NewRun, _spec: &Spec) {
        let lock = rusqlite::Connection::open(&self.store).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        self.lock = Some(lock);
    }

    fn message(&mut self, _text: &str) {}

    fn end(&mut self) {}
}

/// The counts of each transaction type by second, and whether the second was measured.
type CountsBySecond = BTreeMap<(i64, bool), Vec<[u64; 5]>>;

/// All events except seconds and progress (the store keeps only the last progress event of a moment), in their order;
/// and the counts of each second, summed over all its parts.
fn taken_apart(events: &[SourcedEvent]) -> (Vec<String>, CountsBySecond) {
    let (mut others, mut seconds) = (Vec::new(), CountsBySecond::new());
    for event in events {
        match &event.event {
            Event::Second(Second { second, part, kinds, .. }) => {
                let counts = kinds
                    .iter()
                    .map(|k| [k.committed, k.rolled_back, k.failed, k.retries, k.latency.count()]);
                let sums = seconds.entry((*second, *part == LoadPart::Measured)).or_default();
                sums.resize(kinds.len(), [0; 5]);
                for (sum, counts) in sums.iter_mut().zip(counts) {
                    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                }
            }
            Event::Progress { .. } => {}
            _ => others.push(serde_json::to_string(event).unwrap()),
        }
    }
    (others, seconds)
}

#[test]
fn a_store_on_a_disk_that_does_not_answer_holds_up_no_run_and_has_all_of_it_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kelvin.db");
    let store = Store::open(&path).unwrap();
    let target = directory.path().join("target.db");
    let mut spec = spec(&format!(
        "workload = \"script\"\ntarget = \"sqlite:{}\"\naccept-noise = true\n[load]\nusers = 2\nramp-up = \"0s\"\n\
         duration = \"2s\"\nrate = 200\n[[script.scripts]]\nname = \"one\"\ntext = \"select 1;\"\n",
        target.display()
    ));
    let (mut live, stop) = (StalledDisk { store: path, lock: None, seen: Vec::new() }, Stop::new());
    let done = StoreBench::new(&store, &mut live, &stop, origin()).run(&mut spec, Vec::new(), None, None);
    let stored = done.unwrap().stored;
    assert_eq!(stored.status, Status::Complete);

    let back: Vec<SourcedEvent> = stored.merged_events().collect::<Result<_, _>>().unwrap();
    let (others, seconds) = taken_apart(&back);
    let (seen, came) = taken_apart(&live.seen);
    for (stored, seen) in others.iter().zip(&seen) {
        assert_eq!(stored, seen);
    }
    assert_eq!(others.len(), seen.len());
    assert_eq!(seconds, came);
    let figures = stored.point_statistics(0).unwrap();
    let measured: Vec<i64> = figures.measured().map(|row| row.second).collect();
    assert!(measured.len() >= 2 && measured.iter().copied().eq(0..measured.len() as i64), "{measured:?}");
    assert!(came.keys().filter(|(_, measured)| *measured).map(|(second, _)| second).eq(&measured));
    let checks = stored.cross_checks(0, &figures);
    assert!(checks.len() > 1 && checks.iter().all(|check| check.holds), "{checks:?}");
    assert!(figures.headline > 0);
}
