//! The receive buffer, cut into messages.

use std::ops::Range;

use super::backend::{self, HEADER, LONGEST, LONGEST_BEFORE_LOGIN};
use super::stream::Stream;
use crate::{Error, Result};

const FIRST_SIZE: usize = 16 << 10;
/// An empty buffer that has grown beyond this is given back.
const KEPT_SIZE: usize = 1 << 20;
/// No message is larger, nor should that much wait to be read.
const LARGEST_SIZE: usize = LONGEST;

/// Bytes received and not yet read lie in `start..end`.
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    longest: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; FIRST_SIZE], start: 0, end: 0, longest: LONGEST_BEFORE_LOGIN }
    }

    /// After the login long messages are in order.
    pub(crate) fn trust(&mut self) {
        self.longest = LONGEST;
    }

    /// Bytes received beyond the messages taken.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    #[inline]
    pub(crate) fn body(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// The next message if all of it is here: its tag and where its body lies.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Option<(u8, Range<usize>)>> {
        let Some((tag, size)) = backend::header(self.unread(), self.longest)? else { return Ok(None) };
        if size > self.end - self.start {
            return Ok(None);
        }
        let body = self.start + HEADER..self.start + size;
        self.start += size;
        Ok(Some((tag, body)))
    }

    /// The next message, waiting for it.
    #[inline]
    pub(crate) fn next(&mut self, stream: &mut Stream) -> Result<(u8, Range<usize>)> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            let count = stream.receive(self.space()?)?;
            if count == 0 {
                return Err(Error::connection_lost("the server closed the connection"));
            }
            self.end += count;
        }
    }

    /// Free space at the end, at least one byte. The buffer doubles as bytes arrive: the length that a message
    /// announces is not believed before that.
    pub(crate) fn space(&mut self) -> Result<&mut [u8]> {
        if self.start == self.end {
            self.clear();
            if self.buffer.len() > KEPT_SIZE {
                // Hundreds of sessions would otherwise each keep what one large result once took.
                self.buffer = vec![0; FIRST_SIZE];
            }
        } else if self.end == self.buffer.len() {
            if self.start >= self.buffer.len() / 2 || self.start > 0 && self.buffer.len() >= LARGEST_SIZE {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                let size = self.buffer.len() * 2;
                if size > LARGEST_SIZE {
                    return Err(Error::protocol(
                        "the server sent more than 1 GiB that could not be read yet",
                    )
                    .with_help("read fewer or smaller rows at a time, or queue fewer statements"));
                }
                self.buffer.resize(size, 0);
            }
        }
        Ok(&mut self.buffer[self.end..])
    }

    /// `count` bytes were put into [`Inbox::space`].
    pub(crate) fn filled(&mut self, count: usize) {
        self.end += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_as_bytes_arrive_and_shrinks_when_they_are_read() {
        let mut inbox = Inbox::new();
        inbox.trust();
        let mut message = b"D".to_vec();
        message.extend_from_slice(&(4_u32 << 20).to_be_bytes());
        message.resize((4 << 20) + 1, 7);
        let mut sent = 0;
        while sent < message.len() {
            let space = inbox.space().unwrap();
            let count = space.len().min(message.len() - sent);
            space[..count].copy_from_slice(&message[sent..sent + count]);
            inbox.filled(count);
            sent += count;
        }
        let (tag, body) = inbox.take().unwrap().unwrap();
        assert_eq!((tag, body.len()), (b'D', message.len() - HEADER));
        assert!(inbox.body(body).iter().all(|&byte| byte == 7));
        assert!(inbox.buffer.len() > KEPT_SIZE);
        assert_eq!(inbox.space().unwrap().len(), FIRST_SIZE);
    }
}
