//! A scenario of two tenants with different loads: TPROC-C, and reads that start in the middle.

use std::path::Path;

use kelvin_measure::event::{
    Event, KindCounts, LoadPart, Phase, Second, Series, Status, Step, StepKind, Stretch, Window,
};
use kelvin_measure::{Sink, Source, SourceId};
use kelvin_report::RunReport;
use kelvin_store::{NewRun, Store};

const SECOND: u64 = 1_000_000_000;
const SECONDS: u64 = 40;
/// When the second tenant starts, in seconds.
const CHANGE: u64 = 20;
const OLTP: SourceId = SourceId(1);
const DSS: SourceId = SourceId(2);

fn counts(count: u64, typical_ms: u64, second: u64) -> KindCounts {
    let mut counts = KindCounts { committed: count, ..KindCounts::default() };
    for i in 0..count {
        counts.latency.record((typical_ms * 1000 + i * 37 + second * 11) * 1000);
    }
    counts
}

fn step(number: u32, at: u64, kind: StepKind, tenants: &[&str], text: &str) -> Event {
    let tenants = tenants.iter().map(|&name| name.into()).collect();
    Event::Step(Step { point: 0, number, at: at * SECOND, kind, tenants, text: text.into(), annotated: true })
}

/// The report of the scenario.
pub fn stored(path: &Path) -> RunReport {
    stored_with(path, 0, "dss")
}

/// The same with more New-Orders and Payments per second before the other tenant starts, and with another
/// name for it.
pub fn stored_with(path: &Path, more: u64, dss: &str) -> RunReport {
    let store = Store::open(path).unwrap();
    let mut writer = store
        .begin_run(&NewRun {
            workload: "scenario".into(),
            target: format!("oltp: postgres://joe@localhost:5432/tpcc, {dss}: dss-data"),
            spec_toml: "scenario = \"colocation <1>\"
[tenants.oltp]
"
            .into(),
            command: "kelvin run colocation.toml".into(),
            kinds: ["oltp: New-Order", "oltp: Payment", &format!("{dss}: read")]
                .map(|name| Series::transaction(name, true))
                .into(),
            headline: "transactions and I/Os per second".into(),
            ..super::new_run()
        })
        .unwrap();
    let mut say = |source: SourceId, event: Event| writer.event_from(source, &event).unwrap();
    let local = SourceId::LOCAL;
    for (id, name, database) in [(OLTP, "oltp", Some("postgres://joe@localhost:5432/tpcc")), (DSS, dss, None)]
    {
        let source =
            Source { tenant: Some(name.into()), database: database.map(Into::into), ..Source::default() };
        say(local, Event::Source { id, source });
    }
    let phase = |phase, at| Event::Phase { point: 0, phase, at, users: 6, planned: None };
    say(local, phase(Phase::Connect, 0));
    say(local, phase(Phase::Measure, SECOND));
    say(local, step(3, 0, StepKind::Start, &["oltp"], "start oltp"));
    let mut done = 0;
    for second in 0..SECONDS {
        if second == CHANGE {
            say(local, step(5, CHANGE, StepKind::Start, &[dss], "start dss"));
        }
        let beside = second >= CHANGE;
        let oltp = if beside { 50 + second % 3 } else { 100 + more + second % 3 };
        let busy = |kinds: Vec<KindCounts>| {
            let of = Second { point: 0, second: second as i64, part: LoadPart::Measured, kinds };
            Event::Second(of)
        };
        let slow = if beside { 30 } else { 4 };
        say(
            OLTP,
            busy(vec![
                counts(oltp / 2, slow, second),
                counts(oltp - oltp / 2, slow, second),
                counts(0, 1, 0),
            ]),
        );
        done += oltp;
        if beside {
            say(DSS, busy(vec![counts(0, 1, 0), counts(0, 1, 0), counts(4000, 9, second)]));
            done += 4000;
        }
    }
    say(local, step(6, SECONDS, StepKind::Stop, &["oltp", dss], "the end"));
    for (source, from, users) in [(OLTP, 0, 4), (DSS, CHANGE, 2)] {
        let stretch = Stretch {
            point: 0,
            from: from * SECOND,
            to: SECONDS * SECOND,
            users,
            client_headline: 0,
            server_headline: None,
            schedule: None,
            poisson: false,
        };
        say(source, Event::Stretch(stretch));
    }
    say(local, phase(Phase::Stop, (1 + SECONDS) * SECOND));
    let window = Window {
        point: 0,
        users: 6,
        elapsed: SECONDS * SECOND,
        idle: 0,
        client_headline: done,
        server_headline: None,
        server_transactions: None,
        client_cpu: SECOND,
        client_run_delay: None,
        schedule: None,
    };
    say(local, Event::Window(window));
    say(local, Event::Finished { status: Status::Complete, error: None });
    let id = writer.id();
    drop(writer);
    RunReport::from_run(&store.load(id).unwrap()).unwrap()
}
