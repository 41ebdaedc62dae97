//! Times of the individual statements of transactions.

use kelvin_measure::event::{KindCounts, Series, SeriesRole};
use serde::Serialize;

use super::latency::us;

/// The statements of one transaction type.
#[derive(Debug, Clone, Serialize)]
pub struct TransactionStatements {
    /// The transaction type.
    pub transaction: String,
    /// Number of its good transactions in the window.
    pub transactions: u64,
    /// Mean service time of a transaction, in microseconds.
    pub transaction_mean_us: Option<f64>,
    /// Its statements, in order.
    pub statements: Vec<StatementRow>,
    /// Time in its statements per transaction. The rest of the mean passes between them: the client's own
    /// work, sleeps of a script, and retried attempts.
    pub sum_us: Option<f64>,
    /// The same, in per cent of the transaction's mean.
    pub sum_percent: Option<f64>,
}

/// One statement.
#[derive(Debug, Clone, Serialize)]
pub struct StatementRow {
    /// The statement as the workload names it.
    pub statement: String,
    /// Executions in good transactions.
    pub count: u64,
    /// Exact mean, in microseconds.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 95th percentile.
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Maximum.
    pub max_us: Option<f64>,
    /// Its share of the transaction's time, in per cent.
    pub share_percent: Option<f64>,
}

/// The statements by transaction type; empty if statements were not timed.
pub(super) fn statements(series: &[Series], kinds: &[KindCounts]) -> Vec<TransactionStatements> {
    let transactions = series.iter().zip(kinds).enumerate().filter(|(_, (s, _))| s.is_transaction());
    transactions
        .filter_map(|(index, (name, transaction))| {
            let own = |role: SeriesRole| role == SeriesRole::Statement { of: index as u16 };
            let found: Vec<_> = series.iter().zip(kinds).filter(|(s, _)| own(s.role)).collect();
            let whole = transaction.latency.sum() as f64;
            let share = |part: f64| (whole > 0.0).then(|| 100.0 * part / whole);
            let sum: f64 = found.iter().map(|(_, k)| k.latency.sum() as f64).sum();
            let good = transaction.good();
            (!found.is_empty()).then(|| TransactionStatements {
                transaction: name.name.clone(),
                transactions: good,
                transaction_mean_us: transaction.latency.mean().map(|ns| ns / 1e3),
                statements: found.iter().map(|(s, k)| row(s, k, share)).collect(),
                sum_us: (good > 0).then(|| sum / 1e3 / good as f64),
                sum_percent: share(sum),
            })
        })
        .collect()
}

fn row(series: &Series, counts: &KindCounts, share: impl Fn(f64) -> Option<f64>) -> StatementRow {
    let summary = counts.latency.summary();
    StatementRow {
        statement: series.name.clone(),
        count: counts.latency.count(),
        mean_us: summary.mean.map(|ns| ns / 1e3),
        p50_us: us(&summary, 0),
        p95_us: us(&summary, 1),
        p99_us: us(&summary, 2),
        max_us: summary.max.map(|ns| ns as f64 / 1e3),
        share_percent: share(counts.latency.sum() as f64),
    }
}
