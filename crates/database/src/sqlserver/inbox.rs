//! The server's messages as one stream of bytes, independent of packet boundaries.
//!
//! Data within a packet is read where it was received; only data that crosses a packet boundary is copied together.

use super::packet::{self, HEADER, LAST};
use crate::stream::Buffer;
use crate::{Error, Result};

/// The maximum length of a value: a varchar(max) can be 2 GiB, more than any workload needs.
const LONGEST: usize = 1 << 30;

/// A source of bytes.
pub(crate) trait Source {
    /// Puts at least one byte into `buffer`, waiting for it.
    fn fill(&mut self, buffer: &mut Buffer) -> Result<()>;
}

pub(crate) struct Inbox<S> {
    pub(crate) source: S,
    pub(crate) buffer: Buffer,
    /// Bytes of the packet under way that were not taken yet.
    left: usize,
    /// The packet under way is the message's last.
    last: bool,
    /// The number of the session, as the packets have it.
    pub(crate) session: u16,
    /// The kind of packets that are in order.
    kind: u8,
    scratch: Vec<u8>,
}

impl<S: Source> Inbox<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            buffer: Buffer::new(),
            left: 0,
            last: true,
            session: 0,
            kind: packet::kind::RESPONSE,
            scratch: Vec::new(),
        }
    }

    /// A new message of this kind follows.
    #[inline]
    pub(crate) fn expect(&mut self, kind: u8) {
        (self.kind, self.left, self.last) = (kind, 0, false);
    }

    /// Whether more data follow in this message; waits for the next packet at the end of this one.
    #[inline]
    pub(crate) fn more(&mut self) -> Result<bool> {
        while self.left == 0 {
            if self.last {
                return Ok(false);
            }
            self.next_packet()?;
        }
        Ok(true)
    }

    /// The next bytes of the message.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&[u8]> {
        if count > self.left || count > self.buffer.unread().len() {
            return self.take_slowly(count);
        }
        self.left -= count;
        let range = self.buffer.take(count);
        Ok(self.buffer.bytes(range))
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        // It has the requested length.
        self.take(N).map(|bytes| bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The rest of the current packet.
    pub(crate) fn rest_of_packet(&mut self) -> Result<&[u8]> {
        self.take(self.left)
    }

    #[cold]
    fn take_slowly(&mut self, count: usize) -> Result<&[u8]> {
        if count <= self.left {
            while self.buffer.unread().len() < count {
                self.source.fill(&mut self.buffer)?;
            }
            self.left -= count;
            let range = self.buffer.take(count);
            return Ok(self.buffer.bytes(range));
        }
        self.scratch.clear();
        self.collect(count)?;
        Ok(&self.scratch)
    }

    /// Appends the next `count` bytes of the message to the scratch; it grows as they come.
    fn collect(&mut self, count: usize) -> Result<()> {
        if count > LONGEST.saturating_sub(self.scratch.len()) {
            return Err(Error::protocol(format!("the server announced a value of {count} bytes"))
                .with_help("read smaller values: a value can have at most 1 GiB"));
        }
        let mut missing = count;
        while missing > 0 {
            if !self.more()? {
                return Err(Error::protocol("the server ended its answer in the middle of a token"));
            }
            if self.buffer.unread().is_empty() {
                self.source.fill(&mut self.buffer)?;
            }
            let part = missing.min(self.left).min(self.buffer.unread().len());
            let range = self.buffer.take(part);
            self.scratch.extend_from_slice(self.buffer.bytes(range));
            self.left -= part;
            missing -= part;
        }
        Ok(())
    }

    /// A value that comes in parts (varchar(max), xml); `None` for NULL.
    pub(crate) fn parts(&mut self) -> Result<Option<&[u8]>> {
        const NULL: u64 = u64::MAX;
        // Otherwise the length of the whole, which may be unknown and is not believed.
        if u64::from_le_bytes(self.array()?) == NULL {
            return Ok(None);
        }
        self.scratch.clear();
        let mut value = std::mem::take(&mut self.scratch);
        loop {
            let length = self.u32()? as usize;
            // A length that was cut in two was put together in the scratch.
            self.scratch = value;
            if length == 0 {
                return Ok(Some(&self.scratch));
            }
            self.collect(length)?;
            value = std::mem::take(&mut self.scratch);
        }
    }

    fn next_packet(&mut self) -> Result<()> {
        while self.buffer.unread().len() < HEADER {
            self.source.fill(&mut self.buffer)?;
        }
        let range = self.buffer.take(HEADER);
        let &[kind, status, high, low, session_high, session_low, ..] = self.buffer.bytes(range) else {
            return Err(crate::stream::too_short());
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        // A server's prelogin packets may be called answers.
        let fits = kind == self.kind || self.kind == packet::kind::PRELOGIN && kind == packet::kind::RESPONSE;
        if !fits || length < HEADER {
            return Err(Error::protocol(format!(
                "the server sent a packet of kind {kind:#04x} and {length} bytes; expected kind {:#04x}",
                self.kind
            )));
        }
        self.left = length - HEADER;
        self.last = status & LAST != 0;
        self.session = u16::from_be_bytes([session_high, session_low]);
        Ok(())
    }
}

/// Bytes that are all there is.
pub(crate) struct Recorded<'a>(pub(crate) &'a [u8]);

impl Source for Recorded<'_> {
    fn fill(&mut self, buffer: &mut Buffer) -> Result<()> {
        if self.0.is_empty() {
            return Err(Error::connection_lost("the server closed the connection"));
        }
        buffer.feed(std::mem::take(&mut self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packets(content: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        packet::frame(&mut out, packet::kind::RESPONSE, content, size, &mut 1, true);
        out
    }

    fn reading(bytes: &[u8]) -> Inbox<Recorded<'_>> {
        let mut inbox = Inbox::new(Recorded(bytes));
        inbox.expect(packet::kind::RESPONSE);
        inbox
    }

    proptest! {
        #[test]
        fn bytes_are_the_same_wherever_packets_end(
            content in proptest::collection::vec(any::<u8>(), 0..300),
            size in 9..40_usize,
            step in 1..20_usize,
        ) {
            let bytes = packets(&content, size);
            let mut inbox = reading(&bytes);
            for expected in content.chunks(step) {
                prop_assert!(inbox.more().unwrap());
                prop_assert_eq!(inbox.take(expected.len()).unwrap(), expected);
            }
            prop_assert!(!inbox.more().unwrap());
            prop_assert!(inbox.take(1).is_err());
        }

        #[test]
        fn values_in_parts_are_whole(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6),
            size in 9..40_usize,
        ) {
            let mut content = 0xffff_ffff_ffff_fffe_u64.to_le_bytes().to_vec();
            for part in &parts {
                content.extend((part.len() as u32).to_le_bytes());
                content.extend(part);
            }
            content.extend([0; 4]);
            let bytes = packets(&content, size);
            let mut inbox = reading(&bytes);
            prop_assert_eq!(inbox.parts().unwrap().unwrap(), parts.concat());
            prop_assert!(!inbox.more().unwrap());
        }
    }

    #[test]
    fn announced_lengths_are_not_believed() {
        let bytes = packets(&[1, 2, 3], 512);
        let error = reading(&bytes).take(usize::MAX).map(<[u8]>::len).unwrap_err();
        assert!(error.message().contains("announced"), "{error}");
        for wrong in [&b"HTTP/1.1"[..], &[4, 1, 0, 7, 0, 0, 0, 0]] {
            assert_eq!(reading(wrong).more().unwrap_err().class(), crate::ErrorClass::Protocol);
        }
    }
}
