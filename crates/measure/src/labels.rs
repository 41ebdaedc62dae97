//! What a workload's users, their work and its times are called. Whoever tests a disk has workers that do I/Os and no
//! virtual users with transactions; every output takes its labels from here, so that no page mixes the two.

use serde::Serialize;

/// The name of the workload of I/O jobs.
pub const IO: &str = "io";

/// The name of the workload of analytic queries.
pub const TPROC_H: &str = "tproc-h";

/// The name of the workload that reads whole tables.
pub const SCAN: &str = "scan";

/// The counter of rows that scans have read.
pub const ROWS_READ: &str = "rows read";

/// The counter of bytes that the tables had which scans have read.
pub const TABLE_BYTES_READ: &str = "bytes of tables read";

/// The name of the workload of scenarios, whose tenants have workloads of their own.
pub const SCENARIO: &str = "scenario";

/// A countable thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Noun {
    /// "user"
    pub one: &'static str,
    /// "users"
    pub many: &'static str,
}

impl Noun {
    /// The form for so many.
    pub fn form_for(self, count: u64) -> &'static str {
        if count == 1 { self.one } else { self.many }
    }
}

/// The labels of a kind of workload.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct WorkloadLabels {
    /// Who works, in sentences.
    pub user: Noun,
    /// The same in a table or a status line.
    pub who: Noun,
    /// What they do.
    pub unit: Noun,
    /// "per transaction", after a time or an amount.
    pub per_unit: &'static str,
    /// What distinguishes the rows of a table of times.
    pub kind: &'static str,
    /// What stands in their place for what belongs to none of them.
    pub no_kind: &'static str,
    /// A measured part of a run of several.
    pub point: Noun,
    /// The time that the work itself takes, "service time".
    pub time: &'static str,
    /// The same in one word.
    pub time_short: &'static str,
    /// From when to when it counts.
    pub time_is: &'static str,
    /// From when to when the response time of an open loop counts.
    pub response_is: &'static str,
    /// What got no answer in an open loop: "so many … that".
    pub unanswered: &'static str,
    /// The same as a subject.
    pub those_unanswered: &'static str,
    /// What a closed loop cannot show.
    pub closed_loop: &'static str,
    /// What is measured.
    pub system: &'static str,
    /// The side that makes the load.
    pub client: &'static str,
    /// Whose CPU time is reported.
    pub process: &'static str,
}

static DATABASE: WorkloadLabels = WorkloadLabels {
    user: Noun { one: "virtual user", many: "virtual users" },
    who: Noun { one: "user", many: "users" },
    unit: Noun { one: "transaction", many: "transactions" },
    per_unit: "per transaction",
    kind: "transaction",
    no_kind: "connection",
    point: Noun { one: "point", many: "points" },
    time: "service time",
    time_short: "service",
    time_is: "from the transaction's start on the connection to its end",
    response_is: "from the transaction's scheduled start",
    unanswered: "arrivals were not answered",
    those_unanswered: "unanswered arrivals (failed, refused, or not started when the load ended)",
    closed_loop: "closed loop: each user starts its next transaction when the last one has ended. When the \
        server stalls, the users wait and send nothing: few transactions experience the stall, and the \
        response time of independent arrivals is unknown (coordinated omission); --rate measures it",
    system: "the database",
    client: "client",
    process: "the client's process",
};

static QUERIES: WorkloadLabels = WorkloadLabels {
    unit: Noun { one: "query", many: "queries" },
    per_unit: "per query",
    kind: "query",
    time_is: "from the query's start on the connection to its last row",
    closed_loop: "closed loop: each stream starts its next query when the last one has ended",
    ..DATABASE
};

static STORAGE: WorkloadLabels = WorkloadLabels {
    user: Noun { one: "worker", many: "workers" },
    who: Noun { one: "worker", many: "workers" },
    unit: Noun { one: "I/O", many: "I/Os" },
    per_unit: "per I/O",
    kind: "direction",
    no_kind: "sync",
    point: Noun { one: "phase", many: "phases" },
    time: "completion time",
    time_short: "completion",
    time_is: "from the end of submission to completion",
    response_is: "from the I/O's scheduled start to its completion",
    unanswered: "I/Os were not completed",
    those_unanswered: "I/Os that failed or had not started when the window closed",
    closed_loop: "closed loop: a worker submits its next I/O when one in flight completes. When the device \
        stalls, nothing is submitted: few I/Os experience the stall (coordinated omission); a rate \
        (rate_iops) measures how long further I/Os would have waited",
    system: "the storage",
    client: "worker",
    process: "the workers",
};

static TENANTS: WorkloadLabels = WorkloadLabels {
    user: Noun { one: "user or worker", many: "users and workers" },
    unit: Noun { one: "transaction or I/O", many: "transactions and I/Os" },
    per_unit: "per transaction or I/O",
    kind: "tenant",
    time_is: "from the start of a transaction, or the submission of an I/O, to its end",
    response_is: "from the scheduled start of a transaction or I/O",
    closed_loop: "a tenant without a rate is a closed loop: each of its users starts the next transaction when the \
        last one has ended, so that few transactions experience a stall (coordinated omission)",
    system: "a tenant's target",
    process: "the tenants' processes",
    ..DATABASE
};

impl WorkloadLabels {
    /// Of a workload by its name.
    pub fn for_workload(workload: &str) -> &'static Self {
        match workload {
            IO => &STORAGE,
            TPROC_H => &QUERIES,
            SCENARIO => &TENANTS,
            _ => &DATABASE,
        }
    }

    /// "1 virtual user", "8 workers"; `count` is written as the caller writes numbers.
    pub fn users(&self, count: u32, written: &str) -> String {
        format!("{written} {}", self.user.form_for(count.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_jobs_have_workers_and_databases_users() {
        assert_eq!(WorkloadLabels::for_workload(IO).users(1, "1"), "1 worker");
        assert_eq!(WorkloadLabels::for_workload(SCENARIO).users(3, "3"), "3 users and workers");
        assert_eq!(WorkloadLabels::for_workload("tproc-c").users(1200, "1,200"), "1,200 virtual users");
        assert_eq!(
            [
                WorkloadLabels::for_workload(IO).unit.form_for(1),
                WorkloadLabels::for_workload(IO).unit.form_for(0)
            ],
            ["I/O", "I/Os"]
        );
    }
}
