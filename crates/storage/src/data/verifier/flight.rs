//! Writes in flight: the content at their offsets is unknown until they have ended.

use crate::Io;

/// What is known of a write's range when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoiled {
    /// There was no other write.
    No,
    /// Other writes to the same block were in flight: the content is that of this write or of a later one.
    AtLeast(u64),
    /// Other writes to a part of it were in flight.
    Lost,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    number: u64,
    io: Io,
    spoiled: Spoiled,
}

/// The writes in flight: as many as the queue depth.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights(Vec<Flight>);

fn overlap(one: &Io, other: &Io) -> bool {
    one.target == other.target
        && one.offset < other.offset + u64::from(other.length)
        && other.offset < one.offset + u64::from(one.length)
}

impl Flights {
    pub(super) fn begin(&mut self, number: u64, io: &Io) {
        let mut spoiled = Spoiled::No;
        for flight in &mut self.0 {
            if !overlap(&flight.io, io) {
                continue;
            }
            let same = (flight.io.offset, flight.io.length) == (io.offset, io.length);
            let both = match flight.spoiled {
                Spoiled::No if same => Spoiled::AtLeast(flight.number),
                Spoiled::AtLeast(least) if same => Spoiled::AtLeast(least),
                _ => Spoiled::Lost,
            };
            flight.spoiled = both;
            spoiled = match (spoiled, both) {
                (Spoiled::No, both) => both,
                (Spoiled::AtLeast(one), Spoiled::AtLeast(other)) => Spoiled::AtLeast(one.min(other)),
                _ => Spoiled::Lost,
            };
        }
        self.0.push(Flight { number, io: *io, spoiled });
    }

    pub(super) fn end(&mut self, number: u64) -> Spoiled {
        match self.0.iter().position(|flight| flight.number == number) {
            Some(at) => self.0.swap_remove(at).spoiled,
            // It was never begun: nothing is known of its range.
            None => Spoiled::Lost,
        }
    }

    /// Another I/O changed this range. Returns whether no write was in flight there.
    pub(super) fn spoil(&mut self, io: &Io) -> bool {
        let mut alone = true;
        for flight in self.0.iter_mut().filter(|flight| overlap(&flight.io, io)) {
            flight.spoiled = Spoiled::Lost;
            alone = false;
        }
        alone
    }
}
