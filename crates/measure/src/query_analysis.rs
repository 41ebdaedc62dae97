//! What a server says of a query's plan after it was executed once more after the load (`EXPLAIN (ANALYZE)`).

use serde::{Deserialize, Serialize};

/// A query's plan with what its execution showed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct QueryAnalysis {
    /// "Q1" to "Q22".
    pub query: String,
    /// Its substitution parameters: those of the power test, or of the first user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameters: String,
    /// Hash of the plan's nodes, tables and indexes.
    pub plan: String,
    /// Time of this execution, with its measuring, in milliseconds.
    pub took_ms: f64,
    /// Rows of the answer.
    pub rows: f64,
    /// Bytes that were found in shared buffers.
    pub hit_bytes: u64,
    /// Bytes that were read into shared buffers.
    pub read_bytes: u64,
    /// Bytes that were written to temporary files.
    pub temporary_bytes: u64,
    /// What wrote them: "Sort: external merge".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spills: Vec<String>,
    /// Parallel workers that the plan has.
    pub workers_planned: u64,
    /// Parallel workers that it got.
    pub workers_launched: u64,
    /// Milliseconds that all of its processes together spent compiling.
    pub jit_ms: f64,
    /// The node whose number of rows the planner missed by most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misestimate: Option<Misestimate>,
    /// Partitioned tables whose partitions were read one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_scans: Vec<PartitionScan>,
    /// What its processes did, by samples from another connection: the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<QueryWait>,
}

/// Time of a query's processes, its parallel workers included, in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryWait {
    /// "CPU" where a process waited for nothing that the server knows of, otherwise class and event: "`IO:DataFileRead`".
    pub event: String,
    /// Milliseconds of all of them together.
    pub ms: f64,
}

/// A node of a plan with another number of rows than the planner expected, in each of its loops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Misestimate {
    /// "Hash Join", "Index Scan on public.orders using public.i".
    pub node: String,
    /// Rows that the planner expected.
    pub estimated: f64,
    /// Rows that there were.
    pub actual: f64,
}

/// Sequential scans of the partitions of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionScan {
    /// The name that the query has for the table.
    pub table: String,
    /// Partitions that were read, all of them sequentially.
    pub partitions: u64,
    /// Rows that were read.
    pub rows: f64,
    /// Rows of them that met the query's conditions.
    pub kept: f64,
}

impl QueryAnalysis {
    /// Share of its time that compiling took, if its processes compiled at the same time; 0 without a time.
    pub fn jit_share(&self) -> f64 {
        if self.took_ms > 0.0 { self.jit_ms / (self.workers_launched + 1) as f64 / self.took_ms } else { 0.0 }
    }

    /// The first states with their shares of all processes' time: those of a twentieth or more.
    pub fn wait_shares(&self) -> Vec<(&str, f64)> {
        let all: f64 = self.waits.iter().map(|wait| wait.ms).sum();
        let shares = self.waits.iter().map(|wait| (&wait.event[..], wait.ms / all));
        shares.take(3).filter(|(_, share)| *share >= 0.05).collect()
    }

    /// Share of its pages that were in shared buffers; none if it read none.
    pub fn hit_share(&self) -> Option<f64> {
        let all = self.hit_bytes + self.read_bytes;
        (all > 0).then(|| self.hit_bytes as f64 / all as f64)
    }
}

impl Misestimate {
    /// How many times as many rows as expected there were, or as many expected as there were; no number of rows is below one.
    pub fn factor(&self) -> f64 {
        let (estimated, actual) = (self.estimated.max(1.0), self.actual.max(1.0));
        (estimated / actual).max(actual / estimated)
    }
}

impl PartitionScan {
    /// Share of the rows read that met the query's conditions.
    pub fn kept_share(&self) -> f64 {
        if self.rows > 0.0 { self.kept / self.rows } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_factors_are_bounded() {
        let one = QueryAnalysis {
            took_ms: 100.0,
            jit_ms: 60.0,
            workers_launched: 2,
            hit_bytes: 3,
            read_bytes: 1,
            ..QueryAnalysis::default()
        };
        assert_eq!((one.jit_share(), one.hit_share()), (0.2, Some(0.75)));
        assert_eq!((QueryAnalysis::default().jit_share(), QueryAnalysis::default().hit_share()), (0.0, None));
        let wait = |event: &str, ms| QueryWait { event: event.into(), ms };
        let waits = vec![wait("CPU", 60.0), wait("IO:DataFileRead", 38.0), wait("IPC:BgWorkerStartup", 2.0)];
        let one = QueryAnalysis { waits, ..one };
        assert_eq!(one.wait_shares(), [("CPU", 0.6), ("IO:DataFileRead", 0.38)]);
        assert_eq!(QueryAnalysis::default().wait_shares(), []);
        let factor = |estimated, actual| Misestimate { node: String::new(), estimated, actual }.factor();
        assert_eq!((factor(1.0, 500.0), factor(500.0, 0.0), factor(0.0, 0.0)), (500.0, 500.0, 1.0));
    }
}
