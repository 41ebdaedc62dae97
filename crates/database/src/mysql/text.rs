//! Statements as text: any number of them without parameters, results in text.

use super::execute::{Reading, ResultKind};
use super::packet::status;
use super::prepare::rolls_back;
use super::session::{MysqlSession, command};
use crate::{Error, Result, Rows};

impl MysqlSession {
    /// [`MysqlSession::simple`] for what the session's user wrote.
    pub(crate) fn run_text(&mut self, sql: &str, rows: Option<&mut Rows>) -> Result<()> {
        self.check_usable(rolls_back(sql))?;
        self.commit_by_itself()?;
        self.simple(sql, rows)?;
        if rolls_back(sql) {
            self.ended();
        }
        Ok(())
    }

    /// Runs `sql`; `rows` gets the result of its last statement that has one.
    pub(crate) fn simple(&mut self, sql: &str, rows: Option<&mut Rows>) -> Result<()> {
        self.send_query(sql)?;
        let mut wanted = rows;
        let mut columns = std::mem::take(&mut self.columns);
        let mut other = std::mem::take(&mut self.unwanted);
        let reading = Reading { binary: false, names: false, skips: wanted.is_none() };
        let outcome = loop {
            match self.read_result(&mut columns, reading, &mut other) {
                Ok(found) => {
                    if let Some(rows) = wanted.as_deref_mut() {
                        if found == ResultKind::Rows {
                            std::mem::swap(rows, &mut other);
                        } else {
                            rows.set_affected(other.affected());
                        }
                    }
                }
                Err(error) => break Err(error),
            }
            if self.done.status & status::MORE_RESULTS == 0 {
                break Ok(());
            }
        };
        self.columns = columns;
        self.unwanted = other;
        self.end_of_answer(outcome)
    }

    /// Runs `sql` and keeps one result for each statement with the names of its columns, reusing the memory of `results`.
    pub(crate) fn run_text_with_results(&mut self, sql: &str, results: &mut Vec<Rows>) -> Result<()> {
        self.check_usable(rolls_back(sql))?;
        self.commit_by_itself()?;
        self.send_query(sql)?;
        let mut columns = std::mem::take(&mut self.columns);
        let reading = Reading { binary: false, names: true, skips: false };
        let mut count = 0;
        let outcome = loop {
            if count == results.len() {
                results.push(Rows::new());
            }
            if let Err(error) = self.read_result(&mut columns, reading, &mut results[count]) {
                break Err(error);
            }
            count += 1;
            if self.done.status & status::MORE_RESULTS == 0 {
                break Ok(());
            }
        };
        results.truncate(count);
        self.columns = columns;
        if outcome.is_ok() && rolls_back(sql) {
            self.ended();
        }
        self.end_of_answer(outcome)
    }

    fn send_query(&mut self, sql: &str) -> Result<()> {
        if sql.contains('\0') {
            return Err(Error::usage("a statement cannot contain a zero byte"));
        }
        self.send_text(command::QUERY, sql.as_bytes())
    }
}
