//! Many statements in one round trip.

use super::session::{PostgresSession, SYNC};
use crate::client::must_be_whole;
use crate::{Result, Rows, Statement, Value};

/// Stands for a Sync among the queued statements.
const SYNC_WITHIN: Statement = Statement(u32::MAX);

impl PostgresSession {
    /// Adds Bind and Execute to the batch. An error empties the batch: half of it makes no sense.
    pub(crate) fn queue_prepared(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        if self.queued.is_empty() {
            must_be_whole(self.broken)?;
            self.out.clear();
        }
        if let Err(e) = self.bind(statement, params) {
            self.queued.clear();
            return Err(e);
        }
        self.queued.push(statement);
        Ok(())
    }

    /// Sends the batch with one Sync and reads all results. After an error the server skips to the Sync.
    pub(crate) fn flush_queue(&mut self, results: &mut Vec<Rows>) -> Result<()> {
        let count = self.queued.len();
        self.spare.resize(results, count);
        if count == 0 {
            return Ok(());
        }
        self.out.extend_from_slice(&SYNC);
        let outcome = self.send().and_then(|()| self.read_batch(results));
        self.queued.clear();
        outcome
    }

    /// Reads the results of everything queued and of the Sync after it; after an error continues after the next Sync of
    /// the batch, and returns the first error at the end.
    fn read_batch(&mut self, results: &mut [Rows]) -> Result<()> {
        let mut first = Ok(());
        let mut index = 0;
        while index <= self.queued.len() {
            let step = match self.queued.get(index) {
                // `finish` has read up to ReadyForQuery also when it fails.
                None | Some(&SYNC_WITHIN) => self.finish(),
                Some(&statement) => self.read_result(statement, &mut results[index]).inspect_err(|_| {
                    self.drain();
                    while self.queued.get(index).is_some_and(|&queued| queued != SYNC_WITHIN) {
                        index += 1;
                    }
                }),
            };
            if self.broken {
                return first.and(step);
            }
            first = first.and(step);
            index += 1;
        }
        first
    }

    /// Adds a Sync within the batch; it has a separate, empty result.
    pub(crate) fn queue_sync_within(&mut self) -> Result<()> {
        if self.queued.is_empty() {
            must_be_whole(self.broken)?;
            self.out.clear();
        }
        self.out.extend_from_slice(&SYNC);
        self.queued.push(SYNC_WITHIN);
        Ok(())
    }
}
