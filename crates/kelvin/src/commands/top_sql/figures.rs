//! Metrics of statements: counted by the server, sampled, or both.

use std::collections::HashMap;

use anyhow::Result;
use kelvin_measure::observation::WaitKind;
use kelvin_observe::activity::{
    ServerActivity, SessionSamples, StatementCounters, StatementReading, StatementSums, by_query, total,
    total_ms,
};
use serde::Serialize;

use crate::args::Measure;

/// Maximum number of statements to list that were sampled but not counted.
const NOT_ENDED: usize = 3;

/// Maximum number of statements that are saved, the longest.
const SAVED: usize = 5000;

/// One statement.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Statement {
    /// Its identifier as the server prints it.
    pub(super) query: String,
    #[serde(skip)]
    pub(super) number: i64,
    /// Its text without values; empty if unknown.
    pub(super) text: String,
    /// Executions; `None` if they are not counted, like all that follows.
    pub(super) calls: Option<f64>,
    pub(super) mean_ms: Option<f64>,
    /// Execution time; sampled where the server does not count it.
    pub(super) elapsed_ms: f64,
    /// Its share of all statements by the ordering measure, from 0 to 1.
    pub(super) share: Option<f64>,
    pub(super) cpu_ms: Option<f64>,
    pub(super) rows: Option<f64>,
    pub(super) reads: Option<f64>,
    pub(super) writes: Option<f64>,
    pub(super) log_bytes: Option<f64>,
    /// The waits of its sessions, with their share of the time, the most frequent first.
    pub(super) waits: Vec<(&'static str, f64)>,
    /// The plan's hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan_text: Option<String>,
    /// Why there is no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) no_plan: Option<String>,
}

impl Statement {
    fn by(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Cpu => self.cpu_ms,
            Measure::Elapsed => Some(self.elapsed_ms),
            Measure::Reads => self.reads,
            Measure::Writes => self.writes,
            Measure::Calls => self.calls,
        }
        .unwrap_or(0.0)
    }
}

/// All counted and sampled metrics.
pub(super) struct Counted<'a> {
    pub(super) grown: StatementReading,
    pub(super) samples: SessionSamples,
    pub(super) seconds: Option<f64>,
    /// The server's counters; `None` if it has none.
    pub(super) counters: Option<&'a StatementCounters>,
}

/// Sampled sessions with a statement, by their wait.
type Seen = HashMap<i64, HashMap<WaitKind, u64>>;

impl Counted<'_> {
    /// The sampled statements of active sessions. Sessions that wait for their client in a transaction are left out:
    /// their statement has ended.
    fn sampled_statements(&self) -> Seen {
        let mut seen = Seen::new();
        for (group, sessions) in self.samples.states(self.samples.counts()) {
            if let Some(query) = group.query.filter(|_| group.kind != WaitKind::IdleInTransaction) {
                *seen.entry(query).or_default().entry(group.kind).or_default() += sessions;
            }
        }
        seen
    }

    /// Whether a sampled statement is the same as the counted one.
    fn is_sampled(&self) -> bool {
        self.counters.is_none_or(|counters| counters.sampled_by_id)
    }

    /// Milliseconds that a session in one sample represents.
    fn sample_ms(&self) -> f64 {
        let looks = self.samples.counts().looks;
        self.seconds.filter(|_| looks > 0).map_or(0.0, |seconds| seconds * 1000.0 / looks as f64)
    }

    /// Execution time of all statements.
    pub(super) fn total_ms(&self) -> f64 {
        if self.counters.is_some() {
            return total_ms(&self.grown);
        }
        let sessions: u64 = self.sampled_statements().values().flat_map(HashMap::values).sum();
        sessions as f64 * self.sample_ms()
    }

    fn statement(
        &self,
        query: i64,
        sums: Option<&StatementSums>,
        seen: &Seen,
        server: &dyn ServerActivity,
    ) -> Statement {
        let none = HashMap::new();
        let by_kind = seen.get(&query).unwrap_or(&none);
        let sessions: u64 = by_kind.values().sum();
        let sampled = |count: u64| count as f64 * self.sample_ms();
        let mut waits: Vec<(&'static str, f64)> =
            by_kind.iter().map(|(kind, count)| (kind.label(), *count as f64 / sessions as f64)).collect();
        waits.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
        let on_cpu = by_kind.get(&WaitKind::Cpu).copied().unwrap_or(0);
        let cpu_counted = self.counters.is_some_and(|counters| counters.cpu);
        let is_sampled = self.is_sampled() && !cpu_counted;
        let cpu_sampled = self.seconds.filter(|_| is_sampled).map(|_| sampled(on_cpu));
        Statement {
            query: server.query_id(query),
            number: query,
            text: self.samples.texts().get(&query).cloned().unwrap_or_default(),
            calls: sums.map(|sums| sums.calls),
            mean_ms: sums.filter(|sums| sums.calls > 0.0).map(|sums| sums.total_ms / sums.calls),
            elapsed_ms: sums.map_or_else(|| sampled(sessions), |sums| sums.total_ms),
            cpu_ms: sums.and_then(|sums| sums.cpu_ms).or(cpu_sampled),
            rows: sums.map(|sums| sums.rows),
            reads: sums.and_then(|sums| sums.reads),
            writes: sums.and_then(|sums| sums.writes),
            log_bytes: sums.and_then(|sums| sums.log_bytes),
            waits,
            ..Statement::default()
        }
    }

    /// The most expensive statements, and those that were sampled and not counted: they are still running, or belong to
    /// another database.
    pub(super) fn statements(
        &self,
        by: Measure,
        limit: usize,
        server: &mut dyn ServerActivity,
    ) -> Result<(Vec<Statement>, Vec<Statement>)> {
        let seen = if self.is_sampled() { self.sampled_statements() } else { Seen::new() };
        let mut all: Vec<Statement> = Vec::new();
        let mut not_ended: Vec<Statement> = Vec::new();
        let sums: HashMap<i64, StatementSums> = by_query(&self.grown).into_iter().collect();
        for (query, sums) in &sums {
            all.push(self.statement(*query, Some(sums), &seen, server));
        }
        for query in seen.keys().filter(|query| !sums.contains_key(*query)) {
            let place = if self.counters.is_some() { &mut not_ended } else { &mut all };
            place.push(self.statement(*query, None, &seen, server));
        }
        let order = |one: &Statement, other: &Statement| {
            other.by(by).total_cmp(&one.by(by)).then(one.number.cmp(&other.number))
        };
        all.sort_by(order);
        let whole = self.total(by, &all);
        all.retain(|one| one.by(by) > 0.0);
        all.truncate(limit);
        for one in &mut all {
            one.share = (whole > 0.0).then(|| one.by(by) / whole);
        }
        not_ended.sort_by(|one, other| {
            other.elapsed_ms.total_cmp(&one.elapsed_ms).then(one.number.cmp(&other.number))
        });
        not_ended.truncate(NOT_ENDED);
        if self.counters.is_some() {
            name(&mut all, server)?;
        }
        Ok((all, not_ended))
    }

    /// The sum of the measure over all statements, where nested ones count once.
    fn total(&self, by: Measure, all: &[Statement]) -> f64 {
        let counted = |of: fn(&StatementSums) -> f64| total(&self.grown, of);
        let cpu_counted = self.counters.is_some_and(|counters| counters.cpu);
        match by {
            _ if self.counters.is_none() => all.iter().map(|one| one.by(by)).sum(),
            Measure::Cpu if !cpu_counted => all.iter().map(|one| one.by(by)).sum(),
            Measure::Cpu => counted(|sums| sums.cpu_ms.unwrap_or(0.0)),
            Measure::Elapsed => counted(|sums| sums.total_ms),
            Measure::Reads => counted(|sums| sums.reads.unwrap_or(0.0)),
            Measure::Writes => counted(|sums| sums.writes.unwrap_or(0.0)),
            Measure::Calls => counted(|sums| sums.calls),
        }
    }

    /// All statements with their texts, to be saved.
    pub(super) fn all_statements(&self, server: &mut dyn ServerActivity) -> Result<Vec<Statement>> {
        Ok(self.statements(Measure::Elapsed, SAVED, server)?.0)
    }
}

/// The server normalises the texts of counted statements, so these replace those of the samples.
fn name(statements: &mut [Statement], server: &mut dyn ServerActivity) -> Result<()> {
    let numbers: Vec<i64> = statements.iter().map(|one| one.number).collect();
    let mut texts = server.texts(&numbers).map_err(anyhow::Error::msg)?;
    for one in statements {
        if let Some(text) = texts.remove(&one.number) {
            one.text = text;
        }
    }
    Ok(())
}
