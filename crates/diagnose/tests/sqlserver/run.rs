//! A run whose server is a recording: the watchers on a clock of ours, the load as the recording says.

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_diagnose::{BottleneckVerdict, Context, Evidence, Finding, findings_for, verdict};
use kelvin_measure::event::{Event, KindCounts, LoadPart, Phase, Second, Series, Window};
use kelvin_measure::{Clock, Nanos, SECOND};
use kelvin_observe::engine::{WatchPlan, watchers};
use kelvin_observe::watch::{Feed, Stage};
use serde_json::json;

use super::recording::Replay;

const CONNECT: u64 = 1;
const RAMP_UP: u64 = 2;
const OPEN: u64 = 7;
const CLOSE: u64 = 37;
/// Looks a second.
const LOOKS: u32 = 10;

/// What a recording's run shows.
pub(crate) struct Outcome {
    pub(crate) evidence: Evidence,
    pub(crate) findings: Vec<Finding>,
    pub(crate) verdict: BottleneckVerdict,
}

impl Outcome {
    #[track_caller]
    pub(crate) fn finding(&self, id: &str) -> &Finding {
        let found = self.findings.iter().find(|finding| finding.id == id);
        found.unwrap_or_else(|| panic!("no {id} among {:?}", self.ids()))
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.findings.iter().map(|finding| finding.id).collect()
    }

    /// The evidence of a finding as one text.
    pub(crate) fn facts(&self, id: &str) -> String {
        let finding = self.finding(id);
        let facts = finding.evidence.iter().map(|fact| format!("{}: {}\n", fact.what, fact.found));
        format!("{}\n{}", finding.title, facts.collect::<String>())
    }

    /// Mean of a metric over the window.
    #[track_caller]
    pub(crate) fn mean(&self, name: &str) -> f64 {
        self.evidence.mean(0, name).unwrap_or_else(|| panic!("no {name}"))
    }
}

/// Observes a recording from before the users to after them, and judges it.
pub(crate) fn observe(name: &str) -> Outcome {
    let clock = Clock::mock();
    let replay = Replay::new(name, clock.clone());
    let recording = Arc::clone(&replay.recording);
    let engine: Arc<dyn Engine> = Arc::new(replay);
    let plan = WatchPlan { looks: LOOKS, apart: true, ..WatchPlan::default() };
    let mut all = watchers(&engine, &plan).unwrap().watchers;
    let (feed, seen) = Feed::detached(clock.clone());
    let mut feeds = vec![feed; all.len()];

    let mut context = Context::default().with_environment(
        json!({ "workload": "tproc-c", "tproc-c": { "warehouses": 33 } }),
        json!({ "engine": "sqlserver" }),
    );
    (context.workload, context.target) = ("tproc-c".into(), engine.describe());
    context.series = vec![Series::transaction("New-Order", true)];
    let mut evidence = Evidence::new(context);
    let load = |second: u64| {
        let rows = recording.rows("run", second as f64, 0).unwrap();
        [0, 1, 2].map(|column| rows[0][column].number())
    };
    let users = load(OPEN)[0] as u32;

    for (watcher, feed) in all.iter_mut().zip(&mut feeds) {
        watcher.begin(feed);
    }
    let phases =
        [(CONNECT, Phase::Connect), (RAMP_UP, Phase::RampUp), (OPEN, Phase::Measure), (CLOSE, Phase::Stop)];
    for tick in 0..=CLOSE * u64::from(LOOKS) {
        let at: Nanos = tick * SECOND / u64::from(LOOKS);
        clock.sleep_until(at);
        let second = tick % u64::from(LOOKS) == 0;
        let phase = phases.iter().find(|(of, _)| second && of * SECOND == at).map(|(_, phase)| *phase);
        for (watcher, feed) in all.iter_mut().zip(&mut feeds) {
            // Each in its own rhythm, as in threads of their own.
            if second || watcher.interval().as_nanos() as Nanos != SECOND {
                watcher.sample(feed).unwrap();
            }
            if let Some(phase) = phase {
                watcher.stage(Stage { point: 0, phase }, feed).unwrap();
            }
        }
        if let Some(phase) = phase {
            evidence.event(&Event::Phase { point: 0, phase, at, users, planned: None });
        }
        for observation in seen.try_iter() {
            evidence.event(&Event::Observed(observation));
        }
        if second && (RAMP_UP * SECOND..CLOSE * SECOND).contains(&at) {
            evidence.event(&Event::Second(counts(at / SECOND, load(at / SECOND))));
        }
    }
    for (watcher, feed) in all.iter_mut().zip(&mut feeds) {
        watcher.end(feed).unwrap();
    }
    for observation in seen.try_iter() {
        evidence.event(&Event::Observed(observation));
    }
    evidence.event(&Event::Window(Window {
        point: 0,
        users,
        elapsed: (CLOSE - OPEN) * SECOND,
        idle: 0,
        client_headline: 0,
        server_headline: None,
        server_transactions: None,
        client_cpu: SECOND / 5 * (CLOSE - OPEN),
        client_run_delay: Some(0),
        schedule: None,
    }));
    assert_eq!(evidence.lost(), [], "{name}");
    let findings = findings_for(&evidence);
    let verdict = verdict(&evidence, 0, &findings).unwrap();
    Outcome { evidence, findings, verdict }
}

fn counts(second: u64, [_, transactions, ms]: [f64; 3]) -> Second {
    let second = second as i64 - OPEN as i64;
    // A little more in one second and a little less in the next.
    let number = (transactions * [1.02, 0.98, 1.0, 0.99, 1.01][second.rem_euclid(5) as usize]) as u64;
    let mut kind = KindCounts { committed: number, ..KindCounts::default() };
    (0..number).for_each(|_| kind.latency.record((ms * 1e6) as u64));
    let part = if second < 0 { LoadPart::RampUp } else { LoadPart::Measured };
    Second { point: 0, second, part, kinds: vec![kind] }
}
