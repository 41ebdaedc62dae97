//! A stored run for people and programs. Everything is made from the stored run alone: the same run gives
//! the same report every time, anywhere.
//!
//! [`RunReport::of`] works out the figures once; [`text`], [`json`], [`csv`] and [`html`] show them;
//! [`compare`] sets runs against each other, [`gate`] judges a comparison for CI, [`history`] looks at one branch.

mod chart;
pub mod compare;
pub mod csv;
pub mod gate;
pub mod group;
pub mod history;
pub mod html;
pub mod json;
pub mod live;
pub mod markdown;
mod model;
pub mod pgbench;
pub mod plot;
pub mod study;
pub mod table;
pub mod text;

pub use kelvin_diagnose::{
    BottleneckOutcome, BottleneckVerdict, Effect, EffectBasis, EvidenceLine, Finding, IndependentCounter,
    Severity, Share,
};
pub use model::SCHEMA;
pub use model::{
    ClassRow, ComparedMeans, CpuUse, DeviceRow, Distribution, ErrorRow, GeneratorReport, HostReport,
    HostScaling, JudgedCheck, Lag, LatencyRow, MetricRow, NotSeen, ObservationReport, OccurrenceRow,
    OpenSecond, OtherProcessRow, PercentileInterval, PointChecks, PointReport, Precision, ProcessorRow,
    QueryReport, QueryRow, Recipe, RowWaits, RunReport, ScenarioReport, ScheduleReport, SecondReport,
    ServerCounts, ServerStatement, SessionsReport, SkewReport, SourceReport, StatementRow, TableReads,
    Throughput, TransactionStatements, TriedChange, WaitRow, WorkDetails,
};

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stored run cannot be read.
    #[error(transparent)]
    Store(#[from] kelvin_store::Error),
    /// The figures cannot be written as JSON.
    #[error("the report cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The page's template failed.
    #[error("the HTML page cannot be created: {0}")]
    Template(#[from] minijinja::Error),
    /// Runs that must not be set against each other.
    #[error("cannot compare: {0}")]
    Compare(String),
    /// What cannot be drawn, with the file and line.
    #[error("{0}")]
    Plot(String),
}

/// Result with the report's error.
pub type Result<T> = std::result::Result<T, Error>;
