//! Loading by COPY in binary format: rows are encoded straight into the buffer that is sent.

use super::backend::{self, LONGEST};
use super::encode;
use super::session::PostgresSession;
use crate::session::quote;
use crate::{BulkLoad, BulkTable, ColumnType, Error, ErrorClass, Result, Value};

/// A CopyData message is sent when it has grown beyond this.
const SEND_AT: usize = 256 << 10;
/// The signature, no flags, no extension.
const FILE_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const MESSAGE_HEADER: [u8; 5] = [b'd', 0, 0, 0, 0];

pub(crate) struct CopyIn<'a> {
    session: &'a mut PostgresSession,
    columns: &'a [(&'a str, ColumnType)],
    buffer: Vec<u8>,
    /// The server no longer expects data: the load is finished or failed.
    ended: bool,
}

impl<'a> CopyIn<'a> {
    pub(crate) fn begin(
        session: &'a mut PostgresSession,
        table: &'a BulkTable<'a>,
        frozen: bool,
    ) -> Result<Self> {
        session.check_usable()?;
        let names: Vec<String> = table.columns.iter().map(|(name, _)| quote(name)).collect();
        session.send_query(&format!(
            "COPY {} ({}) FROM STDIN (FORMAT binary{})",
            quote(table.name),
            names.join(", "),
            if frozen { ", FREEZE" } else { "" }
        ))?;
        let (tag, body) = session.message()?;
        match tag {
            b'G' => {}
            b'E' => {
                let error = session.server_error(body);
                session.drain();
                return Err(error);
            }
            other => return Err(session.unexpected(other, "beginning COPY")),
        }
        let mut buffer = std::mem::take(&mut session.copy_buffer);
        buffer.clear();
        buffer.reserve(SEND_AT + (16 << 10));
        buffer.extend_from_slice(&MESSAGE_HEADER);
        buffer.extend_from_slice(FILE_HEADER);
        Ok(Self { session, columns: table.columns, buffer, ended: false })
    }

    /// Fills in the length of the message in the buffer.
    fn close_message(&mut self) {
        let length = self.buffer.len() as u32 - 1;
        self.buffer[1..5].copy_from_slice(&length.to_be_bytes());
    }

    fn send(&mut self) -> Result<()> {
        self.close_message();
        let session = &mut *self.session;
        // The server says at once what it does not like, and then swallows the rest in silence.
        let sent = session.stream.send(&self.buffer, &mut session.inbox.buffer);
        let ready = sent.and_then(|()| session.stream.receive_ready(&mut session.inbox.buffer));
        self.buffer.clear();
        self.buffer.extend_from_slice(&MESSAGE_HEADER);
        match ready {
            Ok(false) if self.session.inbox.buffer.unread().is_empty() => Ok(()),
            Ok(_) => self.look_for_error(),
            Err(e) => {
                self.ended = true;
                Err(self.session.lost_sending(e))
            }
        }
    }

    /// Reads the messages that have arrived in full.
    #[cold]
    fn look_for_error(&mut self) -> Result<()> {
        loop {
            let taken = self.session.inbox.take();
            match taken.inspect_err(|_| self.session.broken = true)? {
                None => return Ok(()),
                Some((b'N' | b'A' | b'S', _)) => {}
                Some((b'E', body)) => {
                    self.ended = true;
                    let error = self.session.server_error(body);
                    self.session.drain();
                    return Err(error);
                }
                Some((other, _)) => return Err(self.session.unexpected(other, "copying")),
            }
        }
    }

    fn append(&mut self, values: &[Value<'_>]) -> Result<()> {
        self.buffer.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for (&(name, column), &value) in self.columns.iter().zip(values) {
            encode::column(&mut self.buffer, column, value)
                .map_err(|e| e.context(&format!("column {name:?}")))?;
        }
        if self.buffer.len() > LONGEST {
            return Err(Error::new(ErrorClass::Statement, "a row exceeds 1 GiB"));
        }
        Ok(())
    }
}

impl BulkLoad for CopyIn<'_> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        if self.ended || self.session.broken {
            return Err(Error::usage("the load has already failed"));
        }
        if values.len() != self.columns.len() {
            return Err(Error::new(
                ErrorClass::Statement,
                format!("a row has {} values for {} columns", values.len(), self.columns.len()),
            ));
        }
        let start = self.buffer.len();
        if let Err(e) = self.append(values) {
            self.buffer.truncate(start);
            return Err(e);
        }
        if self.buffer.len() >= SEND_AT { self.send() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        if self.ended || self.session.broken {
            return Err(Error::usage("the load has already failed"));
        }
        self.buffer.extend_from_slice(&(-1_i16).to_be_bytes());
        self.close_message();
        self.buffer.extend_from_slice(&[b'c', 0, 0, 0, 4]);
        self.ended = true;
        let session = &mut *self.session;
        if let Err(e) = session.stream.send(&self.buffer, &mut session.inbox.buffer) {
            return Err(session.lost_sending(e));
        }
        let (tag, body) = session.message()?;
        match tag {
            b'C' => {
                let count = backend::affected(session.inbox.body(body));
                session.finish()?;
                Ok(count)
            }
            b'E' => {
                let error = session.server_error(body);
                session.drain();
                Err(error)
            }
            other => Err(session.unexpected(other, "ending COPY")),
        }
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if !self.ended && !self.session.broken {
            self.session.out.clear();
            self.session.out.extend_from_slice(b"f\0\0\0\x0eabandoned\0");
            if self.session.send().is_ok() {
                self.session.drain();
            }
        }
        self.session.copy_buffer = std::mem::take(&mut self.buffer);
    }
}
