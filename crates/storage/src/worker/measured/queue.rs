//! The slots of the queue: which are free, and the I/Os in the others.

use std::collections::HashSet;

use super::batch::Batch;
use super::flight::{Flight, NO_FLIGHT};
use crate::Io;
use crate::engine::CompletedRequest;

/// A worker's queue. A slot that is in none of `free`, `fresh` and `resumed` is in the engine.
pub(super) struct Queue {
    /// The slots.
    pub(super) flights: Vec<Flight>,
    pub(super) free: Vec<u32>,
    /// Passed to the engine and not submitted yet.
    pub(super) fresh: Vec<u32>,
    /// Slots of partially completed I/Os, whose remainder is requested again.
    pub(super) resumed: Vec<u32>,
    /// Reaped and not counted yet.
    pub(super) ended: Vec<CompletedRequest>,
    pub(super) under_way: u32,
    /// Maximum number in flight now.
    pub(super) depth: u32,
    pub(super) filling: bool,
    pub(super) batch: Batch,
    /// Reads that other threads verify: they have completed, and their slots are not free yet.
    pub(super) looked_at: u32,
}

impl Queue {
    /// A queue with `places` slots, of which `depth` are used now.
    pub(super) fn new(places: u32, depth: u32, batch: Batch) -> Self {
        let list = || Vec::with_capacity(places as usize);
        Self {
            flights: vec![NO_FLIGHT; places as usize],
            free: (0..places).rev().collect(),
            fresh: list(),
            resumed: list(),
            ended: Vec::with_capacity(places as usize),
            under_way: 0,
            depth,
            filling: true,
            batch,
            looked_at: 0,
        }
    }

    /// The I/Os in the slots that are not free.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Flight> {
        let free: HashSet<u32> = self.free.iter().copied().collect();
        let slots = self.flights.iter().enumerate();
        slots.filter(move |(slot, _)| !free.contains(&(*slot as u32))).map(|(_, flight)| flight)
    }

    /// Whether an I/O in flight overlaps the blocks of an I/O.
    pub(super) fn overlaps(&self, io: &Io) -> bool {
        let end = io.offset + u64::from(io.length);
        self.flights.iter().enumerate().any(|(slot, flight)| {
            let other = &flight.io;
            other.length > 0
                && other.target == io.target
                && other.offset < end
                && io.offset < other.offset + u64::from(other.length)
                && !self.free.contains(&(slot as u32))
        })
    }
}
