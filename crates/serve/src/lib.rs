//! Access to runs for other programs while they run.
//!
//! [`MetricsEndpoint`] answers `GET /metrics` in OpenMetrics, or in Prometheus' older text format for clients
//! that do not request OpenMetrics. It is read-only. A run's events go into its [`MetricsSink`]:
//!
//! ```
//! use kelvin_measure::Sink;
//! use kelvin_measure::event::{Event, Phase, RatePeriod, Series};
//! use kelvin_serve::{MetricsEndpoint, RunInfo};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let (endpoint, mut sink) = MetricsEndpoint::start("127.0.0.1:0".parse().unwrap())?;
//! sink.begin(RunInfo {
//!     run: "20261121-a".into(),
//!     workload: "tproc-c".into(),
//!     headline: "NOPM".into(),
//!     per: RatePeriod::Minute,
//!     series: vec![Series::transaction("New-Order", true)],
//! });
//! sink.event(&Event::Phase { point: 0, phase: Phase::RampUp, at: 0, users: 4, planned: None })?;
//! println!("http://{}/metrics", endpoint.address());
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod exposition;
mod latency;
mod names;
mod sink;
mod site;
mod state;
mod text_format;

pub use endpoint::MetricsEndpoint;
pub use sink::MetricsSink;
pub use site::{DescribeGroups, GroupLine, Site, SiteOptions, StartOptions};
pub use state::RunInfo;
