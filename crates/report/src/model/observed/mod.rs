//! The activity of host and database in a point's window.

mod grid;
mod host;
mod sessions;
mod statements;
mod streams;
mod timeline;

use std::collections::BTreeMap;

use kelvin_diagnose::metric as names;
use kelvin_diagnose::{Evidence, Span, SpanValue};
use kelvin_measure::Nanos;
use serde::Serialize;

pub(crate) use grid::{Chart, Grid};
pub use host::{CpuUse, DeviceRow, OtherProcessRow, ProcessorRow};
pub use sessions::{ClassRow, RowWaits, SessionsReport, WaitRow};
pub use statements::ServerStatement;
pub(crate) use timeline::{WAIT_CLASSES, timeline};

/// Activity of the host and database in a point's measured window. Means are over the window's time, except
/// request times and sizes of a device, which are over its requests.
#[derive(Debug, Clone, Serialize)]
pub struct ObservationReport {
    /// The activity of the processors, one row per host.
    pub processors: Vec<ProcessorRow>,
    /// CPUs by consumer; none if processes were not watched.
    pub cpu: Option<CpuUse>,
    /// The top five other programs on this host by CPU, by memory and by I/O, sorted by CPU.
    pub other_processes: Vec<OtherProcessRow>,
    /// The block devices that were active or hold part of the database, those of the log first.
    pub devices: Vec<DeviceRow>,
    /// The activity of the database's sessions; `None` if not sampled.
    pub sessions: Option<SessionsReport>,
    /// Log written, in bytes per second.
    pub wal_bytes_per_s: Option<f64>,
    /// Full-page images written to the WAL per second: the first change of each page after a checkpoint.
    pub full_page_images_per_s: Option<f64>,
    /// Checkpoints, autovacuums and the like from the ramp-up to the window's end.
    pub occurrences: Vec<OccurrenceRow>,
    /// The statements with the most execution time in the server, in descending order.
    pub server_statements: Vec<ServerStatement>,
    /// Execution time of all statements in the server, in milliseconds.
    pub server_statements_total_ms: Option<f64>,
    /// Every metric with a value in the window, in the order of the watchers.
    pub metrics: Vec<MetricRow>,
}

/// One metric over the window.
#[derive(Debug, Clone, Serialize)]
pub struct MetricRow {
    /// The name, such as "host.cpu.total.user".
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The smallest value.
    pub min: f64,
    /// The mean over the time for which it is known.
    pub mean: f64,
    /// The largest value.
    pub max: f64,
    /// The known part of the window, in per cent.
    pub known_percent: f64,
}

/// An occurrence during the load.
#[derive(Debug, Clone, Serialize)]
pub struct OccurrenceRow {
    /// "checkpoint", "autovacuum", "autoanalyze" or "restart".
    pub kind: String,
    /// The subject: "requested", or the name of a relation.
    pub subject: String,
    /// When it began, in seconds since the window opened.
    pub from_s: f64,
    /// When it ended, in seconds since the window opened; none if the end was not seen.
    pub to_s: Option<f64>,
    /// Values by name; the name includes the unit.
    pub figures: BTreeMap<String, f64>,
}

impl OccurrenceRow {
    /// Whether a part of it is in a window of `window_s` seconds.
    pub(crate) fn in_window(&self, window_s: f64) -> bool {
        self.from_s < window_s && self.to_s.is_none_or(|to| to >= 0.0)
    }

    /// How often it occurred: checkpoints in quick succession are combined.
    pub(crate) fn times(&self) -> u64 {
        self.figures.get("checkpoints").map_or(1, |count| (count.round() as u64).max(1))
    }

    /// "checkpoint (requested)", "autovacuum of public.stock".
    pub(crate) fn label(&self) -> String {
        match (self.kind.as_str(), self.subject.as_str()) {
            (kind, "") => kind.to_owned(),
            ("checkpoint" | "restart", subject) => format!("{} ({subject})", self.kind),
            (kind, subject) => format!("{kind} of {subject}"),
        }
    }
}

impl ObservationReport {
    /// For a point; none if its window never opened.
    pub(super) fn from_evidence(evidence: &Evidence, point: u32) -> Option<Self> {
        let window = evidence.window(point)?;
        let (server_statements, total_ms) = statements::server_statements(evidence, point);
        // SQLite's WAL has no full-page images, and its bytes have another name.
        let wal =
            evidence.first_known_metric(names::LOG_BYTES).and_then(|name| evidence.mean_over(name, window));
        Some(Self {
            processors: host::processors(evidence, window),
            cpu: CpuUse::from_evidence(evidence, window),
            other_processes: host::other_processes(evidence, point),
            devices: host::devices(evidence, window),
            sessions: SessionsReport::from_evidence(evidence, point),
            wal_bytes_per_s: wal.or_else(|| evidence.mean_over(names::EMBEDDED_LOG_BYTES, window)),
            full_page_images_per_s: evidence.mean_over(names::FULL_PAGE_IMAGES, window),
            occurrences: occurrences(evidence, point, window),
            server_statements,
            server_statements_total_ms: total_ms,
            metrics: evidence.names("", "").filter_map(|name| metric(evidence, name, window)).collect(),
        })
    }
}

fn metric(evidence: &Evidence, name: &str, window: Span) -> Option<MetricRow> {
    let seen = evidence.values_within(name, window);
    let known: f64 = seen.iter().map(SpanValue::seconds).sum();
    let sum: f64 = seen.iter().map(|s| s.value * s.seconds()).sum();
    let values = || seen.iter().map(|s| s.value);
    (known > 0.0).then(|| MetricRow {
        name: name.to_owned(),
        unit: evidence.unit(name).unwrap_or_default().to_owned(),
        min: values().fold(f64::INFINITY, f64::min),
        mean: sum / known,
        max: values().fold(f64::NEG_INFINITY, f64::max),
        known_percent: (100.0 * known / window.seconds()).min(100.0),
    })
}

fn occurrences(evidence: &Evidence, point: u32, window: Span) -> Vec<OccurrenceRow> {
    let from = evidence.ramp_up(point).map_or(window.from, |ramp| ramp.from);
    let since = |at: Nanos| (at as f64 - window.from as f64) / 1e9;
    let mut rows: Vec<OccurrenceRow> = evidence
        .all_occurrences()
        .filter(|o| o.from < window.to && o.to.is_none_or(|to| to >= from))
        .map(|o| OccurrenceRow {
            kind: o.kind.clone(),
            subject: o.subject.clone(),
            from_s: since(o.from),
            to_s: o.to.map(since),
            figures: o.figures.clone(),
        })
        .collect();
    rows.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    rows
}
