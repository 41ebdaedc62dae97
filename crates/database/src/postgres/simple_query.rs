//! The simple protocol: any number of statements without parameters, results in text.

use super::backend::{self, Column};
use super::decode;
use super::session::PostgresSession;
use crate::{Error, Result, Rows};

impl PostgresSession {
    /// Runs `sql`; `rows` gets the result of its last statement that has one.
    pub(crate) fn simple(&mut self, sql: &str, mut rows: Option<&mut Rows>) -> Result<()> {
        self.check_usable()?;
        self.send_query(sql)?;
        let mut columns: Vec<Column> = Vec::new();
        let mut outcome = Ok(());
        loop {
            let (tag, body) = self.message()?;
            let step = match (tag, rows.as_deref_mut()) {
                (b'T', Some(rows)) => backend::row_description(self.inbox.body(body)).map(|found| {
                    rows.reset(found.len(), false);
                    columns = found;
                }),
                (b'D', Some(rows)) => decode::text_row(self.inbox.body(body), &columns, rows),
                (b'C', Some(rows)) => {
                    rows.set_affected(backend::affected(self.inbox.body(body)));
                    Ok(())
                }
                (b'E', _) => Err(self.server_error(body)),
                (b'G', _) => self.refuse_copy(false),
                // Unwanted rows, empty statements, and the data of COPY TO.
                (b'T' | b'D' | b'C' | b'I' | b'H' | b'd' | b'c', _) => Ok(()),
                (b'Z', _) => {
                    self.status =
                        backend::ready(self.inbox.body(body)).inspect_err(|_| self.broken = true)?;
                    return outcome;
                }
                (other, _) => Err(self.unexpected(other, "running a statement")),
            };
            if outcome.is_ok() {
                outcome = step;
            }
            if self.broken {
                return outcome;
            }
        }
    }

    /// Sends `sql` as one Query message.
    pub(crate) fn send_query(&mut self, sql: &str) -> Result<()> {
        if sql.contains('\0') {
            return Err(Error::usage("a statement cannot contain a zero byte"));
        }
        let length = u32::try_from(sql.len() + 5).ok().filter(|&n| n as usize <= backend::LONGEST);
        let length = length.ok_or_else(|| Error::usage("a statement is longer than 1 GiB"))?;
        self.out.clear();
        self.out.push(b'Q');
        self.out.extend_from_slice(&length.to_be_bytes());
        self.out.extend_from_slice(sql.as_bytes());
        self.out.push(0);
        self.send()
    }
}
