//! A connection and its state.

use std::sync::Arc;
use std::time::Duration;

use super::bulk;
use super::engine::Shared;
use super::inbox::Inbox;
use super::link::Link;
use super::packet;
use super::pipeline::Queued;
use super::statement::Prepared;
use super::token::{Answer, Token};
use crate::client::{SpareRows, must_be_flushed, must_be_whole};
use crate::process_sessions;
use crate::{
    BulkLoad, BulkTable, Cancel, EngineKind, Error, ErrorClass, Result, Rows, Session, Statement,
    TransactionControl, Value,
};

pub(crate) struct SqlServerSession {
    pub(crate) inbox: Inbox<Link>,
    pub(crate) answer: Answer,
    /// The message to be sent; while statements are queued, their calls.
    pub(crate) out: Vec<u8>,
    pub(crate) statements: Vec<Prepared>,
    /// Calls in `out` that wait for the flush.
    pub(crate) queued: Vec<Queued>,
    pub(crate) spare: SpareRows,
    /// Buffer for results that the caller did not request.
    pub(crate) unwanted: Rows,
    pub(crate) load_buffer: Vec<u8>,
    pub(crate) broken: bool,
    /// A transaction was begun by this client and not ended. In implicit transactions the server may not have begun it
    /// yet.
    pub(crate) begun: bool,
    /// A statement failed in the open transaction, which can only be rolled back. SQL Server itself would continue:
    /// with the statement undone, or, after a deadlock, outside of any transaction.
    pub(crate) failed: bool,
    /// This client has set implicit transactions: within a batch no statement may be committed individually.
    pub(crate) manual: bool,
    /// The server is Babelfish, which does not mark where a call of several ends.
    pub(crate) babelfish: bool,
    pub(crate) shared: Arc<Shared>,
    number: u32,
}

impl SqlServerSession {
    pub(crate) fn new(inbox: Inbox<Link>, answer: Answer, shared: Arc<Shared>) -> Self {
        let number = inbox.session.into();
        process_sessions::set_connection(number, true);
        Self {
            inbox,
            answer,
            out: Vec::with_capacity(8 << 10),
            statements: Prepared::controls(),
            queued: Vec::new(),
            spare: SpareRows::default(),
            unwanted: Rows::new(),
            load_buffer: Vec::new(),
            broken: false,
            begun: false,
            failed: false,
            manual: false,
            babelfish: false,
            shared,
            number,
        }
    }

    /// Refuses to continue on a broken connection, past statements that were queued and not flushed, or in a
    /// transaction that has failed.
    #[inline]
    pub(crate) fn check_usable(&self) -> Result<()> {
        must_be_whole(self.broken)?;
        must_be_flushed(self.queued.len())?;
        self.check_not_failed()
    }

    #[inline]
    pub(crate) fn check_not_failed(&self) -> Result<()> {
        if self.failed { Err(has_failed()) } else { Ok(()) }
    }

    /// Begins a request of this kind in `out`.
    #[inline]
    pub(crate) fn open(&mut self, kind: u8) {
        packet::open(&mut self.out, kind);
        packet::put_all_headers(&mut self.out, self.answer.transaction);
    }

    /// Sends the request that `out` is.
    #[inline]
    pub(crate) fn send(&mut self) -> Result<()> {
        packet::close(&mut self.out, self.answer.packet_size);
        self.inbox.source.begin()?;
        self.inbox.expect(packet::kind::RESPONSE);
        let sent = self.inbox.source.stream.send(&self.out, &mut self.inbox.buffer);
        sent.map_err(|e| self.lost_sending(e))
    }

    /// When a connection breaks while sending, the server may still have sent the reason.
    #[cold]
    pub(crate) fn lost_sending(&mut self, lost: Error) -> Error {
        self.broken = true;
        if lost.class() == ErrorClass::ConnectionLost {
            while let Ok(true) = self.inbox.more() {
                match self.answer.next(&mut self.inbox, None, false) {
                    Ok(Token::Error(error)) => return error,
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
        lost
    }

    /// A request of the transaction manager.
    fn manage(&mut self, request: u16, tail: &[u8]) -> Result<()> {
        self.open(packet::kind::TRANSACTION_MANAGER);
        self.out.extend_from_slice(&request.to_le_bytes());
        self.out.extend_from_slice(tail);
        self.send()?;
        self.read_quietly()
    }

    /// Begins or ends a transaction.
    pub(crate) fn control_transaction(&mut self, control: TransactionControl) -> Result<()> {
        const BEGIN: u16 = 5;
        const COMMIT: u16 = 7;
        const ROLLBACK: u16 = 8;
        match control {
            TransactionControl::Begin | TransactionControl::BeginReadOnly => {
                self.check_usable()?;
                if self.in_transaction() {
                    return Err(is_open());
                }
                if !self.manual {
                    // The isolation level stays, and there is no name.
                    self.manage(BEGIN, &[0, 0])?;
                }
                self.begun = true;
                self.answer.transaction_ended = false;
            }
            TransactionControl::Rollback => {
                // A caller that failed between queue and flush is cleaning up: nothing of the batch was sent.
                self.queued.clear();
                must_be_whole(self.broken)?;
                if self.answer.transaction != 0 {
                    self.manage(ROLLBACK, &[0, 0])?;
                } else if self.is_perhaps_open() {
                    self.send_batch("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")?;
                    self.read_quietly()?;
                }
                (self.begun, self.failed) = (false, false);
            }
            TransactionControl::Commit if self.failed => {
                self.control_transaction(TransactionControl::Rollback)?;
                return Err(Error::new(
                    ErrorClass::Server,
                    "the transaction had already failed: its commit was a rollback",
                ));
            }
            TransactionControl::Commit => {
                self.check_usable()?;
                let lost = self.begun && self.answer.transaction_ended;
                if self.answer.transaction != 0 {
                    self.manage(COMMIT, &[0, 0])?;
                } else if self.is_perhaps_open() {
                    self.send_batch("IF @@TRANCOUNT > 0 COMMIT TRANSACTION")?;
                    self.read_quietly()?;
                }
                self.begun = false;
                if lost {
                    return Err(Error::new(
                        ErrorClass::Server,
                        "the transaction had been ended before its commit, by a statement or a procedure",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether a transaction may be open that the server has not announced: Babelfish says nothing of one that an implicit
    /// transaction's first statement has begun.
    fn is_perhaps_open(&self) -> bool {
        self.babelfish && self.manual && self.begun
    }

    /// Outside of a transaction each statement commits by itself, as on every engine.
    #[inline]
    pub(crate) fn commit_by_itself(&mut self) -> Result<()> {
        if self.manual && !self.in_transaction() { self.switch_manual(false) } else { Ok(()) }
    }

    /// Switches implicit transactions, in a separate round trip: the following statements depend on it.
    #[cold]
    pub(crate) fn switch_manual(&mut self, manual: bool) -> Result<()> {
        self.send_batch(if manual {
            "SET IMPLICIT_TRANSACTIONS ON"
        } else {
            "SET IMPLICIT_TRANSACTIONS OFF"
        })?;
        self.read_quietly()?;
        self.manual = manual;
        Ok(())
    }
}

#[cold]
fn has_failed() -> Error {
    Error::new(ErrorClass::Server, "the transaction has already failed and can only be rolled back")
}

#[cold]
fn is_open() -> Error {
    Error::usage("a transaction is open; another cannot begin within it")
}

impl Session for SqlServerSession {
    fn engine(&self) -> EngineKind {
        EngineKind::SqlServer
    }

    fn control(&mut self, control: TransactionControl) -> Result<()> {
        self.control_transaction(control)
    }

    fn queue_control(&mut self, control: TransactionControl) -> Result<()> {
        self.queue_prepared(control.statement(), &[])
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.prepare_statement(sql, false, None)
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
        self.run_text(sql, None)
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        let mut rows = Rows::new();
        self.run_text(sql, Some(&mut rows))?;
        Ok(rows)
    }

    fn prepare_text(
        &mut self,
        sql: &str,
        parse_each_time: bool,
        columns: &mut Vec<String>,
    ) -> Result<Statement> {
        self.prepare_statement(sql, parse_each_time, Some(columns))
    }

    fn ignore_rows(&mut self, statement: Statement) {
        if let Some(prepared) = self.statements.get_mut(statement.0 as usize) {
            prepared.ignores_rows = true;
        }
    }

    fn query_text(&mut self, sql: &str, results: &mut Vec<Rows>) -> Result<()> {
        self.run_text_with_results(sql, results)
    }

    fn queue_sync(&mut self) -> Result<()> {
        self.queue_sync_within()
    }

    fn bulk_load<'a>(&'a mut self, table: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>> {
        bulk::begin(self, table)
    }

    fn in_transaction(&self) -> bool {
        self.failed || self.begun || self.answer.transaction != 0
    }

    fn is_broken(&self) -> bool {
        self.broken
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.inbox.source.set_timeout(timeout)
    }

    fn cancel(&self) -> Box<dyn Cancel> {
        Box::new(self.inbox.source.cancel())
    }
}

impl Drop for SqlServerSession {
    fn drop(&mut self) {
        // The server rolls back and ends the session when the connection closes; the protocol has no logout message.
        process_sessions::set_connection(self.number, false);
    }
}
