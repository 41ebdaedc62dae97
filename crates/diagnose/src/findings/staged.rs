//! Runs put together for the findings' tests: TPROC-C with a ramp-up from 1 s to 6 s and a window from 6 s to 26 s.

pub(crate) use kelvin_measure::SECOND;
use std::collections::BTreeMap;

use kelvin_measure::event::{Event, KindCounts, LoadPart, Phase, Second, Series, Window};
use kelvin_measure::observation::{
    Blocker, CaptureTime, DatabaseDirectory, Metric, Observation, Observer, Occurrence, PreparedStatement,
    QueryPlan, Reading, Relation, Scan, StatementTotals, UnavailableMetrics, WaitGroup, WaitKind,
    WaitSamples,
};
use kelvin_measure::query::QueryExecution;
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_observe::postgres::wait_group;
use serde_json::json;

use crate::{Context, Evidence};

const RAMP: u64 = 1;
const OPEN: u64 = 6;
const CLOSE: u64 = 26;

/// A run that is being put together.
pub(crate) struct Staged {
    evidence: Evidence,
    users: u32,
    throughput: Box<dyn Fn(i64) -> u64>,
    metrics: u32,
    groups: u32,
    occurrences: u32,
}

impl Staged {
    pub(crate) fn new() -> Self {
        Self::workload("tproc-c", 8, 4)
    }

    /// With users and warehouses.
    pub(crate) fn sized(users: u32, warehouses: u32) -> Self {
        Self::workload("tproc-c", users, warehouses)
    }

    pub(crate) fn workload(workload: &str, users: u32, warehouses: u32) -> Self {
        let spec = json!({ "workload": workload, "tproc-c": { "warehouses": warehouses } });
        let series = vec![Series::transaction("New-Order", true)];
        let mut context = Context::default().with_environment(spec, json!({ "engine": "postgres" }));
        (context.workload, context.series) = (workload.into(), series);
        let mut evidence = Evidence::new(context);
        for (phase, at, planned) in [
            (Phase::Connect, RAMP * SECOND - SECOND / 2, None),
            (Phase::RampUp, RAMP * SECOND, Some(5 * SECOND)),
            (Phase::Measure, OPEN * SECOND, Some(20 * SECOND)),
            (Phase::Stop, CLOSE * SECOND, None),
        ] {
            evidence.event(&Event::Phase { point: 0, phase, at, users, planned });
        }
        let throughput = Box::new(|second: i64| (1000 + 20 * (second * 7).rem_euclid(5) - 40) as u64);
        Self { evidence, users, throughput, metrics: 0, groups: 0, occurrences: 0 }
    }

    /// Transactions of each second since the window's opening.
    pub(crate) fn throughput(mut self, of: impl Fn(i64) -> u64 + 'static) -> Self {
        self.throughput = Box::new(of);
        self
    }

    /// In this environment; of PostgreSQL, unless it names another engine.
    pub(crate) fn environment(mut self, mut environment: serde_json::Value) -> Self {
        if environment["engine"].is_null() {
            environment["engine"] = "postgres".into();
        }
        let spec = self.evidence.context.spec("").cloned().unwrap_or_default();
        self.evidence.context =
            std::mem::take(&mut self.evidence.context).with_environment(spec, environment);
        self
    }

    pub(crate) fn seen(mut self, observation: Observation) -> Self {
        self.evidence.event(&Event::Observed(observation));
        self
    }

    /// A metric with its value at each second on the run's clock.
    pub(crate) fn metric_by(mut self, name: &str, of: impl Fn(u64) -> f64) -> Self {
        let first = self.metrics;
        self.metrics += 1;
        let metric = Metric { name: name.into(), unit: "1".into(), help: String::new() };
        self = self.seen(Observation::Observer(Observer {
            first,
            metrics: vec![metric],
            ..Observer::default()
        }));
        for second in 0..=CLOSE {
            let values = vec![of(second) as f32];
            self = self.seen(Observation::Reading(Reading { at: second * SECOND, first, values }));
        }
        self
    }

    pub(crate) fn metric(self, name: &str, value: f64) -> Self {
        self.metric_by(name, |_| value)
    }

    /// Average sessions by backend, class and event over the whole run, and those that wait for rows by relation.
    pub(crate) fn sessions(mut self, groups: &[(&str, &str, &str, f64)], rows: &[(&str, f64)]) -> Self {
        let first = self.groups;
        self.groups += groups.len() as u32;
        let known =
            groups.iter().map(|(backend, class, event, _)| wait_group(backend, class, event, None)).collect();
        self = self.seen(Observation::WaitGroups { first, groups: known });
        for second in 1..=CLOSE {
            let seen =
                groups.iter().zip(first..).map(|((.., mean), at)| (at, (mean * 100.0) as u32)).collect();
            let rows = rows.iter().map(|(name, mean)| ((*name).to_owned(), (mean * 100.0) as u32)).collect();
            let waits = WaitSamples { at: second * SECOND, looks: 100, seen, rows, lock_looks: 100 };
            self = self.seen(Observation::Waits(waits));
        }
        self
    }

    /// Average sessions in these states over the whole run.
    pub(crate) fn states(mut self, states: &[(WaitGroup, f64)]) -> Self {
        let first = self.groups;
        self.groups += states.len() as u32;
        let known = states.iter().map(|(group, _)| group.clone()).collect();
        self = self.seen(Observation::WaitGroups { first, groups: known });
        for second in 1..=CLOSE {
            let seen =
                states.iter().zip(first..).map(|((_, mean), at)| (at, (mean * 100.0) as u32)).collect();
            let waits =
                WaitSamples { at: second * SECOND, looks: 100, seen, rows: Vec::new(), lock_looks: 100 };
            self = self.seen(Observation::Waits(waits));
        }
        self
    }

    /// The same of MySQL, where a latch is known by its name or as one of any name.
    pub(crate) fn mysql_sessions(self, groups: &[(&str, &str, &str, f64)]) -> Self {
        let group = |(backend, class, event, mean): &(&str, &str, &str, f64)| {
            let kind = if *class == "CPU" { WaitKind::Cpu } else { WaitKind::Latch };
            let (backend, class, event) = ((*backend).into(), (*class).into(), (*event).into());
            (WaitGroup { backend, kind, class, event, ..WaitGroup::default() }, *mean)
        };
        self.states(&groups.iter().map(group).collect::<Vec<_>>())
    }

    /// Something that happened, in seconds on the run's clock.
    pub(crate) fn occurrence(self, kind: &str, subject: &str, from: f64, to: f64) -> Self {
        self.reported(kind, subject, from, to, &[])
    }

    /// The same with its figures.
    pub(crate) fn reported(
        mut self,
        kind: &str,
        subject: &str,
        from: f64,
        to: f64,
        figures: &[(&str, f64)],
    ) -> Self {
        self.occurrences += 1;
        let at = |seconds: f64| (seconds * 1e9) as u64;
        let occurrence = Occurrence {
            id: self.occurrences,
            kind: kind.into(),
            subject: subject.into(),
            from: at(from),
            to: Some(at(to)),
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        };
        self.seen(Observation::Occurrence(occurrence))
    }

    /// Lock holders that other sessions waited for, at a second of the run's clock.
    pub(crate) fn blocking(self, second: u64, blockers: Vec<Blocker>) -> Self {
        self.seen(Observation::Blocking { at: second * SECOND, blockers })
    }

    pub(crate) fn setting(self, name: &str, value: &str) -> Self {
        self.seen(Observation::Settings { values: BTreeMap::from([(name.into(), value.into())]) })
    }

    /// A device that holds "data" or "wal".
    pub(crate) fn place(self, role: &str, device: &str) -> Self {
        let place = DatabaseDirectory {
            role: role.into(),
            path: format!("/srv/{role}"),
            device: Some(device.into()),
            mount: "/srv".into(),
            filesystem: "ext4".into(),
            queue: None,
        };
        self.seen(Observation::Observer(Observer { first: 0, places: vec![place], ..Observer::default() }))
    }

    pub(crate) fn relations(self, when: CaptureTime, relations: Vec<Relation>, database_bytes: u64) -> Self {
        self.seen(Observation::Relations { when, relations, database_bytes })
    }

    pub(crate) fn statements(self, statements: Vec<StatementTotals>) -> Self {
        let total_ms = statements.iter().map(|s| s.total_ms).sum();
        self.seen(Observation::Statements { point: 0, statements, total_ms })
    }

    /// How sessions of the load planned a statement.
    pub(crate) fn prepared(self, text: &str, generic: u64, custom: u64) -> Self {
        let text = kelvin_observe::comparable(text).unwrap();
        let one = PreparedStatement { text, generic, custom };
        self.seen(Observation::PreparedStatements { point: 0, statements: vec![one] })
    }

    /// Executions of TPROC-H's queries.
    pub(crate) fn queries(mut self, executions: &[QueryExecution]) -> Self {
        for execution in executions {
            self.evidence.event(&Event::Query(execution.clone()));
        }
        self
    }

    /// What the plans of the queries did.
    pub(crate) fn analyses(mut self, analyses: &[QueryAnalysis]) -> Self {
        for analysis in analyses {
            self.evidence.event(&Event::QueryAnalysis(Box::new(analysis.clone())));
        }
        self
    }

    pub(crate) fn absent(self, what: &str) -> Self {
        let absent = vec![UnavailableMetrics { what: what.into(), why: "not here".into() }];
        self.seen(Observation::Observer(Observer { first: 0, absent, ..Observer::default() }))
    }

    pub(crate) fn lost(self, what: &str) -> Self {
        self.seen(Observation::Lost(UnavailableMetrics {
            what: what.into(),
            why: "the connection was closed".into(),
        }))
    }

    pub(crate) fn earlier(mut self, earlier: Evidence) -> Self {
        self.evidence.earlier = Some(Box::new(earlier));
        self
    }

    pub(crate) fn done(mut self) -> Evidence {
        for second in -5..20_i64 {
            let part = if second < 0 { LoadPart::RampUp } else { LoadPart::Measured };
            let kinds = vec![KindCounts { committed: (self.throughput)(second), ..KindCounts::default() }];
            self.evidence.event(&Event::Second(Second { point: 0, second, part, kinds }));
        }
        self.evidence.event(&Event::Window(Window {
            point: 0,
            users: self.users,
            elapsed: (CLOSE - OPEN) * SECOND,
            idle: 0,
            client_headline: 0,
            server_headline: None,
            server_transactions: None,
            client_cpu: 0,
            client_run_delay: None,
            schedule: None,
        }));
        super::check_words(&self.evidence);
        self.evidence
    }
}

/// A table with rows and sequential scans so far.
pub(crate) fn table(name: &str, rows: u64, scans: u64) -> Relation {
    Relation {
        name: name.into(),
        kind: "table".into(),
        bytes: rows * 200,
        rows: Some(rows),
        sequential_scans: Some(scans),
        index_scans: Some(0),
        analyzed: Some(true),
        ..Relation::default()
    }
}

pub(crate) fn index(name: &str, table: &str) -> Relation {
    Relation {
        name: name.into(),
        kind: "index".into(),
        table: Some(table.into()),
        bytes: 1 << 20,
        ..Relation::default()
    }
}

/// A statement with its time and calls, and its plan's hash and scans as (node, relation).
pub(crate) fn statement(
    query: i64,
    total_ms: f64,
    calls: u64,
    hash: &str,
    scans: &[(&str, &str)],
) -> StatementTotals {
    let scans = scans
        .iter()
        .map(|(node, relation)| Scan { node: (*node).into(), relation: (*relation).into(), index: None })
        .collect();
    StatementTotals {
        query,
        text: format!("select {query}"),
        calls,
        total_ms,
        rows: calls,
        plan: Some(QueryPlan { hash: hash.into(), text: String::new(), scans, faster: None }),
        ..StatementTotals::default()
    }
}
