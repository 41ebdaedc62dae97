//! The hot path: a command in one `send`, its answer in one `recv`.

use super::decode;
use super::encode;
use super::packet::{Column, OkPacket, capability, column_name, result_head, status};
use super::prepare::{Form, Prepared};
use super::session::{MysqlSession, command, has_failed};
use super::wire;
use crate::{Error, ErrorClass, Result, Rows, Session, Statement, TransactionControl, Value};

/// How a result is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Its rows are in binary format.
    pub(crate) binary: bool,
    /// Its columns' names are wanted.
    pub(crate) names: bool,
    /// Its rows are skipped.
    pub(crate) skips: bool,
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    Rows,
    NoRows,
}

impl MysqlSession {
    pub(crate) fn execute_prepared(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<()> {
        let rolls_back = self.prepared(statement)?.rolls_back;
        self.check_usable(rolls_back)?;
        if statement.0 >= 4 {
            self.commit_by_itself()?;
        }
        self.out.clear();
        self.append(statement, params)?;
        self.send()?;
        self.read_answer(statement, rows)
    }

    #[inline]
    fn prepared(&self, statement: Statement) -> Result<&Prepared> {
        self.statements.get(statement.0 as usize).ok_or_else(|| {
            Error::usage(format!("statement {} was not prepared by this session", statement.0))
        })
    }

    /// Appends the command that executes a statement to `out`; an error leaves `out` as it was.
    #[inline]
    pub(crate) fn append(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        let escapes = self.escapes();
        let Some(prepared) = self.statements.get(statement.0 as usize) else {
            return self.prepared(statement).map(drop);
        };
        if params.len() < prepared.parameters {
            return Err(wrong_count(params.len(), prepared.parameters));
        }
        let out = &mut self.out;
        let before = out.len();
        let outcome = match &prepared.form {
            Form::Command(packet) => {
                out.extend_from_slice(packet);
                return Ok(());
            }
            Form::Server { id, order } => {
                wire::open(out);
                binary(out, *id, order, params)
            }
            Form::Text(text) => {
                wire::open(out);
                out.push(command::QUERY);
                literals(out, text, params, escapes)
            }
        };
        if let Err(error) = outcome {
            out.truncate(before);
            return Err(error);
        }
        wire::close(out, before + wire::HEADER, 0);
        Ok(())
    }

    /// Reads the answer to one execution, up to its end or to the OUT parameters before it. Of several results (CALL) `rows` gets the OUT parameters where there are
    /// some, otherwise the first result with rows.
    #[inline]
    pub(crate) fn read_answer(&mut self, statement: Statement, rows: &mut Rows) -> Result<()> {
        let index = statement.0 as usize;
        let prepared = &mut self.statements[index];
        let reading = Reading {
            binary: matches!(prepared.form, Form::Server { .. }),
            names: false,
            skips: prepared.ignores_rows,
        };
        let rolls_back = prepared.rolls_back;
        let mut columns = std::mem::take(&mut prepared.columns);
        let mut outcome = self.read_result(&mut columns, reading, rows).map(drop);
        self.statements[index].columns = columns;
        if outcome.is_ok()
            && self.done.status & (status::MORE_RESULTS | status::OUT_PARAMETERS) == status::MORE_RESULTS
        {
            outcome = self.read_further(reading, rows);
        }
        // The parameters come when the procedure has ended. The packet behind them, which the server sends separately, says
        // nothing more: waiting for it would cost another sleep.
        if outcome.is_ok() && self.done.status & status::OUT_PARAMETERS != 0 {
            self.inbox.leave_end();
        }
        if outcome.is_ok() && (rolls_back || statement == TransactionControl::Commit.statement()) {
            self.ended();
        }
        self.end_of_answer(outcome)
    }

    /// A value that could not be read fails the statement; so does, in a transaction, the rest of it.
    #[inline]
    pub(crate) fn end_of_answer(&mut self, outcome: Result<()>) -> Result<()> {
        match self.unreadable.take() {
            Some(error) if outcome.is_ok() => {
                self.failed |= self.in_transaction();
                Err(error)
            }
            _ => outcome,
        }
    }

    #[cold]
    fn read_further(&mut self, reading: Reading, rows: &mut Rows) -> Result<()> {
        let mut columns = std::mem::take(&mut self.columns);
        let mut other = std::mem::take(&mut self.unwanted);
        let mut outcome = Ok(());
        let mut out_parameters = false;
        while outcome.is_ok() && !out_parameters && self.done.status & status::MORE_RESULTS != 0 {
            outcome = self.read_result(&mut columns, reading, &mut other).map(|found| {
                out_parameters = self.done.status & status::OUT_PARAMETERS != 0;
                if found == ResultKind::Rows && (out_parameters || rows.columns() == 0) {
                    std::mem::swap(rows, &mut other);
                }
            });
        }
        self.columns = columns;
        self.unwanted = other;
        outcome
    }

    /// Reads one result: the end of a statement without rows, or rows and their end.
    #[inline]
    pub(crate) fn read_result(
        &mut self,
        columns: &mut Vec<Column>,
        reading: Reading,
        rows: &mut Rows,
    ) -> Result<ResultKind> {
        let body = self.message()?;
        match self.inbox.body(body.clone()) {
            [0, ..] => {
                let done = OkPacket::ok(self.inbox.body(body));
                self.done = self.parsed(done)?;
                rows.reset(0, false);
                rows.set_affected(self.done.affected);
                return Ok(ResultKind::NoRows);
            }
            [0xff, ..] => return Err(self.server_error(body)),
            [0xfb, ..] => return Err(self.refuse_file()),
            _ => {}
        }
        let head = result_head(self.inbox.body(body), self.can(capability::CACHE_METADATA));
        let (count, described) = self.parsed(head)?;
        rows.reset(if reading.skips { 0 } else { count }, false);
        if described {
            self.read_columns(count, columns, reading, rows)?;
        }
        if columns.len() != count {
            self.broken = true;
            return Err(Error::protocol(format!(
                "the server sent a result of {count} columns but described {}",
                columns.len()
            )));
        }
        self.skip_eof()?;
        self.read_rows(columns, reading, rows)?;
        Ok(ResultKind::Rows)
    }

    #[inline]
    fn read_columns(
        &mut self,
        count: usize,
        columns: &mut Vec<Column>,
        reading: Reading,
        rows: &mut Rows,
    ) -> Result<()> {
        columns.clear();
        for _ in 0..count {
            let body = self.message()?;
            let column = Column::parse(self.inbox.body(body.clone()));
            columns.push(self.parsed(column)?);
            if reading.names {
                let name = column_name(self.inbox.body(body)).map(|name| rows.push_name(name));
                self.parsed(name)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn read_rows(&mut self, columns: &[Column], reading: Reading, rows: &mut Rows) -> Result<()> {
        let mut count = 0_u64;
        loop {
            let range = self.message()?;
            let body = self.inbox.body(range.clone());
            match body {
                // A text of 16 MiB and more begins with the same byte.
                [0xfe, ..] if body.len() < wire::FULL => {
                    let done = if self.deprecates_eof() { OkPacket::ok(body) } else { OkPacket::eof(body) };
                    self.done = self.parsed(done)?;
                    rows.set_affected(count);
                    return Ok(());
                }
                [0xff, ..] => return Err(self.server_error(range)),
                _ => {}
            }
            count += 1;
            if reading.skips || self.unreadable.is_some() {
                continue;
            }
            let row = if reading.binary {
                decode::binary_row(body, columns, rows)
            } else {
                decode::text_row(body, columns, rows)
            };
            if let Err(error) = row {
                if error.class() == ErrorClass::Protocol {
                    self.broken = true;
                    return Err(error);
                }
                self.unreadable = Some(error);
                // A part of a row is none.
                rows.reset(columns.len(), false);
            }
        }
    }

    /// Refuses to send a batch in a transaction that has failed.
    pub(crate) fn check_not_failed(&self) -> Result<()> {
        if self.failed { Err(has_failed()) } else { Ok(()) }
    }
}

/// Appends the content of a command that executes a statement of the server's.
#[inline]
fn binary(out: &mut Vec<u8>, id: u32, order: &[usize], params: &[Value<'_>]) -> Result<()> {
    out.push(command::STMT_EXECUTE);
    out.extend_from_slice(&id.to_le_bytes());
    // No cursor, once.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if order.is_empty() {
        return Ok(());
    }
    let nulls = out.len();
    out.resize(nulls + order.len().div_ceil(8), 0);
    // The types follow.
    out.push(1);
    for (place, &number) in order.iter().enumerate() {
        let value = params[number];
        if value == Value::Null {
            out[nulls + place / 8] |= 1 << (place % 8);
        }
        out.extend_from_slice(&[encode::kind_of(value), 0]);
    }
    for &number in order {
        encode::value(out, params[number]).map_err(|e| of_parameter(e, number))?;
    }
    Ok(())
}

/// Appends the text of a statement with its parameters in it.
fn literals(
    out: &mut Vec<u8>,
    text: &crate::placeholder::Positional,
    params: &[Value<'_>],
    escapes: encode::Escapes,
) -> Result<()> {
    let sql = text.sql.as_bytes();
    let mut from = 0;
    for &(at, number) in &text.at {
        out.extend_from_slice(&sql[from..at]);
        encode::literal(out, params[number], escapes).map_err(|e| of_parameter(e, number))?;
        from = at + 1;
    }
    out.extend_from_slice(&sql[from..]);
    Ok(())
}

#[cold]
fn of_parameter(error: Error, number: usize) -> Error {
    error.context(&format!("parameter ${}", number + 1))
}

#[cold]
fn wrong_count(given: usize, expected: usize) -> Error {
    Error::new(
        ErrorClass::Statement,
        format!("{given} parameters were given, but the statement has {expected}"),
    )
}
