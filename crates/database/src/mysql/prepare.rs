//! Preparing statements: once a connection, outside the measured path.

use super::packet::{Column, PrepareOk, column_name};
use super::session::{MysqlSession, command};
use super::wire;
use crate::placeholder::Positional;
use crate::stream::printable;
use crate::{Error, ErrorClass, Result, Statement};

/// How a statement is executed.
pub(crate) enum Form {
    /// Its whole packet, without parameters.
    Command(Vec<u8>),
    /// By the number that the server gave it, with these parameters in its order.
    Server { id: u32, order: Vec<usize> },
    /// As text, with the parameters written into it.
    Text(Positional),
}

/// A statement of the session.
pub(crate) struct Prepared {
    pub(crate) form: Form,
    /// How many parameters it needs at least.
    pub(crate) parameters: usize,
    /// What is known of its result, where the server describes it once.
    pub(crate) columns: Vec<Column>,
    /// Its rows are skipped.
    pub(crate) ignores_rows: bool,
    /// It ends a transaction that has failed.
    pub(crate) rolls_back: bool,
}

impl Prepared {
    /// What every session has first, in the order of [`crate::Control`].
    pub(crate) fn controls() -> Vec<Self> {
        ["START TRANSACTION", "START TRANSACTION READ ONLY", "COMMIT", "ROLLBACK"]
            .map(|sql| {
                let mut packet = Vec::new();
                let start = wire::open(&mut packet);
                packet.push(command::QUERY);
                packet.extend_from_slice(sql.as_bytes());
                wire::close(&mut packet, start, 0);
                Self::new(Form::Command(packet), 0, rolls_back(sql))
            })
            .into()
    }

    fn new(form: Form, parameters: usize, rolls_back: bool) -> Self {
        Self { form, parameters, columns: Vec::new(), ignores_rows: false, rolls_back }
    }
}

/// Whether a statement ends the transaction without a commit: all that is let through after a failure.
pub(crate) fn rolls_back(sql: &str) -> bool {
    let word = sql.trim_start().as_bytes();
    word.len() >= 8
        && word[..8].eq_ignore_ascii_case(b"rollback")
        && !sql.to_ascii_uppercase().contains(" TO ")
}

/// This command is not supported in the prepared statement protocol yet.
const NOT_AS_PREPARED: &str = "1295/";

impl MysqlSession {
    /// Prepares a statement and appends it to the session's. With `parse_each_time`, and where the server does not
    /// prepare statements of its kind, executions send its text. `names` gets the names of its columns.
    pub(crate) fn prepare_statement(
        &mut self,
        sql: &str,
        parse_each_time: bool,
        names: Option<&mut Vec<String>>,
    ) -> Result<Statement> {
        self.check_usable(false)?;
        if sql.contains('\0') {
            return Err(Error::usage("a statement cannot contain a zero byte"));
        }
        let found = Positional::parse(sql);
        let parameters = found.parameters();
        let mut unused = Vec::new();
        let names = names.unwrap_or(&mut unused);
        names.clear();
        self.send_text(command::STMT_PREPARE, found.sql.as_bytes())?;
        let prepared = match self.read_prepared(names) {
            Ok((head, columns)) if usize::from(head.parameters) != found.at.len() => {
                drop(columns);
                self.close_statement(head.id)?;
                return Err(Error::new(
                    ErrorClass::Statement,
                    format!(
                        "the server finds {} parameters in the statement, but {} are written as $1, $2, …",
                        head.parameters,
                        found.at.len()
                    ),
                )
                .with_help("parameters are written $1, $2, …, not ?"));
            }
            Ok((head, _)) if parse_each_time => {
                self.close_statement(head.id)?;
                Prepared::new(Form::Text(found), parameters, rolls_back(sql))
            }
            Ok((head, columns)) => {
                let order = found.at.iter().map(|&(_, number)| number).collect();
                let form = Form::Server { id: head.id, order };
                Prepared { columns, ..Prepared::new(form, parameters, rolls_back(sql)) }
            }
            Err(error) if error.code().0.starts_with(NOT_AS_PREPARED) => {
                Prepared::new(Form::Text(found), parameters, rolls_back(sql))
            }
            Err(error) => return Err(error),
        };
        self.statements.push(prepared);
        Ok(Statement(self.statements.len() as u32 - 1))
    }

    /// Prepares a statement without a result for one use; [`Self::close_statement`] ends it.
    pub(crate) fn prepare_by_id(&mut self, sql: &str) -> Result<u32> {
        self.send_text(command::STMT_PREPARE, sql.as_bytes())?;
        Ok(self.read_prepared(&mut Vec::new())?.0.id)
    }

    /// Closes a statement in the server, which sends no response.
    pub(crate) fn close_statement(&mut self, id: u32) -> Result<()> {
        let [a, b, c, d] = id.to_le_bytes();
        self.send_text(command::STMT_CLOSE, &[a, b, c, d])
    }

    /// Reads the answer to the preparing of a statement.
    fn read_prepared(&mut self, names: &mut Vec<String>) -> Result<(PrepareOk, Vec<Column>)> {
        let body = self.message()?;
        match self.inbox.body(body.clone()) {
            [0, ..] => {}
            [0xff, ..] => {
                let error = self.prepare_error(body);
                return Err(error);
            }
            _ => {
                self.broken = true;
                return Err(Error::protocol("the server sent an unexpected response to a prepare"));
            }
        }
        let head = PrepareOk::parse(self.inbox.body(body));
        let head = self.parsed(head)?;
        for _ in 0..head.parameters {
            self.message()?;
        }
        if head.parameters > 0 {
            self.skip_eof()?;
        }
        let mut columns = Vec::with_capacity(head.columns.into());
        for _ in 0..head.columns {
            let body = self.message()?;
            let column = Column::parse(self.inbox.body(body.clone()));
            columns.push(self.parsed(column)?);
            let name = column_name(self.inbox.body(body)).map(printable);
            names.push(self.parsed(name)?);
        }
        if head.columns > 0 {
            self.skip_eof()?;
        }
        Ok((head, columns))
    }

    /// A statement that cannot be prepared has changed nothing: the transaction can go on.
    #[cold]
    fn prepare_error(&mut self, body: std::ops::Range<usize>) -> Error {
        let failed = self.failed;
        let error = self.server_error(body);
        // Only where the transaction itself is gone, it is not as before.
        if !error.class().is_retryable() {
            self.failed = failed;
        }
        error
    }

    /// Takes the packet that ends descriptions, where the server sends one.
    #[inline]
    pub(crate) fn skip_eof(&mut self) -> Result<()> {
        if self.deprecates_eof() {
            return Ok(());
        }
        let body = self.message()?;
        let is_eof = matches!(self.inbox.body(body), body @ [0xfe, ..] if body.len() < 9);
        if is_eof {
            return Ok(());
        }
        self.broken = true;
        Err(Error::protocol("the server sent an unexpected message after the column descriptions"))
    }
}
