//! Many statements in one round trip.
//!
//! The server executes all statements sent, even after one has failed. So a COMMIT is never sent before all statements
//! that precede it are known to have succeeded. Within a transaction the session is in autocommit=0, since a deadlock
//! ends the transaction and the statements that follow it in the batch would then be committed individually. Outside of
//! a transaction statements are sent one by one.

use super::session::{MysqlSession, is_open};
use super::wire;
use crate::client::must_be_whole;
use crate::{Result, Rows, Session, Statement, TransactionControl, Value};

/// A statement that waits for the flush, and the offset in the output buffer at which its packets end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queued {
    statement: Statement,
    end: usize,
}

/// Stands for a Sync among the queued statements.
const SYNC_WITHIN: Statement = Statement(u32::MAX);

impl Queued {
    fn is(self, control: TransactionControl) -> bool {
        self.statement == control.statement()
    }

    fn begins(self) -> bool {
        self.is(TransactionControl::Begin) || self.is(TransactionControl::BeginReadOnly)
    }
}

impl MysqlSession {
    /// Adds a statement to the batch. An error empties the batch: half of it makes no sense.
    pub(crate) fn queue_prepared(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        self.begin_batch()?;
        if let Err(e) = self.append(statement, params) {
            self.queued.clear();
            return Err(e);
        }
        self.queued.push(Queued { statement, end: self.out.len() });
        Ok(())
    }

    /// Adds a mark after which the batch continues even when a statement before it failed; it has a separate, empty
    /// result.
    pub(crate) fn queue_sync_within(&mut self) -> Result<()> {
        self.begin_batch()?;
        self.queued.push(Queued { statement: SYNC_WITHIN, end: self.out.len() });
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
        let out = std::mem::take(&mut self.out);
        self.spare.resize(results, queued.len());
        let outcome = self.flush_parts(&queued, &out, results);
        self.queued = queued;
        self.queued.clear();
        self.out = out;
        self.out.clear();
        outcome
    }

    fn flush_parts(&mut self, queued: &[Queued], out: &[u8], results: &mut [Rows]) -> Result<()> {
        let mut first = Ok(());
        let mut at = 0;
        while at < queued.len() && !self.broken {
            if queued[at].statement == SYNC_WITHIN {
                at += 1;
                continue;
            }
            let from = at.checked_sub(1).map_or(0, |before| queued[before].end);
            let step = self.part(&queued[at..]).and_then(|count| {
                let range = at..at + count;
                at += count;
                self.exchange(from, &queued[range.clone()], out, &mut results[range])
            });
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

    /// How many of these statements can be sent together; brings the session into the state that they need.
    fn part(&mut self, queued: &[Queued]) -> Result<usize> {
        let first = queued[0];
        let rolls_back =
            self.statements.get(first.statement.0 as usize).is_some_and(|found| found.rolls_back);
        if !rolls_back {
            if self.failed && first.is(TransactionControl::Commit) {
                // Like a commit of the session: rolled back, and an error.
                return self.control_after_failure();
            }
            self.check_not_failed()?;
        }
        if first.begins() {
            if self.in_transaction() {
                return Err(is_open());
            }
        } else if first.is(TransactionControl::Commit) || rolls_back {
            return Ok(1);
        } else if !self.in_transaction() {
            self.commit_by_itself()?;
            return Ok(1);
        }
        let end = queued[1..].iter().position(|next| {
            next.statement == SYNC_WITHIN
                || next.is(TransactionControl::Commit)
                || next.is(TransactionControl::Rollback)
                || next.begins()
        });
        let count = end.map_or(queued.len(), |at| at + 1);
        if count > 1 && !self.manual {
            self.switch_manual(true)?;
        }
        Ok(count)
    }

    #[cold]
    fn control_after_failure(&mut self) -> Result<usize> {
        self.control(TransactionControl::Commit)?;
        Ok(0)
    }

    /// Sends the statements of a part, whose first begins at `from` in `out`, and reads the answers. In autocommit=0
    /// the first statement that accesses data begins the transaction.
    fn exchange(&mut self, from: usize, part: &[Queued], out: &[u8], results: &mut [Rows]) -> Result<()> {
        let (from, part, results) = match part {
            [begin, rest @ ..] if begin.begins() && self.manual => {
                self.begun = true;
                results[0].reset(0, false);
                (begin.end, rest, &mut results[1..])
            }
            _ => (from, part, results),
        };
        let Some(last) = part.last() else { return Ok(()) };
        self.send_part(&out[from..last.end])?;
        self.read_part(from, part, results)
    }

    fn send_part(&mut self, part: &[u8]) -> Result<()> {
        let sent = self.stream.send(part, &mut self.inbox.buffer);
        sent.map_err(|e| self.lost_sending(e))
    }

    /// Reads the answers to all that was sent, which begins at `from`; the first error is returned after them.
    fn read_part(&mut self, mut from: usize, part: &[Queued], results: &mut [Rows]) -> Result<()> {
        let mut first = Ok(());
        for (queued, rows) in part.iter().zip(results) {
            self.inbox.expect_after(wire::last_sequence(queued.end - from));
            from = queued.end;
            let step = self.read_answer(queued.statement, rows);
            if self.broken {
                return first.and(step);
            }
            if first.is_err() {
                // It ran, in a transaction that is rolled back.
                rows.reset(0, false);
            }
            first = first.and(step);
        }
        first
    }
}
