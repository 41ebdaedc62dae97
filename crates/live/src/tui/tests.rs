//! The exact display of synthetic runs, at both sizes.

mod replay;

use kelvin_measure::SECOND;
use std::time::Duration;

use kelvin_diagnose::{Context, Effect, EffectBasis, EvidenceLine, Finding, Severity};
use kelvin_measure::event::{
    Arrivals, ErrorCount, Event, KindCounts, LoadPart, Phase, RatePeriod, Second, Series, SeriesRole, Step,
    StepKind,
};
use kelvin_measure::observation::{
    DatabaseDirectory, Metric, Observation, Observer, Occurrence, Reading, StatementTotals,
    UnavailableMetrics, WaitSamples,
};
use kelvin_measure::{Source, SourceId};
use kelvin_observe::postgres::wait_group;
use ratatui::backend::TestBackend;
use ratatui::terminal::Terminal;

use super::draw::{self, Palette, ViewOptions};
use super::model::{Looked, Model, ViewHeader};

/// The display as text, without trailing blanks.
fn picture(model: &Model, width: u16, height: u16, asked: ViewOptions) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let ink = Palette { colour: true };
    let area = ratatui::layout::Rect::new(0, 0, width, height);
    terminal.draw(|frame| draw::draw(frame.buffer_mut(), area, model, asked, ink)).unwrap();
    let text = terminal.backend().to_string();
    let lines: Vec<&str> =
        text.lines().map(|line| line.trim_start_matches('"').trim_end_matches('"').trim_end()).collect();
    lines.join("\n")
}

fn about() -> ViewHeader {
    ViewHeader { workload: "tproc-c".into(), target: "postgres".into(), ..ViewHeader::default() }
}

fn series() -> Vec<Series> {
    vec![Series::transaction("New-Order", true), Series::transaction("Payment", false)]
}

fn begun(series: Vec<Series>, points: Option<usize>) -> Model {
    let mut model = Model::new(about());
    let mut context = Context::default();
    context.workload = "tproc-c".into();
    context.target = "postgres".into();
    context.headline = "NOPM".into();
    context.per = RatePeriod::Minute;
    context.series = series;
    model.begin(&context, points);
    model
}

fn phase(phase: Phase, point: u32, at: u64, planned: Option<u64>) -> Event {
    Event::Phase { point, phase, at: at * SECOND, users: 8, planned: planned.map(|s| s * SECOND) }
}

/// Counts with latencies around a median, in microseconds.
fn counts(committed: u64, micros: u64) -> KindCounts {
    let mut counts = KindCounts { committed, ..KindCounts::default() };
    (0..committed).for_each(|i| counts.latency.record((micros + i * i % 700) * 1000));
    counts
}

fn second(point: u32, at: i64, part: LoadPart, kinds: Vec<KindCounts>) -> Event {
    Event::Second(Second { point, second: at, part, kinds })
}

fn deadlocks(point: u32, second: i64, count: u64) -> Event {
    Event::Errors(ErrorCount {
        point,
        second,
        kind: Some(0),
        class: "deadlock".into(),
        code: "40P01".into(),
        message: "deadlock detected".into(),
        retried: true,
        count,
    })
}

const METRICS: [&str; 23] = [
    "host.cpu.total.user",
    "host.cpu.total.nice",
    "host.cpu.total.system",
    "host.cpu.total.iowait",
    "host.cpu.total.irq",
    "host.cpu.total.softirq",
    "host.cpu.total.steal",
    "host.pressure.cpu.some",
    "host.pressure.io.some",
    "host.pressure.memory.some",
    "host.disk.nvme0n1.r_s",
    "host.disk.nvme0n1.w_s",
    "host.disk.nvme0n1.await",
    "host.disk.nvme0n1.aqu_sz",
    "host.disk.nvme0n1.f_await",
    "host.disk.nvme1n1.r_s",
    "host.disk.nvme1n1.w_s",
    "host.disk.nvme1n1.await",
    "host.disk.nvme1n1.aqu_sz",
    "host.process.client.cpu.user",
    "host.process.client.cpu.system",
    "host.process.server.cpu.user",
    "host.process.server.cpu.system",
];

fn observers() -> Vec<Observation> {
    let place = |role: &str, device: &str| DatabaseDirectory {
        role: role.into(),
        path: format!("/srv/{role}"),
        device: Some(device.into()),
        mount: "/srv".into(),
        filesystem: "xfs".into(),
        queue: None,
    };
    let metric = |name: &&str| Metric { name: (*name).into(), unit: "ratio".into(), help: String::new() };
    let group = |class, event, query| wait_group("client backend", class, event, Some(query));
    vec![
        Observation::Observer(Observer {
            source: "host".into(),
            metrics: METRICS.iter().map(metric).collect(),
            places: vec![place("data", "nvme0n1"), place("wal", "nvme1n1")],
            ..Observer::default()
        }),
        Observation::WaitGroups {
            first: 0,
            groups: vec![
                group("CPU", "", 11),
                group("IO", "WALSync", 12),
                group("IO", "DataFileRead", 11),
                group("Lock", "tuple", 13),
                group("LWLock", "BufferContent", 13),
            ],
        },
    ]
}

/// A minute and a half of a closed loop with a checkpoint, an error and observations.
fn busy() -> Model {
    let mut model = begun(series(), Some(4));
    model.say("postgres: the server of kelvin's own was started");
    for seen in observers() {
        model.event(SourceId::LOCAL, &Event::Observed(seen));
    }
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 1, 0, None));
    model.tick(Duration::from_secs(1));
    model.event(SourceId::LOCAL, &phase(Phase::RampUp, 1, 1, Some(5)));
    for at in -5i64..40 {
        let now = (6 + at) as u64;
        if at == 0 {
            model.tick(Duration::from_secs(now));
            model.event(SourceId::LOCAL, &phase(Phase::Measure, 1, 6, Some(60)));
        }
        let part = if at < 0 { LoadPart::RampUp } else { LoadPart::Measured };
        let slow = if (20..26).contains(&at) { 3 } else { 1 };
        model.event(
            SourceId::LOCAL,
            &second(1, at, part, vec![counts(900 / slow, 1500 * slow), counts(850 / slow, 700 * slow)]),
        );
        let at = (now + 1) * SECOND;
        let log = if slow > 1 { 50 } else { 12 };
        let seen = vec![(0, 24), (1, log), (2, 9), (3, 8), (4, 5)];
        let rows = vec![("public.warehouse".into(), 3)];
        model.event(
            SourceId::LOCAL,
            &Event::Observed(Observation::Waits(WaitSamples { at, looks: 10, seen, rows, lock_looks: 1 })),
        );
        let mut values = vec![0.42, 0.01, 0.2, 0.08, 0.01, 0.02, 0.03, 0.31, 0.12, 0.0];
        values.extend([310.0, 1204.0, 0.84, 1.3, 0.41, 0.0, 820.0, 0.3, f32::NAN, 0.2, 0.05, 1.1, 0.3]);
        model
            .event(SourceId::LOCAL, &Event::Observed(Observation::Reading(Reading { at, first: 0, values })));
    }
    model.event(
        SourceId::LOCAL,
        &Event::Observed(Observation::Occurrence(Occurrence {
            id: 0,
            kind: "checkpoint".into(),
            subject: "timed".into(),
            from: 26 * SECOND,
            to: Some(32 * SECOND),
            figures: std::collections::BTreeMap::new(),
        })),
    );
    model.event(SourceId::LOCAL, &deadlocks(1, 12, 3));
    let statement = |query, text: &str| StatementTotals {
        query,
        text: text.into(),
        calls: 1,
        total_ms: 1.0,
        rows: 1,
        ..StatementTotals::default()
    };
    let statements =
        vec![statement(11, "SELECT s_quantity\n  FROM stock\tWHERE s_w_id = $1"), statement(12, "COMMIT")];
    model.event(
        SourceId::LOCAL,
        &Event::Observed(Observation::Statements { point: 0, statements, total_ms: 1.0 }),
    );
    model.event(
        SourceId::LOCAL,
        &Event::Note { point: 1, second: 12, text: "user 3 lost its connection and has a new one".into() },
    );
    model.findings = vec![
        finding(Severity::Red, "a checkpoint ran for 6 s within the window and cost 64 % of the throughput"),
        finding(Severity::Amber, "max_wal_size forces a checkpoint every 94 s; 4.2 GB would not"),
        finding(Severity::Note, "huge pages are off with 8 GB of shared buffers"),
    ];
    model.looked = Looked::UpToDate;
    model.tick(Duration::from_secs(46));
    model
}

fn finding(severity: Severity, title: &str) -> Finding {
    Finding {
        id: "checkpoint-in-window",
        severity,
        point: Some(1),
        title: title.into(),
        evidence: vec![EvidenceLine::new("checkpoint", "6 s")],
        effect: Effect::up_to(0.64, EffectBasis::Throughput),
        below_precision: false,
        threshold: String::new(),
        next: "set max_wal_size to 8 GB and let the ramp-up cover one checkpoint".into(),
    }
}

#[test]
fn a_busy_run_at_80_by_24() {
    insta::assert_snapshot!(picture(&busy(), 80, 24, ViewOptions::default()));
}

#[test]
fn a_busy_run_at_200_by_60() {
    insta::assert_snapshot!(picture(&busy(), 200, 60, ViewOptions::default()));
}

/// A run whose block requests are traced by stream.
fn traced() -> Model {
    let mut model = busy();
    let metric = |name: String| Metric { name, unit: "1/s".into(), help: String::new() };
    let mut first = METRICS.len() as u32;
    let mut declare = |model: &mut Model, names: Vec<String>| {
        let metrics: Vec<Metric> = names.into_iter().map(metric).collect();
        let (at, length) = (first, metrics.len() as u32);
        let observer = Observer { source: "trace".into(), first, metrics, ..Observer::default() };
        model.event(SourceId::LOCAL, &Event::Observed(Observation::Observer(observer)));
        first += length;
        at
    };
    let lost = declare(&mut model, vec!["host.trace.lost".into()]);
    let figures = ["requests", "bytes", "sequential", "depth"];
    let streams = ["postgres-wal", "postgres-data", "vda.1"];
    let streams = streams
        .map(|stream| declare(&mut model, figures.map(|name| format!("host.trace.{stream}.{name}")).into()));
    let read = |model: &mut Model, at: u64, first: u32, values: Vec<f32>| {
        let reading = Reading { at: at * SECOND, first, values };
        model.event(SourceId::LOCAL, &Event::Observed(Observation::Reading(reading)));
    };
    // The checkpoint of the data writes most of the bytes, and has ended.
    for (at, written) in [(44, 90e6), (45, 0.0)] {
        let data = if written > 0.0 {
            vec![8600.0, written, 0.02, 29.4]
        } else {
            vec![0.0, 0.0, f32::NAN, f32::NAN]
        };
        read(&mut model, at, lost, vec![0.0]);
        read(&mut model, at, streams[0], vec![1204.0, 9.8e6, 1.0, 0.03]);
        read(&mut model, at, streams[1], data);
        read(&mut model, at, streams[2], vec![1.0, 0.0, f32::NAN, 0.0]);
    }
    model
}

#[test]
fn a_traced_run_at_80_by_24() {
    let mut model = traced();
    insta::assert_snapshot!(picture(&model, 80, 24, ViewOptions::default()));
    let first = METRICS.len() as u32;
    let reading = Reading { at: 46 * SECOND, first, values: vec![12_345.0] };
    model.event(SourceId::LOCAL, &Event::Observed(Observation::Reading(reading)));
    assert!(
        picture(&model, 80, 24, ViewOptions::default()).contains("storage by stream: 12,345 events lost")
    );
}

#[test]
fn a_traced_run_at_200_by_60() {
    insta::assert_snapshot!(picture(&traced(), 200, 60, ViewOptions::default()));
}

#[test]
fn each_of_several_sources_has_a_lane() {
    let mut model = begun(series(), Some(1));
    let tenant = |id, name: &str| {
        let source = Source { tenant: Some(name.into()), host: Some("load2".into()), ..Source::default() };
        Event::Source { id: SourceId(id), source }
    };
    model.event(SourceId::LOCAL, &tenant(1, "shop"));
    model.event(SourceId::LOCAL, &tenant(2, "a warehouse with a long name"));
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 0, 0, None));
    model.event(SourceId::LOCAL, &phase(Phase::Measure, 0, 0, Some(20)));
    for at in 0..10 {
        let part = LoadPart::Measured;
        model.event(
            SourceId(1),
            &second(0, at, part, vec![counts(300 + 60 * at as u64, 900), counts(9, 900)]),
        );
        // The second source stops sending.
        if at < 8 {
            model.event(SourceId(2), &second(0, at, part, vec![counts(100, 4000), counts(9, 900)]));
        }
    }
    model.event(SourceId(2), &deadlocks(0, 3, 2));
    model.tick(Duration::from_secs(10));
    assert_eq!(model.load.headline, (0..10).map(|at| 300 + 60 * at).sum::<u64>() + 800);
    insta::assert_snapshot!(picture(&model, 80, 24, ViewOptions::default()));
}

/// One tenant starts first and has rolled-back New-Orders; the other reads for a part of the time.
#[test]
fn tenants_have_their_own_figures_and_no_sum() {
    let of = ["oltp: New-Order", "oltp: Payment", "dss: read"].map(|name| Series::transaction(name, true));
    let mut model = begun(of.into(), Some(1));
    (model.about.workload, model.about.target) = ("scenario".into(), "oltp: postgres, dss: file".into());
    model.about.per = RatePeriod::Second;
    for (id, name) in [(1, "oltp"), (2, "dss")] {
        let source = Source { tenant: Some(name.into()), ..Source::default() };
        model.event(SourceId::LOCAL, &Event::Source { id: SourceId(id), source });
    }
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 0, 0, None));
    model.event(SourceId::LOCAL, &phase(Phase::Measure, 0, 0, Some(20)));
    let step = |at: u64, kind, name: &str, text: &str| {
        let (tenants, text) = (vec![name.into()], text.into());
        Event::Step(Step { point: 0, number: 1, at: at * SECOND, kind, tenants, text, annotated: true })
    };
    model.event(SourceId::LOCAL, &step(0, StepKind::Start, "oltp", "start oltp"));
    for at in 0..10 {
        if at == 4 {
            model.event(SourceId::LOCAL, &step(4, StepKind::Start, "dss", "start dss"));
        }
        let rolled_back = KindCounts { rolled_back: 1, ..counts(39, 900) };
        let oltp = vec![rolled_back, counts(50, 900), counts(0, 1)];
        model.event(SourceId(1), &second(0, at, LoadPart::Measured, oltp));
        if (4..8).contains(&at) {
            let dss = vec![counts(0, 1), counts(0, 1), counts(7000, 90)];
            model.event(SourceId(2), &second(0, at, LoadPart::Measured, dss));
        }
        if at == 8 {
            model.event(SourceId::LOCAL, &step(8, StepKind::Stop, "dss", "stop dss"));
        }
    }
    model.tick(Duration::from_secs(10));
    let picture = picture(&model, 80, 24, ViewOptions::default());
    assert!(picture.contains("oltp 90/s mean, dss 7,000/s mean") && picture.contains("stopped"), "{picture}");
    assert!(!picture.contains("throughput") && !picture.contains("NOPM"), "{picture}");
}

/// An open loop on SQLite: no sessions, and for the host only the reason why nothing is observed.
#[test]
fn a_search_on_sqlite_at_80_by_24() {
    let response =
        Series { role: SeriesRole::Response { of: 0 }, ..Series::transaction("New-Order, response", false) };
    let mut model = begun(vec![series().remove(0), response], None);
    model.about.target = "sqlite".into();
    let absent = UnavailableMetrics {
        what: "host.cpu".into(),
        why: "cannot read /proc/stat: permission denied".into(),
    };
    let observer = Observer { source: "host".into(), absent: vec![absent], ..Observer::default() };
    model.event(SourceId::LOCAL, &Event::Observed(Observation::Observer(observer)));
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 2, 0, None));
    model.event(SourceId::LOCAL, &phase(Phase::Measure, 2, 0, Some(10)));
    for at in 0..4 {
        model.event(
            SourceId::LOCAL,
            &second(2, at, LoadPart::Measured, vec![counts(400, 900), counts(400, 4000)]),
        );
        let arrivals = Arrivals { point: 2, second: at, due: 410, refused: 2, waiting: Some(7) };
        model.event(SourceId::LOCAL, &Event::Arrivals(arrivals));
    }
    model.tick(Duration::from_secs(4));
    model.stopping = true;
    insta::assert_snapshot!(picture(&model, 80, 24, ViewOptions::default()));
}

#[test]
fn making_the_data_and_a_terminal_that_is_too_small() {
    let mut model = Model::new(about());
    let progress =
        |done| Event::Progress { what: "warehouses loaded".into(), done, total: 10, rows: 1_000_000 * done };
    model.event(SourceId::LOCAL, &progress(0));
    model.tick(Duration::from_secs(8));
    model.event(SourceId::LOCAL, &progress(2));
    insta::assert_snapshot!(picture(&model, 60, 10, ViewOptions::default()));
}

#[test]
fn the_keys_are_explained() {
    let asked = ViewOptions { help: true, paused: true };
    insta::assert_snapshot!(picture(&busy(), 80, 24, asked));
}

/// Any size, and any state: no panic, and nothing drawn outside the area.
#[test]
fn every_size_can_be_drawn() {
    let models = [Model::new(about()), begun(series(), Some(1)), busy(), traced()];
    for model in &models {
        for width in (1..30).chain([79, 80, 81, 139, 140, 300]) {
            for height in (1..30).chain([90]) {
                picture(model, width, height, ViewOptions::default());
                picture(model, width, height, ViewOptions { help: true, paused: true });
            }
        }
    }
}

/// Without colours the display has the same characters, and no cell has a colour.
#[test]
fn without_colours_nothing_is_lost() {
    let area = ratatui::layout::Rect::new(0, 0, 200, 60);
    let draw = |colour| {
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        draw::draw(&mut buffer, area, &busy(), ViewOptions::default(), Palette { colour });
        buffer
    };
    let (with, without) = (draw(true), draw(false));
    let reset = ratatui::style::Color::Reset;
    assert!(without.content().iter().all(|cell| cell.fg == reset && cell.bg == reset));
    assert!(with.content().iter().any(|cell| cell.bg != reset));
    let text = |buffer: &ratatui::buffer::Buffer| -> String {
        buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect()
    };
    assert_eq!(text(&with), text(&without));
}

/// Later additions to a second are in its totals, and a new point starts without them.
#[test]
fn late_samples_count_and_a_new_point_begins_at_nothing() {
    let mut model = begun(series(), Some(2));
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 0, 0, None));
    model.event(SourceId::LOCAL, &phase(Phase::Measure, 0, 0, Some(10)));
    model.event(SourceId::LOCAL, &second(0, 0, LoadPart::Measured, vec![counts(100, 900), counts(10, 900)]));
    model.event(SourceId::LOCAL, &second(0, 1, LoadPart::Measured, vec![counts(50, 900), counts(10, 900)]));
    model.event(SourceId::LOCAL, &second(0, 0, LoadPart::Measured, vec![counts(3, 900), counts(0, 900)]));
    model.event(SourceId::LOCAL, &second(0, 10, LoadPart::Tail, vec![counts(7, 900), counts(0, 900)]));
    assert_eq!((model.load.headline, model.load.now, model.load.seconds), (153, 50, 2.0));
    assert_eq!(model.pace(model.load.headline, 2.0), Some(4590.0));
    assert_eq!(model.load.kinds[1].good, 20);
    let columns: Vec<u64> =
        model.timeline.last(3).map(|(_, column)| column.map_or(0, |column| column.headline)).collect();
    assert_eq!(columns, [103, 50, 0]);
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 1, 11, None));
    assert_eq!((model.load.headline, model.load.seconds, model.load.latency), (0, 0.0, [[None; 4]; 2]));
}

/// Two devices; the first phase reads one of them at a rate.
#[test]
fn a_run_of_io_jobs_has_workers_and_devices() {
    let mut model = Model::new(ViewHeader { workload: "io".into(), ..ViewHeader::default() });
    let mut context = Context::default();
    (context.workload, context.target, context.headline) = ("io".into(), "/data/f".into(), "IOPS".into());
    context.per = RatePeriod::Second;
    let response =
        Series { role: SeriesRole::Response { of: 0 }, ..Series::transaction("read sda, response", false) };
    context.series =
        vec![Series::transaction("read sda", true), Series::transaction("write sdb", true), response];
    model.begin(&context, Some(2));
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 0, 0, None));
    model.event(SourceId::LOCAL, &phase(Phase::Measure, 0, 0, Some(2)));
    let none = KindCounts::default;
    model.event(
        SourceId::LOCAL,
        &second(0, 0, LoadPart::Measured, vec![counts(400, 100), none(), counts(400, 5_000)]),
    );
    assert!(model.load.is_open(), "everything had a rate");
    assert!(picture(&model, 80, 24, ViewOptions::default()).contains("response time"));
    model.event(SourceId::LOCAL, &phase(Phase::Connect, 1, 2, None));
    model.event(SourceId::LOCAL, &phase(Phase::Measure, 1, 2, Some(2)));
    for at in 0..2 {
        model.event(
            SourceId::LOCAL,
            &second(1, at, LoadPart::Measured, vec![counts(300, 90), counts(200, 900), none()]),
        );
    }
    model.event(
        SourceId::LOCAL,
        &Event::Phase { point: 1, phase: Phase::Stop, at: 4_100_000_000, users: 8, planned: None },
    );
    model.event(
        SourceId::LOCAL,
        &second(1, 2, LoadPart::Measured, vec![counts(25, 90), counts(25, 900), none()]),
    );
    assert!(!model.load.is_open() && (model.load.seconds - 2.1).abs() < 1e-9);
    insta::assert_snapshot!("an_io_run_at_80_by_24", picture(&model, 80, 24, ViewOptions::default()));
    let help = picture(&model, 80, 24, ViewOptions { help: true, ..ViewOptions::default() });
    assert!(help.contains("by direction and device") && !help.contains("transactions"), "{help}");
}
