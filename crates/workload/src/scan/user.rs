//! The users of a scan.

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Error, Result, Rows, Session, Statement};
use kelvin_measure::{Counters, TransactionOutcome};

use super::{BYTES, Query, ROWS};
use crate::{NextTransaction, VirtualUser};

/// Data shared by all users.
#[derive(Debug)]
pub(super) struct ScanPlan {
    pub(super) queries: Vec<Query>,
    /// Size of each query's table in bytes when the database was inspected; `None` if the engine does not
    /// report it.
    pub(super) bytes: Option<Vec<u64>>,
}

/// One user, which runs the queries in turn. Consecutive users start with different queries, so that all
/// queries run equally often and all tables are read at the same time.
pub(super) struct User {
    plan: Arc<ScanPlan>,
    /// The next query, and the last one that was chosen.
    next: usize,
    current: usize,
    statements: Vec<Statement>,
    rows: Rows,
    /// Rows that the last scan read.
    read: u64,
}

impl User {
    pub(super) fn new(plan: &Arc<ScanPlan>, number: u32) -> Self {
        Self {
            plan: Arc::clone(plan),
            next: number as usize % plan.queries.len(),
            current: 0,
            statements: Vec::new(),
            rows: Rows::new(),
            read: 0,
        }
    }
}

impl VirtualUser for User {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let prepared = self.plan.queries.iter().map(|query| session.prepare(query.sql()));
        self.statements = prepared.collect::<Result<_>>()?;
        Ok(())
    }

    fn next(&mut self) -> NextTransaction {
        self.current = self.next;
        self.next = (self.next + 1) % self.plan.queries.len();
        NextTransaction { kind: self.current as u16, keying: Duration::ZERO, thinking: Duration::ZERO }
    }

    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome> {
        let Some(statement) = self.statements.get(self.current) else {
            return Err(Error::usage("a user scanned before its statements were prepared"));
        };
        session.execute(*statement, &[], &mut self.rows)?;
        self.read = self.plan.queries[self.current].rows_read(&self.rows)?;
        Ok(TransactionOutcome::Committed)
    }

    fn count(&self, counters: &Counters) {
        counters.add(ROWS, self.read);
        if let Some(bytes) = &self.plan.bytes {
            counters.add(BYTES, bytes[self.current]);
        }
    }
}
