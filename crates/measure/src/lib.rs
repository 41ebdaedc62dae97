//! What a measurement is made of: a clock, seeded randomness, samples on their way from a virtual user to
//! the collector, latency histograms per transaction type per second, and the events that carry them.
//!
//! The path of a figure: a user's thread makes a [`Sample`] and pushes it into its [`Recorder`] (a ring
//! without locks or allocation); the [`Collector`] drains all rings, sorts samples into seconds, asserts that
//! the counts agree, and hands out [`Event::Second`]s, which the live view, the store and the report read alike.

mod clock;
mod collector;
mod declared;
pub mod event;
mod generator_thread;
mod histogram;
pub mod invariant;
mod json;
pub mod labels;
pub mod observation;
pub mod query;
pub mod query_analysis;
mod random;
mod recorder;
mod redact;
pub mod sampled_execution;
pub mod seed;
mod sink;
mod source;
mod squeeze;
mod stop;
pub mod storage;
pub mod text;
mod times;
pub mod transaction_log;

pub use clock::{Clock, Nanos, SECOND};
pub use collector::{Collector, Totals, second_from};
pub use declared::{MOST_DECLARED, declare};
pub use event::{Event, SourcedEvent};
pub use generator_thread::{schedule_promptly, wake_on_time};
pub use histogram::{Exact, Histogram, HistogramError, LatencySummary, MAX_LATENCY, PERCENTILES};
pub use random::{ALGORITHM as RANDOM_ALGORITHM, Random};
pub use recorder::{Counters, Recorder, Sample, TransactionOutcome, recorder};
pub use redact::{redact, redact_json};
pub use sink::{Sink, SinkError};
pub use source::{Machine, Source, SourceId};
pub use stop::Stop;
pub use times::{Bounded, CensoredTimes};
pub use transaction_log::{LogFormat, Logged, TransactionLog};
