//! Differences of the statement counters between two readings of a server.

use std::collections::HashMap;

use super::less;

/// How a statement's time relates to that of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Sent by a client, or not distinguished from those.
    Top,
    /// A call of a routine by a client; the routine's statements are counted at the top as well.
    Call,
    /// Nested in another statement, whose time includes its own.
    Nested,
}

/// The key by which a server counts statements: role (0 where it does not distinguish roles), level, statement.
pub type StatementKey = (i64, Level, i64);

/// One entry's sums since the server's counters began, or of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StatementSums {
    /// Executions.
    pub calls: f64,
    /// Time in execution, in milliseconds.
    pub total_ms: f64,
    /// CPU time in milliseconds; `None` where it is not counted.
    pub cpu_ms: Option<f64>,
    /// Rows returned or affected.
    pub rows: f64,
    /// Pages found in the server's buffers; none where they are not counted.
    pub hits: Option<f64>,
    /// Reads, in the unit of [`super::StatementCounters::reads`].
    pub reads: Option<f64>,
    /// Writes, in the unit of [`super::StatementCounters::writes`].
    pub writes: Option<f64>,
    /// Bytes of log; none where they are not counted.
    pub log_bytes: Option<f64>,
    /// Bytes of temporary files; none where they are not counted.
    pub temporary_bytes: Option<f64>,
    /// Temporary tables on disk; none where they are not counted.
    pub disk_tables: Option<f64>,
    /// Merges of sorts; none where they are not counted.
    pub merge_passes: Option<f64>,
    /// Milliseconds of compilation; none where they are not counted.
    pub jit_ms: Option<f64>,
    /// Plans that were made; none where they are not counted.
    pub plans: Option<f64>,
    /// Milliseconds of planning, which `total_ms` does not include; none where they are not counted.
    pub planning_ms: Option<f64>,
}

impl StatementSums {
    /// One that counts less than before was forgotten in between and has begun anew.
    fn since(&self, then: &Self) -> Self {
        if then.calls > self.calls {
            return *self;
        }
        Self {
            calls: self.calls - then.calls,
            total_ms: (self.total_ms - then.total_ms).max(0.0),
            cpu_ms: less(self.cpu_ms, then.cpu_ms),
            rows: (self.rows - then.rows).max(0.0),
            hits: less(self.hits, then.hits),
            reads: less(self.reads, then.reads),
            writes: less(self.writes, then.writes),
            log_bytes: less(self.log_bytes, then.log_bytes),
            temporary_bytes: less(self.temporary_bytes, then.temporary_bytes),
            disk_tables: less(self.disk_tables, then.disk_tables),
            merge_passes: less(self.merge_passes, then.merge_passes),
            jit_ms: less(self.jit_ms, then.jit_ms),
            plans: less(self.plans, then.plans),
            planning_ms: less(self.planning_ms, then.planning_ms),
        }
    }

    /// Adds the counters of another entry of the same statement.
    pub fn add(&mut self, other: &Self) {
        let sum = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
        };
        self.calls += other.calls;
        self.total_ms += other.total_ms;
        self.cpu_ms = sum(self.cpu_ms, other.cpu_ms);
        self.rows += other.rows;
        self.hits = sum(self.hits, other.hits);
        self.reads = sum(self.reads, other.reads);
        self.writes = sum(self.writes, other.writes);
        self.log_bytes = sum(self.log_bytes, other.log_bytes);
        self.temporary_bytes = sum(self.temporary_bytes, other.temporary_bytes);
        self.disk_tables = sum(self.disk_tables, other.disk_tables);
        self.merge_passes = sum(self.merge_passes, other.merge_passes);
        self.jit_ms = sum(self.jit_ms, other.jit_ms);
        self.plans = sum(self.plans, other.plans);
        self.planning_ms = sum(self.planning_ms, other.planning_ms);
    }
}

/// The counters of all statements at one moment.
pub type StatementReading = HashMap<StatementKey, StatementSums>;

/// The entries that were executed between two readings.
pub fn grown(opened: &StatementReading, closed: &StatementReading) -> StatementReading {
    let one = |(key, now): (&StatementKey, &StatementSums)| {
        let grown = now.since(opened.get(key).unwrap_or(&StatementSums::default()));
        (grown.calls > 0.0).then_some((*key, grown))
    };
    closed.iter().filter_map(one).collect()
}

/// Milliseconds in execution, each counted once: nested statements are not counted again.
pub fn total_ms(grown: &StatementReading) -> f64 {
    total(grown, |sums| sums.total_ms)
}

/// Any measure, likewise.
pub fn total(grown: &StatementReading, measure: impl Fn(&StatementSums) -> f64) -> f64 {
    let of =
        |level| grown.iter().filter(|(key, _)| key.1 == level).map(|(_, sums)| measure(sums)).sum::<f64>();
    of(Level::Top).max(of(Level::Call))
}

/// The same by statement, the longest first.
pub fn by_query(grown: &StatementReading) -> Vec<(i64, StatementSums)> {
    let mut sums: HashMap<i64, StatementSums> = HashMap::new();
    for (key, one) in grown {
        sums.entry(key.2).or_default().add(one);
    }
    let mut all: Vec<_> = sums.into_iter().collect();
    all.sort_by(|one, other| other.1.total_ms.total_cmp(&one.1.total_ms).then(one.0.cmp(&other.0)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(calls: f64, total_ms: f64) -> StatementSums {
        StatementSums { calls, total_ms, rows: calls, hits: Some(2.0 * calls), ..StatementSums::default() }
    }

    #[test]
    fn differences_are_summed_over_roles_and_nested_time_is_counted_once() {
        use Level::{Call, Nested, Top};
        let opened = StatementReading::from([
            ((1, Top, 7), sums(10.0, 100.0)),
            ((1, Nested, 8), sums(5.0, 5.0)),
            ((1, Top, 9), sums(3.0, 3.0)),
            ((1, Top, 11), sums(100.0, 50.0)),
        ]);
        let closed = StatementReading::from([
            ((1, Top, 7), sums(20.0, 160.0)),
            ((2, Top, 7), sums(1.0, 1.0)),
            ((1, Nested, 8), sums(6.0, 45.0)),
            ((1, Top, 9), sums(3.0, 3.0)),
            // Forgotten and begun anew.
            ((1, Top, 11), sums(2.0, 4.0)),
        ]);
        let mut grown = grown(&opened, &closed);
        let by_query = by_query(&grown);
        let short: Vec<_> = by_query.iter().map(|(query, one)| (*query, one.calls, one.total_ms)).collect();
        assert_eq!(short, [(7, 11.0, 61.0), (8, 1.0, 40.0), (11, 2.0, 4.0)]);
        assert_eq!((by_query[0].1.hits, by_query[0].1.cpu_ms), (Some(22.0), None));
        assert_eq!(total_ms(&grown), 65.0);
        // A routine's time has that of its statements in it.
        grown.insert((0, Call, 12), sums(5.0, 80.0));
        assert_eq!(total_ms(&grown), 80.0);
    }
}
