//! What a run's observations say of its figures.
//!
//! [`Evidence`] takes a run's events, live or from the store, and answers questions about a point's measured window.
//! Each finding is one file in `findings/`: a question, what answers it, the threshold and where that comes from, and
//! what to do next. [`verdict`](verdict()) names what limits the throughput, or says what would decide it. What is said
//! differently for a database engine is in `engine/`. Nothing here knows a database or a clock: the same events give the
//! same answer every time.

pub mod bands;
mod change;
mod class;
mod durability;
mod effect;
mod engine;
mod evidence;
mod finding;
mod findings;
pub mod interference;
mod judge;
mod key;
mod load;
mod noise;
mod other_processes;
mod pages;
mod remedy;
#[cfg(test)]
mod scene;
pub mod tenants;
mod verdict;
mod wait_change;

pub use change::{Change, HostSetting};
pub use class::{Class, is_client};
pub use durability::durability_given_up;
pub use effect::{Effect, EffectBasis};
pub use evidence::{ActiveSessions, Context, Evidence, PointEvidence, Span, SpanValue};
pub use finding::{EvidenceLine, Finding, Severity};
pub use findings::{
    FindingDefinition, IoFindingDefinition, compared, findings_for, io_all, io_findings, is_incidental,
    known_findings,
};
pub use judge::{RunJudgements, judge};
use kelvin_measure::observation::UnavailableMetrics;
pub use kelvin_observe::metric;
pub use key::{
    Better, IO_FIGURES, KEY_FIGURES, KeyFigure, QUERY_FIGURES, TENANT_THROUGHPUT, TenantFigures, key_figures,
};
pub use load::{cpus, is_embedded};
pub use noise::{
    NoisePrice, accepted_noise, cpu_of_others, describe_accepted as describe_accepted_noise,
    is_accepted as is_noise_accepted, noise,
};
pub use other_processes::{HostResource, ProcessUse, top_processes};
pub use pages::{PAGES, page, terms};
pub use remedy::{LARGE_GAIN, Remedy, Rules, remedies, rules_of_setting};
pub use verdict::{BottleneckOutcome, BottleneckVerdict, IndependentCounter, Share, verdict};
pub use wait_change::{WaitChange, WaitLimit, wait_changes};

/// Statements that were to be executed for their plans and were not, each with the reason.
pub fn not_explained(evidence: &Evidence) -> Vec<UnavailableMetrics> {
    findings::misestimate::not_explained(evidence)
}
