//! The tokens of an answer, one after the other.

use super::column::Column;
use super::inbox::{Inbox, Source};
use super::packet;
use super::wire::Fields;
use super::{decode, error};
use crate::{Cell, Error, ErrorClass, Result, Rows};

/// Tokens, by the protocol's numbers.
pub(crate) mod number {
    pub(crate) const RETURN_STATUS: u8 = 0x79;
    pub(crate) const COLUMNS: u8 = 0x81;
    pub(crate) const TABLE_NAMES: u8 = 0xa4;
    pub(crate) const COLUMN_INFO: u8 = 0xa5;
    pub(crate) const ORDER: u8 = 0xa9;
    pub(crate) const ERROR: u8 = 0xaa;
    pub(crate) const INFO: u8 = 0xab;
    pub(crate) const RETURN_VALUE: u8 = 0xac;
    pub(crate) const LOGIN_ACK: u8 = 0xad;
    pub(crate) const FEATURES: u8 = 0xae;
    pub(crate) const ROW: u8 = 0xd1;
    pub(crate) const ROW_WITH_NULLS: u8 = 0xd2;
    pub(crate) const ENVIRONMENT: u8 = 0xe3;
    pub(crate) const SESSION_STATE: u8 = 0xe4;
    pub(crate) const SSPI: u8 = 0xed;
    pub(crate) const DONE: u8 = 0xfd;
    pub(crate) const DONE_PROC: u8 = 0xfe;
    pub(crate) const DONE_IN_PROC: u8 = 0xff;
}

/// The status flags at the end of a statement.
mod status {
    pub(crate) const MORE: u16 = 0x01;
    pub(crate) const ERROR: u16 = 0x02;
    pub(crate) const COUNT: u16 = 0x10;
    pub(crate) const ATTENTION: u16 = 0x20;
    pub(crate) const RPC_IN_BATCH: u16 = 0x80;
    pub(crate) const SERVER_ERROR: u16 = 0x100;
}

/// The end of a statement, of a procedure, or of one of its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// [`number::DONE`], [`number::DONE_PROC`] or [`number::DONE_IN_PROC`].
    pub(crate) of: u8,
    status: u16,
    count: u64,
}

impl Done {
    /// Whether the answer continues.
    pub(crate) fn more(self) -> bool {
        self.status & status::MORE != 0
    }

    /// Whether the statement failed, with or without an ERROR before it.
    pub(crate) fn failed(self) -> bool {
        self.status & (status::ERROR | status::SERVER_ERROR) != 0
    }

    /// Whether the server confirms that it has stopped the cancelled request.
    pub(crate) fn confirms_attention(self) -> bool {
        self.status & status::ATTENTION != 0
    }

    /// Whether it ends one of several procedures in a message, except for the last.
    pub(crate) fn is_in_batch(self) -> bool {
        self.status & status::RPC_IN_BATCH != 0
    }

    /// Rows affected or returned, where they were counted.
    pub(crate) fn count(self) -> Option<u64> {
        (self.status & status::COUNT != 0).then_some(self.count)
    }
}

/// A token that its reader has to act on; the others are noted in [`Answer`] or skipped.
#[derive(Debug)]
pub(crate) enum Token {
    /// A result begins.
    Columns,
    Row,
    /// A value of an OUTPUT parameter, in [`Answer::returned`].
    Returned,
    Done(Done),
    Error(Error),
    /// Of no concern here.
    Other,
}

/// The server to which a login is redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The server's state of the session, and the buffers of the reader.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<Column>,
    /// The OUTPUT parameters of the call.
    pub(crate) returned: Rows,
    pub(crate) returned_count: usize,
    /// The descriptor of the open transaction; 0 without.
    pub(crate) transaction: u64,
    /// A transaction has ended since this was last reset.
    pub(crate) transaction_ended: bool,
    pub(crate) packet_size: usize,
    pub(crate) collation: [u8; 5],
    pub(crate) route: Option<Route>,
    /// The version of the protocol that the server has chosen, once it has let us in.
    pub(crate) login: Option<u32>,
    /// The connection cannot be used after this answer.
    pub(crate) fatal: bool,
    /// A value that no cell can hold; reported after all has been read.
    pub(crate) unreadable: Option<Error>,
    scratch: Vec<u8>,
    name: Vec<u8>,
    nulls: Vec<u8>,
}

impl Answer {
    pub(crate) fn new() -> Self {
        Self {
            columns: Vec::new(),
            returned: Rows::new(),
            returned_count: 0,
            transaction: 0,
            transaction_ended: false,
            packet_size: packet::FIRST_SIZE,
            collation: [0; 5],
            route: None,
            login: None,
            fatal: false,
            unreadable: None,
            scratch: Vec::new(),
            name: Vec::new(),
            nulls: Vec::new(),
        }
    }

    /// Prepares for an answer with this many OUTPUT parameters.
    #[inline]
    pub(crate) fn expect_returned(&mut self, count: usize) {
        self.columns.clear();
        self.returned.reset(count, false);
        self.returned_count = 0;
    }

    /// Reads the next token of the message. A result and its rows go into `rows`, with names if they are wanted; without
    /// `rows` they are skipped.
    #[inline]
    pub(crate) fn next<S: Source>(
        &mut self,
        inbox: &mut Inbox<S>,
        rows: Option<&mut Rows>,
        names: bool,
    ) -> Result<Token> {
        match inbox.u8()? {
            number::ROW => self.row(inbox, rows, false)?,
            number::ROW_WITH_NULLS => self.row(inbox, rows, true)?,
            number::COLUMNS => return self.read_columns(inbox, rows, names),
            of @ (number::DONE | number::DONE_PROC | number::DONE_IN_PROC) => {
                let [a, b, _, _, count @ ..] = inbox.array::<12>()?;
                let status = u16::from_le_bytes([a, b]);
                return Ok(Token::Done(Done { of, status, count: u64::from_le_bytes(count) }));
            }
            other => return self.rare(other, inbox),
        }
        Ok(Token::Row)
    }

    fn rare<S: Source>(&mut self, number: u8, inbox: &mut Inbox<S>) -> Result<Token> {
        match number {
            number::RETURN_STATUS => inbox.u32().map(drop)?,
            number::RETURN_VALUE => return self.read_returned(inbox),
            number::ORDER | number::TABLE_NAMES | number::COLUMN_INFO | number::INFO | number::SSPI => {
                let length = inbox.u16()?;
                inbox.take(length.into())?;
            }
            number::ERROR => {
                let length = inbox.u16()?;
                let (error, severity) = error::from_token(inbox.take(length.into())?)?;
                self.fatal |= severity >= 20;
                return Ok(Token::Error(error));
            }
            number::ENVIRONMENT => {
                let length = inbox.u16()?;
                let body = inbox.take(length.into())?;
                // Borrowed from the inbox, not from here.
                change(body, self)?;
            }
            number::LOGIN_ACK => {
                let length = inbox.u16()?;
                let mut fields = Fields(inbox.take(length.into())?);
                fields.u8()?;
                self.login = Some(u32::from_be_bytes(fields.array()?));
            }
            number::FEATURES => loop {
                if inbox.u8()? == 0xff {
                    break;
                }
                let length = inbox.u32()?;
                inbox.take(length as usize)?;
            },
            number::SESSION_STATE => {
                let length = inbox.u32()?;
                inbox.take(length as usize)?;
            }
            _ => return Err(Error::protocol(format!("the server sent the unknown token {number:#04x}"))),
        }
        Ok(Token::Other)
    }

    #[inline]
    fn read_columns<S: Source>(
        &mut self,
        inbox: &mut Inbox<S>,
        rows: Option<&mut Rows>,
        names: bool,
    ) -> Result<Token> {
        const NONE: u16 = 0xffff;
        let count = inbox.u16()?;
        if count == NONE {
            return Ok(Token::Other);
        }
        self.columns.clear();
        let mut rows = rows;
        if let Some(rows) = rows.as_deref_mut() {
            rows.reset(count.into(), false);
        }
        for _ in 0..count {
            let name = if names && rows.is_some() { Some(&mut self.name) } else { None };
            self.columns.push(Column::read_described(inbox, name)?);
            if let (true, Some(rows)) = (names, rows.as_deref_mut()) {
                rows.push_name(&self.name);
            }
        }
        Ok(Token::Columns)
    }

    #[inline]
    fn row<S: Source>(&mut self, inbox: &mut Inbox<S>, rows: Option<&mut Rows>, nulls: bool) -> Result<()> {
        if self.columns.is_empty() {
            return Err(Error::protocol("the server sent a row without describing its columns"));
        }
        self.nulls.clear();
        if nulls {
            let bits = inbox.take(self.columns.len().div_ceil(8))?;
            self.nulls.extend_from_slice(bits);
        }
        let Some(rows) = rows.filter(|_| self.unreadable.is_none()) else { return self.skip_row(inbox) };
        for (at, column) in self.columns.iter().enumerate() {
            if nulls && self.nulls[at / 8] & 1 << (at % 8) != 0 {
                rows.push(Cell::Null);
                continue;
            }
            if self.unreadable.is_some() {
                decode::bytes(inbox, column.length)?;
                continue;
            }
            match decode::field(inbox, column, rows, &mut self.scratch) {
                Err(error) if error.class() == ErrorClass::Statement => self.unreadable = Some(error),
                other => other?,
            }
        }
        if self.unreadable.is_some() {
            // A part of a row is none.
            rows.reset(self.columns.len(), false);
        }
        Ok(())
    }

    fn skip_row<S: Source>(&self, inbox: &mut Inbox<S>) -> Result<()> {
        for (at, column) in self.columns.iter().enumerate() {
            if self.nulls.get(at / 8).is_none_or(|bits| bits & 1 << (at % 8) == 0) {
                decode::bytes(inbox, column.length)?;
            }
        }
        Ok(())
    }

    /// An OUTPUT parameter; the return value of a function is not used.
    fn read_returned<S: Source>(&mut self, inbox: &mut Inbox<S>) -> Result<Token> {
        const OUTPUT: u8 = 1;
        inbox.u16()?;
        let length = inbox.u8()?;
        inbox.take(usize::from(length) * 2)?;
        let status = inbox.u8()?;
        inbox.take(6)?;
        let column = Column::read(inbox)?;
        if status != OUTPUT || self.returned_count >= self.returned.columns() {
            decode::bytes(inbox, column.length)?;
            return Ok(Token::Other);
        }
        match decode::field(inbox, &column, &mut self.returned, &mut self.scratch) {
            Err(error) if error.class() == ErrorClass::Statement => {
                self.returned.push(Cell::Null);
                self.unreadable = Some(error);
            }
            other => other?,
        }
        self.returned_count += 1;
        Ok(Token::Returned)
    }
}

/// Records a change of the session.
fn change(body: &[u8], answer: &mut Answer) -> Result<()> {
    const PACKET_SIZE: u8 = 4;
    const COLLATION: u8 = 7;
    const BEGIN: u8 = 8;
    const COMMIT: u8 = 9;
    const ROLLBACK: u8 = 10;
    const ENLIST: u8 = 11;
    const ENDED: u8 = 17;
    const ROUTING: u8 = 20;
    let mut fields = Fields(body);
    match fields.u8()? {
        PACKET_SIZE => {
            let text = fields.short_text()?;
            let size = text.parse().ok().filter(|size| (512..=32_767).contains(size));
            answer.packet_size = size
                .ok_or_else(|| Error::protocol(format!("the server requested packets of {text:?} bytes")))?;
        }
        COLLATION => {
            if let Ok(collation) = <[u8; 5]>::try_from(fields.short_bytes()?) {
                answer.collation = collation;
            }
        }
        BEGIN | ENLIST => {
            let descriptor = fields.short_bytes()?.try_into().map_err(|_| {
                Error::protocol("the server sent a transaction descriptor that is not 8 bytes long")
            })?;
            answer.transaction = u64::from_le_bytes(descriptor);
        }
        COMMIT | ROLLBACK | ENDED => {
            answer.transaction = 0;
            answer.transaction_ended = true;
        }
        ROUTING => {
            let length = fields.u16()?;
            let mut value = Fields(fields.take(length.into())?);
            if value.u8()? != 0 {
                return Err(Error::protocol(
                    "the server redirects to another server with an unknown \
                protocol",
                ));
            }
            let port = value.u16()?;
            answer.route = Some(Route { port, host: value.long_text()? });
        }
        _ => {}
    }
    Ok(())
}
