//! The points of a stored run: phases, judgements, notes and errors.

use std::collections::BTreeMap;

use kelvin_measure::event::{AuditLine, CheckLine, Event, MaximumRate, Phase, Scalability, Squeeze, Window};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::query::QueryExecution;
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_measure::{Nanos, SourceId};

use crate::stored::StoredRun;

/// One point of a run: a number of users, or a rate, held for one ramp-up and one window.
#[derive(Debug, Clone)]
pub struct Point {
    /// From 0.
    pub point: u32,
    /// Virtual users.
    pub users: u32,
    /// The measured window; none while it is open, or when the run ended before it closed.
    pub window: Option<Window>,
    /// The phases of the point, in their order.
    pub phases: Vec<PhaseSpan>,
    /// Length of the ramp-up in seconds as elapsed; 0 without one.
    pub ramp_up: f64,
    /// The self-audit's last lines.
    pub audit: Vec<AuditLine>,
    /// Whether the self-audit was made; empty for a workload without rules.
    pub audited: bool,
    /// Invariants as checked at run time.
    pub invariants: Vec<Invariant>,
    /// Sentences on the timeline: seconds since the window opened, and the text.
    pub notes: Vec<(i64, String)>,
    /// The last values of the workload's counters.
    pub counters: Vec<u64>,
}

/// One phase on the run's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseSpan {
    /// The point.
    pub point: u32,
    /// The phase.
    pub phase: Phase,
    /// When it began, on the run's clock.
    pub start: Nanos,
    /// When the next began; none for the last.
    pub end: Option<Nanos>,
    /// Virtual users; 0 outside the load.
    pub users: u32,
    /// Its planned duration.
    pub planned: Option<Nanos>,
}

/// Errors of one kind over a point or a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorGroup {
    /// The transaction type; none when no transaction was under way.
    pub kind: Option<u16>,
    /// The class, such as "deadlock".
    pub class: String,
    /// The engine's own code.
    pub code: String,
    /// The first message.
    pub message: String,
    /// Their number.
    pub count: u64,
    /// The number of them that were retried.
    pub retried: u64,
    /// First and last second, since the window of their point opened.
    pub seconds: (i64, i64),
}

impl StoredRun {
    /// The points of the run, in their order.
    pub fn points(&self) -> Vec<Point> {
        let mut points: BTreeMap<u32, Point> = BTreeMap::new();
        for span in self.phases() {
            if !matches!(span.phase, Phase::Connect | Phase::RampUp | Phase::Measure | Phase::Stop) {
                continue;
            }
            let point = point_entry(&mut points, span.point);
            point.users = point.users.max(span.users);
            if let (Phase::RampUp, Some(end)) = (span.phase, span.end) {
                point.ramp_up = end.saturating_sub(span.start) as f64 / 1e9;
            }
            point.phases.push(span);
        }
        for (_, event) in &self.events {
            match event {
                Event::Window(window) => {
                    let point = point_entry(&mut points, window.point);
                    point.users = window.users;
                    point.window = Some(window.clone());
                }
                Event::Audit { point, lines } => {
                    let point = point_entry(&mut points, *point);
                    point.audit.clone_from(lines);
                    point.audited = true;
                }
                Event::Invariant { point, invariant } => {
                    point_entry(&mut points, *point).invariants.push(invariant.clone());
                }
                Event::Note { point, second, text } => {
                    point_entry(&mut points, *point).notes.push((*second, text.clone()));
                }
                Event::Counters { point, values } => {
                    point_entry(&mut points, *point).counters.clone_from(values);
                }
                _ => {}
            }
        }
        for second in &self.seconds {
            point_entry(&mut points, second.point);
        }
        points.into_values().collect()
    }

    /// All phases of the run, in their order.
    pub fn phases(&self) -> Vec<PhaseSpan> {
        let mut spans: Vec<PhaseSpan> = Vec::new();
        for (_, event) in &self.events {
            if let Event::Phase { point, phase, at, users, planned } = event {
                if let Some(last) = spans.last_mut() {
                    last.end = Some(*at);
                }
                let (point, phase, start, users, planned) = (*point, *phase, *at, *users, *planned);
                spans.push(PhaseSpan { point, phase, start, end: None, users, planned });
            }
        }
        spans
    }

    /// Consistency conditions: before or after the load, and the outcome.
    pub fn checks(&self) -> Vec<(Phase, CheckLine)> {
        let check = |event: &Event| match event {
            Event::Check { phase, line } => Some((*phase, line.clone())),
            _ => None,
        };
        self.events.iter().filter_map(|(_, e)| check(e)).collect()
    }

    /// Errors of a point, or of the whole run, grouped by transaction type, class and code; most frequent first.
    pub fn errors(&self, point: Option<u32>) -> Vec<ErrorGroup> {
        let mut groups: BTreeMap<(Option<u16>, &str, &str), ErrorGroup> = BTreeMap::new();
        for (_, event) in &self.events {
            let Event::Errors(e) = event else { continue };
            if point.is_some_and(|p| p != e.point) {
                continue;
            }
            let group = groups.entry((e.kind, &e.class, &e.code)).or_insert_with(|| ErrorGroup {
                kind: e.kind,
                class: e.class.clone(),
                code: e.code.clone(),
                message: e.message.clone(),
                count: 0,
                retried: 0,
                seconds: (e.second, e.second),
            });
            group.count = group.count.saturating_add(e.count);
            group.retried = group.retried.saturating_add(if e.retried { e.count } else { 0 });
            group.seconds = (group.seconds.0.min(e.second), group.seconds.1.max(e.second));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|g| std::cmp::Reverse(g.count));
        groups
    }

    /// Errors of a point by second: seconds since its window opened, and how many.
    pub fn errors_by_second(&self, point: u32) -> BTreeMap<i64, u64> {
        self.count_errors(point, None)
    }

    /// The same for one source.
    pub fn source_errors_by_second(&self, point: u32, source: SourceId) -> BTreeMap<i64, u64> {
        self.count_errors(point, Some(source))
    }

    fn count_errors(&self, point: u32, only: Option<SourceId>) -> BTreeMap<i64, u64> {
        let mut seconds = BTreeMap::new();
        for (seq, event) in &self.events {
            if let Event::Errors(e) = event
                && e.point == point
                && only.is_none_or(|source| source == self.source_of(*seq))
            {
                let sum: &mut u64 = seconds.entry(e.second).or_default();
                *sum = sum.saturating_add(e.count);
            }
        }
        seconds
    }

    /// The model fitted to a sweep over users.
    pub fn scalability(&self) -> Option<&Scalability> {
        self.events.iter().rev().find_map(|(_, event)| match event {
            Event::Scalability(fit) => Some(fit),
            _ => None,
        })
    }

    /// The result of cutting resources in turn.
    pub fn squeeze(&self) -> Option<&Squeeze> {
        self.events.iter().rev().find_map(|(_, event)| match event {
            Event::Squeeze(found) => Some(found),
            _ => None,
        })
    }

    /// The executions of TPROC-H's queries, in the order in which they ended.
    pub fn queries(&self) -> Vec<QueryExecution> {
        let queries = self.events.iter().filter_map(|(_, event)| match event {
            Event::Query(execution) => Some(execution.clone()),
            _ => None,
        });
        queries.collect()
    }

    /// What the plans of TPROC-H's queries showed after the load.
    pub fn query_analyses(&self) -> Vec<QueryAnalysis> {
        let analyses = self.events.iter().filter_map(|(_, event)| match event {
            Event::QueryAnalysis(analysis) => Some(QueryAnalysis::clone(analysis)),
            _ => None,
        });
        analyses.collect()
    }

    /// A named result that a run of I/O jobs stored besides its counts; the last of several.
    pub fn storage(&self, wanted: &str) -> Option<&serde_json::Value> {
        self.events.iter().rev().find_map(|(_, event)| match event {
            Event::Storage { what, body } if what == wanted => Some(body),
            _ => None,
        })
    }

    /// The outcome of a search for the highest rate.
    pub fn maximum_rate(&self) -> Option<&MaximumRate> {
        self.events.iter().rev().find_map(|(_, event)| match event {
            Event::MaximumRate(found) => Some(found),
            _ => None,
        })
    }
}

fn point_entry(points: &mut BTreeMap<u32, Point>, point: u32) -> &mut Point {
    points.entry(point).or_insert_with(|| Point {
        point,
        users: 0,
        window: None,
        phases: Vec::new(),
        ramp_up: 0.0,
        audit: Vec::new(),
        audited: false,
        invariants: Vec::new(),
        notes: Vec::new(),
        counters: Vec::new(),
    })
}
