//! Statements in text form: any type may stand in their parameters and results.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::backend::{self, Fields};
use super::oid::BinaryFormat;
use super::prepare::Prepared;
use super::session::PostgresSession;
use crate::{Error, Result, Rows, Statement};

impl PostgresSession {
    /// Prepares `sql`, or, where every execution parses, only asks the server for its shape.
    pub(crate) fn prepare_text_statement(
        &mut self,
        sql: &str,
        parse_each_time: bool,
        columns: &mut Vec<String>,
    ) -> Result<Statement> {
        self.check_usable()?;
        let parse_each_time = parse_each_time || !self.prepared_statements();
        let name = if parse_each_time {
            String::new()
        } else {
            self.named += 1;
            format!("k{}", self.named)
        };
        let zero = |_| Error::usage("a statement cannot contain a zero byte");
        let mut out = BytesMut::new();
        frontend::parse(&name, sql, [], &mut out).map_err(zero)?;
        let parse_length = out.len();
        let mut bind = if parse_each_time { out[..parse_length].to_vec() } else { Vec::new() };
        frontend::describe(b'S', &name, &mut out).map_err(zero)?;
        frontend::sync(&mut out);
        self.out.clear();
        self.out.extend_from_slice(&out);
        self.send()?;
        let parameters = match self.shape(columns) {
            Ok(parameters) => parameters,
            Err(e) => {
                self.drain();
                return Err(e);
            }
        };
        self.finish()?;
        let bind_at = bind.len();
        bind.extend_from_slice(&[b'B', 0, 0, 0, 0, 0]);
        bind.extend_from_slice(name.as_bytes());
        // End of the name; no format codes: all parameters are text.
        bind.extend_from_slice(&[0, 0, 0]);
        bind.extend_from_slice(&(parameters as u16).to_be_bytes());
        self.statements.push(Prepared {
            bind,
            bind_at,
            text: true,
            ignores_rows: false,
            parameters: vec![BinaryFormat::Text; parameters],
            columns: vec![BinaryFormat::Text; columns.len()],
        });
        Ok(Statement(self.statements.len() as u32 - 1))
    }

    /// The number of parameters; `columns` gets the names.
    fn shape(&mut self, columns: &mut Vec<String>) -> Result<usize> {
        columns.clear();
        let mut parameters = 0;
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'1' => {}
                b't' => parameters = backend::parameter_description(self.inbox.body(body))?.len(),
                b'n' => return Ok(parameters),
                b'T' => {
                    let description = backend::row_description(self.inbox.body(body))?;
                    columns.extend(description.into_iter().map(|column| column.name));
                    return Ok(parameters);
                }
                b'E' => return Err(self.server_error(body)),
                other => return Err(self.unexpected(other, "preparing a statement")),
            }
        }
    }

    /// Runs `sql` and keeps one result for each statement, reusing the memory of `results`.
    pub(crate) fn simple_text(&mut self, sql: &str, results: &mut Vec<Rows>) -> Result<()> {
        self.check_usable()?;
        self.send_query(sql)?;
        let mut count = 0;
        // Whether the last result is being read.
        let mut described = false;
        let mut outcome = Ok(());
        loop {
            let (tag, body) = self.message()?;
            let step = match tag {
                b'T' => {
                    described = true;
                    describe(self.inbox.body(body), next_result(results, &mut count))
                }
                b'D' if described => data(self.inbox.body(body), &mut results[count - 1]),
                b'C' => {
                    if !std::mem::take(&mut described) {
                        next_result(results, &mut count).reset(0, false);
                    }
                    results[count - 1].set_affected(backend::affected(self.inbox.body(body)));
                    Ok(())
                }
                b'E' => Err(self.server_error(body)),
                b'G' => self.refuse_copy(false),
                b'I' | b'H' | b'd' | b'c' => Ok(()),
                b'Z' => {
                    self.status =
                        backend::ready(self.inbox.body(body)).inspect_err(|_| self.broken = true)?;
                    results.truncate(count);
                    return outcome;
                }
                other => Err(self.unexpected(other, "running a statement")),
            };
            if outcome.is_ok() {
                outcome = step;
            }
            if self.broken {
                return outcome;
            }
        }
    }
}

fn next_result<'a>(results: &'a mut Vec<Rows>, count: &mut usize) -> &'a mut Rows {
    if results.len() == *count {
        results.push(Rows::new());
    }
    *count += 1;
    &mut results[*count - 1]
}

/// Appends an integer as a parameter in text: its length and its digits.
#[inline]
pub(crate) fn integer(out: &mut Vec<u8>, value: i64) {
    // Four bytes of length, a sign and 19 digits.
    let mut field = [0_u8; 24];
    let mut at = field.len();
    let mut left = value.unsigned_abs();
    loop {
        at -= 1;
        field[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        field[at] = b'-';
    }
    let length = (field.len() - at) as u32;
    at -= 4;
    field[at..at + 4].copy_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&field[at..]);
}

/// Takes the names of a RowDescription; of each column the 18 bytes behind the name are of no interest here.
fn describe(body: &[u8], rows: &mut Rows) -> Result<()> {
    let mut fields = Fields(body);
    let columns = usize::try_from(fields.int2()?).map_err(|_| negative())?;
    rows.reset(columns, false);
    for _ in 0..columns {
        rows.push_name(fields.string()?);
        for _ in 0..18 {
            fields.byte()?;
        }
    }
    Ok(())
}

fn data(body: &[u8], rows: &mut Rows) -> Result<()> {
    let mut fields = Fields(body);
    let found = usize::try_from(fields.int2()?).map_err(|_| negative())?;
    if found != rows.columns() {
        return Err(Error::protocol(format!(
            "the server sent a row of {found} fields, but announced {}",
            rows.columns()
        )));
    }
    if found == 0 {
        rows.push_empty();
    }
    for _ in 0..found {
        match fields.cell()? {
            None => rows.push(crate::Cell::Null),
            Some(bytes) => rows.push_text(bytes)?,
        }
    }
    Ok(())
}

#[cold]
fn negative() -> Error {
    Error::protocol("the server announced a negative number of columns")
}

#[cfg(test)]
mod tests {
    #[test]
    fn integers_are_written_in_full() {
        for value in [0, 7, -1, 42, i64::MAX, i64::MIN, 1_000_000_000] {
            let mut out = Vec::new();
            super::integer(&mut out, value);
            let text = value.to_string();
            assert_eq!(out[..4], (text.len() as u32).to_be_bytes());
            assert_eq!(&out[4..], text.as_bytes());
        }
    }
}
