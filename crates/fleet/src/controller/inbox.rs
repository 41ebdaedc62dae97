//! Messages from agents that the run has not read yet. They are kept encoded, at a few kilobytes each, since
//! a decoded histogram takes 270 kB. No more of them are fetched from the server than there is room for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use super::Result;
use crate::message::{Output, decode};

/// The room in bytes. It may be exceeded by the messages that are fetched together.
const ROOM: usize = 16 << 20;

/// An encoded message, or an error, with the number of its agent.
type Received = (usize, Result<Vec<u8>>);

/// Messages from agents, in order.
pub(super) struct Inbox {
    entry: Entry,
    received: mpsc::Receiver<Received>,
    /// The number of each agent's next message.
    pub(super) next: Vec<u64>,
    /// The time when the NATS server became reachable again, and since when it is unreachable.
    pub(super) back: Option<Instant>,
    pub(super) away: Option<Instant>,
}

/// The sending side of the inbox.
#[derive(Clone)]
pub(super) struct Entry {
    sender: mpsc::Sender<Received>,
    /// Bytes that were not read yet.
    held: Arc<AtomicUsize>,
}

impl Entry {
    pub(super) fn has_room(&self) -> bool {
        self.held.load(Ordering::Acquire) < ROOM
    }

    /// Adds a message of an agent. Returns false when the inbox no longer exists.
    pub(super) fn put(&self, agent: usize, message: Result<Vec<u8>>) -> bool {
        self.held.fetch_add(length(&message), Ordering::AcqRel);
        self.sender.send((agent, message)).is_ok()
    }
}

impl Inbox {
    /// An empty inbox for this number of agents.
    pub(super) fn of_agents(count: usize) -> Self {
        let (sender, received) = mpsc::channel();
        let entry = Entry { sender, held: Arc::default() };
        Self { entry, received, next: vec![0; count], back: None, away: None }
    }

    pub(super) fn entry(&self) -> Entry {
        self.entry.clone()
    }

    /// Decodes the next message and returns it with the number of its agent. Does not wait.
    pub(super) fn take(&mut self) -> Option<(usize, Result<Output>)> {
        let (agent, message) = self.received.try_recv().ok()?;
        self.entry.held.fetch_sub(length(&message), Ordering::AcqRel);
        Some((agent, message.and_then(|bytes| decode(&bytes))))
    }
}

fn length(message: &Result<Vec<u8>>) -> usize {
    message.as_ref().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::{KindCounts, LoadPart, Second};
    use kelvin_measure::{Event, Histogram};

    use super::*;
    use crate::message::{OutputItem, encode};

    const AGENTS: usize = 200;

    /// The encoded message of an agent's second whose latencies fill many bins.
    fn sent(second: u64) -> Vec<u8> {
        let mut latency = Histogram::new();
        (1..=1000).for_each(|step| latency.record(step * step * 1000));
        let kinds = vec![KindCounts { committed: 1000, latency, ..KindCounts::default() }];
        let second = Second { point: 0, second: second as i64, part: LoadPart::Measured, kinds };
        let sequence = second.second as u64;
        let items = vec![OutputItem::Event { point: 0, event: Event::Second(second) }];
        encode(&Output { sequence, items }).unwrap()
    }

    /// Adds seconds of all agents while there is room, as the task that follows the stream does. Returns the
    /// next second.
    fn fill(entry: &Entry, from: u64, until: u64, messages: &[Vec<u8>]) -> u64 {
        let mut second = from;
        while second < until && entry.has_room() {
            for agent in 0..AGENTS {
                assert!(entry.put(agent, Ok(messages[second as usize].clone())));
            }
            second += 1;
        }
        second
    }

    #[test]
    fn while_nobody_reads_little_is_held_and_nothing_is_lost() {
        let seconds = 60;
        let messages: Vec<Vec<u8>> = (0..seconds).map(sent).collect();
        let longest = messages.iter().map(Vec::len).max().unwrap();
        let mut inbox = Inbox::of_agents(AGENTS);
        let entry = inbox.entry();
        let held = |inbox: &Inbox| inbox.entry.held.load(Ordering::Acquire);
        let (mut filled, mut stalls) = (0, 0);
        let mut next = [0; AGENTS];
        while filled < seconds {
            filled = fill(&entry, filled, seconds, &messages);
            assert!(held(&inbox) < ROOM + AGENTS * longest, "{} bytes", held(&inbox));
            stalls += u64::from(!entry.has_room());
            // Each message is decoded only when it is read.
            while let Some((agent, output)) = inbox.take() {
                let output = output.unwrap();
                assert_eq!(output.sequence, next[agent]);
                let [OutputItem::Event { event: Event::Second(second), .. }] = &output.items[..] else {
                    panic!("a second was sent")
                };
                assert_eq!((second.second as u64, second.kinds[0].latency.count()), (next[agent], 1000));
                next[agent] += 1;
            }
            assert_eq!(held(&inbox), 0);
        }
        assert_eq!(next, [seconds; AGENTS]);
        assert!(stalls > 0, "it never was full");
    }
}
