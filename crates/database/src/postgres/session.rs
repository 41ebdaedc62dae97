//! A connection and its state.

use std::ops::Range;
use std::time::Duration;

use super::cancel::{Key, PostgresCancel};
use super::copy_in::CopyIn;
use super::inbox::Inbox;
use super::prepare::Prepared;
use super::{Config, MARK, backend, error};
use crate::client::{SpareRows, must_be_flushed, must_be_whole};
use crate::stream::Stream;
use crate::{
    BulkLoad, BulkTable, Cancel, EngineKind, Error, PreparedPlans, Result, Rows, Session, Statement,
    TransactionControl, Value,
};

pub(crate) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

pub(crate) struct PostgresSession {
    pub(crate) stream: Stream,
    pub(crate) inbox: Inbox,
    /// Messages to be sent.
    pub(crate) out: Vec<u8>,
    pub(crate) statements: Vec<Prepared>,
    /// Number of names given to statements; never reused, since a statement can fail here after the server has it.
    pub(crate) named: u32,
    /// Statements in `out` that wait for the flush.
    pub(crate) queued: Vec<Statement>,
    pub(crate) spare: SpareRows,
    pub(crate) copy_buffer: Vec<u8>,
    pub(crate) broken: bool,
    /// I, T or E, as the server said last.
    pub(crate) status: u8,
    key: Option<Key>,
    config: Config,
}

impl PostgresSession {
    pub(crate) fn new(stream: Stream, inbox: Inbox, key: Option<Key>, config: &Config) -> Self {
        // Cancelling needs no password.
        let config = Config { password: None, ..config.clone() };
        Self {
            stream,
            inbox,
            out: Vec::with_capacity(8 << 10),
            statements: Vec::new(),
            named: 0,
            queued: Vec::new(),
            spare: SpareRows::default(),
            copy_buffer: Vec::new(),
            broken: false,
            status: b'I',
            key,
            config,
        }
    }

    /// Whether statements are kept at the server, under names.
    pub(crate) fn prepared_statements(&self) -> bool {
        self.config.prepared_statements
    }

    /// Refuses to go on with a broken connection, or past statements that were queued and not flushed.
    #[inline]
    pub(crate) fn check_usable(&self) -> Result<()> {
        must_be_whole(self.broken)?;
        must_be_flushed(self.queued.len())
    }

    /// Sends `out` and empties it.
    #[inline]
    pub(crate) fn send(&mut self) -> Result<()> {
        let sent = self.stream.send(&self.out, &mut self.inbox.buffer);
        self.out.clear();
        sent.map_err(|e| self.lost_sending(e))
    }

    /// A connection that breaks while sending may still hold the server's word why.
    #[cold]
    pub(crate) fn lost_sending(&mut self, lost: Error) -> Error {
        self.broken = true;
        if lost.class() == crate::ErrorClass::ConnectionLost {
            while let Ok((tag, body)) = self.inbox.next(&mut self.stream) {
                if tag == b'E' {
                    return error::from_response(self.inbox.body(body)).0;
                }
            }
        }
        lost
    }

    /// The next message that is not a notice, a notification or a changed setting.
    #[inline]
    pub(crate) fn message(&mut self) -> Result<(u8, Range<usize>)> {
        loop {
            match self.inbox.next(&mut self.stream) {
                Ok((b'N' | b'A' | b'S', _)) => {
                    self.stream.heard_aside().inspect_err(|_| self.broken = true)?;
                }
                Ok(message) => return Ok(message),
                Err(e) => {
                    self.broken = true;
                    return Err(e);
                }
            }
        }
    }

    /// The error in an ErrorResponse; a fatal one breaks the session.
    #[cold]
    pub(crate) fn server_error(&mut self, body: Range<usize>) -> Error {
        let (error, fatal) = error::from_response(self.inbox.body(body));
        self.broken |= fatal;
        error
    }

    #[cold]
    pub(crate) fn unexpected(&mut self, tag: u8, doing: &str) -> Error {
        self.broken = true;
        Error::protocol(format!(
            "{doing}: the server sent an unexpected message of type {:?}",
            char::from(tag)
        ))
    }

    /// Takes the ReadyForQuery that ends a request.
    #[inline]
    pub(crate) fn finish(&mut self) -> Result<()> {
        let (tag, body) = self.message()?;
        match tag {
            b'Z' => {
                self.status = backend::ready(self.inbox.body(body)).inspect_err(|_| self.broken = true)?;
                Ok(())
            }
            b'E' => {
                // Deferred constraints and the like fail at the Sync.
                let error = self.server_error(body);
                self.drain();
                Err(error)
            }
            other => Err(self.unexpected(other, "ending a query")),
        }
    }

    /// Brings the connection in order after an error: skips everything up to ReadyForQuery. Where that fails
    /// the session is broken, and the error that led here remains the one to report.
    #[cold]
    pub(crate) fn drain(&mut self) {
        while !self.broken {
            let Ok((tag, body)) = self.message() else { return };
            match tag {
                b'Z' => match backend::ready(self.inbox.body(body)) {
                    Ok(status) => {
                        self.status = status;
                        return;
                    }
                    Err(_) => self.broken = true,
                },
                b'E' => drop(self.server_error(body)),
                _ => {}
            }
        }
    }
}

impl Session for PostgresSession {
    fn engine(&self) -> EngineKind {
        EngineKind::Postgres
    }

    fn control(&mut self, control: TransactionControl) -> Result<()> {
        if control == TransactionControl::Rollback {
            // A caller that gave up between queue and flush is cleaning up: nothing of the batch was sent.
            self.queued.clear();
        }
        self.execute_prepared(control.statement(), &[], &mut Rows::new())
    }

    fn queue_control(&mut self, control: TransactionControl) -> Result<()> {
        self.queue_prepared(control.statement(), &[])
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.check_usable()?;
        self.prepare_all(&[sql])?;
        Ok(Statement(self.statements.len() as u32 - 1))
    }

    #[inline]
    fn execute(&mut self, statement: Statement, params: &[Value<'_>], rows: &mut Rows) -> Result<()> {
        self.execute_prepared(statement, params, rows)
    }

    fn queue(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        self.queue_prepared(statement, params)
    }

    fn flush(&mut self, results: &mut Vec<Rows>) -> Result<()> {
        self.flush_queue(results)
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.simple(sql, None)
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        let mut rows = Rows::new();
        self.simple(sql, Some(&mut rows))?;
        Ok(rows)
    }

    fn prepare_text(
        &mut self,
        sql: &str,
        parse_each_time: bool,
        columns: &mut Vec<String>,
    ) -> Result<Statement> {
        self.prepare_text_statement(sql, parse_each_time, columns)
    }

    fn infers_types(&self) -> bool {
        true
    }

    fn ignore_rows(&mut self, statement: Statement) {
        if let Some(prepared) = self.statements.get_mut(statement.0 as usize) {
            prepared.ignores_rows = true;
        }
    }

    fn query_text(&mut self, sql: &str, results: &mut Vec<Rows>) -> Result<()> {
        self.simple_text(sql, results)
    }

    fn queue_sync(&mut self) -> Result<()> {
        self.queue_sync_within()
    }

    fn bulk_load<'a>(&'a mut self, table: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>> {
        Ok(Box::new(CopyIn::begin(self, table, false)?))
    }

    fn bulk_load_frozen<'a>(&'a mut self, table: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>> {
        Ok(Box::new(CopyIn::begin(self, table, true)?))
    }

    fn in_transaction(&self) -> bool {
        self.status != b'I'
    }

    fn is_broken(&self) -> bool {
        self.broken
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.stream.set_timeout(timeout)
    }

    fn prepared_plans(&mut self) -> Result<Vec<PreparedPlans>> {
        if !self.prepared_statements() {
            return Ok(Vec::new());
        }
        // The columns are there since 14; as JSON they are NULL before.
        let rows = self.query(&format!(
            "SELECT {MARK} statement, generic, custom FROM (SELECT statement, (to_jsonb(p) ->> 'generic_plans')::int8 AS generic, \
             (to_jsonb(p) ->> 'custom_plans')::int8 AS custom FROM pg_prepared_statements p WHERE cardinality(parameter_types) > 0) AS counted \
             WHERE generic + custom > 0 ORDER BY generic + custom DESC LIMIT 100"
        ))?;
        let one = |row| {
            let count = |column| Ok::<_, Error>(rows.int(row, column)?.max(0).unsigned_abs());
            Ok(PreparedPlans { text: rows.text(row, 0)?.to_owned(), generic: count(1)?, custom: count(2)? })
        };
        (0..rows.len()).map(one).collect()
    }

    fn cancel(&self) -> Box<dyn Cancel> {
        let encrypted = self.stream.tls().is_some();
        Box::new(PostgresCancel {
            config: self.config.clone(),
            peer: self.stream.peer(),
            key: self.key.clone(),
            encrypted,
        })
    }
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        if !self.broken {
            // The server rolls back and closes either way; this way it logs no lost connection.
            let _ = self.stream.send(&[b'X', 0, 0, 0, 4], &mut self.inbox.buffer);
        }
    }
}
