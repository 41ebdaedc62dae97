//! Transactions counted by the clients within a window.

use kelvin_measure::event::RatePeriod;
use kelvin_store::PointStatistics;
use serde::Serialize;

use super::reads::TableReads;

/// Transactions counted by the clients within the window.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Throughput {
    /// Headline transactions committed.
    pub headline_count: u64,
    /// Headline transactions per elapsed minute.
    pub headline_per_minute: Option<f64>,
    /// Headline transactions per elapsed second.
    pub headline_per_second: Option<f64>,
    /// Commits and rollbacks per elapsed minute.
    pub transactions_per_minute: Option<f64>,
    /// Commits and rollbacks per elapsed second.
    pub transactions_per_second: Option<f64>,
    /// Rows read by table scans; none for other workloads, and for one of several sources.
    #[serde(flatten)]
    pub reads: Option<TableReads>,
}

impl Throughput {
    pub(super) fn of(figures: &PointStatistics) -> Self {
        Self {
            headline_count: figures.headline,
            headline_per_minute: figures.headline_per(RatePeriod::Minute),
            headline_per_second: figures.headline_per(RatePeriod::Second),
            transactions_per_minute: figures.transactions_per(RatePeriod::Minute),
            transactions_per_second: figures.transactions_per(RatePeriod::Second),
            reads: None,
        }
    }

    /// For the tenants of a scenario together: a count without a rate, because their loads have no common
    /// sum.
    pub(super) fn without_sum(figures: &PointStatistics) -> Self {
        Self {
            headline_count: figures.headline,
            headline_per_minute: None,
            headline_per_second: None,
            transactions_per_minute: None,
            transactions_per_second: None,
            reads: None,
        }
    }

    /// Commits and rollbacks per elapsed minute or second.
    pub fn transactions(&self, per: RatePeriod) -> Option<f64> {
        match per {
            RatePeriod::Minute => self.transactions_per_minute,
            RatePeriod::Second => self.transactions_per_second,
        }
    }

    /// Headline transactions per elapsed minute or second.
    pub fn headline(&self, per: RatePeriod) -> Option<f64> {
        match per {
            RatePeriod::Minute => self.headline_per_minute,
            RatePeriod::Second => self.headline_per_second,
        }
    }
}
