//! The places of the queue: which are free, and what is under way in the others.

use std::collections::HashSet;

use super::batch::Batch;
use super::flight::{Flight, NO_FLIGHT};
use crate::Io;
use crate::engine::CompletedRequest;

/// A worker's queue. A place that is in none of `free`, `fresh` and `resumed` is with the engine.
pub(super) struct Queue {
    /// The places.
    pub(super) flights: Vec<Flight>,
    pub(super) free: Vec<u32>,
    /// Given to the engine and not handed over yet.
    pub(super) fresh: Vec<u32>,
    /// Those that moved a part: the rest is asked for again.
    pub(super) resumed: Vec<u32>,
    /// Taken back and not counted yet.
    pub(super) ended: Vec<CompletedRequest>,
    pub(super) under_way: u32,
    /// So many may be under way now.
    pub(super) depth: u32,
    pub(super) filling: bool,
    pub(super) batch: Batch,
    /// Reads that other threads look at: they have ended, and their places are not free yet.
    pub(super) looked_at: u32,
}

impl Queue {
    /// With so many places, of which `depth` are used now.
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

    /// What is in the places that are not free.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Flight> {
        let free: HashSet<u32> = self.free.iter().copied().collect();
        let slots = self.flights.iter().enumerate();
        slots.filter(move |(slot, _)| !free.contains(&(*slot as u32))).map(|(_, flight)| flight)
    }

    /// Whether something under way touches the blocks of an I/O.
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
