//! Issues and completions of requests, matched to one request each.

use std::collections::HashMap;

use kelvin_measure::Nanos;

use crate::{Flags, Operation};

/// Issues that wait for their completion at most: more means that completions do not come.
const MOST_PENDING: usize = 1 << 18;
/// The same at one place, as all flushes of a device are: the older half is given up then.
const MOST_AT_A_PLACE: usize = 4096;
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
    /// The device was busy: the request waits, and is issued again.
    Requeue,
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

impl Pending {
    fn without_completion(self) -> Matched {
        let Self { issue, pid, command, .. } = self;
        Matched { issue, pid, command, response: None }
    }
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
    /// Issues that the device took back because it was busy.
    pub(crate) requeued: u64,
}

/// Device and sector.
type Key = ((u32, u32), u64);

/// Matches events that come in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    /// The requests at each place, in the order of their issue; no list is empty.
    pending: HashMap<Key, Vec<Pending>>,
    /// How many these are.
    waiting: usize,
    /// Who issued what the device took back: a kernel thread issues it again.
    taken_back: HashMap<Key, (i32, [u8; 16])>,
    pub(crate) counts: MatchCounts,
}

impl Matcher {
    fn key(event: &RequestEvent) -> Key {
        let place = if event.sectors == 0 { NOWHERE } else { event.sector };
        (event.device, place)
    }

    /// Whether an issue is one of a request that the device took back before.
    pub(crate) fn is_issued_again(&self, event: &RequestEvent) -> bool {
        !self.taken_back.is_empty()
            && matches!(event.kind, EventKind::Issue { .. })
            && self.taken_back.contains_key(&Self::key(event))
    }

    /// Takes an event; `each` gets the requests that it ends.
    pub(crate) fn event(&mut self, event: RequestEvent, each: &mut dyn FnMut(Matched)) {
        match event.kind {
            EventKind::Issue { pid, command } => {
                self.counts.issues += 1;
                if self.waiting >= MOST_PENDING {
                    self.give_up(each);
                }
                let key = Self::key(&event);
                let (pid, command) = self.taken_back.remove(&key).unwrap_or((pid, command));
                let pending = Pending { issue: event, pid, command, left: event.sectors };
                let list = self.pending.entry(key).or_default();
                if list.len() >= MOST_AT_A_PLACE {
                    for lost in list.drain(..MOST_AT_A_PLACE / 2) {
                        self.waiting -= 1;
                        self.counts.without_completion += 1;
                        each(lost.without_completion());
                    }
                }
                list.push(pending);
                self.waiting += 1;
            }
            EventKind::Requeue => {
                self.counts.requeued += 1;
                if let Some(taken) = self.take(&event)
                    && self.taken_back.len() < MOST_PENDING
                {
                    self.taken_back.insert(Self::key(&event), (taken.pid, taken.command));
                }
            }
            // An empty write that asked for a flush: the flush is a request of its own, and this one was never issued.
            EventKind::Complete { .. } if event.sectors == 0 && event.operation != Operation::Flush => {}
            EventKind::Complete { failed } => {
                self.counts.completions += 1;
                let Some(mut found) = self.take(&event) else {
                    self.counts.without_issue += 1;
                    return;
                };
                if event.sectors < found.left && !failed {
                    // A part of it: the rest is answered at the next sector.
                    found.left -= event.sectors;
                    let rest = event.sector.wrapping_add(u64::from(event.sectors));
                    self.pending.entry((event.device, rest)).or_default().push(found);
                    self.waiting += 1;
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

    /// The request that an event is about: of several at one place the newest of the event's length, or the newest that
    /// it may be a part of. The newest, because a request whose completion was lost then stays behind the others, and
    /// does not get the completion of the next one.
    fn take(&mut self, event: &RequestEvent) -> Option<Pending> {
        let key = Self::key(event);
        let list = self.pending.get_mut(&key)?;
        let whole = list.iter().rposition(|pending| pending.left == event.sectors);
        let place = whole.or_else(|| list.iter().rposition(|pending| pending.left > event.sectors))?;
        let taken = list.remove(place);
        self.waiting -= 1;
        if list.is_empty() {
            self.pending.remove(&key);
        }
        Some(taken)
    }

    /// Gives the requests whose completion was not seen, in the order of their issue.
    pub(crate) fn give_up(&mut self, each: &mut dyn FnMut(Matched)) {
        let mut left: Vec<Pending> = self.pending.drain().flat_map(|(_, list)| list).collect();
        self.waiting = 0;
        left.sort_by_key(|pending| pending.issue.at);
        self.counts.without_completion += left.len() as u64;
        for pending in left {
            each(pending.without_completion());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: Nanos, sector: u64, sectors: u32, kind: EventKind) -> RequestEvent {
        let operation = if sectors == 0 { Operation::Flush } else { Operation::Write };
        let flags = Flags::SYNC;
        RequestEvent { at, device: (254, 0), sector, sectors, operation, flags, kind }
    }

    const ISSUE: EventKind = EventKind::Issue { pid: 7, command: *b"fio\0\0\0\0\0\0\0\0\0\0\0\0\0" };
    const DONE: EventKind = EventKind::Complete { failed: false };

    #[test]
    fn parts_flushes_and_strays_are_distinguished() {
        let mut matcher = Matcher::default();
        let mut seen = Vec::new();
        for event in [
            event(1, 100, 8, DONE),
            event(2, 0, 16, ISSUE),
            event(3, 0, 0, ISSUE),
            event(4, 0, 8, DONE),
            RequestEvent { operation: Operation::Write, ..event(5, 0, 0, DONE) },
            event(5, u64::MAX, 0, DONE),
            event(9, 8, 8, DONE),
            event(10, 50, 8, ISSUE),
            event(10, 50, 8, EventKind::Requeue),
            event(11, 50, 8, EventKind::Issue { pid: 1, command: *b"kworker\0\0\0\0\0\0\0\0\0" }),
            event(12, 50, 8, EventKind::Complete { failed: true }),
            event(13, 60, 8, ISSUE),
            event(14, 70, 8, ISSUE),
            event(15, 70, 16, ISSUE),
            event(16, 70, 8, ISSUE),
            event(17, 70, 16, DONE),
            event(18, 70, 8, DONE),
            event(20, 70, 8, DONE),
        ] {
            matcher.event(event, &mut |matched| seen.push(matched));
        }
        matcher.give_up(&mut |matched| seen.push(matched));
        let short = |matched: &Matched| (matched.issue.sector, matched.issue.sectors, matched.response);
        assert_eq!(
            seen.iter().map(short).collect::<Vec<_>>(),
            [
                (0, 0, Some(2)),
                (0, 16, Some(7)),
                (50, 8, Some(1)),
                (70, 16, Some(2)),
                (70, 8, Some(2)),
                (70, 8, Some(6)),
                (60, 8, None)
            ]
        );
        assert!(seen[2].issue.flags.has(Flags::FAILED) && seen[2].pid == 7, "who issued it first");
        let counts =
            MatchCounts { issues: 8, completions: 8, without_issue: 1, without_completion: 1, requeued: 1 };
        assert_eq!(matcher.counts, counts);
    }
    #[test]
    fn a_lost_completion_spoils_no_other_request() {
        let mut matcher = Matcher::default();
        let mut seen = Vec::new();
        let mut take = |event| matcher.event(event, &mut |matched: Matched| seen.push(matched.response));
        // The first flush and the first write are never answered; a longer completion is not of the pending write.
        take(event(0, 0, 0, ISSUE));
        take(event(0, 70, 8, ISSUE));
        take(event(1, 70, 16, DONE));
        for at in (10..100_000).step_by(10) {
            take(event(at, 0, 0, ISSUE));
            take(event(at + 1, u64::MAX, 0, DONE));
            take(event(at + 2, 70, 8, ISSUE));
            take(event(at + 5, 70, 8, DONE));
        }
        assert!(seen.chunks(2).all(|pair| *pair == [Some(1), Some(3)]));
        assert_eq!((matcher.counts.without_issue, matcher.waiting), (1, 2));
        // Flushes of which none is answered.
        for at in 0..10_000 {
            matcher.event(event(200_000 + at, 0, 0, ISSUE), &mut |matched| seen.push(matched.response));
            assert!(matcher.waiting <= MOST_AT_A_PLACE + 1);
        }
        let mut left = 0;
        matcher.give_up(&mut |_| left += 1);
        assert_eq!(matcher.counts.without_completion, 10_002);
        assert!(left > 0 && matcher.waiting == 0 && matcher.pending.is_empty());
    }
}
