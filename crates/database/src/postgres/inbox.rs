//! The receive buffer, cut into messages.

use std::ops::Range;

use super::backend::{self, HEADER, LONGEST, LONGEST_BEFORE_LOGIN};
use crate::Result;
use crate::stream::{Buffer, Stream};

pub(crate) struct Inbox {
    pub(crate) buffer: Buffer,
    longest: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { buffer: Buffer::new(), longest: LONGEST_BEFORE_LOGIN }
    }

    /// After the login long messages are in order.
    pub(crate) fn trust(&mut self) {
        self.longest = LONGEST;
    }

    #[inline]
    pub(crate) fn body(&self, range: Range<usize>) -> &[u8] {
        self.buffer.bytes(range)
    }

    /// The next message if all of it is here: its tag and where its body lies.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Option<(u8, Range<usize>)>> {
        let unread = self.buffer.unread();
        let Some((tag, size)) = backend::header(unread, self.longest)? else { return Ok(None) };
        if size > unread.len() {
            return Ok(None);
        }
        let message = self.buffer.take(size);
        Ok(Some((tag, message.start + HEADER..message.end)))
    }

    /// The next message, waiting for it.
    #[inline]
    pub(crate) fn next(&mut self, stream: &mut Stream) -> Result<(u8, Range<usize>)> {
        match self.take()? {
            Some(message) => Ok(message),
            None => self.receive(stream),
        }
    }

    /// The next message, which is not whole yet: apart from [`Inbox::next`], which is small enough to be inlined then.
    #[inline(never)]
    fn receive(&mut self, stream: &mut Stream) -> Result<(u8, Range<usize>)> {
        loop {
            stream.fill(&mut self.buffer)?;
            if let Some(message) = self.take()? {
                return Ok(message);
            }
        }
    }
}
