//! Many statements in one round trip.

use super::session::{PostgresSession, SYNC};
use crate::{Error, Result, Rows, Statement, Value};

impl PostgresSession {
    /// Adds Bind and Execute to the batch. An error empties the batch: half of it makes no sense.
    pub(crate) fn queue_prepared(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        if self.queued.is_empty() {
            if self.broken {
                return Err(Error::connection_lost("the connection was lost earlier"));
            }
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
        self.resize(results, count);
        if count == 0 {
            return Ok(());
        }
        self.out.extend_from_slice(&SYNC);
        let outcome = self.send().and_then(|()| {
            for (index, rows) in results.iter_mut().enumerate() {
                let statement = self.queued[index];
                self.read_result(statement, rows)?;
            }
            Ok(())
        });
        self.queued.clear();
        match outcome {
            Ok(()) => self.finish(),
            Err(e) => {
                self.drain();
                Err(e)
            }
        }
    }

    /// Gives `results` one empty result for each statement, keeping the memory of all for later batches.
    fn resize(&mut self, results: &mut Vec<Rows>, count: usize) {
        if results.len() > count {
            self.spare.extend(results.drain(count..));
        }
        for rows in results.iter_mut() {
            rows.reset(0, false);
        }
        while results.len() < count {
            let mut rows = self.spare.pop().unwrap_or_default();
            rows.reset(0, false);
            results.push(rows);
        }
    }
}
