//! The hot path: a call in one `send`, its answer in one `recv`.

use super::encode::{self, Wire};
use super::error::cancelled;
use super::packet;
use super::session::SqlServerSession;
use super::statement::{Call, Declared, Form, Source};
use super::token::{Token, number};
use crate::{Error, ErrorClass, Result, Rows, Statement, TransactionControl, Value};

/// Procedures that are called by number.
mod procedure {
    pub(super) const EXECUTE_SQL: u8 = 10;
    pub(super) const EXECUTE: u8 = 12;
    pub(super) const PREPARE_AND_EXECUTE: u8 = 13;
}

/// What comes back beside results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returns {
    Nothing,
    /// The handle of a statement that was prepared.
    Handle,
    /// The values of this many OUTPUT parameters.
    Outputs(usize),
}

impl Returns {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Handle => 1,
            Self::Outputs(count) => count,
        }
    }
}

/// How far an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// To the end of the message.
    End,
    /// To the end of one call of several in a message.
    Call,
}

impl SqlServerSession {
    pub(crate) fn execute_prepared(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<()> {
        if let Some(control) = control_of(statement) {
            rows.reset(0, false);
            return self.control_transaction(control);
        }
        self.check_usable()?;
        self.commit_by_itself()?;
        self.open(packet::kind::RPC);
        let returns = self.append(statement, params)?;
        self.send()?;
        self.read_call(statement, returns, rows, Until::End).map(drop)
    }

    /// Appends the call that executes a statement to `out`; an error leaves `out` as it was.
    #[inline]
    pub(crate) fn append(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<Returns> {
        let collation = self.answer.collation;
        let Some(prepared) = self.statements.get_mut(statement.0 as usize) else {
            return Err(not_prepared(statement));
        };
        if params.len() < prepared.parameters {
            return Err(wrong_count(params.len(), prepared.parameters));
        }
        let params = &params[..prepared.parameters];
        let before = self.out.len();
        let out = &mut self.out;
        let outcome = match &mut prepared.form {
            Form::Control => Err(not_prepared(statement)),
            Form::Call(call) => append_call(out, call, params, collation),
            Form::Text { sql, declared } => {
                declare(declared, params);
                by_number(out, procedure::EXECUTE_SQL);
                text(out, sql, collation)
                    .and_then(|()| declaration(out, declared, collation))
                    .and_then(|()| values(out, declared, params, collation))
                    .map(|()| Returns::Nothing)
            }
            Form::Handle { sql, declared, handle } => {
                if declare(declared, params) {
                    *handle = None;
                }
                if let Some(handle) = *handle {
                    append_execute(out, handle, declared, params, collation).map(|()| Returns::Nothing)
                } else {
                    by_number(out, procedure::PREPARE_AND_EXECUTE);
                    out.extend_from_slice(&[0, encode::OUTPUT, super::column::kind::INT_N, 4, 0]);
                    declaration(out, declared, collation)
                        .and_then(|()| text(out, sql, collation))
                        .and_then(|()| values(out, declared, params, collation))
                        .map(|()| Returns::Handle)
                }
            }
        };
        if outcome.is_err() {
            self.out.truncate(before);
        }
        outcome
    }

    /// Reads the answer to one call. `rows` gets the OUTPUT parameters where there are some, otherwise the first result with
    /// rows. Returns whether the message goes on behind it.
    #[inline]
    pub(crate) fn read_call(
        &mut self,
        statement: Statement,
        returns: Returns,
        rows: &mut Rows,
        until: Until,
    ) -> Result<bool> {
        self.answer.expect_returned(returns.count());
        let skips = self.statements[statement.0 as usize].ignores_rows;
        let goes_on = self.read_results(rows, skips, until);
        if self.answer.returned_count == returns.count() {
            match returns {
                Returns::Handle => {
                    let value =
                        self.answer.returned.int(0, 0).ok().and_then(|handle| i32::try_from(handle).ok());
                    if let Form::Handle { handle, .. } = &mut self.statements[statement.0 as usize].form {
                        *handle = value;
                    }
                }
                Returns::Outputs(_) if goes_on.is_ok() => std::mem::swap(rows, &mut self.answer.returned),
                Returns::Nothing | Returns::Outputs(_) => {}
            }
        }
        if let Err(error) = &goes_on
            && super::error::number(error) == Some(NO_SUCH_HANDLE)
            && let Form::Handle { handle, .. } = &mut self.statements[statement.0 as usize].form
        {
            *handle = None;
        }
        goes_on
    }

    /// Reads an answer of which the first result with rows matters.
    pub(crate) fn read_answer(&mut self, rows: &mut Rows) -> Result<()> {
        self.answer.expect_returned(0);
        self.read_results(rows, false, Until::End).map(drop)
    }

    /// Reads an answer of which nothing but an error matters.
    pub(crate) fn read_quietly(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.unwanted);
        self.answer.expect_returned(0);
        let outcome = self.read_results(&mut rows, true, Until::End);
        self.unwanted = rows;
        outcome.map(drop)
    }

    /// Reads results up to the end of a call or of the message: the first with rows into `rows`. Returns whether the
    /// message goes on.
    #[inline]
    fn read_results(&mut self, rows: &mut Rows, skips: bool, until: Until) -> Result<bool> {
        let mut first = Ok(());
        // The result that is wanted has not come yet, or is being read.
        let (mut wanted, mut reading) = (!skips, false);
        let mut affected = None;
        let mut count = 0_u64;
        rows.reset(0, false);
        let goes_on = loop {
            if !self.more()? {
                break false;
            }
            match self.token(wanted.then_some(&mut *rows), false)? {
                Token::Columns => (reading, count) = (true, 0),
                Token::Row => count += 1,
                Token::Error(error) => first = first.and(Err(error)),
                Token::Done(done) => {
                    if reading {
                        (wanted, reading) = (false, false);
                        affected = affected.or(Some(count));
                    } else {
                        affected = if wanted || skips { done.count().or(affected) } else { affected };
                    }
                    if self.inbox.source.attention && done.confirms_attention() {
                        self.inbox.source.attention = false;
                        first = first.and(Err(cancelled()));
                    } else if done.failed() && first.is_ok() && !self.inbox.source.attention {
                        first = Err(failed_silently());
                    }
                    let ends = done.of == number::DONE_PROC && (done.is_in_batch() || self.babelfish);
                    if until == Until::Call && ends && done.more() {
                        break true;
                    }
                }
                Token::Returned | Token::Other => {}
            }
        };
        rows.set_affected(affected.unwrap_or(0));
        self.end_of_answer(first, rows).map(|()| goes_on)
    }

    /// Whether the answer goes on; behind a cancellation it does so in a further message, until that is confirmed.
    #[inline]
    pub(crate) fn more(&mut self) -> Result<bool> {
        loop {
            match self.inbox.more() {
                Ok(false) if self.inbox.source.attention => self.inbox.expect(packet::kind::RESPONSE),
                other => return other.inspect_err(|_| self.broken = true),
            }
        }
    }

    #[inline]
    pub(crate) fn token(&mut self, rows: Option<&mut Rows>, names: bool) -> Result<Token> {
        self.answer.next(&mut self.inbox, rows, names).inspect_err(|_| self.broken = true)
    }

    /// A value that could not be read fails the statement; so does, in a transaction, any error the rest of it.
    #[inline]
    pub(crate) fn end_of_answer(&mut self, outcome: Result<()>, rows: &mut Rows) -> Result<()> {
        let outcome = match self.answer.unreadable.take() {
            Some(error) if outcome.is_ok() => Err(error),
            _ => outcome,
        };
        if outcome.is_err() {
            rows.reset(0, false);
            self.failed |= self.in_a_transaction();
            self.broken |= self.answer.fatal;
        }
        outcome
    }

    fn in_a_transaction(&self) -> bool {
        self.begun || self.answer.transaction != 0
    }
}

/// Which beginning or end of a transaction a statement is.
pub(crate) fn control_of(statement: Statement) -> Option<TransactionControl> {
    [
        TransactionControl::Begin,
        TransactionControl::BeginReadOnly,
        TransactionControl::Commit,
        TransactionControl::Rollback,
    ]
    .into_iter()
    .find(|control| control.statement() == statement)
}

/// Could not find a prepared statement with this handle.
const NO_SUCH_HANDLE: i32 = 8179;

fn by_number(out: &mut Vec<u8>, procedure: u8) {
    // No options.
    out.extend_from_slice(&[0xff, 0xff, procedure, 0, 0, 0]);
}

fn text(out: &mut Vec<u8>, sql: &str, collation: [u8; 5]) -> Result<()> {
    encode::unnamed(out, Value::Text(sql), collation)
}

fn declaration(out: &mut Vec<u8>, declared: &Declared, collation: [u8; 5]) -> Result<()> {
    match declared.text() {
        none if none.is_empty() => encode::unnamed(out, Value::Null, collation),
        text => encode::unnamed(out, Value::Text(&text), collation),
    }
}

/// Sees to it that the types fit these values. True when others are declared than before.
#[inline]
fn declare(declared: &mut Declared, params: &[Value<'_>]) -> bool {
    if declared.known.is_some() || declared.given.len() == params.len() && all_fit(&declared.given, params) {
        return false;
    }
    declared.given.resize(params.len(), Wire::Text);
    for (given, &value) in declared.given.iter_mut().zip(params) {
        let wire = Wire::from_value(value);
        if value != Value::Null && !given.holds(wire) {
            *given = wire;
        }
    }
    true
}

#[inline]
fn all_fit(given: &[Wire], params: &[Value<'_>]) -> bool {
    given
        .iter()
        .zip(params)
        .all(|(given, &value)| value == Value::Null || given.holds(Wire::from_value(value)))
}

#[inline]
fn values(out: &mut Vec<u8>, declared: &Declared, params: &[Value<'_>], collation: [u8; 5]) -> Result<()> {
    for (at, &value) in params.iter().enumerate() {
        if let (Value::Text(text), Some(known)) = (value, &declared.known)
            && let Some(longest) = known.get(at).and_then(|known| known.longest)
            && text.len() > longest
            && text.chars().count() > longest
        {
            return Err(too_long(at, &known[at].name));
        }
        encode::unnamed(out, value, collation).map_err(|e| of_parameter(e, at))?;
    }
    Ok(())
}

/// Appends the execution of a statement that has a handle.
#[inline]
pub(crate) fn append_execute(
    out: &mut Vec<u8>,
    handle: i32,
    declared: &Declared,
    params: &[Value<'_>],
    collation: [u8; 5],
) -> Result<()> {
    by_number(out, procedure::EXECUTE);
    out.extend_from_slice(&[0, 0, super::column::kind::INT_N, 4, 4]);
    out.extend_from_slice(&handle.to_le_bytes());
    values(out, declared, params, collation)
}

/// Appends the call of a procedure.
#[inline]
pub(crate) fn append_call(
    out: &mut Vec<u8>,
    call: &Call,
    params: &[Value<'_>],
    collation: [u8; 5],
) -> Result<Returns> {
    out.extend_from_slice(&call.head);
    let mut outputs = 0;
    for argument in &call.arguments {
        out.extend_from_slice(&argument.head);
        match &argument.source {
            &Source::One(at) => {
                outputs += usize::from(argument.output.is_some());
                match (params[at], argument.output) {
                    (Value::Null, Some(wire)) => encode::typed_null(out, wire, collation),
                    (value, _) => encode::typed(out, value, collation).map_err(|e| of_parameter(e, at))?,
                }
            }
            Source::Table { columns, of } => {
                let arrays: Vec<Value<'_>> = columns.iter().map(|&at| params[at]).collect();
                encode::table(out, (&of.0, &of.1), &arrays, collation)
                    .map_err(|e| of_parameter(e, columns[0]))?;
            }
        }
    }
    Ok(if outputs == 0 { Returns::Nothing } else { Returns::Outputs(outputs) })
}

#[cold]
fn failed_silently() -> Error {
    Error::new(ErrorClass::Server, "the server reported a failed statement without saying why")
}

#[cold]
fn too_long(at: usize, name: &str) -> Error {
    of_parameter(Error::new(ErrorClass::Statement, format!("the text is longer than {name}")), at)
}

#[cold]
fn of_parameter(error: Error, number: usize) -> Error {
    error.context(&format!("parameter ${}", number + 1))
}

#[cold]
fn not_prepared(statement: Statement) -> Error {
    Error::usage(format!("statement {} was not prepared by this session", statement.0))
}

#[cold]
fn wrong_count(given: usize, expected: usize) -> Error {
    Error::new(
        ErrorClass::Statement,
        format!("{given} parameters were given, but the statement has {expected}"),
    )
}
