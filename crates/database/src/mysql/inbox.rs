//! The receive buffer, cut into packets.

use std::ops::Range;

use super::wire::{FULL, HEADER};
use crate::stream::{Buffer, Stream};
use crate::{Error, Result};

/// No content is longer: `max_allowed_packet` cannot be more.
const LONGEST: usize = 1 << 30;
/// Before the login nothing sensible is long; a longer packet means that it is not MySQL.
const LONGEST_BEFORE_LOGIN: usize = 1 << 16;
/// An error may come at any time, under any number: of a server that shuts down, or whose connection was killed.
const ERROR: u8 = 0xff;
const OK: u8 = 0;

pub(crate) struct Inbox {
    pub(crate) buffer: Buffer,
    longest: usize,
    /// The number that the next packet must have.
    sequence: u8,
    /// The number of the packet that ends the answer before, when it was left unread.
    left: Option<u8>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { buffer: Buffer::new(), longest: LONGEST_BEFORE_LOGIN, sequence: 0, left: None }
    }

    /// After the login long packets are in order.
    pub(crate) fn trust(&mut self) {
        self.longest = LONGEST;
    }

    /// The next packet answers one that we send with the number `sent`.
    #[inline]
    pub(crate) fn expect_after(&mut self, sent: u8) {
        self.sequence = sent.wrapping_add(1);
    }

    /// The number that a packet of ours must have within an exchange.
    pub(crate) fn next_sequence(&self) -> u8 {
        self.sequence
    }

    #[inline]
    pub(crate) fn body(&self, range: Range<usize>) -> &[u8] {
        self.buffer.bytes(range)
    }

    /// Leaves the packet unread that ends this answer; it comes before the next one.
    pub(crate) fn leave_end(&mut self) {
        self.left = Some(self.sequence);
    }

    /// The next packet of an answer if all of it is here: where its content lies.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Option<Range<usize>>> {
        if self.left.is_some() { self.take_after_end() } else { self.take_packet() }
    }

    /// Takes the packet that was left, and then the next one. An error in its place is what the server says now.
    fn take_after_end(&mut self) -> Result<Option<Range<usize>>> {
        let expected = self.sequence;
        self.sequence = self.left.unwrap_or(expected);
        let end = self.take_packet();
        self.sequence = expected;
        let Some(end) = end? else { return Ok(None) };
        self.left = None;
        match self.body(end.clone()) {
            [OK, ..] => self.take_packet(),
            [ERROR, ..] => Ok(Some(end)),
            _ => Err(Error::protocol("the server sent an unexpected message behind OUT parameters")),
        }
    }

    #[inline]
    fn take_packet(&mut self) -> Result<Option<Range<usize>>> {
        let unread = self.buffer.unread();
        let Some((length, sequence)) = header(unread) else { return Ok(None) };
        if length > self.longest || length == FULL {
            return self.take_long();
        }
        if unread.len() < HEADER + length {
            return Ok(None);
        }
        if sequence != self.sequence && unread.get(HEADER) != Some(&ERROR) {
            return Err(out_of_order(self.sequence, sequence));
        }
        self.sequence = sequence.wrapping_add(1);
        let packet = self.buffer.take(HEADER + length);
        Ok(Some(packet.start + HEADER..packet.end))
    }

    /// Content that goes on in further packets is brought together.
    #[cold]
    fn take_long(&mut self) -> Result<Option<Range<usize>>> {
        let unread = self.buffer.unread();
        let (mut at, mut total, mut expected) = (0, 0, self.sequence);
        let mut headers = Vec::new();
        loop {
            let Some((length, sequence)) = header(&unread[at..]) else { return Ok(None) };
            total += length;
            if total > self.longest {
                return Err(Error::protocol(format!(
                    "the server announced a packet of {total} bytes; the limit is {}",
                    self.longest
                )));
            }
            if sequence != expected {
                return Err(out_of_order(expected, sequence));
            }
            expected = expected.wrapping_add(1);
            if at > 0 {
                headers.push(at);
            }
            if unread.len() - at < HEADER + length {
                return Ok(None);
            }
            at += HEADER + length;
            if length < FULL {
                break;
            }
        }
        for &at in headers.iter().rev() {
            self.buffer.cut(at, HEADER);
        }
        self.sequence = expected;
        let packet = self.buffer.take(HEADER + total);
        Ok(Some(packet.start + HEADER..packet.end))
    }

    /// The next packet, waiting for it.
    #[inline]
    pub(crate) fn next(&mut self, stream: &mut Stream) -> Result<Range<usize>> {
        loop {
            if let Some(packet) = self.take()? {
                return Ok(packet);
            }
            stream.fill(&mut self.buffer)?;
        }
    }
}

/// Length and number of the packet at the front.
#[inline]
fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    let &[a, b, c, sequence] = bytes.first_chunk::<HEADER>()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
}

#[cold]
fn out_of_order(expected: u8, found: u8) -> Error {
    Error::protocol(format!("the server sent packet number {found}; expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::super::wire;
    use super::*;

    fn packet(content: &[u8], sequence: u8) -> Vec<u8> {
        let mut out = Vec::new();
        let start = wire::open(&mut out);
        out.extend_from_slice(content);
        wire::close(&mut out, start, sequence);
        out
    }

    #[test]
    fn content_of_16_mib_and_more_comes_in_several_packets_and_is_one() {
        for length in [0, 1, FULL - 1, FULL, FULL + 1, 2 * FULL, 2 * FULL + 5] {
            assert_eq!(usize::from(wire::last_sequence(packet(&vec![0; length], 0).len())), length / FULL);
            let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let mut bytes = packet(&content, 0);
            bytes.extend(packet(b"next", (length / FULL + 1) as u8));
            let mut inbox = Inbox::new();
            inbox.trust();
            // In pieces: no part is taken for the whole.
            let (first, second) = bytes.split_at(bytes.len() / 2);
            inbox.buffer.feed(first).unwrap();
            let early = inbox.take().unwrap();
            assert!(early.is_none() || length < 5, "{length}");
            inbox.buffer.feed(second).unwrap();
            let found = early.unwrap_or_else(|| inbox.take().unwrap().unwrap());
            assert!(inbox.body(found) == content, "{length}");
            let next = inbox.take().unwrap().unwrap();
            assert_eq!(inbox.body(next), b"next", "{length}");
        }
    }

    #[test]
    fn a_number_out_of_turn_is_refused_but_of_an_error() {
        let mut inbox = Inbox::new();
        inbox.buffer.feed(&packet(b"x", 3)).unwrap();
        assert!(inbox.take().is_err());
        let mut inbox = Inbox::new();
        inbox.buffer.feed(&packet(&[ERROR, 1], 3)).unwrap();
        assert!(inbox.take().unwrap().is_some());
    }

    #[test]
    fn a_long_packet_before_the_login_is_refused_by_its_header_alone() {
        let mut inbox = Inbox::new();
        inbox.buffer.feed(b"HTTP/1.1 400 Bad Request").unwrap();
        assert!(inbox.take().is_err());
    }
}
