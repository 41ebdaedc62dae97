//! Preparing statements: once a connection, outside the measured path.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::backend;
use super::oid::{self, BinaryFormat};
use super::session::PostgresSession;
use crate::{Error, ErrorClass, Result};

/// A statement that the server knows.
pub(crate) struct Prepared {
    /// The Bind message up to the parameters, behind a Parse where each execution parses.
    pub(crate) bind: Vec<u8>,
    /// Where Bind begins; its bytes 1 to 4 are its length, to be filled in.
    pub(crate) bind_at: usize,
    /// Parameters and results are text, whatever their types.
    pub(crate) text: bool,
    /// Its rows are skipped.
    pub(crate) ignores_rows: bool,
    pub(crate) parameters: Vec<BinaryFormat>,
    pub(crate) columns: Vec<BinaryFormat>,
}

impl Prepared {
    /// `before` is a Parse that goes along with each Bind; empty where the server keeps the statement.
    fn new(before: Vec<u8>, name: &str, parameters: Vec<BinaryFormat>, columns: Vec<BinaryFormat>) -> Self {
        let bind_at = before.len();
        let mut bind = before;
        bind.extend_from_slice(&[b'B', 0, 0, 0, 0, 0]);
        bind.extend_from_slice(name.as_bytes());
        // End of the name; one format code for all parameters: binary.
        bind.extend_from_slice(&[0, 0, 1, 0, 1]);
        bind.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        Self { bind, bind_at, text: false, ignores_rows: false, parameters, columns }
    }
}

impl PostgresSession {
    /// Prepares statements in one round trip and appends them to the session's, all or none. Without prepared
    /// statements this only asks for their shapes: each description is of the unnamed statement just parsed.
    pub(crate) fn prepare_all(&mut self, statements: &[&str]) -> Result<()> {
        let names: Vec<String> = statements
            .iter()
            .map(|_| {
                if !self.prepared_statements() {
                    return String::new();
                }
                self.named += 1;
                format!("k{}", self.named)
            })
            .collect();
        let mut out = BytesMut::new();
        for (sql, name) in statements.iter().zip(&names) {
            frontend::parse(name, sql, [], &mut out)
                .and_then(|()| frontend::describe(b'S', name, &mut out))
                .map_err(zero_byte)?;
        }
        frontend::sync(&mut out);
        self.out.clear();
        self.out.extend_from_slice(&out);
        self.send()?;
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, name) in statements.iter().zip(&names) {
            match self.described(sql, name) {
                Ok(one) => prepared.push(one),
                Err(e) => {
                    self.drain();
                    return Err(e);
                }
            }
        }
        self.finish()?;
        self.statements.append(&mut prepared);
        Ok(())
    }

    /// Reads the answers to Parse and Describe of one statement.
    fn described(&mut self, sql: &str, name: &str) -> Result<Prepared> {
        let mut parameters = Vec::new();
        let mut types = Vec::new();
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'1' => {}
                b't' => {
                    types = backend::parameter_description(self.inbox.body(body))?;
                    for (index, &oid) in types.iter().enumerate() {
                        let kind = oid::kind(oid);
                        if matches!(
                            kind,
                            BinaryFormat::Unsupported(_) | BinaryFormat::Void | BinaryFormat::Date
                        ) {
                            return Err(unsupported(&format!("parameter ${}", index + 1), oid));
                        }
                        parameters.push(kind);
                    }
                }
                b'n' => return Ok(Prepared::new(parse(name, sql, types)?, name, parameters, Vec::new())),
                b'T' => {
                    let mut columns = Vec::new();
                    for column in backend::row_description(self.inbox.body(body))? {
                        let kind = oid::kind(column.oid);
                        if matches!(kind, BinaryFormat::Unsupported(_) | BinaryFormat::Array(..)) {
                            return Err(unsupported(&format!("column {:?}", column.name), column.oid));
                        }
                        columns.push(kind);
                    }
                    return Ok(Prepared::new(parse(name, sql, types)?, name, parameters, columns));
                }
                b'E' => return Err(self.server_error(body)),
                other => return Err(self.unexpected(other, "preparing a statement")),
            }
        }
    }
}

/// The Parse that each execution of an unnamed statement needs; nothing for a named one. It states the types that
/// the server has inferred, so that they stay what the client encodes.
fn parse(name: &str, sql: &str, types: Vec<u32>) -> Result<Vec<u8>> {
    let mut out = BytesMut::new();
    if name.is_empty() {
        frontend::parse(name, sql, types, &mut out).map_err(zero_byte)?;
    }
    Ok(out.to_vec())
}

fn zero_byte(_: std::io::Error) -> Error {
    Error::usage("a statement cannot contain a zero byte")
}

fn unsupported(what: &str, oid: u32) -> Error {
    Error::new(
        ErrorClass::Statement,
        format!("{what} has the type {}, which Kelvin does not support", oid::name(oid)),
    )
    .with_help("cast it in the statement, for example to text")
}
