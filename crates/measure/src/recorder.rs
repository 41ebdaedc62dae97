//! The way of a sample from a virtual user's thread to the collector: a wait-free ring per user.
//!
//! Chosen over histograms in the user's thread: five histograms of three seconds each are 4 MB a user, which
//! 10,000 users cannot have, and a sample in a ring keeps its exact time, so that the collector alone decides
//! to which second it belongs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::Nanos;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionOutcome {
    /// Committed.
    Committed,
    /// Rolled back because the workload's rules say so; a good transaction.
    RolledBack,
    /// Failed after its retries; never counted as a transaction and never in a latency figure.
    Failed,
}

/// One finished transaction, or one statement of it.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it ended, on the run's clock.
    pub end: Nanos,
    /// Time from its start on the connection to its end, with all its retries.
    pub service: Nanos,
    /// In an open loop: from its intended start to its start. 0 in a closed loop.
    pub late: Nanos,
    /// Index of the transaction type or statement.
    pub kind: u16,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// How often it was repeated before it ended.
    pub retries: u16,
    /// Whether a user stood ready at the intended start, so that `late` is the lateness of the generator alone
    /// and no waiting for a free user.
    pub awaited: bool,
}

impl Sample {
    /// A transaction of a closed loop.
    pub fn closed(end: Nanos, service: Nanos, kind: u16, outcome: TransactionOutcome, retries: u16) -> Self {
        Self { end, service, late: 0, kind, outcome, retries, awaited: false }
    }

    /// From the intended start to the end.
    pub fn response(&self) -> Nanos {
        self.late + self.service
    }
}

/// The user's end.
#[derive(Debug)]
pub struct Recorder {
    ring: Producer<Sample>,
    pushed: u64,
    full: u64,
}

impl Recorder {
    /// Hands a sample to the collector. Neither locks nor allocates. When the ring is full the user waits
    /// (and counts that it did): a sample is never dropped.
    #[inline]
    pub fn record(&mut self, sample: Sample) {
        let mut sample = sample;
        while let Err(rtrb::PushError::Full(back)) = self.ring.push(sample) {
            self.full += 1;
            sample = back;
            kelvin_fiber::sleep(std::time::Duration::from_micros(50));
        }
        self.pushed += 1;
    }

    /// Samples handed over so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// How often the user had to wait for room: anything but 0 means that the collector was starved.
    pub fn full(&self) -> u64 {
        self.full
    }
}

/// Makes a ring for `capacity` samples and returns its two ends.
pub fn recorder(capacity: usize) -> (Recorder, Consumer<Sample>) {
    let (producer, consumer) = RingBuffer::new(capacity);
    (Recorder { ring: producer, pushed: 0, full: 0 }, consumer)
}

/// Counters that one user's thread writes and the collector reads during the run (the self-audit's
/// figures). Only one thread may add to them; a plain store then suffices.
#[derive(Debug, Clone)]
pub struct Counters(Arc<[AtomicU64]>);

impl Counters {
    /// `length` counters at 0.
    pub fn new(length: usize) -> Self {
        Self((0..length).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds to a counter; only from the owning user's thread.
    #[inline]
    pub fn add(&self, index: usize, amount: u64) {
        let counter = &self.0[index];
        counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
    }

    /// Adds the current values to `sums`.
    pub fn sum_into(&self, sums: &mut [u64]) {
        for (sum, counter) in sums.iter_mut().zip(self.0.iter()) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }

    /// Number of counters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
