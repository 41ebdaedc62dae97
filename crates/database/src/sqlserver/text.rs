//! Statements as text, several in one message if need be.

use super::error::cancelled;
use super::packet;
use super::session::SqlServerSession;
use super::statement::control_of_text;
use super::token::{Token, number};
use super::wire::put_utf16;
use crate::client::must_be_whole;
use crate::{Result, Rows};

impl SqlServerSession {
    /// Sends `sql` as a batch.
    pub(crate) fn send_batch(&mut self, sql: &str) -> Result<()> {
        self.open(packet::kind::SQL_BATCH);
        put_utf16(&mut self.out, sql);
        self.send()
    }

    /// Runs `sql`; the last result with rows goes into `wanted`.
    pub(crate) fn run_text(&mut self, sql: &str, wanted: Option<&mut Rows>) -> Result<()> {
        must_be_whole(self.broken)?;
        if let Some(control) = control_of_text(sql) {
            return self.control_transaction(control);
        }
        self.check_usable()?;
        self.commit_by_itself()?;
        self.send_batch(sql)?;
        match wanted {
            Some(rows) => self.read_batch(rows, false, &mut |_| None).map(drop),
            None => self.read_quietly(),
        }
    }

    /// Runs `sql` and keeps one result for each statement with the names of its columns, reusing the memory of `results`.
    pub(crate) fn run_text_with_results(&mut self, sql: &str, results: &mut Vec<Rows>) -> Result<()> {
        must_be_whole(self.broken)?;
        if let Some(control) = control_of_text(sql) {
            self.spare.resize(results, 1);
            return self.control_transaction(control);
        }
        self.check_usable()?;
        self.commit_by_itself()?;
        self.send_batch(sql)?;
        if results.is_empty() {
            results.push(Rows::new());
        }
        let mut first = std::mem::take(&mut results[0]);
        let mut others = results.drain(1..).collect::<Vec<_>>();
        let mut found = Vec::new();
        let outcome = self.read_batch(&mut first, true, &mut |done| {
            let next = others.pop().unwrap_or_default();
            found.push(std::mem::replace(done, next));
            Some(())
        });
        results.clear();
        results.append(&mut found);
        if results.is_empty() {
            results.push(first);
        }
        outcome
    }

    /// Reads the results of a batch into `rows`, one after the other; `keep` gets each when its statement has ended.
    fn read_batch(
        &mut self,
        rows: &mut Rows,
        names: bool,
        keep: &mut dyn FnMut(&mut Rows) -> Option<()>,
    ) -> Result<()> {
        let mut first = Ok(());
        let (mut reading, mut count) = (false, 0_u64);
        rows.reset(0, false);
        self.answer.expect_returned(0);
        while self.more()? {
            match self.token(Some(rows), names)? {
                Token::Columns => (reading, count) = (true, 0),
                Token::Row => count += 1,
                Token::Error(error) => first = first.and(Err(error)),
                Token::Done(done) => {
                    if self.inbox.source.attention && done.confirms_attention() {
                        self.inbox.source.attention = false;
                        first = first.and(Err(cancelled()));
                        continue;
                    }
                    // What a procedure did, its statements have said.
                    if done.of == number::DONE_PROC && !reading {
                        continue;
                    }
                    if reading || rows.columns() == 0 {
                        rows.set_affected(if reading { count } else { done.count().unwrap_or(0) });
                    }
                    reading = false;
                    if keep(rows).is_some() {
                        rows.reset(0, false);
                    }
                }
                Token::Returned | Token::Other => {}
            }
        }
        self.end_of_answer(first, rows)
    }
}
