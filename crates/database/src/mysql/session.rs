//! A connection and its state.

use std::ops::Range;
use std::time::Duration;

use super::bulk::{self, Limits};
use super::cancel::MysqlCancel;
use super::encode::Escapes;
use super::inbox::Inbox;
use super::packet::{Column, Greeting, OkPacket, capability, status};
use super::pipeline::Queued;
use super::prepare::Prepared;
use super::{Config, error, wire};
use crate::client::{SpareRows, must_be_flushed, must_be_whole};
use crate::process_sessions;
use crate::stream::Stream;
use crate::{
    BulkLoad, BulkTable, Cancel, EngineKind, Error, ErrorClass, Result, Rows, Session, Statement,
    TransactionControl, Value,
};

/// Commands, by the protocol's numbers.
pub(crate) mod command {
    pub(crate) const QUIT: u8 = 1;
    pub(crate) const QUERY: u8 = 3;
    pub(crate) const STMT_PREPARE: u8 = 0x16;
    pub(crate) const STMT_EXECUTE: u8 = 0x17;
    pub(crate) const STMT_CLOSE: u8 = 0x19;
    pub(crate) const STMT_BULK_EXECUTE: u8 = 0xfa;
}

pub(crate) struct MysqlSession {
    pub(crate) stream: Stream,
    pub(crate) inbox: Inbox,
    /// Packets to be sent.
    pub(crate) out: Vec<u8>,
    pub(crate) statements: Vec<Prepared>,
    /// Statements in `out` that wait for the flush.
    pub(crate) queued: Vec<Queued>,
    pub(crate) spare: SpareRows,
    /// Where results go that nobody asked for.
    pub(crate) unwanted: Rows,
    pub(crate) columns: Vec<Column>,
    /// A value of the result being read that no cell can hold; reported when all is read.
    pub(crate) unreadable: Option<Error>,
    pub(crate) load_buffer: Vec<u8>,
    pub(crate) limits: Option<Limits>,
    pub(crate) broken: bool,
    /// What the server said last.
    pub(crate) done: OkPacket,
    /// A statement failed in the open transaction, which can only be rolled back. MySQL would go on: with the statement
    /// undone, or, after a deadlock, in no transaction at all.
    pub(crate) failed: bool,
    /// The server is in autocommit=0, by us: within a batch no statement may commit by itself, and the first statement of
    /// a transaction begins it.
    pub(crate) manual: bool,
    /// A transaction was begun by saying nothing, in autocommit=0; the server knows of it with its first statement.
    pub(crate) begun: bool,
    /// The last thing was the end of a transaction: one that follows at once needs no beginning of its own.
    pub(crate) in_a_row: bool,
    capabilities: u64,
    connection: u32,
    config: Config,
}

impl MysqlSession {
    pub(crate) fn new(
        stream: Stream,
        inbox: Inbox,
        greeting: &Greeting,
        capabilities: u64,
        config: &Config,
    ) -> Self {
        process_sessions::set_connection(greeting.connection, true);
        Self {
            stream,
            inbox,
            out: Vec::with_capacity(8 << 10),
            statements: Prepared::controls(),
            queued: Vec::new(),
            spare: SpareRows::default(),
            unwanted: Rows::new(),
            columns: Vec::new(),
            unreadable: None,
            load_buffer: Vec::new(),
            limits: None,
            broken: false,
            done: OkPacket { affected: 0, status: 0, warnings: 0 },
            failed: false,
            manual: false,
            begun: false,
            in_a_row: false,
            capabilities,
            connection: greeting.connection,
            config: config.clone(),
        }
    }

    #[inline]
    pub(crate) fn can(&self, capability: u64) -> bool {
        self.capabilities & capability != 0
    }

    pub(crate) fn escapes(&self) -> Escapes {
        if self.done.status & status::NO_BACKSLASH_ESCAPES == 0 { Escapes::Backslash } else { Escapes::None }
    }

    /// Refuses to go on with a broken connection, past statements that were queued and not flushed, or in a transaction
    /// that has failed.
    #[inline]
    pub(crate) fn check_usable(&self, rolls_back: bool) -> Result<()> {
        must_be_whole(self.broken)?;
        must_be_flushed(self.queued.len())?;
        if self.failed && !rolls_back {
            return Err(has_failed());
        }
        Ok(())
    }

    /// Sends `out` and empties it.
    #[inline]
    pub(crate) fn send(&mut self) -> Result<()> {
        self.inbox.expect_after(wire::last_sequence(self.out.len()));
        let sent = self.stream.send(&self.out, &mut self.inbox.buffer);
        self.out.clear();
        sent.map_err(|e| self.lost_sending(e))
    }

    /// A connection that breaks while sending may still hold the server's word why.
    #[cold]
    pub(crate) fn lost_sending(&mut self, lost: Error) -> Error {
        self.broken = true;
        if lost.class() == ErrorClass::ConnectionLost {
            while let Ok(body) = self.inbox.next(&mut self.stream) {
                if let body @ [0xff, ..] = self.inbox.body(body) {
                    return error::from_packet(body).0;
                }
            }
        }
        lost
    }

    /// The next packet of an answer.
    #[inline]
    pub(crate) fn message(&mut self) -> Result<Range<usize>> {
        self.inbox.next(&mut self.stream).inspect_err(|_| self.broken = true)
    }

    /// Takes a value out of a packet that must have it.
    #[inline]
    pub(crate) fn parsed<T>(&mut self, value: Result<T>) -> Result<T> {
        value.inspect_err(|_| self.broken = true)
    }

    /// The error in an ERR packet. It ends the answer; in a transaction it ends that too.
    #[cold]
    pub(crate) fn server_error(&mut self, body: Range<usize>) -> Error {
        let (error, number) = error::from_packet(self.inbox.body(body));
        self.broken |= error::ends_the_session(&error, number);
        self.failed |= self.in_transaction() || self.manual;
        error
    }

    /// The server asks for a file of this host: only a load that we began gets data, and none is under way.
    #[cold]
    pub(crate) fn refuse_file(&mut self) -> Error {
        self.broken = true;
        Error::protocol("the server requested a file from this host that no statement of Kelvin offered")
            .with_help("nothing was sent; scripts cannot use LOAD DATA LOCAL")
    }

    /// Sends one command and its text.
    pub(crate) fn send_text(&mut self, command: u8, text: &[u8]) -> Result<()> {
        self.out.clear();
        let start = wire::open(&mut self.out);
        self.out.push(command);
        self.out.extend_from_slice(text);
        wire::close(&mut self.out, start, 0);
        self.send()
    }

    /// Outside of a transaction each statement commits by itself, as on every engine.
    #[inline]
    pub(crate) fn commit_by_itself(&mut self) -> Result<()> {
        if self.in_transaction() {
            return Ok(());
        }
        self.in_a_row = false;
        if self.manual { self.switch_manual(false) } else { Ok(()) }
    }

    /// A transaction has ended.
    #[inline]
    pub(crate) fn ended(&mut self) {
        (self.failed, self.begun, self.in_a_row) = (false, false, true);
    }

    /// Switches autocommit, in a round trip of its own: what follows depends on it.
    #[cold]
    pub(crate) fn switch_manual(&mut self, manual: bool) -> Result<()> {
        self.simple(if manual { "SET autocommit=0" } else { "SET autocommit=1" }, None)?;
        self.manual = manual;
        Ok(())
    }
}

#[cold]
pub(crate) fn has_failed() -> Error {
    Error::new(ErrorClass::Server, "the transaction has already failed and can only be rolled back")
}

impl Session for MysqlSession {
    fn engine(&self) -> EngineKind {
        EngineKind::Mysql
    }

    fn control(&mut self, control: TransactionControl) -> Result<()> {
        match control {
            TransactionControl::Rollback => {
                // A caller that gave up between queue and flush is cleaning up: nothing of the batch was sent.
                self.queued.clear();
            }
            TransactionControl::Commit if self.failed => {
                self.control(TransactionControl::Rollback)?;
                return Err(Error::new(
                    ErrorClass::Server,
                    "the transaction had already failed: its commit was a rollback",
                ));
            }
            TransactionControl::Begin | TransactionControl::BeginReadOnly if self.in_transaction() => {
                return Err(is_open());
            }
            TransactionControl::Begin | TransactionControl::BeginReadOnly if self.in_a_row || self.manual => {
                self.check_usable(false)?;
                if !self.manual {
                    self.switch_manual(true)?;
                }
                self.begun = true;
                return Ok(());
            }
            _ => {}
        }
        let mut rows = std::mem::take(&mut self.unwanted);
        let outcome = self.execute_prepared(control.statement(), &[], &mut rows);
        self.unwanted = rows;
        outcome
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
        self.failed || self.begun || self.done.status & status::IN_TRANSACTION != 0
    }

    fn is_broken(&self) -> bool {
        self.broken
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.stream.set_timeout(timeout)
    }

    fn cancel(&self) -> Box<dyn Cancel> {
        Box::new(MysqlCancel {
            config: self.config.clone(),
            peer: self.stream.peer(),
            encrypted: self.stream.tls().is_some(),
            connection: self.connection,
        })
    }
}

#[cold]
pub(crate) fn is_open() -> Error {
    Error::usage("a transaction is open; beginning another would commit it")
}

impl MysqlSession {
    #[inline]
    pub(crate) fn deprecates_eof(&self) -> bool {
        self.can(capability::DEPRECATE_EOF)
    }
}

impl Drop for MysqlSession {
    fn drop(&mut self) {
        if !self.broken {
            // The server rolls back and closes either way; this way it counts no aborted client.
            let _ = self.stream.send(&[1, 0, 0, 0, command::QUIT], &mut self.inbox.buffer);
        }
        process_sessions::set_connection(self.connection, false);
    }
}
