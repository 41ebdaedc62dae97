//! The receive buffer.

use std::ops::Range;

use crate::{Error, Result};

const FIRST_SIZE: usize = 16 << 10;
/// An empty buffer that has grown beyond this is given back.
const KEPT_SIZE: usize = 1 << 20;
/// No message is larger, nor should that much wait to be read.
pub(crate) const LARGEST_SIZE: usize = 1 << 30;

/// Bytes received and not yet read lie in `start..end`.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; FIRST_SIZE], start: 0, end: 0 }
    }

    /// Bytes received and not taken.
    #[inline]
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Takes the first `count` of the unread bytes, and says where they lie.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Range<usize> {
        let taken = self.start..self.start + count;
        self.start += count;
        taken
    }

    /// Takes `count` bytes out of the unread ones, `at` bytes behind the first.
    pub(crate) fn cut(&mut self, at: usize, count: usize) {
        let from = self.start + at + count;
        self.bytes.copy_within(from..self.end, from - count);
        self.end -= count;
    }

    /// Free space at the end, at least one byte. The buffer doubles as bytes arrive: the length that a message
    /// announces is not believed before that.
    pub(crate) fn space(&mut self) -> Result<&mut [u8]> {
        if self.start == self.end {
            self.clear();
            if self.bytes.len() > KEPT_SIZE {
                // Hundreds of sessions would otherwise each keep what one large result once took.
                self.bytes = vec![0; FIRST_SIZE];
            }
        } else if self.end == self.bytes.len() {
            if self.start >= self.bytes.len() / 2 || self.start > 0 && self.bytes.len() >= LARGEST_SIZE {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                let size = self.bytes.len() * 2;
                if size > LARGEST_SIZE {
                    return Err(Error::protocol("the server sent more than 1 GiB of unread data")
                        .with_help("read fewer or smaller rows at a time, or queue fewer statements"));
                }
                self.bytes.resize(size, 0);
            }
        }
        Ok(&mut self.bytes[self.end..])
    }

    /// `count` bytes were put into [`Buffer::space`].
    #[inline]
    pub(crate) fn filled(&mut self, count: usize) {
        self.end += count;
    }

    /// Adds bytes as if they had been received.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let space = self.space()?;
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_as_bytes_arrive_and_shrinks_when_they_are_read() {
        let mut buffer = Buffer::new();
        buffer.feed(&vec![7; 4 << 20]).unwrap();
        assert!(buffer.bytes.len() > KEPT_SIZE);
        let taken = buffer.take(4 << 20);
        assert!(buffer.bytes(taken).iter().all(|&byte| byte == 7));
        assert_eq!(buffer.space().unwrap().len(), FIRST_SIZE);
    }
}
