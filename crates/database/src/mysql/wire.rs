//! The protocol's integers and strings, out of bytes that cannot be trusted and into packets.

pub(crate) use crate::stream::Fields;
use crate::stream::too_short;
use crate::{Error, Result};

impl<'a> Fields<'a> {
    /// A length-encoded integer. The first byte 251 means NULL in a text row and is invalid elsewhere.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<u64> {
        match self.u8()? {
            short @ 0..=250 => Ok(u64::from(short)),
            252 => self.u16().map(u64::from),
            253 => self.array::<3>().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            254 => self.array().map(u64::from_le_bytes),
            _ => Err(Error::protocol("the server sent an invalid length")),
        }
    }

    /// A string with its length before it.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.take(usize::try_from(length).map_err(|_| too_short())?)
    }

    /// A string up to its zero byte, or to the end of the packet.
    pub(crate) fn string(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        text
    }

    #[inline]
    pub(crate) fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(too_long(self.0.len())) }
    }
}

#[cold]
fn too_long(count: usize) -> Error {
    Error::protocol(format!("the server sent a packet that is {count} bytes too long"))
}

/// Appends a length-encoded integer.
#[inline]
pub(crate) fn put_length(out: &mut Vec<u8>, value: usize) {
    match value {
        0..=250 => out.push(value as u8),
        251..=0xffff => {
            out.push(252);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(253);
            out.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(254);
            out.extend_from_slice(&(value as u64).to_le_bytes());
        }
    }
}

/// Appends a string with its length before it.
#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// The maximum payload of a packet; longer content continues in the next.
pub(crate) const FULL: usize = 0xff_ffff;
/// Length and number.
pub(crate) const HEADER: usize = 4;

/// Begins a packet in `out`; [`close`] fills in its length.
#[inline]
pub(crate) fn open(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; HEADER]);
    out.len()
}

/// Ends the packet whose content begins at `start`, and gives it the number `sequence`. Content of 16 MiB and more is
/// split into several packets.
#[inline]
pub(crate) fn close(out: &mut Vec<u8>, start: usize, sequence: u8) {
    let length = out.len() - start;
    if length >= FULL {
        return close_long(out, start, sequence);
    }
    let [a, b, c, _] = (length as u32).to_le_bytes();
    out[start - HEADER..start].copy_from_slice(&[a, b, c, sequence]);
}

/// The number of the last packet of a command that takes `size` bytes with all its headers: the answer continues from
/// it.
#[inline]
pub(crate) fn last_sequence(size: usize) -> u8 {
    (size.saturating_sub(HEADER) / (FULL + HEADER)) as u8
}

#[cold]
fn close_long(out: &mut Vec<u8>, start: usize, mut sequence: u8) {
    let content = out.split_off(start);
    out.truncate(start - HEADER);
    let mut parts = content.chunks(FULL).peekable();
    while let Some(part) = parts.next() {
        let [a, b, c, _] = (part.len() as u32).to_le_bytes();
        out.extend_from_slice(&[a, b, c, sequence]);
        out.extend_from_slice(part);
        sequence = sequence.wrapping_add(1);
        // A full packet means that another follows, even an empty one.
        if part.len() == FULL && parts.peek().is_none() {
            out.extend_from_slice(&[0, 0, 0, sequence]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for value in [0, 250, 251, 252, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, usize::MAX] {
            let mut out = Vec::new();
            put_length(&mut out, value);
            let mut fields = Fields(&out);
            assert_eq!(fields.length().unwrap(), value as u64);
            fields.end().unwrap();
        }
        for bad in [&[251][..], &[255], &[252, 1], &[254, 1, 2, 3], &[]] {
            assert!(Fields(bad).length().is_err());
        }
        assert!(Fields(&[254, 255, 255, 255, 255, 255, 255, 255, 255]).bytes().is_err());
    }

    #[test]
    fn strings_end_with_their_zero_or_with_the_packet() {
        let mut fields = Fields(b"ab\0cd");
        assert_eq!((fields.string(), fields.string(), fields.string()), (&b"ab"[..], &b"cd"[..], &b""[..]));
    }
}
