//! Messages of the server, parsed without copying. Every length is checked; nothing panics.

use super::wire::Fields;
use crate::{Error, Result};

/// What client and server can do, by the protocol's names.
pub(crate) mod capability {
    pub(crate) const MYSQL: u64 = 1;
    pub(crate) const FOUND_ROWS: u64 = 1 << 1;
    pub(crate) const LONG_FLAG: u64 = 1 << 2;
    pub(crate) const CONNECT_WITH_DB: u64 = 1 << 3;
    pub(crate) const LOCAL_FILES: u64 = 1 << 7;
    pub(crate) const PROTOCOL_41: u64 = 1 << 9;
    pub(crate) const SSL: u64 = 1 << 11;
    pub(crate) const TRANSACTIONS: u64 = 1 << 13;
    pub(crate) const SECURE_CONNECTION: u64 = 1 << 15;
    pub(crate) const MULTI_STATEMENTS: u64 = 1 << 16;
    pub(crate) const MULTI_RESULTS: u64 = 1 << 17;
    pub(crate) const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub(crate) const PLUGIN_AUTH: u64 = 1 << 19;
    pub(crate) const CONNECT_ATTRS: u64 = 1 << 20;
    pub(crate) const PLUGIN_AUTH_LENENC: u64 = 1 << 21;
    pub(crate) const DEPRECATE_EOF: u64 = 1 << 24;
    /// MariaDB's: one execution of a prepared statement for many rows of parameters.
    pub(crate) const BULK: u64 = 1 << 34;
    /// MariaDB's: the columns of a prepared statement's result are described once, not at every execution.
    pub(crate) const CACHE_METADATA: u64 = 1 << 36;
}

/// What the server says of the session with each answer.
pub(crate) mod status {
    pub(crate) const IN_TRANSACTION: u16 = 0x0001;
    pub(crate) const MORE_RESULTS: u16 = 0x0008;
    pub(crate) const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
    pub(crate) const OUT_PARAMETERS: u16 = 0x1000;
}

/// The server's first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) version: String,
    pub(crate) connection: u32,
    pub(crate) capabilities: u64,
    pub(crate) plugin: String,
    /// The random bytes that a password is mixed with.
    pub(crate) nonce: Vec<u8>,
}

impl Greeting {
    /// `None` where it is no greeting of this protocol.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        if fields.u8().ok()? != 10 {
            return None;
        }
        let version = crate::stream::printable(fields.string());
        let connection = fields.u32().ok()?;
        let mut nonce = fields.take(8).ok()?.to_vec();
        fields.u8().ok()?;
        let low = fields.u16().ok()?;
        fields.take(3).ok()?;
        let high = fields.u16().ok()?;
        let length = fields.u8().ok()?;
        let reserved: [u8; 10] = fields.array().ok()?;
        let mut capabilities = u64::from(low) | u64::from(high) << 16;
        if capabilities & capability::MYSQL == 0 {
            let [.., a, b, c, d] = reserved;
            capabilities |= u64::from(u32::from_le_bytes([a, b, c, d])) << 32;
        }
        if capabilities & capability::SECURE_CONNECTION != 0 {
            let rest = usize::from(length).saturating_sub(8).max(13).min(fields.0.len());
            nonce.extend_from_slice(fields.take(rest).ok()?);
            // It ends with a zero byte that is not of it.
            if nonce.last() == Some(&0) {
                nonce.pop();
            }
        }
        let plugin = match fields.string() {
            [] => "mysql_native_password".to_owned(),
            name => crate::stream::printable(name),
        };
        Some(Self { version, connection, capabilities, plugin, nonce })
    }
}

/// The end of a statement, or of a result's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OkPacket {
    pub(crate) affected: u64,
    pub(crate) status: u16,
    pub(crate) warnings: u16,
}

impl OkPacket {
    /// From an OK packet, its first byte included.
    #[inline]
    pub(crate) fn ok(body: &[u8]) -> Result<Self> {
        let mut fields = Fields(body);
        fields.u8()?;
        let affected = fields.length()?;
        fields.length()?;
        Ok(Self { affected, status: fields.u16()?, warnings: fields.u16()? })
    }

    /// From an EOF packet, its first byte included.
    pub(crate) fn eof(body: &[u8]) -> Result<Self> {
        let mut fields = Fields(body);
        fields.u8()?;
        let warnings = fields.u16()?;
        Ok(Self { affected: 0, status: fields.u16()?, warnings })
    }
}

/// A column, as far as its values have to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) kind: u8,
    pub(crate) unsigned: bool,
}

/// Length of the fixed part at the end of a column's description, with the byte that says so.
const FIXED: usize = 13;

impl Column {
    /// From its description. What has a fixed length stands at the end, whatever names come before.
    #[inline]
    pub(crate) fn parse(body: &[u8]) -> Result<Self> {
        const UNSIGNED: u16 = 0x20;
        let Some(&[12, _, _, _, _, _, _, kind, low, high, _, _, _]) = body.last_chunk::<FIXED>() else {
            return Err(not_a_column());
        };
        Ok(Self { kind, unsigned: u16::from_le_bytes([low, high]) & UNSIGNED != 0 })
    }
}

#[cold]
fn not_a_column() -> Error {
    Error::protocol("the server described a column in an unknown format")
}

/// The name in a column's description.
pub(crate) fn column_name(body: &[u8]) -> Result<&[u8]> {
    let mut fields = Fields(body);
    for _ in 0..4 {
        // Catalogue, schema, table and the table's own name.
        fields.bytes()?;
    }
    fields.bytes()
}

/// The answer to the preparing of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrepareOk {
    pub(crate) id: u32,
    pub(crate) columns: u16,
    pub(crate) parameters: u16,
}

impl PrepareOk {
    pub(crate) fn parse(body: &[u8]) -> Result<Self> {
        let mut fields = Fields(body);
        fields.u8()?;
        Ok(Self { id: fields.u32()?, columns: fields.u16()?, parameters: fields.u16()? })
    }
}

/// The most columns that a result can have.
const MOST_COLUMNS: u64 = 4096;

/// The head of a result with rows: its number of columns, and whether their descriptions follow.
#[inline]
pub(crate) fn result_head(body: &[u8], caches_metadata: bool) -> Result<(usize, bool)> {
    let mut fields = Fields(body);
    let count = fields.length()?;
    let described = if caches_metadata { fields.u8()? != 0 } else { true };
    fields.end()?;
    if !(1..=MOST_COLUMNS).contains(&count) {
        return Err(Error::protocol(format!("the server announced a result of {count} columns")));
    }
    Ok((count as usize, described))
}
