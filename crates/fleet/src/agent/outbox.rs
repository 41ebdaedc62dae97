//! What an agent says of its run, on its way to the server, which stores it. The thread that drives the load only hands it
//! over; what the server has not confirmed is sent again.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::bus::Bus;
use crate::error::FleetError;
use crate::message::{Output, OutputItem, encode, pieces};
use crate::subject::{Name, Subjects};

/// What comes within this time goes into one message.
const TOGETHER: Duration = Duration::from_millis(100);

/// And no more than this.
const MOST: usize = 64;

/// Before another attempt.
const AGAIN: Duration = Duration::from_millis(250);

/// How long the last messages of a run are tried for; they are in the agent's own file, too.
const LAST_WORDS: Duration = Duration::from_mins(1);

/// The agent's end.
pub(super) struct Outbox {
    sender: Option<Sender<OutputItem>>,
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
        let sending = Sending { bus, subject, id, sequence: 0, hung_up: None };
        let thread = std::thread::Builder::new()
            .name("outbox".into())
            .spawn(move || sending.send_all(&items))
            .map_err(FleetError::nats)?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// For a thread that has something to say.
    pub(super) fn sender(&self) -> Option<Sender<OutputItem>> {
        self.sender.clone()
    }

    /// Waits until the server has everything; false when it could not be reached.
    pub(super) fn finish(mut self) -> bool {
        self.sender = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(false)
    }
}

struct Sending {
    bus: Arc<Bus>,
    subject: String,
    /// Begins the identifier of each message.
    id: String,
    sequence: u64,
    /// Since when there is nothing more to come.
    hung_up: Option<Instant>,
}

impl Sending {
    fn send_all(mut self, items: &Receiver<OutputItem>) -> bool {
        let mut everything = true;
        while self.hung_up.is_none() {
            let Ok(first) = items.recv() else { break };
            let mut together = vec![first];
            let until = Instant::now() + TOGETHER;
            while together.len() < MOST {
                match items.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(item) => together.push(item),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        self.hung_up = Some(Instant::now());
                        break;
                    }
                }
            }
            everything &= self.send(together, items);
        }
        everything
    }

    /// Sends until the server has it; false when there is no more time for that.
    fn send(&mut self, items: Vec<OutputItem>, rest: &Receiver<OutputItem>) -> bool {
        let sequence = self.sequence;
        self.sequence += 1;
        let Ok(message) = encode(&Output { sequence, items }) else { return false };
        // Beside the piece itself a message has its headers.
        let room = self.bus.largest().saturating_sub(4096);
        let mut waiting = Vec::new();
        for (part, piece) in pieces(&message, room).into_iter().enumerate() {
            let id = format!("{}/{sequence}/{part}", self.id);
            while self.bus.store(&self.subject, &id, piece.clone()).is_err() {
                // Whether anybody still speaks is only seen by listening.
                loop {
                    match rest.try_recv() {
                        Ok(item) => waiting.push(item),
                        Err(mpsc::TryRecvError::Empty) => break,
                        Err(mpsc::TryRecvError::Disconnected) => {
                            self.hung_up.get_or_insert_with(Instant::now);
                            break;
                        }
                    }
                }
                if self.hung_up.is_some_and(|since| since.elapsed() > LAST_WORDS) {
                    return false;
                }
                std::thread::sleep(AGAIN);
            }
        }
        let mut sent = true;
        while !waiting.is_empty() {
            let next = waiting.drain(..waiting.len().min(MOST)).collect();
            sent &= self.send(next, rest);
        }
        sent
    }
}
