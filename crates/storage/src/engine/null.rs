//! Does no I/O: what remains is the cost of everything else.

use std::io;

use super::{CompletedRequest, IoEngine, Request, Wait};

/// Completes every I/O as if all bytes were moved: at depth 1 in the call, as fio does, else when
/// completions are reaped.
#[derive(Debug)]
pub(crate) struct Null {
    at_once: bool,
    waiting: Vec<CompletedRequest>,
}

impl Null {
    pub(crate) fn new(depth: u32) -> Self {
        Self { at_once: depth == 1, waiting: Vec::with_capacity(depth as usize) }
    }
}

impl IoEngine for Null {
    #[inline]
    fn is_synchronous(&self) -> bool {
        self.at_once
    }

    #[inline]
    fn queue(&mut self, request: Request) {
        self.waiting.push(CompletedRequest { slot: request.slot, result: i64::from(request.length) });
    }

    #[inline]
    fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
        // At this depth there is at most one.
        if self.at_once
            && let Some(one) = self.waiting.pop()
        {
            ended.push(one);
        }
        Ok(())
    }

    #[inline]
    fn have_all_ended(&mut self) -> bool {
        true
    }

    #[inline]
    fn reap(
        &mut self,
        _least: u32,
        most: u32,
        _wait: Wait,
        ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        if self.waiting.len() <= most as usize {
            ended.append(&mut self.waiting);
        } else {
            ended.extend(self.waiting.drain(..most as usize));
        }
        Ok(())
    }
}
