//! Saves the statements of a measurement, and compares a later one with them.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::TopSql;
use super::figures::Statement;

/// Describes the file to a user who opens it.
const KIND: &str = "kelvin top-sql";

/// Version of the file's format; later versions are refused.
const FORMAT: u32 = 1;

/// Mean times that differ by a smaller factor count as equal.
const FACTOR: f64 = 1.5;

/// Larger files were not written by Kelvin.
const LARGEST: u64 = 256 << 20;

/// A saved measurement.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    kind: String,
    format: u32,
    pub(super) target: String,
    pub(super) product: String,
    pub(super) taken: jiff::Timestamp,
    /// Length of the interval in seconds; `None` for totals since the counters began.
    pub(super) seconds: Option<f64>,
    statements: Vec<SavedStatement>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedStatement {
    query: String,
    text: String,
    calls: Option<f64>,
    elapsed_ms: f64,
    mean_ms: Option<f64>,
    /// Hash and text of the plan, if it was requested.
    plan: Option<String>,
    plan_text: Option<String>,
}

/// The difference of a statement from the earlier measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Change {
    pub(super) query: String,
    /// Whether the earlier measurement lacks the statement.
    pub(super) new: bool,
    /// Mean time before and now in milliseconds, and their ratio, if they differ by [`FACTOR`] or more.
    pub(super) mean: Option<MeanChange>,
    /// Hash and text of the earlier plan, if it differs.
    pub(super) plan: Option<PlanChange>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct MeanChange {
    pub(super) before_ms: f64,
    pub(super) now_ms: f64,
    pub(super) factor: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PlanChange {
    pub(super) before: String,
    pub(super) now: String,
    pub(super) before_text: String,
}

impl Saved {
    /// The measurement to save: its statements with their plans, and all other statements.
    pub(super) fn new(document: &TopSql, all: Vec<Statement>) -> Self {
        let plans: HashMap<i64, &Statement> =
            document.statements.iter().map(|one| (one.number, one)).collect();
        let statements = all.into_iter().map(|one| {
            let planned = plans.get(&one.number);
            SavedStatement {
                plan: planned.and_then(|planned| planned.plan.clone()),
                plan_text: planned.and_then(|planned| planned.plan_text.clone()),
                query: one.query,
                text: one.text,
                calls: one.calls,
                elapsed_ms: one.elapsed_ms,
                mean_ms: one.mean_ms,
            }
        });
        Self {
            kind: KIND.into(),
            format: FORMAT,
            target: document.target.clone(),
            product: document.product.clone(),
            taken: jiff::Timestamp::now(),
            seconds: document.seconds,
            statements: statements.collect(),
        }
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let size = std::fs::metadata(path).with_context(|| format!("--since: cannot read {shown}"))?.len();
        if size > LARGEST {
            bail!("--since: {shown} is not a file that kelvin top-sql --save wrote: it has {size} bytes");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("--since: cannot read {shown}"))?;
        let saved: Self = serde_json::from_str(&text).map_err(|error| {
            anyhow::anyhow!("--since: {shown} is not a file that kelvin top-sql --save wrote: {error}")
        })?;
        if saved.kind != KIND {
            bail!("--since: {shown} is not a file that kelvin top-sql --save wrote");
        }
        if saved.format > FORMAT {
            bail!("--since: {shown} was written by a later version of kelvin");
        }
        Ok(saved)
    }

    /// Whether any statement was saved with its plan.
    pub(super) fn has_plans(&self) -> bool {
        self.statements.iter().any(|one| one.plan.is_some())
    }

    /// The differences, in the order of the statements.
    pub(super) fn changes(&self, now: &[Statement]) -> Vec<Change> {
        let before: HashMap<&str, &SavedStatement> =
            self.statements.iter().map(|one| (one.query.as_str(), one)).collect();
        let change = |one: &Statement| {
            let query = one.query.clone();
            let Some(then) = before.get(query.as_str()) else {
                return Some(Change { query, new: true, mean: None, plan: None });
            };
            let mean = then.mean_ms.zip(one.mean_ms).filter(|(before, _)| *before > 0.0);
            let mean = mean
                .map(|(before_ms, now_ms)| MeanChange { before_ms, now_ms, factor: now_ms / before_ms })
                .filter(|mean| mean.factor >= FACTOR || mean.factor <= 1.0 / FACTOR);
            let plan = then.plan.clone().zip(one.plan.clone()).filter(|(before, now)| before != now);
            let plan = plan.map(|(before, now)| PlanChange {
                before,
                now,
                before_text: then.plan_text.clone().unwrap_or_default(),
            });
            (mean.is_some() || plan.is_some()).then_some(Change { query, new: false, mean, plan })
        };
        now.iter().filter_map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(query: &str, mean_ms: f64, plan: &str) -> SavedStatement {
        SavedStatement {
            query: query.into(),
            text: String::new(),
            calls: Some(1.0),
            elapsed_ms: mean_ms,
            mean_ms: Some(mean_ms),
            plan: (!plan.is_empty()).then(|| plan.into()),
            plan_text: Some(format!("Scan by {plan}")),
        }
    }

    fn now(query: &str, mean_ms: f64, plan: &str) -> Statement {
        Statement {
            query: query.into(),
            mean_ms: Some(mean_ms),
            plan: (!plan.is_empty()).then(|| plan.into()),
            ..Statement::default()
        }
    }

    #[test]
    fn new_statements_slower_ones_and_other_plans_are_changes() {
        let look = Saved {
            kind: KIND.into(),
            format: FORMAT,
            target: "t".into(),
            product: "p".into(),
            taken: jiff::Timestamp::UNIX_EPOCH,
            seconds: Some(1.0),
            statements: vec![
                saved("same", 1.0, "a"),
                saved("slower", 1.0, "a"),
                saved("other plan", 1.0, "a"),
                saved("faster, without a plan", 3.0, "a"),
            ],
        };
        let changes = look.changes(&[
            now("same", 1.4, "a"),
            now("slower", 12.0, "a"),
            now("other plan", 1.0, "b"),
            now("faster, without a plan", 1.0, ""),
            now("new", 1.0, "a"),
        ]);
        let short: Vec<_> = changes
            .iter()
            .map(|one| {
                (
                    one.query.as_str(),
                    one.new,
                    one.mean.as_ref().map(|mean| mean.factor),
                    one.plan.as_ref().map(|plan| plan.now.as_str()),
                )
            })
            .collect();
        assert_eq!(
            short,
            [
                ("slower", false, Some(12.0), None),
                ("other plan", false, None, Some("b")),
                ("faster, without a plan", false, Some(1.0 / 3.0), None),
                ("new", true, None, None),
            ]
        );
        assert_eq!(changes[1].plan.as_ref().unwrap().before_text, "Scan by a");
        assert!(look.has_plans());
    }
}
