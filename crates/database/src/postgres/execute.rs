//! The hot path: Bind, Execute and Sync in one `send`, the answer in one `recv`.

use super::backend::{self, LONGEST};
use super::session::{PostgresSession, SYNC};
use super::{decode, encode, text_statement};
use crate::{Error, ErrorClass, Result, Rows, Statement, TransactionControl, Value};

/// The end of Bind (one format code for all results: binary) and Execute of the unnamed portal without a limit.
const RESULTS_AND_EXECUTE: [u8; 14] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// The same with results in text.
const TEXT_RESULTS_AND_EXECUTE: [u8; 14] = [0, 1, 0, 0, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// How many bytes of these belong to Bind.
const RESULTS: usize = 4;

/// What every session prepares first, in the order of [`TransactionControl`].
pub(crate) const CONTROLS: [&str; 4] = ["BEGIN", "BEGIN READ ONLY", "COMMIT", "ROLLBACK"];

impl PostgresSession {
    pub(crate) fn execute_prepared(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<()> {
        self.check_usable()?;
        self.out.clear();
        self.bind(statement, params)?;
        self.out.extend_from_slice(&SYNC);
        self.send()?;
        match self.read_result(statement, rows) {
            Ok(()) => self.finish(),
            Err(e) => {
                self.drain();
                Err(e)
            }
        }
    }

    /// Appends Bind and Execute to `out`; an error leaves `out` as it was.
    #[inline]
    pub(crate) fn bind(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        let out = &mut self.out;
        let prepared = self.statements.get(statement.0 as usize).ok_or_else(|| {
            Error::usage(format!("statement {} was not prepared by this session", statement.0))
        })?;
        if params.len() != prepared.parameters.len() {
            return Err(wrong_count(params.len(), prepared.parameters.len()));
        }
        let start = out.len();
        out.extend_from_slice(&prepared.bind);
        for (index, (&kind, &value)) in prepared.parameters.iter().zip(params).enumerate() {
            if let (true, Value::Int(value)) = (prepared.text, value) {
                text_statement::integer(out, value);
            } else if let Err(e) = encode::value(out, kind, value) {
                out.truncate(start);
                return Err(e.context(&format!("parameter ${}", index + 1)));
            }
        }
        let bind = start + prepared.bind_at;
        let length = out.len() - bind - 1 + RESULTS;
        if length > LONGEST {
            out.truncate(start);
            return Err(Error::new(ErrorClass::Statement, "the parameters exceed 1 GiB"));
        }
        out[bind + 1..bind + 5].copy_from_slice(&(length as u32).to_be_bytes());
        out.extend_from_slice(if prepared.text { &TEXT_RESULTS_AND_EXECUTE } else { &RESULTS_AND_EXECUTE });
        Ok(())
    }

    /// Reads the answer to one Bind and Execute. After an error the rest up to ReadyForQuery is to be drained.
    #[inline]
    pub(crate) fn read_result(&mut self, statement: Statement, rows: &mut Rows) -> Result<()> {
        let index = statement.0 as usize;
        let ignores_rows = self.statements[index].ignores_rows;
        rows.reset(if ignores_rows { 0 } else { self.statements[index].columns.len() }, false);
        let mut copies = false;
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'D' if ignores_rows => {}
                b'D' => {
                    let (body, columns) = (self.inbox.body(body), &self.statements[index].columns);
                    decode::row(body, columns, rows)
                        .inspect_err(|_| self.broken |= !backend::is_row(body, columns.len()))?;
                }
                b'C' => {
                    let body = self.inbox.body(body);
                    rows.set_affected(backend::affected(body));
                    if statement == TransactionControl::Commit.statement() && body != b"COMMIT\0" {
                        return Err(self.not_committed(body == b"ROLLBACK\0"));
                    }
                    if body.starts_with(b"SELECT ")
                        && rows.columns() > 0
                        && rows.len() as u64 != rows.affected()
                    {
                        return Err(self.rows_lost(rows));
                    }
                    return Ok(());
                }
                // ParseComplete, BindComplete.
                b'1' | b'2' if body.is_empty() => {}
                b'I' if body.is_empty() => return Ok(()),
                // What COPY TO sends.
                b'H' => copies = true,
                b'd' | b'c' if copies => {}
                b'E' => return Err(self.server_error(body)),
                b'G' => self.refuse_copy(true)?,
                other => return Err(self.unexpected(other, "executing a statement")),
            }
        }
    }

    /// PostgreSQL answers COMMIT of a failed transaction with ROLLBACK and no error: it must not count as
    /// success. Any third answer leaves open what happened, and whatever else this connection says.
    #[cold]
    fn not_committed(&mut self, rolled_back: bool) -> Error {
        if rolled_back {
            let message = "the transaction had already failed: its commit was a rollback";
            return Error::new(ErrorClass::Server, message).with_code("25P02");
        }
        self.broken = true;
        Error::protocol("the server answered COMMIT with neither COMMIT nor ROLLBACK")
    }

    /// Rows that the server says it sent did not come, or more did: bytes were lost or changed on the way.
    #[cold]
    fn rows_lost(&mut self, rows: &Rows) -> Error {
        self.broken = true;
        Error::protocol(format!(
            "{} rows arrived, but the server reports that it sent {}",
            rows.len(),
            rows.affected()
        ))
    }

    /// A statement turned out to be COPY FROM STDIN. In the extended protocol the server has ignored our Sync.
    #[cold]
    pub(crate) fn refuse_copy(&mut self, extended: bool) -> Result<()> {
        self.out.clear();
        self.out.extend_from_slice(b"f\0\0\0\x21use bulk_load for COPY FROM\0");
        let length = self.out.len() as u32 - 1;
        self.out[1..5].copy_from_slice(&length.to_be_bytes());
        if extended {
            self.out.extend_from_slice(&SYNC);
        }
        self.send()
    }
}

#[cold]
fn wrong_count(given: usize, expected: usize) -> Error {
    Error::new(
        ErrorClass::Statement,
        format!("{given} parameters were given, but the statement has {expected}"),
    )
}
