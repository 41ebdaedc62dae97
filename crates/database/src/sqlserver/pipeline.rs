//! Many calls in one message.
//!
//! The server executes all statements sent, even after one has failed. So a commit is never sent before all statements
//! that precede it are known to have succeeded. Within a transaction the session is in implicit transactions, since a
//! deadlock ends the transaction and the statements that follow it in the message would then be committed individually.
//! Outside of a transaction statements are sent one by one.

use super::execute::{Returns, Until, control_of};
use super::packet;
use super::session::SqlServerSession;
use crate::client::must_be_whole;
use crate::{Error, Result, Rows, Session, Statement, TransactionControl, Value};

/// Stands between two calls of a message.
const SEPARATOR: u8 = 0xff;

/// A statement that waits for the flush, the offset in the output buffer at which its call ends, and what it returns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queued {
    statement: Statement,
    end: usize,
    returns: Returns,
}

/// Stands for a Sync among the queued statements.
const SYNC_WITHIN: Statement = Statement(u32::MAX);

impl SqlServerSession {
    /// Adds a statement to the batch. An error empties the batch: half of it makes no sense.
    pub(crate) fn queue_prepared(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        self.begin_batch()?;
        let returns = match control_of(statement) {
            Some(_) => Returns::Nothing,
            None => self.append(statement, params).inspect_err(|_| self.queued.clear())?,
        };
        self.queued.push(Queued { statement, end: self.out.len(), returns });
        Ok(())
    }

    /// Adds a mark after which the batch continues even when a statement before it failed; it has a separate, empty
    /// result.
    pub(crate) fn queue_sync_within(&mut self) -> Result<()> {
        self.begin_batch()?;
        self.queued.push(Queued { statement: SYNC_WITHIN, end: self.out.len(), returns: Returns::Nothing });
        Ok(())
    }

    fn begin_batch(&mut self) -> Result<()> {
        if self.queued.is_empty() {
            must_be_whole(self.broken)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Sends the batch and reads all results, and returns the first error.
    pub(crate) fn flush_queue(&mut self, results: &mut Vec<Rows>) -> Result<()> {
        let queued = std::mem::take(&mut self.queued);
        let calls = std::mem::take(&mut self.load_buffer);
        // The appended calls become the content of messages, of which `out` is the next.
        let calls = std::mem::replace(&mut self.out, calls);
        self.spare.resize(results, queued.len());
        let outcome = self.flush_parts(&queued, &calls, results);
        self.queued = queued;
        self.queued.clear();
        self.load_buffer = std::mem::replace(&mut self.out, calls);
        self.out.clear();
        outcome
    }

    fn flush_parts(&mut self, queued: &[Queued], calls: &[u8], results: &mut [Rows]) -> Result<()> {
        let mut first = Ok(());
        let mut at = 0;
        while at < queued.len() && !self.broken {
            let found = queued[at];
            let step = if found.statement == SYNC_WITHIN {
                at += 1;
                Ok(())
            } else if let Some(control) = control_of(found.statement) {
                at += 1;
                self.control_within(control, queued.len() - at)
            } else {
                let part = &queued[at..at + self.part(&queued[at..])];
                let from = at.checked_sub(1).map_or(0, |before| queued[before].end);
                let step = self.run_part(part, calls, from, &mut results[at..at + part.len()]);
                at += part.len();
                step
            };
            if step.is_err() {
                // The rest is skipped, up to the next mark.
                while queued.get(at).is_some_and(|queued| queued.statement != SYNC_WITHIN) {
                    at += 1;
                }
            }
            first = first.and(step);
        }
        first
    }

    /// Begins or ends a transaction within a batch of which this many statements are still to come. One that begins here
    /// begins with its first statement.
    fn control_within(&mut self, control: TransactionControl, to_come: usize) -> Result<()> {
        let begins = matches!(control, TransactionControl::Begin | TransactionControl::BeginReadOnly);
        if begins && to_come > 0 && !self.manual && !self.in_transaction() && !self.failed {
            self.switch_manual(true)?;
        }
        self.control_transaction(control)
    }

    /// How many of these calls can be sent in one message.
    fn part(&self, queued: &[Queued]) -> usize {
        if !self.in_transaction() {
            return 1;
        }
        let ends = |next: &Queued| next.statement == SYNC_WITHIN || control_of(next.statement).is_some();
        queued.iter().position(ends).unwrap_or(queued.len())
    }

    /// Sends these calls in one message and reads their results; the first error is returned after them.
    fn run_part(
        &mut self,
        part: &[Queued],
        calls: &[u8],
        mut from: usize,
        results: &mut [Rows],
    ) -> Result<()> {
        self.check_not_failed()?;
        if part.len() == 1 {
            self.commit_by_itself()?;
        } else if !self.manual {
            self.switch_manual(true)?;
        }
        self.open(packet::kind::RPC);
        for (at, queued) in part.iter().enumerate() {
            if at > 0 {
                self.out.push(SEPARATOR);
            }
            self.out.extend_from_slice(&calls[from..queued.end]);
            from = queued.end;
        }
        self.send()?;
        let mut first = Ok(());
        let mut goes_on = true;
        for (at, (queued, rows)) in part.iter().zip(results).enumerate() {
            if !goes_on {
                // The server has not gone on behind an error.
                return first.and_then(|()| {
                    self.broken = true;
                    Err(Error::protocol("the server answered only a part of the calls of a message"))
                });
            }
            let until = if at + 1 == part.len() { Until::End } else { Until::Call };
            let failed = match self.read_call(queued.statement, queued.returns, rows, until) {
                Ok(more) => {
                    goes_on = more;
                    Ok(())
                }
                Err(error) => {
                    if self.broken {
                        return first.and(Err(error));
                    }
                    goes_on = self.more()?;
                    Err(error)
                }
            };
            if first.is_err() {
                // It ran, in a transaction that is rolled back.
                rows.reset(0, false);
            }
            first = first.and(failed);
        }
        first
    }
}
