//! The values of one second.

use std::collections::BTreeMap;

use kelvin_measure::event::{LoadPart, RatePeriod};
use kelvin_store::{PointStatistics, SecondRow};
use serde::Serialize;

use super::latency::us;

/// One second.
#[derive(Debug, Clone, Serialize)]
pub struct SecondReport {
    /// Seconds since the window opened; negative in the ramp-up.
    pub second: i64,
    /// Ramp-up, measured window, or after it.
    pub part: LoadPart,
    /// The fraction of the second that belongs to the part, 0 to 1.
    pub width: f64,
    /// Headline transactions, as a rate per minute.
    pub headline_per_minute: f64,
    /// Headline transactions per second.
    pub headline_per_second: f64,
    /// Transactions, as a rate per minute.
    pub transactions_per_minute: f64,
    /// Transactions per second.
    pub transactions_per_second: f64,
    /// Committed and rolled-back transactions, by type.
    pub good: Vec<u64>,
    /// Failed transactions.
    pub failed: u64,
    /// Retries.
    pub retries: u64,
    /// Errors of any sort.
    pub errors: u64,
    /// Mean service time of all types.
    pub mean_us: Option<f64>,
    /// p50 of all types.
    pub p50_us: Option<f64>,
    /// p95 of all types.
    pub p95_us: Option<f64>,
    /// p99 of all types.
    pub p99_us: Option<f64>,
    /// Longest service time of all types.
    pub max_us: Option<f64>,
    /// Only in an open loop.
    pub open: Option<OpenSecond>,
    /// For I/O jobs, by direction: p50, p95, p99 and maximum in microseconds (response times in an open
    /// loop), then p99 of the service times.
    #[serde(skip)]
    pub(crate) directions: Vec<[Option<f64>; 5]>,
}

/// One second of an open loop. The arrivals are none if the driver reported nothing for the second.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OpenSecond {
    /// Transactions due in this second.
    pub due: Option<u64>,
    /// Due transactions that were refused because the queue was full.
    pub refused: Option<u64>,
    /// Transactions that waited for an idle user at its end.
    pub waiting: Option<u64>,
    /// p50 of the response times of all types.
    pub response_p50_us: Option<f64>,
    /// p95 of the response times.
    pub response_p95_us: Option<f64>,
    /// p99 of the response times.
    pub response_p99_us: Option<f64>,
    /// Longest response time.
    pub response_max_us: Option<f64>,
    /// p99 of the generator's lateness.
    pub lag_p99_us: Option<f64>,
    /// The generator's longest lateness.
    pub lag_max_us: Option<f64>,
}

impl SecondReport {
    /// One report per stored second, with the errors counted in it.
    pub(crate) fn all(figures: &PointStatistics, mut errors: BTreeMap<i64, u64>) -> Vec<Self> {
        let each = figures.series.iter();
        // The window's last second and the tail's first may have the same number; the errors are counted
        // once.
        each.map(|row| Self::of(row, errors.remove(&row.second).unwrap_or(0), figures.open_loop)).collect()
    }

    /// For a stored second in which `errors` were counted.
    fn of(row: &SecondRow, errors: u64, open_loop: bool) -> Self {
        let max = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
        Self {
            second: row.second,
            part: row.part,
            width: row.width,
            headline_per_minute: row.headline_per(RatePeriod::Minute),
            headline_per_second: row.headline_per(RatePeriod::Second),
            transactions_per_minute: row.transactions_per(RatePeriod::Minute),
            transactions_per_second: row.transactions_per(RatePeriod::Second),
            good: row.good.clone(),
            failed: row.failed,
            retries: row.retries,
            errors,
            mean_us: row.all.mean.map(|ns| ns / 1e3),
            p50_us: us(&row.all, 0),
            p95_us: us(&row.all, 1),
            p99_us: us(&row.all, 2),
            max_us: max(row.all.max),
            directions: row
                .directions
                .iter()
                .map(|[service, response]| {
                    let times = if open_loop { response } else { service };
                    [us(times, 0), us(times, 1), us(times, 2), max(times.max), us(service, 2)]
                })
                .collect(),
            open: open_loop.then(|| OpenSecond {
                due: row.arrivals.map(|a| a.due),
                refused: row.arrivals.map(|a| a.refused),
                waiting: row.arrivals.and_then(|a| a.waiting),
                response_p50_us: us(&row.response, 0),
                response_p95_us: us(&row.response, 1),
                response_p99_us: us(&row.response, 2),
                response_max_us: max(row.response.max),
                lag_p99_us: us(&row.lag, 2),
                lag_max_us: max(row.lag.max),
            }),
        }
    }

    /// Headline transactions, as a rate per minute or second.
    pub(crate) fn headline(&self, per: RatePeriod) -> f64 {
        match per {
            RatePeriod::Minute => self.headline_per_minute,
            RatePeriod::Second => self.headline_per_second,
        }
    }

    /// Transactions, as a rate per minute or second.
    pub(crate) fn transactions(&self, per: RatePeriod) -> f64 {
        match per {
            RatePeriod::Minute => self.transactions_per_minute,
            RatePeriod::Second => self.transactions_per_second,
        }
    }
}
