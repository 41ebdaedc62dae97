//! The state of the view, computed only from the events. Nothing here draws or reads a clock.

mod host;
mod lanes;
mod load;
mod sessions;
mod timeline;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kelvin_diagnose::{Context, Finding};
use kelvin_measure::event::{Event, Phase, RatePeriod, Status};
use kelvin_measure::labels::{self, WorkloadLabels};
use kelvin_measure::observation::{Observation, Occurrence};
use kelvin_measure::{Nanos, SourceId, event::LoadPart};

pub(super) use host::Host;
pub(super) use lanes::{Lane, LaneState, Lanes};
pub(super) use load::{Load, RECENT};
pub(super) use sessions::{CLASSES, NAMES, Sessions};
pub(super) use timeline::{Column, MODES, Timeline};

/// Largest number of log lines, and of occurrences, that are kept.
const MOST_KEPT: usize = 200;

/// A longer planned duration is treated as unlimited.
const FOREVER: Duration = Duration::from_hours(24_000);

/// What is known before the load starts.
#[derive(Debug, Clone, Default)]
pub(super) struct ViewHeader {
    pub(super) workload: String,
    pub(super) target: String,
    pub(super) headline: String,
    pub(super) per: RatePeriod,
    /// Number of points of a sweep; none for a search, which chooses them as it runs.
    pub(super) points: Option<usize>,
}

/// The current phase of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stage {
    pub(super) phase: Option<Phase>,
    /// When it started, on the view's clock.
    pub(super) since: Duration,
    pub(super) planned: Option<Duration>,
    pub(super) point: u32,
    pub(super) users: u32,
}

/// A long operation whose progress is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) what: String,
    pub(super) since: Duration,
    pub(super) done: u64,
    pub(super) total: u64,
    pub(super) rows: u64,
}

/// Whether the findings are up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Looked {
    /// The load has not run long enough for a first evaluation.
    #[default]
    NotYet,
    /// They are those of the last evaluation.
    UpToDate,
    /// Too many events for the view to keep: findings are no longer evaluated.
    Frozen,
}

/// Everything that the view shows.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) about: ViewHeader,
    pub(super) stage: Stage,
    pub(super) work: Option<Work>,
    /// Numbers of consistency conditions that were checked, and of those that do not hold.
    pub(super) checked: (u32, u32),
    pub(super) load: Load,
    pub(super) lanes: Lanes,
    pub(super) timeline: Timeline,
    pub(super) sessions: Sessions,
    pub(super) host: Host,
    pub(super) occurrences: BTreeMap<u32, Occurrence>,
    pub(super) log: VecDeque<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) looked: Looked,
    pub(super) finished: Option<Status>,
    pub(super) stopping: bool,
    /// Events that were lost because the view was too slow.
    pub(super) dropped: u64,
    /// When the window opens, on the run's clock: the planned time until the ramp-up ends.
    opens: Option<Nanos>,
    now: Duration,
}

impl Model {
    pub(super) fn new(about: ViewHeader) -> Self {
        Self { about, ..Self::default() }
    }

    /// Names of users and transactions.
    pub(super) fn labels(&self) -> &'static WorkloadLabels {
        WorkloadLabels::for_workload(&self.about.workload)
    }

    /// Whether it is a load of I/O jobs: these have devices instead of sessions.
    pub(super) fn is_io(&self) -> bool {
        self.about.workload == labels::IO
    }

    /// Whether it is a scenario: its tenants' loads have no common sum.
    pub(super) fn has_tenants(&self) -> bool {
        self.about.workload == labels::SCENARIO
    }

    /// Starts a new load.
    pub(super) fn begin(&mut self, context: &Context, points: Option<usize>) {
        self.about = ViewHeader {
            workload: context.workload.clone(),
            target: context.target.clone(),
            headline: context.headline.clone(),
            per: context.per,
            points,
        };
        self.load = Load::new(context.series.clone(), self.is_io());
        self.work = None;
    }

    /// Advances the view's clock.
    pub(super) fn tick(&mut self, now: Duration) {
        self.now = now;
    }

    /// Adds a message for the user.
    pub(super) fn say(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if self.log.len() >= MOST_KEPT {
                self.log.pop_front();
            }
            self.log.push_back(line.trim_end().to_owned());
        }
    }

    /// Processes an event of a source.
    pub(super) fn event(&mut self, source: SourceId, event: &Event) {
        match event {
            Event::Phase { point, phase, at, users, planned } => {
                self.phase(*phase, *point, *at, *users, *planned);
            }
            Event::Progress { what, done, total, rows } => {
                let since = match &self.work {
                    Some(work) if work.what == *what => work.since,
                    _ => self.now,
                };
                if self.stage.phase.is_none() {
                    self.stage.phase = Some(Phase::Build);
                }
                let (done, total, rows) = (*done, *total, *rows);
                self.work = Some(Work { what: what.clone(), since, done, total, rows });
            }
            Event::Second(second) => {
                let came = self.load.second(second);
                let at = self.moment(second.second);
                self.lanes.second(source, second, &self.load, at);
                if second.part != LoadPart::Tail
                    && let Some(column) = self.column(second.second)
                {
                    column.part = Some(second.part);
                    column.headline += came.headline;
                    column.latency = came.latency;
                }
            }
            Event::Arrivals(arrivals) => self.load.arrivals(arrivals),
            Event::Errors(errors) => {
                self.load.error(errors);
                self.lanes.errors(source, errors.count);
                if let Some(column) = self.column(errors.second) {
                    column.errors += errors.count;
                }
            }
            Event::Source { id, source } => self.lanes.declare(*id, source),
            Event::Note { text, .. } => self.say(text),
            Event::Step(step) => {
                self.lanes.step(step);
                if step.annotated {
                    self.say(&step.line());
                }
            }
            Event::Check { line, .. } => {
                self.checked.0 += 1;
                if line.fails() {
                    self.checked.1 += 1;
                    self.say(&format!(
                        "condition {} ({}) does not hold: {}",
                        line.number, line.name, line.detail
                    ));
                }
            }
            Event::Observed(observation) => self.observed(observation),
            Event::Finished { status, error } => {
                self.finished = Some(*status);
                if let Some(error) = error {
                    self.say(error);
                }
            }
            _ => {}
        }
    }

    fn phase(&mut self, phase: Phase, point: u32, at: Nanos, users: u32, planned: Option<Nanos>) {
        self.work = None;
        match phase {
            Phase::CheckBefore | Phase::CheckAfter => self.checked = (0, 0),
            Phase::Connect => {
                self.load = Load::new(std::mem::take(&mut self.load.series), self.is_io());
                self.lanes.restart();
                self.sessions.restart();
                self.opens = None;
                self.timeline.column_at(at).begins = Some(point);
            }
            Phase::RampUp => self.opens = planned.map(|planned| at + planned),
            Phase::Measure => self.opens = Some(at),
            Phase::Stop => {
                if let Some(opened) = self.opens {
                    self.load.close(at.saturating_sub(opened) as f64 / 1e9);
                }
            }
            Phase::Build => {}
        }
        let users = if users > 0 { users } else { self.stage.users };
        // A load that ends after a number of transactions has no planned end.
        let planned = planned.map(Duration::from_nanos).filter(|planned| *planned < FOREVER);
        self.stage = Stage { phase: Some(phase), since: self.now, planned, point, users };
    }

    /// The start of a second on the run's clock; `second` is counted from the opening of the window.
    fn moment(&self, second: i64) -> Option<Nanos> {
        self.opens?.checked_add_signed(second.checked_mul(1_000_000_000)?)
    }

    /// The column of that second.
    fn column(&mut self, second: i64) -> Option<&mut Column> {
        Some(self.timeline.column_at(self.moment(second)?))
    }

    fn observed(&mut self, observation: &Observation) {
        match observation {
            Observation::Observer(observer) => self.host.declare(observer),
            Observation::Reading(reading) => {
                if let Some(cpu) = self.host.take(reading) {
                    self.timeline.column_at(reading.at.saturating_sub(1)).read(cpu);
                }
            }
            Observation::WaitGroups { first, groups } => self.sessions.declare(*first, groups),
            Observation::Waits(waits) => {
                let seen = self.sessions.take(waits);
                // A value read at the end of a second belongs to that second.
                self.timeline.column_at(waits.at.saturating_sub(1)).looked(waits.looks, &seen);
            }
            Observation::Occurrence(occurrence) => {
                if self.occurrences.len() >= MOST_KEPT && !self.occurrences.contains_key(&occurrence.id) {
                    self.occurrences.pop_first();
                }
                self.occurrences.insert(occurrence.id, occurrence.clone());
            }
            Observation::Statements { statements, .. } => {
                self.sessions.texts(statements.iter().map(|one| (one.query, one.text.as_str())));
            }
            Observation::StatementTexts { texts } => {
                self.sessions.texts(texts.iter().map(|(query, text)| (*query, text.as_str())));
            }
            Observation::Lost(absent) => {
                self.host.lost(absent);
                self.say(&format!("no longer observed: {}: {}", absent.what, absent.why));
            }
            Observation::Relations { .. }
            | Observation::PreparedStatements { .. }
            | Observation::Settings { .. }
            | Observation::OtherProcesses { .. }
            | Observation::Blocking { .. } => {}
        }
    }

    /// The remaining time of the phase, if planned.
    pub(super) fn left(&self) -> Option<Duration> {
        let planned = self.stage.planned?;
        Some(planned.saturating_sub(self.elapsed()))
    }

    /// How long the phase has been running.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.saturating_sub(self.stage.since)
    }

    /// How long the operation has been running.
    pub(super) fn worked(&self, work: &Work) -> Duration {
        self.now.saturating_sub(work.since)
    }

    /// A count of headline transactions over some seconds, as a rate in the headline's unit.
    pub(super) fn pace(&self, count: u64, seconds: f64) -> Option<f64> {
        (seconds > 0.0).then(|| count as f64 * self.about.per.seconds() / seconds)
    }

    /// The seconds over which a lane is averaged; for a tenant, those in which its load was on.
    pub(super) fn seconds_of(&self, lane: &Lane) -> f64 {
        if self.has_tenants() { lane.seconds_on(self.load.newest()) } else { self.load.seconds }
    }

    /// The mark of a second on the charts' axis: a new point, or else an occurrence: checkpoint, restart,
    /// vacuum.
    pub(super) fn mark(&self, second: u64, column: Option<&Column>) -> Option<char> {
        if let Some(point) = column.and_then(|column| column.begins).filter(|point| *point > 0) {
            return char::from_digit((point + 1) % 10, 10);
        }
        let (from, to) = (second * 1_000_000_000, (second + 1) * 1_000_000_000);
        // An occurrence that has not ended extends to the newest second.
        let now = column.is_some();
        let going_on =
            self.occurrences.values().filter(|o| o.from < to && o.to.map_or(now, |end| end >= from));
        going_on
            .filter_map(|o| match o.kind.as_str() {
                "checkpoint" => Some((0, 'c')),
                "restart" => Some((1, '!')),
                "autovacuum" | "autoanalyze" => Some((2, 'v')),
                _ => None,
            })
            .min()
            .map(|(_, mark)| mark)
    }
}
