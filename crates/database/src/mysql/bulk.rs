//! Loading: LOAD DATA LOCAL with the rows as the file where the server allows that, otherwise INSERT with many rows.
//!
//! MariaDB reads a file byte by byte, which costs it a quarter of the load. It takes tables that are mostly texts from executions of
//! a prepared INSERT, each with many rows in binary format; for other values it does more than for the few bytes of each in a file.

use super::encode;
use super::packet::{OkPacket, capability};
use super::session::{MysqlSession, command};
use super::wire;
use crate::{
    BulkLoad, BulkTable, ColumnType, Error, ErrorClass, Result, Rows, Session, TransactionControl, Value,
};

/// The name of the file that the server asks for. It is only ever a name: no file is read.
const FILE: &[u8] = b"kelvin";
/// Rows are sent when they have grown beyond this.
const SEND_AT: usize = 256 << 10;
/// Executions that are sent before the answer to the first of them is read, so that neither side waits for the other.
const AHEAD: u32 = 2;
/// The flag of an execution with many rows by which the types of the parameters come with it.
const WITH_TYPES: u16 = 128;

/// What the server allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    local_infile: bool,
    max_allowed_packet: usize,
}

impl MysqlSession {
    fn limits(&mut self) -> Result<Limits> {
        if let Some(limits) = self.limits {
            return Ok(limits);
        }
        let mut rows = Rows::new();
        self.simple("SELECT @@local_infile, @@max_allowed_packet", Some(&mut rows))?;
        let limits = Limits {
            local_infile: rows.int(0, 0)? != 0,
            max_allowed_packet: usize::try_from(rows.int(0, 1)?).unwrap_or(0).max(1 << 10),
        };
        self.limits = Some(limits);
        Ok(limits)
    }
}

/// Begins a load. Outside of a transaction it is one of its own.
pub(crate) fn begin<'a>(
    session: &'a mut MysqlSession,
    table: &'a BulkTable<'a>,
) -> Result<Box<dyn BulkLoad + 'a>> {
    session.check_usable(false)?;
    session.commit_by_itself()?;
    let limits = session.limits()?;
    let own_transaction = !session.in_transaction();
    if own_transaction {
        session.control(TransactionControl::Begin)?;
    }
    let names: Vec<String> = table.columns.iter().map(|(name, _)| encode::name(name)).collect();
    let (table_name, names) = (encode::name(table.name), names.join(", "));
    let mut buffer = std::mem::take(&mut session.load_buffer);
    buffer.clear();
    let mut load = Load {
        columns: table.columns.len(),
        rows: 0,
        own_transaction,
        ended: false,
        way: Way::Infile { sequence: 0 },
        buffer,
        session,
    };
    let texts = table.columns.iter().filter(|(_, kind)| *kind == ColumnType::Text).count();
    if load.session.can(capability::BULK) && 2 * texts >= table.columns.len() {
        load.begin_executions(table, &table_name, &names, limits)?;
    } else if limits.local_infile {
        load.begin_infile(&table_name, &names)?;
    } else {
        let head = format!("INSERT INTO {table_name} ({names}) VALUES ");
        let longest = SEND_AT.min(limits.max_allowed_packet - 64);
        load.way = Way::Insert { head: head.into_bytes(), longest, most: limits.max_allowed_packet };
    }
    Ok(Box::new(load))
}

enum Way {
    Infile { sequence: u8 },
    Insert { head: Vec<u8>, longest: usize, most: usize },
    Executions(Executions),
}

/// A prepared INSERT.
struct Executions {
    statement: u32,
    /// The types of its parameters.
    kinds: Vec<u8>,
    /// What an execution begins with.
    head: Vec<u8>,
    most: usize,
    /// Executions that were sent and not answered yet.
    unanswered: u32,
    /// Rows of those that were answered.
    taken: u64,
}

struct Load<'a> {
    session: &'a mut MysqlSession,
    columns: usize,
    rows: u64,
    /// The transaction is ours to end.
    own_transaction: bool,
    /// The load is finished or failed.
    ended: bool,
    way: Way,
    /// Rows that wait to be sent; of a file with the packet's header before them.
    buffer: Vec<u8>,
}

impl Load<'_> {
    fn begin_infile(&mut self, table: &str, names: &str) -> Result<()> {
        let backslash = match self.session.escapes() {
            encode::Escapes::Backslash => r"'\\'",
            encode::Escapes::None => r"'\'",
        };
        let line = match self.session.escapes() {
            encode::Escapes::Backslash => (r"'\t'", r"'\n'"),
            encode::Escapes::None => ("'\t'", "'\n'"),
        };
        // For MariaDB the bytes are UTF-8 without being declared so: it would ask of every byte how long its character is. It
        // checks each text when it stores it, either way.
        let texts = if self.session.can(capability::BULK) { "binary" } else { "utf8mb4" };
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'kelvin' INTO TABLE {table} CHARACTER SET {texts} FIELDS TERMINATED BY {} \
             ESCAPED BY {backslash} LINES TERMINATED BY {} ({names})",
            line.0, line.1
        );
        self.session.send_text(command::QUERY, sql.as_bytes())?;
        let body = self.session.message()?;
        match self.session.inbox.body(body.clone()) {
            [0xfb, name @ ..] if name == FILE => {}
            [0xff, ..] => {
                self.ended = true;
                return Err(self.session.server_error(body));
            }
            _ => return Err(self.session.refuse_file()),
        }
        self.way = Way::Infile { sequence: self.session.inbox.next_sequence() };
        wire::open(&mut self.buffer);
        Ok(())
    }

    fn begin_executions(
        &mut self,
        table: &BulkTable<'_>,
        table_name: &str,
        names: &str,
        limits: Limits,
    ) -> Result<()> {
        let places = vec!["?"; table.columns.len()].join(", ");
        let sql = format!("INSERT INTO {table_name} ({names}) VALUES ({places})");
        // Nothing was begun that a failure leaves half-sent.
        let statement = self.session.prepare_by_id(&sql).inspect_err(|_| self.ended = true)?;
        let kinds: Vec<u8> = table.columns.iter().map(|(_, kind)| encode::kind_of_column(*kind)).collect();
        let mut head = vec![command::STMT_BULK_EXECUTE];
        head.extend_from_slice(&statement.to_le_bytes());
        head.extend_from_slice(&WITH_TYPES.to_le_bytes());
        head.extend(kinds.iter().flat_map(|kind| [*kind, 0]));
        let most = limits.max_allowed_packet.min(wire::FULL - 1);
        self.way = Way::Executions(Executions { statement, kinds, head, most, unanswered: 0, taken: 0 });
        Ok(())
    }

    /// Reads the answers to executions until there are no more than so many left. All are read, whatever fails.
    fn answers(&mut self, left: u32) -> Result<()> {
        let mut outcome = Ok(());
        while let Way::Executions(executions) = &mut self.way
            && executions.unanswered > left
            && !self.session.broken
        {
            executions.unanswered -= 1;
            // Each answers a command of its own.
            self.session.inbox.expect_after(0);
            let answer = self.session.message().and_then(|body| self.end(body));
            if let (Ok(done), Way::Executions(executions)) = (&answer, &mut self.way) {
                executions.taken += done.affected;
            }
            outcome = outcome.and(answer.map(drop));
        }
        outcome
    }

    /// Sends the rows in the buffer.
    fn send(&mut self) -> Result<()> {
        match &mut self.way {
            Way::Executions(executions) => {
                if self.buffer.is_empty() {
                    return Ok(());
                }
                wire::close(&mut self.buffer, wire::HEADER, 0);
                executions.unanswered += 1;
                let sent = self.session.stream.send(&self.buffer, &mut self.session.inbox.buffer);
                self.buffer.clear();
                sent.map_err(|e| self.session.lost_sending(e))?;
                self.answers(AHEAD - 1)
            }
            Way::Infile { sequence } => {
                if self.buffer.len() == wire::HEADER {
                    return Ok(());
                }
                wire::close(&mut self.buffer, wire::HEADER, *sequence);
                *sequence = sequence.wrapping_add(1);
                let sent = self.session.stream.send(&self.buffer, &mut self.session.inbox.buffer);
                self.buffer.clear();
                wire::open(&mut self.buffer);
                sent.map_err(|e| self.session.lost_sending(e))
            }
            Way::Insert { .. } => {
                if self.buffer.is_empty() {
                    return Ok(());
                }
                let buffer = std::mem::take(&mut self.buffer);
                let sent = self.session.send_text(command::QUERY, &buffer);
                self.buffer = buffer;
                self.buffer.clear();
                sent?;
                let body = self.session.message()?;
                self.end(body).map(drop)
            }
        }
    }

    /// Reads the server's word on what was sent.
    fn end(&mut self, body: std::ops::Range<usize>) -> Result<OkPacket> {
        match self.session.inbox.body(body.clone()) {
            [0, ..] => {
                let done = OkPacket::ok(self.session.inbox.body(body));
                self.session.done = self.session.parsed(done)?;
                Ok(self.session.done)
            }
            [0xff, ..] => {
                self.ended = true;
                Err(self.session.server_error(body))
            }
            _ => Err(self.session.refuse_file()),
        }
    }

    fn finish_infile(&mut self, mut sequence: u8) -> Result<u64> {
        let out = [0, 0, 0, sequence];
        sequence = sequence.wrapping_add(1);
        self.session.inbox.expect_after(sequence.wrapping_sub(1));
        let sent = self.session.stream.send(&out, &mut self.session.inbox.buffer);
        sent.map_err(|e| self.session.lost_sending(e))?;
        let body = self.session.message()?;
        let done = self.end(body)?;
        self.ended = true;
        // With LOCAL the server leaves rows out, or changes values, and calls that a warning.
        if done.affected != self.rows || done.warnings > 0 {
            return Err(self.not_all(done));
        }
        Ok(done.affected)
    }

    #[cold]
    fn not_all(&mut self, done: OkPacket) -> Error {
        let mut rows = Rows::new();
        let warning = self.session.simple("SHOW WARNINGS LIMIT 1", Some(&mut rows));
        let why = warning.and_then(|()| Ok((rows.int(0, 1)?, rows.text(0, 2)?.to_owned())));
        self.session.failed = true;
        let message = format!(
            "the server loaded {} of {} rows, with {} warnings",
            done.affected, self.rows, done.warnings
        );
        match why {
            Ok((number, text)) => {
                let class = if matches!(number, 1062 | 1452 | 1048 | 4025 | 3819) {
                    ErrorClass::Constraint
                } else {
                    ErrorClass::Statement
                };
                Error::new(class, format!("{message}: {text}")).with_code(number.to_string())
            }
            Err(_) => Error::new(ErrorClass::Statement, message),
        }
    }

    fn finished(&mut self) -> Result<u64> {
        self.send()?;
        let count = match &self.way {
            &Way::Infile { sequence } => self.finish_infile(sequence)?,
            Way::Insert { .. } => self.rows,
            &Way::Executions(Executions { statement, .. }) => {
                self.answers(0)?;
                self.session.close_statement(statement)?;
                if let Way::Executions(executions) = &self.way { executions.taken } else { 0 }
            }
        };
        self.ended = true;
        if self.own_transaction {
            self.session.control(TransactionControl::Commit)?;
        }
        Ok(count)
    }

    /// Appends a row to an execution.
    fn execution(&mut self, values: &[Value<'_>]) -> Result<()> {
        let Way::Executions(executions) = &self.way else { return Ok(()) };
        if self.buffer.is_empty() {
            wire::open(&mut self.buffer);
            self.buffer.extend_from_slice(&executions.head);
        }
        for (&value, &kind) in values.iter().zip(&executions.kinds) {
            let is_null = value == Value::Null;
            if !is_null && encode::kind_of(value) != kind {
                return Err(Error::usage("a value is not of the type of its column"));
            }
            self.buffer.push(is_null.into());
            encode::value(&mut self.buffer, value)?;
        }
        if self.buffer.len() > executions.most {
            return Err(too_long(self.buffer.len()));
        }
        if self.buffer.len() > SEND_AT.min(executions.most / 2) { self.send() } else { Ok(()) }
    }

    /// Appends a row to an INSERT.
    fn insert(&mut self, values: &[Value<'_>]) -> Result<()> {
        let escapes = self.session.escapes();
        let Way::Insert { head, longest, most } = &self.way else { return Ok(()) };
        let (longest, most) = (*longest, *most);
        let before = self.buffer.len();
        if before == 0 {
            self.buffer.extend_from_slice(head);
        } else {
            self.buffer.push(b',');
        }
        self.buffer.push(b'(');
        for (index, &value) in values.iter().enumerate() {
            if index > 0 {
                self.buffer.push(b',');
            }
            encode::literal(&mut self.buffer, value, escapes)?;
        }
        self.buffer.push(b')');
        if self.buffer.len() + 1 > most && before > 0 {
            // The row begins the next statement.
            let row = self.buffer.split_off(before + 1);
            self.buffer.truncate(before);
            let head = head.clone();
            self.send()?;
            self.buffer.extend_from_slice(&head);
            self.buffer.extend_from_slice(&row);
        }
        if self.buffer.len() + 1 > most {
            return Err(too_long(self.buffer.len()));
        }
        if self.buffer.len() > longest { self.send() } else { Ok(()) }
    }
}

#[cold]
fn too_long(length: usize) -> Error {
    let message = format!("a row of {length} bytes exceeds the server's max_allowed_packet");
    Error::new(ErrorClass::Statement, message).with_help("raise max_allowed_packet, or enable local_infile")
}

impl BulkLoad for Load<'_> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        if values.len() != self.columns {
            return Err(Error::usage(format!(
                "a row has {} values for {} columns",
                values.len(),
                self.columns
            )));
        }
        if self.ended || self.session.broken {
            return Err(Error::usage("the load has already failed"));
        }
        self.rows += 1;
        match self.way {
            Way::Infile { .. } => {}
            Way::Insert { .. } => return self.insert(values),
            Way::Executions(_) => return self.execution(values),
        }
        for (index, &value) in values.iter().enumerate() {
            if index > 0 {
                self.buffer.push(b'\t');
            }
            encode::field(&mut self.buffer, value)?;
        }
        self.buffer.push(b'\n');
        if self.buffer.len() > SEND_AT { self.send() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        let outcome = self.finished();
        if outcome.is_err() {
            self.abandon();
        }
        self.ended = true;
        outcome
    }
}

impl Load<'_> {
    /// Undoes what was sent. The server cannot discard a half-sent file: that connection is given up, and with
    /// it the transaction.
    fn abandon(&mut self) {
        if matches!(self.way, Way::Infile { .. }) && !self.ended {
            self.session.broken = true;
            self.session.stream.shut_down();
            return;
        }
        // What failed is known.
        let _ = self.answers(0);
        if !self.session.broken {
            if self.own_transaction {
                let _ = self.session.control(TransactionControl::Rollback);
            } else {
                self.session.failed = true;
            }
        }
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.abandon();
        }
        self.session.load_buffer = std::mem::take(&mut self.buffer);
    }
}
