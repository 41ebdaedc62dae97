//! Writes that are in flight: what they leave behind is unknown until they have ended.

use crate::Io;

/// What is known of a write's place when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoiled {
    /// It was alone there.
    No,
    /// Others wrote the same block at the same time: it is this write's or a later one's.
    AtLeast(u64),
    /// Others wrote a part of it at the same time.
    Lost,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    number: u64,
    io: Io,
    spoiled: Spoiled,
}

/// The writes in flight: as many as the queue is deep.
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
            // It was never begun: nothing is known of its place.
            None => Spoiled::Lost,
        }
    }

    /// Something else changed this place; whether no write was in flight there.
    pub(super) fn spoil(&mut self, io: &Io) -> bool {
        let mut alone = true;
        for flight in self.0.iter_mut().filter(|flight| overlap(&flight.io, io)) {
            flight.spoiled = Spoiled::Lost;
            alone = false;
        }
        alone
    }
}
