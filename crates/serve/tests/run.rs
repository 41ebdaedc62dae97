//! TPROC-C on an observed SQLite file: the scraped values are those of the result.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_database::sqlite::SqliteEngine;
use kelvin_measure::event::KindCounts;
use kelvin_measure::{Clock, Event, Sink, SinkError, SourceId};
use kelvin_observe::watch::Watch;
use kelvin_run::spec::WorkloadName;
use kelvin_run::{Run, Spec};
use kelvin_serve::{MetricsEndpoint, MetricsSink, RunInfo};
use kelvin_workload::progress::Quiet;
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{Stop, Workload};
use support::{body, get};

/// Forwards events and observations.
struct Both {
    sink: MetricsSink,
    watch: Watch,
}

impl Sink for Both {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        self.sink.event(event)?;
        for observation in self.watch.take() {
            self.sink.event(&Event::Observed(observation))?;
        }
        Ok(())
    }
}

#[test]
fn a_run_is_served_as_measured() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    // A name with a blank, since it is searched for in /proc/self/maps.
    let engine: Arc<dyn Engine> = Arc::new(SqliteEngine::open(directory.path().join("tproc c.db")).unwrap());
    let mut spec = Spec::new(WorkloadName::TprocC);
    spec.load.users = "4".parse().unwrap();
    spec.load.ramp_up = "1s".parse().unwrap();
    spec.load.duration = "4s".parse().unwrap();
    let mut workload = TprocC::new(Options::default()).unwrap();
    Workload::build(&workload, &*engine, &Quiet, &Stop::new()).unwrap();
    workload.inspect(&*engine).unwrap();
    let workload: Arc<dyn Workload> = Arc::new(workload);

    let (endpoint, mut sink) = MetricsEndpoint::start("127.0.0.1:0".parse().unwrap()).unwrap();
    sink.begin(RunInfo {
        run: "1".into(),
        workload: workload.name().into(),
        headline: workload.headline().into(),
        per: workload.headline_per(),
        series: kelvin_run::series(workload.kinds(), spec.load.is_open_loop()),
    });
    let clock = Clock::real();
    let watchers = kelvin_observe::sqlite::watchers(&engine, Duration::from_millis(500));
    let mut both = Both { sink, watch: Watch::start(watchers, &clock).unwrap() };
    let run = Run { engine, workload, spec: &spec, clock, stop: Stop::new(), fleet: None };
    let outcome = run.execute(&mut both).unwrap();
    let page = body(&get(endpoint.address(), "/metrics", ""));
    both.watch.finish(|_| Ok::<(), ()>(())).unwrap();

    let sum = |starts: &str, contains: &[&str]| -> f64 {
        let wanted =
            |line: &&str| line.starts_with(starts) && contains.iter().all(|part| line.contains(part));
        let found: Vec<&str> = page.lines().filter(wanted).collect();
        assert!(!found.is_empty(), "no {starts} with {contains:?} in\n{page}");
        found.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    let point = &outcome.points[0];
    let nopm = point.window.client_headline as f64 * 60e9 / point.window.elapsed as f64;
    assert!(nopm > 0.0);
    assert!((sum("kelvin_headline_throughput{", &["NOPM"]) - nopm).abs() < 1e-6 * nopm);
    for (counts, part) in [(&point.totals.all, "part="), (&point.totals.measured, "part=\"measured\"")] {
        let of = |figure: fn(&KindCounts) -> u64| {
            point.totals.transactions(counts).map(figure).sum::<u64>() as f64
        };
        let told = |outcome| sum("kelvin_transactions_total{", &[part, outcome]);
        assert_eq!(told("outcome=\"committed\""), of(|kind| kind.committed), "{part}");
        assert_eq!(told("outcome=\"rolled_back\""), of(|kind| kind.rolled_back), "{part}");
        let latencies = sum("kelvin_transaction_service_seconds_count{", &[part]);
        assert_eq!(latencies, of(|kind| kind.latency.count()), "{part}");
    }
    assert_eq!(sum("kelvin_run_status{", &["complete"]), 1.0);
    // The watcher's last reading of the file.
    assert!(sum("kelvin_sqlite_wal_bytes{", &["local"]) > 0.0);
    assert!(sum("kelvin_sqlite_database_bytes{", &["local"]) > 1e6);
    assert!(sum("kelvin_sqlite_wal_written_bytes_per_second{", &["local"]) >= 0.0);
    assert!(sum("kelvin_sqlite_busy_seconds_per_second{", &["local"]) >= 0.0);
}
