//! Issues and completions of requests, matched to one request each.

use std::collections::HashMap;

use kelvin_measure::Nanos;

use crate::{Flags, Operation};

/// A sector, whatever the device says.
pub(crate) const SECTOR: u64 = 512;
/// Issues that wait for their completion at most: more means that completions do not come.
const MOST_PENDING: usize = 1 << 18;
/// The key of flushes, which have no place.
const NOWHERE: u64 = u64::MAX;

/// An event of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestEvent {
    pub(crate) at: Nanos,
    /// Major and minor.
    pub(crate) device: (u32, u32),
    /// In sectors of 512 bytes.
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) operation: Operation,
    pub(crate) flags: Flags,
    pub(crate) kind: EventKind,
}

/// Which event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The device got the request, from this thread.
    Issue { pid: i32, command: [u8; 16] },
    /// The device answered.
    Complete { failed: bool },
}

/// A request with everything that is known about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) issue: RequestEvent,
    pub(crate) pid: i32,
    pub(crate) command: [u8; 16],
    pub(crate) response: Option<Nanos>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    issue: RequestEvent,
    pid: i32,
    command: [u8; 16],
    /// Sectors that were not answered yet.
    left: u32,
}

/// What matched and what did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MatchCounts {
    pub(crate) issues: u64,
    pub(crate) completions: u64,
    /// Completions of requests that were issued before the trace, or whose issue was lost.
    pub(crate) without_issue: u64,
    /// Requests whose completion was not seen.
    pub(crate) without_completion: u64,
    /// Requests that were issued again, after the device was busy.
    pub(crate) reissued: u64,
}

/// Matches events that come in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    pending: HashMap<((u32, u32), u64), Pending>,
    pub(crate) counts: MatchCounts,
}

impl Matcher {
    fn key(event: &RequestEvent) -> ((u32, u32), u64) {
        let place = if event.sectors == 0 { NOWHERE } else { event.sector };
        (event.device, place)
    }

    /// Takes an event; `each` gets the requests that it ends.
    pub(crate) fn event(&mut self, event: RequestEvent, each: &mut dyn FnMut(Matched)) {
        match event.kind {
            EventKind::Issue { pid, command } => {
                self.counts.issues += 1;
                if self.pending.len() >= MOST_PENDING {
                    self.give_up(each);
                }
                let pending = Pending { issue: event, pid, command, left: event.sectors };
                if self.pending.insert(Self::key(&event), pending).is_some() {
                    self.counts.reissued += 1;
                }
            }
            EventKind::Complete { failed } => {
                self.counts.completions += 1;
                let Some(mut found) = self.pending.remove(&Self::key(&event)) else {
                    self.counts.without_issue += 1;
                    return;
                };
                if event.sectors < found.left && !failed {
                    // A part of it: the rest is answered at the next sector.
                    found.left -= event.sectors;
                    let rest = event.sector.wrapping_add(u64::from(event.sectors));
                    self.pending.insert((event.device, rest), found);
                    return;
                }
                if failed {
                    found.issue.flags = found.issue.flags.with(Flags::FAILED);
                }
                let response = event.at.saturating_sub(found.issue.at);
                each(Matched {
                    issue: found.issue,
                    pid: found.pid,
                    command: found.command,
                    response: Some(response),
                });
            }
        }
    }

    /// Gives the requests whose completion was not seen, in the order of their issue.
    pub(crate) fn give_up(&mut self, each: &mut dyn FnMut(Matched)) {
        let mut left: Vec<Pending> = self.pending.drain().map(|(_, pending)| pending).collect();
        left.sort_by_key(|pending| pending.issue.at);
        self.counts.without_completion += left.len() as u64;
        for pending in left {
            let Pending { issue, pid, command, .. } = pending;
            each(Matched { issue, pid, command, response: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: Nanos, sector: u64, sectors: u32, kind: EventKind) -> RequestEvent {
        let (operation, flags) = (Operation::Write, Flags::SYNC);
        RequestEvent { at, device: (254, 0), sector, sectors, operation, flags, kind }
    }

    const ISSUE: EventKind = EventKind::Issue { pid: 7, command: *b"fio\0\0\0\0\0\0\0\0\0\0\0\0\0" };
    const DONE: EventKind = EventKind::Complete { failed: false };

    #[test]
    fn parts_flushes_and_strays_are_told_apart() {
        let mut matcher = Matcher::default();
        let mut seen = Vec::new();
        for event in [
            event(1, 100, 8, DONE),
            event(2, 0, 16, ISSUE),
            event(3, 0, 0, ISSUE),
            event(4, 0, 8, DONE),
            event(5, u64::MAX, 0, DONE),
            event(9, 8, 8, DONE),
            event(10, 50, 8, ISSUE),
            event(11, 50, 8, ISSUE),
            event(12, 50, 8, EventKind::Complete { failed: true }),
            event(13, 60, 8, ISSUE),
        ] {
            matcher.event(event, &mut |matched| seen.push(matched));
        }
        matcher.give_up(&mut |matched| seen.push(matched));
        let short = |matched: &Matched| (matched.issue.sector, matched.issue.sectors, matched.response);
        assert_eq!(
            seen.iter().map(short).collect::<Vec<_>>(),
            [(0, 0, Some(2)), (0, 16, Some(7)), (50, 8, Some(1)), (60, 8, None)]
        );
        assert!(seen[2].issue.flags.has(Flags::FAILED));
        let counts =
            MatchCounts { issues: 5, completions: 5, without_issue: 1, without_completion: 1, reissued: 1 };
        assert_eq!(matcher.counts, counts);
    }
}
