//! What the loop asks of its neighbours: which I/O is next, what is in a block, whether it is right.

use crate::Io;
use crate::Next;

/// Which I/Os come, in which order.
pub(crate) trait Stream {
    /// The next.
    fn next(&mut self) -> Next;
    /// Another pass.
    fn restart(&mut self);
    /// The longest of its I/Os in bytes, where it is not the job that says it (a trace).
    fn largest(&self) -> u32 {
        0
    }
    /// Bytes of a pass.
    fn pass_bytes(&self) -> u64;
}

/// What is in the blocks that are written.
pub(crate) trait Fill {
    /// Nothing has to be done for a write.
    fn is_static(&self) -> bool;
    /// Called for each buffer before the first I/O.
    fn prepare(&mut self, buffer: &mut [u8]);
    /// Called for each write.
    fn fill(&mut self, io: &Io, buffer: &mut [u8]);
}

/// Whether what is read is what was written.
pub(crate) trait Check {
    /// Puts into a block what tells later whether it is right: the number of the write.
    fn stamp(&mut self, io: &Io, buffer: &mut [u8]) -> u64;
    /// A write has ended.
    fn written(&mut self, io: &Io, number: u64);
    /// A trim has ended.
    fn trimmed(&mut self, io: &Io);
    /// Looks at what was read; what is wrong, in words.
    fn check(&mut self, io: &Io, buffer: &[u8]) -> std::result::Result<(), String>;
    /// What is to be read in a verifying pass; none at its end.
    fn next_read(&mut self) -> Option<Io>;
    /// So much was written that it is to be looked at now.
    fn backlog_due(&self) -> bool;
    /// The worker ends; whether everything was looked at.
    fn finish(&mut self, complete: bool) -> crate::Result<()>;
}

/// What a worker is made of, beside the engine.
pub(crate) struct Parts<S> {
    pub(crate) stream: S,
    pub(crate) fill: Box<dyn Fill>,
    pub(crate) check: Option<Box<dyn Check>>,
}
