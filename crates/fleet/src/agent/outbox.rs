//! An agent's messages about its run, on their way to the NATS server, which stores them. The thread that
//! generates the load only queues them; messages that the server has not confirmed are sent again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kelvin_workload::Stop;

use crate::bus::Bus;
use crate::error::FleetError;
use crate::message::{Output, OutputItem, encode, pieces};
use crate::subject::{Name, Subjects};

/// Items within this time are sent in one message.
const TOGETHER: Duration = Duration::from_millis(100);

/// The largest number of items in a message.
const MOST: usize = 64;

/// Pause before another attempt.
const AGAIN: Duration = Duration::from_millis(250);

/// How long the last messages of a run are retried, normally and when a stop was requested. They are also in
/// the agent's own store.
const LAST_WORDS: Duration = Duration::from_secs(20);
const HURRIED: Duration = Duration::from_secs(5);

/// The sending side of the outbox.
pub(super) struct Outbox {
    sender: Option<Sender<OutputItem>>,
    give_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<bool>>,
}

impl Outbox {
    pub(super) fn start(
        bus: Arc<Bus>,
        subjects: &Subjects,
        run: &Name,
        agent: &Name,
    ) -> Result<Self, FleetError> {
        let (sender, items) = mpsc::channel();
        let (subject, id) = (subjects.output(run, agent), format!("{run}/{agent}"));
        let give_up = Arc::new(AtomicBool::new(false));
        let sending = Sending { bus, subject, id, sequence: 0, give_up: Arc::clone(&give_up) };
        let thread = std::thread::Builder::new()
            .name("outbox".into())
            .spawn(move || sending.send_all(&items))
            .map_err(FleetError::nats)?;
        Ok(Self { sender: Some(sender), give_up, thread: Some(thread) })
    }

    /// The sender for a thread that produces items; `None` once the outbox is finished.
    pub(super) fn sender(&self) -> Option<Sender<OutputItem>> {
        self.sender.clone()
    }

    /// Waits until the server has all messages, for a shorter time when a stop is requested. Returns false if
    /// some are missing.
    pub(super) fn finish(mut self, stop: &Stop) -> bool {
        self.sender = None;
        let Some(thread) = self.thread.take() else { return false };
        let since = Instant::now();
        while !thread.is_finished() {
            let limit = if stop.requested() { HURRIED } else { LAST_WORDS };
            if stop.is_immediate() || since.elapsed() > limit {
                self.give_up.store(true, Ordering::Release);
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        thread.join().unwrap_or(false)
    }
}

struct Sending {
    bus: Arc<Bus>,
    subject: String,
    /// Prefix of the messages' identifiers.
    id: String,
    sequence: u64,
    give_up: Arc<AtomicBool>,
}

impl Sending {
    fn send_all(mut self, items: &Receiver<OutputItem>) -> bool {
        let mut waiting = VecDeque::new();
        while let Ok(first) = items.recv() {
            waiting.push_back(first);
            let until = Instant::now() + TOGETHER;
            while waiting.len() < MOST {
                match items.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(item) => waiting.push_back(item),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            while !waiting.is_empty() {
                let next = waiting.drain(..waiting.len().min(MOST)).collect();
                if !self.send(next) {
                    return false;
                }
            }
        }
        true
    }

    /// Sends a message until the server confirms it. Returns false when it is given up.
    fn send(&mut self, items: Vec<OutputItem>) -> bool {
        let sequence = self.sequence;
        self.sequence += 1;
        let Ok(message) = encode(&Output { sequence, items }) else { return false };
        // A message also has headers.
        let room = self.bus.largest().saturating_sub(4096);
        for (part, piece) in pieces(&message, room).into_iter().enumerate() {
            let id = format!("{}/{sequence}/{part}", self.id);
            while self.bus.store(&self.subject, &id, piece.clone()).is_err() {
                if self.give_up.load(Ordering::Acquire) {
                    return false;
                }
                std::thread::sleep(AGAIN);
            }
        }
        true
    }
}
