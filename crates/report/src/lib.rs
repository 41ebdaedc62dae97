//! Reports of stored runs, for people and programs. A report uses only the stored run, so the same run gives
//! the same report every time, on any host.
//!
//! [`RunReport::load`] computes the values once; [`text`], [`json`], [`csv`] and [`html`] render them.
//! [`compare`] compares runs, [`gate`] judges a comparison for CI, and [`history`] shows the runs of one
//! branch.

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

/// Why a report failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stored run cannot be read.
    #[error(transparent)]
    Store(#[from] kelvin_store::Error),
    /// The report cannot be written as JSON.
    #[error("the report cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The page's template failed.
    #[error("the HTML page cannot be created: {0}")]
    Template(#[from] minijinja::Error),
    /// The runs cannot be compared.
    #[error("cannot compare: {0}")]
    Compare(String),
    /// The plot cannot be drawn; includes the file and line.
    #[error("{0}")]
    Plot(String),
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
