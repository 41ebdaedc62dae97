//! Reading what the server sends, out of the receive buffer and without copying.
//!
//! Every function takes bytes it cannot trust: a length is checked before it is used, and nothing panics.

use super::{decode, error, oid};
use crate::stream::printable;
use crate::{Error, Result, Rows};

/// No message is longer: PostgreSQL itself allocates at most this.
pub(crate) const LONGEST: usize = 1 << 30;
/// Before the login nothing sensible is long; a longer message means that it is not PostgreSQL.
pub(crate) const LONGEST_BEFORE_LOGIN: usize = 1 << 16;
/// Tag and length.
pub(crate) const HEADER: usize = 5;

/// The tag and the total size in bytes of the message at the front; `None` when fewer than five bytes are there.
#[inline]
pub(crate) fn header(bytes: &[u8], longest: usize) -> Result<Option<(u8, usize)>> {
    let Some(&[tag, a, b, c, d]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length < 4 || length > longest {
        return Err(bad_length(tag, length));
    }
    Ok(Some((tag, length + 1)))
}

#[cold]
fn bad_length(tag: u8, length: usize) -> Error {
    Error::protocol(format!(
        "the server sent a message of type {:?} with the invalid length {length}",
        char::from(tag)
    ))
}

#[cold]
fn cut_short() -> Error {
    Error::protocol("the server sent a truncated message")
}

/// Takes values from the front of a message's body.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[b]| b)
    }

    #[inline]
    pub(crate) fn int2(&mut self) -> Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn int4(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn oid(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Bytes up to a zero, which is taken too.
    pub(crate) fn string(&mut self) -> Result<&'a [u8]> {
        let end = self.0.iter().position(|&b| b == 0).ok_or_else(cut_short)?;
        let text = self.take(end)?;
        self.take(1)?;
        Ok(text)
    }

    /// A field of a row: its length, -1 for NULL, and its bytes.
    #[inline]
    pub(crate) fn cell(&mut self) -> Result<Option<&'a [u8]>> {
        match self.int4()? {
            -1 => Ok(None),
            length => usize::try_from(length).map_err(|_| cut_short()).and_then(|n| self.take(n)).map(Some),
        }
    }

    pub(crate) fn end(self) -> Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Error::protocol("the server sent a message with trailing bytes"))
        }
    }
}

/// Whether a DataRow has this many fields, each whole: what cannot be decoded is then a value, not the framing.
pub(crate) fn is_row(body: &[u8], columns: usize) -> bool {
    let mut fields = Fields(body);
    let width = fields.int2().is_ok_and(|found| usize::try_from(found) == Ok(columns));
    width && (0..columns).all(|_| fields.cell().is_ok()) && fields.0.is_empty()
}

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) oid: u32,
}

/// RowDescription.
pub(crate) fn row_description(body: &[u8]) -> Result<Vec<Column>> {
    let mut fields = Fields(body);
    let count = fields.int2()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        let name = printable(fields.string()?);
        fields.take(6)?; // table and attribute
        let oid = fields.oid()?;
        fields.take(8)?; // size, modifier, format
        columns.push(Column { name, oid });
    }
    fields.end()?;
    Ok(columns)
}

/// ParameterDescription: type OIDs.
pub(crate) fn parameter_description(body: &[u8]) -> Result<Vec<u32>> {
    let mut fields = Fields(body);
    let count = fields.int2()? as u16; // more than 32767 parameters are counted unsigned
    let types = (0..count).map(|_| fields.oid()).collect::<Result<_>>()?;
    fields.end()?;
    Ok(types)
}

/// The number at the end of a CommandComplete tag; 0 when there is none ("BEGIN").
#[inline]
pub(crate) fn affected(body: &[u8]) -> u64 {
    let tag = body.strip_suffix(&[0]).unwrap_or(body);
    let mut value = 0_u64;
    let mut unit = 1_u64;
    for &byte in tag.iter().rev() {
        if !byte.is_ascii_digit() {
            break;
        }
        value = value.wrapping_add(u64::from(byte - b'0').wrapping_mul(unit));
        unit = unit.wrapping_mul(10);
    }
    value
}

/// ReadyForQuery: idle (I), in a transaction (T), or in a failed one (E).
pub(crate) fn ready(body: &[u8]) -> Result<u8> {
    match body {
        [status @ (b'I' | b'T' | b'E')] => Ok(*status),
        _ => Err(Error::protocol("the server sent an unknown transaction status")),
    }
}

/// Reads all of `bytes` as a session would read messages from a server, every field of each, and returns the
/// number of messages. For the fuzz target: any bytes end in `Ok` or `Err`, never in a panic.
pub fn examine(bytes: &[u8]) -> Result<usize> {
    let mut rest = bytes;
    let mut count = 0;
    let mut rows = Rows::new();
    let mut columns: Vec<Column> = Vec::new();
    while let Some((tag, size)) = header(rest, LONGEST)? {
        let Some((message, after)) = rest.split_at_checked(size) else { break };
        let body = &message[HEADER..];
        match tag {
            b'T' => columns = row_description(body)?,
            b't' => drop(parameter_description(body)?),
            b'C' => drop(affected(body)),
            b'Z' => drop(ready(body)?),
            b'E' | b'N' => drop(error::from_response(body)),
            b'D' => {
                let kinds: Vec<_> = columns.iter().map(|c| oid::kind(c.oid)).collect();
                rows.reset(kinds.len(), false);
                // Both formats; what one refuses is the other's business.
                let _ = decode::text_row(body, &columns, &mut rows);
                rows.reset(kinds.len(), false);
                let _ = decode::row(body, &kinds, &mut rows);
            }
            b'R' => drop(super::authentication::Request::parse(body)),
            _ => {}
        }
        rest = after;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_come_from_the_tag() {
        for (tag, rows) in [
            ("INSERT 0 15\0", 15),
            ("SELECT 7\0", 7),
            ("BEGIN\0", 0),
            ("\0", 0),
            ("", 0),
            ("COPY 18446744073709551615\0", u64::MAX),
        ] {
            assert_eq!(affected(tag.as_bytes()), rows, "{tag}");
        }
    }

    #[test]
    fn lengths_are_checked() {
        assert!(header(b"Z\0\0\0\x03", LONGEST).is_err());
        assert!(header(b"Z\xff\xff\xff\xff", LONGEST).is_err());
        assert!(header(b"Z\0\0", LONGEST).unwrap().is_none());
        assert_eq!(header(b"Z\0\0\0\x05I", LONGEST).unwrap(), Some((b'Z', 6)));
        assert!(header(b"HTTP/1.1", LONGEST).is_err());
    }

    fn message() -> impl Strategy<Value = Vec<u8>> {
        let tag = prop::sample::select(b"TtDCZENRGHSK123snI".to_vec());
        let oids = prop::collection::vec(prop::sample::select(oid::READABLE.to_vec()), 0..4);
        let description = oids.prop_map(|oids| {
            let mut body = (oids.len() as i16).to_be_bytes().to_vec();
            for oid in oids {
                body.extend_from_slice(b"c\0\0\0\0\0\0\0");
                body.extend_from_slice(&oid.to_be_bytes());
                body.extend_from_slice(&[0; 8]);
            }
            (b'T', body)
        });
        let cells = prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..24)), 0..4);
        let row = cells.prop_map(|cells| {
            let mut body = (cells.len() as i16).to_be_bytes().to_vec();
            for cell in cells {
                body.extend_from_slice(&cell.as_ref().map_or(-1, |c| c.len() as i32).to_be_bytes());
                body.extend_from_slice(&cell.unwrap_or_default());
            }
            (b'D', body)
        });
        let any_body = (tag, prop::collection::vec(any::<u8>(), 0..64));
        prop_oneof![any_body, description, row].prop_map(|(tag, body)| {
            let mut bytes = vec![tag];
            bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
            bytes.extend_from_slice(&body);
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = examine(&bytes);
        }

        #[test]
        fn no_messages_panic(messages in prop::collection::vec(message(), 0..8)) {
            let _ = examine(&messages.concat());
        }
    }
}
