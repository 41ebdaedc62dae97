//! Observations for a synthetic run: a checkpoint in the middle of its window, and a vacuum after it.

use kelvin_measure::Event;
use kelvin_measure::observation::{
    DatabaseDirectory, Metric, Observation, Observer, Occurrence, QueryPlan, Reading, Scan, StatementTotals,
    UnavailableMetrics, WaitSamples,
};
use kelvin_observe::postgres::wait_group as group;
use kelvin_report::{
    BottleneckOutcome, BottleneckVerdict, Effect, EffectBasis, EvidenceLine, Finding, IndependentCounter,
    RunReport, Severity, Share,
};

use super::Noise;

const SECOND: u64 = 1_000_000_000;

fn metrics() -> Vec<(String, &'static str)> {
    let shares = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let columns = [
        ("r_s", "1/s"),
        ("rkb_s", "kB/s"),
        ("r_await", "ms"),
        ("w_s", "1/s"),
        ("wkb_s", "kB/s"),
        ("w_await", "ms"),
        ("f_s", "1/s"),
        ("f_await", "ms"),
        ("aqu_sz", "1"),
        ("util", "%"),
    ];
    let mut found: Vec<(String, &'static str)> =
        shares.iter().map(|share| (format!("host.cpu.total.{share}"), "ratio")).collect();
    for device in ["vda", "vdb", "vdc"] {
        found.extend(columns.iter().map(|(column, unit)| (format!("host.disk.{device}.{column}"), *unit)));
    }
    found.push(("host.memory.available".into(), "B"));
    found
}

fn reading(noise: &mut Noise, burst: f64) -> Vec<f32> {
    let mut vary = |value: f64| value * (0.85 + noise.below(300) as f64 / 1000.0);
    let (user, system, iowait) = (vary(0.42), vary(0.13), vary(0.03 + 0.12 * burst));
    let (irq, steal) = (vary(0.012), vary(0.004));
    let mut values =
        vec![user, 0.0, system, 1.0 - user - system - iowait - irq - steal, iowait, 0.0, irq, steal];
    // Data, log, and an idle device.
    let writes = vary(60.0 + 2400.0 * burst);
    values.extend([
        vary(35.0),
        vary(280.0),
        vary(0.4),
        writes,
        writes * 9.0,
        vary(0.6 + 9.0 * burst),
        0.0,
        0.0,
    ]);
    values.extend([vary(0.1 + 6.0 * burst), vary(8.0 + 80.0 * burst)]);
    let commits = vary(820.0);
    values.extend([
        0.0,
        0.0,
        0.0,
        commits,
        commits * 14.0,
        vary(0.35 + 0.9 * burst),
        commits,
        vary(0.55 + burst),
    ]);
    values.extend([vary(0.6), vary(55.0)]);
    values.extend([0.0; 10]);
    values.push(vary(2.1e9));
    values.into_iter().map(|value| value as f32).collect()
}

/// Observations from the start of the clock to `end`, for a window that opens at `open`; all in seconds.
pub fn observations(noise: &mut Noise, open: u64, end: u64) -> Vec<Event> {
    let window = end - open;
    let (from, to) = (open + window * 2 / 5, open + window * 13 / 20);
    let first = metrics().len() as u32;
    let mut found = declarations();
    for second in 0..=end {
        let at = second * SECOND + noise.below(3_000_000);
        let burst = if (from..to).contains(&second) { 1.0 } else { 0.0 };
        found.push(Observation::Reading(Reading { at, first: 0, values: reading(noise, burst) }));
        let wal = 7.5e6 * (0.9 + noise.below(200) as f64 / 1000.0) * (1.0 + burst);
        let values = vec![wal as f32, (20.0 + 900.0 * burst) as f32];
        found.push(Observation::Reading(Reading { at: at + 1000, first, values }));
        let mut count = |most: u64| noise.below(most) as u32;
        found.push(Observation::Waits(WaitSamples {
            at: at + 2000,
            looks: 10,
            seen: vec![
                (0, 22 + count(9)),
                (1, 14 + count(8) + 18 * burst as u32),
                (2, 5 + count(5)),
                (3, 3 + count(6)),
                (4, 1 + count(4)),
                (5, count(3)),
                (6, 8 * burst as u32),
            ],
            rows: vec![("public.district".into(), 2 + count(3))],
            lock_looks: 10,
        }));
    }
    let occurrence = |id, kind: &str, subject: &str, from: u64, to: Option<u64>| {
        Observation::Occurrence(Occurrence {
            id,
            kind: kind.into(),
            subject: subject.into(),
            from: from * SECOND,
            to: to.map(|to| to * SECOND),
            figures: [("buffers".to_owned(), 14_211.0), ("write_ms".to_owned(), 4998.0)].into(),
        })
    };
    found.push(occurrence(1, "checkpoint", "requested", from, None));
    found.push(occurrence(1, "checkpoint", "requested", from, Some(to)));
    let vacuum = open + window * 3 / 4;
    found.push(occurrence(2, "autovacuum", "public.new_order", vacuum, Some(vacuum + window / 10)));
    found.push(top_statements());
    found.into_iter().map(Event::Observed).collect()
}

/// The same, with metrics of eight streams of traced block requests.
pub fn with_streams(noise: &mut Noise, open: u64, end: u64) -> Vec<Event> {
    let mut found = observations(noise, open, end);
    let classes = ["wal", "data", "temporary", "other"].map(|class| format!("postgres-{class}"));
    let others = ["vda", "other", "sqlite-wal", "filesystem-journal"].map(str::to_owned);
    for (place, name) in classes.into_iter().chain(others).enumerate() {
        let figures = [("requests", "1/s"), ("bytes", "B/s"), ("sequential", "ratio"), ("depth", "1")];
        let metric = |(figure, unit): (&str, &str)| Metric {
            name: format!("host.trace.{name}.{figure}"),
            unit: unit.into(),
            help: String::new(),
        };
        let (metrics, first) = (figures.map(metric).to_vec(), 1000 + 4 * place as u32);
        let observer = Observer { source: "trace".into(), first, metrics, ..Observer::default() };
        found.push(Event::Observed(Observation::Observer(observer)));
        // The second stream has its first request in the tenth second of the window, and no bytes in the
        // fifteenth.
        let from = if place == 1 { open + 10 } else { 0 };
        for second in from..=end {
            let sequential = if second == open + 15 { f32::NAN } else { 0.5 };
            let bytes = 8e6 / (place + 1) as f32;
            let values = vec![bytes / 8192.0, bytes, sequential, place as f32];
            let reading = Reading { at: second * SECOND, first, values };
            found.push(Event::Observed(Observation::Reading(reading)));
        }
    }
    found
}

/// Metrics that are observed, and some that are not.
fn declarations() -> Vec<Observation> {
    let metric = |(name, unit): (String, &str)| Metric { name, unit: unit.into(), help: "what it is".into() };
    let place = |role: &str, device: &str| DatabaseDirectory {
        role: role.into(),
        path: format!("/var/lib/postgresql/{role}"),
        device: Some(device.into()),
        mount: "/".into(),
        filesystem: "ext4".into(),
        queue: None,
    };
    let absent = |what: &str, why: &str| UnavailableMetrics { what: what.into(), why: why.into() };
    let host = metrics();
    let first = host.len() as u32;
    vec![
        Observation::Observer(Observer {
            source: "host".into(),
            first: 0,
            metrics: host.into_iter().map(metric).collect(),
            absent: vec![absent(
                "host.hardware",
                "the kernel has no such counters; a virtual machine hides them",
            )],
            places: vec![place("data", "vda"), place("wal", "vdb")],
        }),
        Observation::Observer(Observer {
            source: "postgres".into(),
            first,
            metrics: [("postgres.wal.bytes", "B/s"), ("postgres.wal.full_page_images", "1/s")]
                .map(|(name, unit)| metric((name.into(), unit)))
                .to_vec(),
            absent: vec![absent("postgres.io", "pg_stat_io came with PostgreSQL 16")],
            places: Vec::new(),
        }),
        Observation::WaitGroups {
            first: 0,
            groups: vec![
                group("client backend", "CPU", "", Some(-77)),
                group("client backend", "IO", "WALSync", None),
                group("client backend", "LWLock", "WALWrite", None),
                group("client backend", "Lock", "transactionid", Some(-77)),
                group("client backend", "Client", "ClientRead", None),
                group("client backend", "IO", "DataFileRead", Some(8)),
                group("checkpointer", "IO", "DataFileWrite", None),
            ],
        },
    ]
}

fn top_statements() -> Observation {
    let statement = |query, text: &str, calls, total_ms, plan| StatementTotals {
        query,
        text: text.into(),
        calls,
        total_ms,
        rows: calls,
        blocks_hit: Some(calls * 4),
        blocks_read: Some(calls / 9),
        wal_bytes: Some(calls * 310),
        plan,
        ..StatementTotals::default()
    };
    let plan = QueryPlan {
        hash: "0123456789abcdef".into(),
        text:
            "Update on stock\n  ->  Index Scan using stock_pkey on stock\n        Index Cond: (s_w_id = $5)"
                .into(),
        scans: vec![Scan {
            node: "Index Scan".into(),
            relation: "stock".into(),
            index: Some("stock_pkey".into()),
        }],
        faster: None,
    };
    Observation::Statements {
        point: 0,
        statements: vec![
            statement(
                -77,
                "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2 WHERE s_i_id = $4 AND s_w_id = $5 <b>",
                42_000,
                31_200.0,
                Some(plan),
            ),
            statement(8, "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1", 41_900, 4_100.0, None),
            statement(9, "COMMIT", 9_815, 3_300.0, None),
        ],
        total_ms: 44_000.0,
    }
}

/// Adds findings and a verdict like those of the diagnosis.
pub fn judged(mut report: RunReport) -> RunReport {
    let finding = |id, severity, title: &str, effect, evidence: Vec<EvidenceLine>, next: &str| Finding {
        id,
        severity,
        point: Some(0),
        title: title.into(),
        evidence,
        effect,
        below_precision: false,
        threshold: "a checkpoint of which any part lies in the window (METHOD B6)".into(),
        next: next.into(),
    };
    report.findings = vec![
        finding(
            "checkpoint-in-window",
            Severity::Red,
            "a requested checkpoint ran through 25 % of the window, and throughput was 31 % lower while it did",
            Effect::between(0.05, 0.10, EffectBasis::Throughput),
            vec![
                EvidenceLine::new("throughput", "712/s before, 491/s while it ran"),
                EvidenceLine::new("log flush", "0.55 ms before, 1.57 ms while it ran"),
                EvidenceLine::new("log", "7.5 MB/s, and max_wal_size is 64 MB <small>"),
            ],
            "set max_wal_size to 8 GB, so that no checkpoint is asked for within ramp-up and window",
        ),
        finding(
            "autovacuum-in-window",
            Severity::Amber,
            "autovacuum worked on public.new_order for 10 % of the window",
            Effect::up_to(0.10, EffectBasis::Throughput),
            vec![EvidenceLine::new("from 15 s to 17 s", "public.new_order")],
            "measure longer, so that every run has its share of it",
        ),
        finding(
            "huge-pages-off",
            Severity::Note,
            "huge pages are off",
            Effect::unknown("misses in the TLB are not counted"),
            Vec::new(),
            "set vm.nr_hugepages",
        ),
        Finding {
            below_precision: true,
            ..finding(
                "steal",
                Severity::Amber,
                "the hypervisor took 0.3 % of the CPU time",
                Effect::up_to(0.003, EffectBasis::Figure),
                vec![EvidenceLine::new("steal, window mean", "0.3 %")],
                "run when the neighbours are quiet",
            )
        },
    ];
    let share = |class: &str, sessions, share| Share {
        class: class.into(),
        sessions,
        share,
        low: share - 0.02,
        high: share + 0.02,
    };
    report.points[0].verdict = Some(BottleneckVerdict {
        point: 0,
        outcome: BottleneckOutcome::Compound { classes: vec!["CPU".into(), "log".into()] },
        shares: vec![share("CPU", 2.6, 0.41), share("log", 2.4, 0.38), share("row locks", 0.5, 0.08)],
        independent_counters: vec![
            IndependentCounter {
                what: "run-queue delay".into(),
                found: "18 % of the time, threshold 10 %".into(),
                agrees: true,
            },
            IndependentCounter {
                what: "log flush time".into(),
                found: "0.6 ms, 4 % of a commit".into(),
                agrees: false,
            },
        ],
        sentence: "CPU (41 % of the active sessions) and log writes (38 %) limit the throughput together"
            .into(),
        next: "kelvin squeeze on both would show which gives more".into(),
    });
    report
}
