//! Replaying a stored run shows the same display as the run did while it was active.

use std::collections::BTreeSet;
use std::time::Duration;

use kelvin_lab::live::Live;
use kelvin_lab::store_bench::{RunOrigin, StoreBench};
use kelvin_measure::observation::{Observation, Reading};
use kelvin_measure::{Event, Sink, SinkError, SourceId, SourcedEvent};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId, Store};
use kelvin_workload::Stop;

use super::super::draw::ViewOptions;
use super::super::model::ViewHeader;
use super::super::state::{Message, ViewState};
use super::picture;
use crate::json::Line;

/// A view without a terminal, driven by the run's clock.
struct Watched {
    state: ViewState,
    now: Duration,
    /// The display after each phase, each second and the end.
    moments: Vec<(String, String)>,
}

impl Watched {
    fn begin(id: RunId, info: &NewRun, spec: &Spec) -> Self {
        let mut state = ViewState::new(ViewHeader::default());
        state.take(Message::begin(id, info, spec));
        Self { state, now: Duration::ZERO, moments: Vec::new() }
    }

    fn event(&mut self, source: SourceId, event: &Event) {
        if let Event::Phase { at, .. } | Event::Observed(Observation::Reading(Reading { at, .. })) = event {
            self.now = self.now.max(Duration::from_nanos(*at));
            self.state.model.tick(self.now);
        }
        self.state.take(Message::Event(source, Box::new(event.clone())));
        let moment = match event {
            Event::Second(second) => format!("{} {} {:?}", second.point, second.second, second.part),
            Event::Phase { .. } | Event::Finished { .. } => serde_json::to_string(event).unwrap(),
            _ => return,
        };
        self.state.diagnose();
        let sizes = [(80, 24), (200, 60)];
        let pictures =
            sizes.map(|(width, height)| picture(&self.state.model, width, height, ViewOptions::default()));
        self.moments.push((moment, pictures.join("\n")));
    }

    /// The moments without incomplete seconds: the store adds late counts to the first part.
    fn settled(&self) -> Vec<&(String, String)> {
        let later = |at: usize, key: &String| self.moments[at + 1..].iter().any(|(later, _)| later == key);
        let settled = self.moments.iter().enumerate().filter(|(at, (key, _))| {
            let before = &self.moments[..*at];
            !before.iter().any(|(earlier, _)| earlier == key || later(*at, earlier)) && !later(*at, key)
        });
        settled.map(|(_, moment)| moment).collect()
    }
}

/// The view of an active run, and its events as lines of JSON. Messages before the run are not events.
#[derive(Default)]
struct Watching {
    live: Option<Watched>,
    lines: Vec<String>,
}

impl Sink for Watching {
    fn event_from(&mut self, source_id: SourceId, event: &Event) -> Result<(), SinkError> {
        if let Some(live) = &mut self.live {
            live.event(source_id, event);
            self.lines.push(serde_json::to_string(&Line { source_id, event })?);
        }
        Ok(())
    }
}

impl Live for Watching {
    fn begin(&mut self, id: RunId, info: &NewRun, spec: &Spec) {
        self.live = Some(Watched::begin(id, info, spec));
    }

    fn message(&mut self, text: &str) {
        if let Some(live) = &mut self.live {
            live.state.take(Message::Say(text.into()));
        }
    }

    fn end(&mut self) {}
}

/// Runs the specification with a store and the view, and compares the view with replays of the stored and
/// printed events.
fn compare(specification: &str) {
    let directory = tempfile::tempdir().unwrap();
    let specification = specification.replace("DIRECTORY", directory.path().to_str().unwrap());
    let store = Store::open(directory.path().join("kelvin.db")).unwrap();
    let mut spec = Spec::parse(&specification, "test").unwrap();
    let (mut view, stop) = (Watching::default(), Stop::new());
    let origin = RunOrigin { command: "test".into(), prompt: |_| Ok(None) };
    let mut bench = StoreBench::new(&store, &mut view, &stop, origin);
    let done = bench.run(&mut spec, Vec::new(), None, None);
    let id = done.unwrap().stored.id;
    let live = view.live.unwrap();
    let pictures: BTreeSet<&String> = live.moments.iter().map(|(_, picture)| picture).collect();
    assert!(pictures.len() > 4, "it stands still: {pictures:?}");

    let run = store.load(id).unwrap();
    let spec = Spec::parse(&run.info.spec_toml, "the stored specification").unwrap();
    let mut printed = Watched::begin(id, &run.info, &spec);
    for line in &view.lines {
        let SourcedEvent { source_id, event } = serde_json::from_str(line).unwrap();
        printed.event(source_id, &event);
    }
    same(live.moments.iter().collect(), &printed);
    let mut stored = Watched::begin(id, &run.info, &spec);
    for event in run.sourced_events() {
        let SourcedEvent { source_id, event } = event.unwrap();
        stored.event(source_id, &event);
    }
    same(live.settled(), &stored);
}

fn same(live: Vec<&(String, String)>, replayed: &Watched) {
    assert!(live.iter().any(|(moment, _)| moment.contains("finished")), "the end is among the moments");
    for (moment, picture) in live {
        let replayed = replayed.moments.iter().find(|(of, _)| of == moment);
        let (_, replayed) = replayed.unwrap_or_else(|| panic!("no {moment}"));
        assert!(picture == replayed, "at {moment}, live:\n{picture}\nreplayed:\n{replayed}");
    }
}

/// Two points, a script that writes, watchers and an open loop.
#[test]
fn the_picture_of_a_load_is_that_of_its_stored_run() {
    let script = "workload = \"script\"\ntarget = \"sqlite:DIRECTORY/a.db\"\naccept-noise = true\n\
                  [[script.scripts]]\nname = \"one\"\n\
                  text = \"create table if not exists t (a int); insert into t values (1);\"\n";
    compare(&format!("{script}[load]\nusers = [1, 2]\nramp-up = \"0s\"\nduration = \"1s\"\n"));
    compare(&format!("{script}[load]\nusers = 2\nrate = 100\nramp-up = \"1s\"\nduration = \"2s\"\n"));
}

#[test]
fn the_picture_of_io_jobs_is_that_of_their_stored_run() {
    compare(
        "workload = \"io\"\naccept-noise = true\n[io]\njob = \"\"\"\n[reader]\nrw=randread\nsize=1m\nruntime=2\n\
         time_based\nthinktime=1ms\ndirectory=DIRECTORY\n\"\"\"\n",
    );
}
